"""Paths, methods, tokens, limits, time-outs, logs and metrics of the application."""

import json

import pytest
from tests.serve.client import ask

from candide.errors import InputError
from candide.serve import Limits, app


def problem(answer, status):
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert told["status"] == status
    assert told["title"]
    return told


def test_paths_and_methods(served):
    problem(ask(served, "/nothing"), 404)
    answer = ask(served, "/predict")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"
    assert ask(served, "/model", method="HEAD").body == b""


def test_other_host_names(models):
    served = app(models["naive"])
    served.hosts = frozenset({b"localhost", b"[::1]"})
    for host, status in [("localhost:80", 200), ("LOCALHOST", 200), ("[::1]:80", 200), ("evil.org:80", 421), ("", 421)]:
        assert ask(served, "/predict", {"height": 2.0}, host=host).status == status


def test_limits(models):
    served = app(models["naive"], limits=Limits(max_body_bytes=200, max_rows=3, max_explained_rows=1))
    row = {"height": 2.0}
    problem(ask(served, "/predict", [row] * 4), 413)
    problem(ask(served, "/explain", [row] * 2), 413)
    problem(ask(served, "/invocations", {"inputs": [row] * 4}), 413)
    problem(ask(served, "/predict", b" " * 201, chunks=9), 413)
    problem(ask(served, "/predict", b"{}", content_length=10**9), 413)
    assert ask(served, "/predict", [row] * 3).status == 200


def test_a_body_that_does_not_arrive(models):
    import asyncio

    served, out = app(models["naive"], limits=Limits(timeout_seconds=0.01)), []

    async def never():
        await asyncio.sleep(60)

    async def send(message):
        out.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": []}
    asyncio.run(served(scope, never, send))
    assert out[0]["status"] == 408


def test_a_body_that_arrives_slowly(models):
    """The time is that of the whole, however often some of it comes."""
    import asyncio

    served, out = app(models["naive"], limits=Limits(timeout_seconds=0.05)), []

    async def drop():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": len(out) == 0 and served.metrics.running > 0}

    async def send(message):
        out.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": []}
    asyncio.run(asyncio.wait_for(served(scope, drop, send), 30))
    assert out[0]["status"] == 408


def test_the_token(models):
    served = app(models["naive"], token="secret", private=True)
    row = {"height": 2.0}
    for wrong in (
        {},
        {"authorization": "Bearer secre"},
        {"authorization": "secret"},
        {"authorization": "Bearer sécret"},
    ):
        answer = ask(served, "/predict", row, **wrong)
        problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    for scheme in ("Bearer", "bearer", "BEARER "):
        assert ask(served, "/predict", row, authorization=f"{scheme} secret").status == 200
    assert ask(served, "/v2/health/live").status == 200
    assert ask(served, "/metrics").status == 401


@pytest.mark.parametrize("token", ["", " ", "sécret", "a\nb"])
def test_an_invalid_token(models, token, tmp_path):
    with pytest.raises(InputError, match="token"):
        app(models["naive"], token=token, journal_path=tmp_path / "state.db", target="fate")
    assert not any(tmp_path.iterdir())


def test_pages_of_other_sites_change_nothing(models, tmp_path):
    """A page may send what needs no content type, and not see the answer: a key is forgotten for all that."""
    served = app(models["naive"], journal_path=tmp_path / "state.db", target="fate")
    row = {**dict.fromkeys(("height", "age", "soil", "wet", "site", "kind")), "height": 2.0, "fate": "cut"}
    ask(served, "/learn?key=a", row)
    rows = served._learner.fitted.n_rows
    own, other = "http://localhost:8000", "http://evil.org"
    for said in ({"origin": other}, {"origin": "null"}, {"origin": f"{own}0"}, {"sec_fetch_site": "cross-site"},
                 {"sec_fetch_site": "same-site", "origin": own}):  # fmt: skip
        problem(ask(served, "/forget?of=a", method="POST", host="localhost:8000", **said), 403)
        assert ask(served, "/predict", {"height": 2.0}, host="localhost:8000", **said).status == 200
    assert served._learner.fitted.n_rows == rows
    for said in ({"origin": own}, {"sec_fetch_site": "same-origin", "origin": "https://proxy.org"}, {}):
        assert ask(served, "/learn", row, host="LOCALHOST:8000", **said).status == 200
    served.close()


def test_an_internal_error_reveals_nothing(served, monkeypatch, capsys):
    monkeypatch.setattr(served.scorer, "score_row", lambda row: 1 / 0)
    told = problem(ask(served, "/predict", {"height": 2.0}), 500)
    assert "Zero" not in json.dumps(told)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_log_and_the_metrics_hold_no_values(models):
    lines = []
    served = app(models["naive"], log=lines.append)
    ask(served, "/predict", {"height": 2.0, "soil": "SECRET"})
    ask(served, "/SECRET")
    ask(served, "/predict", {"height": "SECRET"})
    text = ask(served, "/metrics").body.decode()
    assert "SECRET" not in str(lines) + text
    assert [line["status"] for line in lines] == [200, 404, 422, 200]
    assert 'candide_requests_total{path="/predict",status="200"} 1' in text
    assert 'candide_request_seconds_count{path="/predict"} 2' in text


def test_mounted_elsewhere(served):
    assert ask(served, "/predict", {"height": 2.0}, root="/trees").status == 200
