"""What is wrong with a request is told in JSON: the status, the column, the value and the remedy."""

import json
import random
import re

import pytest
from tests.serve.client import ask, stream

from candide.errors import InputError
from candide.serve import Limits, app
from candide.store.input_schema import example_row


def problem(answer, status):
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert told["status"] == status
    assert told["title"]
    return told


def test_a_value_is_told_by_column_and_row(served):
    for body, row in [({"height": "tall"}, 0), ([{"height": 1.0}, {"height": "tall"}], 1)]:
        told = problem(ask(served, "/predict", body), 422)
        assert (told["column"], told["row"], told["value"]) == ("height", row, "tall")
        assert told["remedy"]
    told = problem(ask(served, "/predict", {"age": [1, 2]}), 422)
    assert (told["column"], told["remedy"]) == ("age", "send a number, text, boolean or null")
    told = problem(ask(served, "/predict", {"height": 10**400}), 422)
    assert told["column"] == "height"
    told = problem(ask(served, "/predict", b'[{"height": 1}, {"height": 1e400}]'), 422)
    assert (told["column"], told["row"]) == ("height", 1)


def test_none_of_the_columns(served):
    told = problem(ask(served, "/predict", {"Height": 2.0, "ages": 3}), 422)
    assert "'Height' for 'height'" in told["remedy"]
    problem(ask(served, "/predict", {}), 422)
    problem(ask(served, "/predict", [{}]), 422)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"height": NaN}', 422),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 422),
        (b'{"a":' * 100_000, 422),
        (b"3", 422),
        (b'"text"', 422),
        (b"[3]", 422),
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/explain", "/invocations", "/v2/models/trees/infer"])
def test_bodies_that_are_no_rows(served, path, body, status):
    assert ask(served, path, body).status in (400, status)


def test_nan_is_no_json(served):
    assert ask(served, "/predict", b'{"height": NaN}').status == 400


@pytest.mark.parametrize("media", ["text/csv", "application/vnd.apache.arrow.stream", "application/x-ndjson"])
def test_other_formats_that_are_none(served, media):
    for body in (b"\x00\x01\x02", b"\xff" * 64, b"a,b\n1\n"):
        assert ask(served, "/predict", body, media).status in (400, 422)


def test_media_types(served):
    for media in ("", "text/plain", "application/x-www-form-urlencoded"):
        told = problem(ask(served, "/predict", b'{"height": 2}', media), 415)
        assert "application/json" in told["remedy"]
    problem(ask(served, "/predict", {"height": 2.0}, accept="image/png"), 406)
    problem(ask(served, "/predict", {"height": 2.0}, accept="application/json;q=0, text/csv; q=0.0"), 406)
    for accept in ("application/json;q=0, text/csv", "application/json;q=0.5,text/csv;q=0.9", "text/csv;q=x"):
        assert ask(served, "/predict", {"height": 2.0}, accept=accept).headers["content-type"] == "text/csv"


def test_paths_and_methods(served):
    problem(ask(served, "/nothing"), 404)
    answer = ask(served, "/predict")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"
    assert ask(served, "/model", method="HEAD").body == b""


def test_other_names(models):
    served = app(models["naive"])
    served.hosts = frozenset({b"localhost", b"[::1]"})
    for host, status in [("localhost:80", 200), ("LOCALHOST", 200), ("[::1]:80", 200), ("evil.org:80", 421), ("", 421)]:
        assert ask(served, "/predict", {"height": 2.0}, host=host).status == status


def test_compressed_arrow_is_refused(served):
    import io

    import pyarrow as pa

    rows = pa.table({"height": [1.0] * 1000, "soil": pa.array(["clay"] * 1000).dictionary_encode()})
    for kind, status in [(None, 200), ("lz4", 415), ("zstd", 415)]:
        for some in (rows, rows.select(["height"]), rows.select(["soil"])):
            out = io.BytesIO()
            with pa.ipc.new_stream(out, some.schema, options=pa.ipc.IpcWriteOptions(compression=kind)) as stream:
                stream.write_table(some)
            answer = ask(served, "/predict", out.getvalue(), "application/vnd.apache.arrow.stream")
            assert answer.status == status


def test_limits(models):
    served = app(models["naive"], limits=Limits(max_body_bytes=200, max_rows=3, max_explained_rows=1))
    row = {"height": 2.0}
    problem(ask(served, "/predict", [row] * 4), 413)
    problem(ask(served, "/explain", [row] * 2), 413)
    problem(ask(served, "/invocations", {"inputs": [row] * 4}), 413)
    problem(ask(served, "/predict", b" " * 201, chunks=9), 413)
    problem(ask(served, "/predict", b"{}", content_length=10**9), 413)
    assert ask(served, "/predict", [row] * 3).status == 200


def test_a_body_that_does_not_come(models):
    import asyncio

    served, out = app(models["naive"], limits=Limits(timeout_seconds=0.01)), []

    async def never():
        await asyncio.sleep(60)

    async def send(message):
        out.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": []}
    asyncio.run(served(scope, never, send))
    assert out[0]["status"] == 408


def test_a_body_that_comes_slowly(models):
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
def test_a_token_that_is_none(models, token, tmp_path):
    with pytest.raises(InputError, match="token"):
        app(models["naive"], token=token, journal_path=tmp_path / "state.db", target="fate")
    assert not any(tmp_path.iterdir())


def test_pages_of_others_change_nothing(models, tmp_path):
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


def test_infinity_is_not_learned(models, tmp_path):
    """JSON would keep it as missing."""
    served = app(models["naive"], journal_path=tmp_path / "state.db", target="fate")
    whole = {name: [None] for name in ("height", "soil", "wet", "site", "kind")} | {"fate": ["cut"]}
    rows = served._learner.fitted.n_rows
    for value in (float("inf"), float("-inf")):
        answer = ask(served, "/learn", stream({**whole, "age": [value]}), "application/vnd.apache.arrow.stream")
        assert problem(answer, 422)["column"] == "age"
    text = b"height,soil,wet,site,kind,fate,age\n,,,,,cut,inf\n"
    assert problem(ask(served, "/learn", text, "text/csv"), 422)["column"] == "age"
    assert served._learner.fitted.n_rows == rows
    served.close()


def test_a_failure_tells_nothing_of_the_server(served, monkeypatch, capsys):
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


def test_what_is_described_is_there(served):
    told = ask(served, "/openapi.json").json
    assert told["openapi"] == "3.1.0"
    assert set(told["paths"]) == set(served.paths)
    row = told["components"]["schemas"]["Row"]["example"]
    assert ask(served, "/predict", row).notes == []
    page = ask(served, "/docs", host="<b>.org:81").body.decode()
    assert "http://&lt;b&gt;.org:81/predict" in page
    assert all(path in page.replace("<wbr>", "") for path in served.paths)
    assert "<code>/v2/<wbr>health/<wbr>live</code>" in page
    assert "anywhere" not in page  # or words would be broken before the columns are
    assert "src=" not in page
    assert page.count("http") == 1  # the example


def test_every_answer_and_problem_is_described(models, tmp_path):
    """With the schema of each, and no name without a schema."""
    served = app(models["naive"], journal_path=tmp_path / "state.db", target="fate", token="t")
    told = ask(served, "/openapi.json").json
    names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(told)))
    assert names <= told["components"]["schemas"].keys()
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            assert one["responses"]["200"]["content"], path
            assert {"401", "405", "421", "500", "503"} <= one["responses"].keys()
            assert ("requestBody" in one) == (method == "post")
            assert ("security" in one) == (path in ("/learn", "/forget", "/state", "/learned"))
            for body in one.get("requestBody", {}).get("content", {}).values():
                assert "$ref" in body.get("schema", {"$ref": ""})
    served.close()


def test_by_what_reasons_are_told(served):
    for rows in ([], [{"height": 2.0}]):
        told = problem(ask(served, "/explain?by=row", rows), 422)
        assert (told["value"], "by=column" in told["remedy"]) == ("row", True)


def test_the_page_and_the_model(served):
    assert ask(served, "/report").body.startswith(b"<!doctype html>")
    assert ask(served, "/model").json["classes"].keys() == {"cut", "stay"}


def test_mutations_are_answered(models):
    """Bytes of good requests changed, cut and doubled: an answer or a problem, and never a failure."""
    rng = random.Random(0)
    for name in ("bayes", "documents"):
        served = app(models[name], name="m")
        told, row = ask(served, "/openapi.json").json, example_row(served.scorer.fitted)
        tensors = [{"name": k, "shape": [1], "datatype": "BYTES", "data": [v]} for k, v in row.items()]
        good = {"/predict": [row, row], "/explain": row, "/invocations": {"inputs": [row]}}
        good["/v2/models/m/infer"] = {"inputs": tensors}
        for _ in range(300):
            path = rng.choice(list(good))
            raw = bytearray(json.dumps(good[path]).encode())
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(raw))
                what = rng.choice(
                    [b"", b"[", b"]", b"{", b'"', b"1e309", b"-", b"null", b"9" * 40, b"\xf0", b"\\ud800", b","]
                )
                raw[at : at + rng.randint(0, 3)] = what
            media = rng.choice(["application/json"] * 6 + ["text/csv", "application/x-ndjson"])
            answer = ask(served, path, bytes(raw), media)
            assert answer.status in (200, 400, 413, 415, 422), bytes(raw)
            assert str(answer.status) in told["paths"][path]["post"]["responses"]
