"""What is wrong with a request is told in JSON: the status, the column, the value and the remedy."""

import json
import random
import re

import pytest
from tests.serve.client import ask, stream

from candide.serve import app
from candide.store.input_schema import example_row


def problem(answer, status):
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert told["status"] == status
    assert told["title"]
    return told


def test_a_problem_names_column_and_row(served):
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
def test_bodies_that_are_not_rows(served, path, body, status):
    assert ask(served, path, body).status in (400, status)


def test_nan_is_not_json(served):
    assert ask(served, "/predict", b'{"height": NaN}').status == 400


@pytest.mark.parametrize("media", ["text/csv", "application/vnd.apache.arrow.stream", "application/x-ndjson"])
def test_bodies_that_do_not_match_their_content_type(served, media):
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


def test_described_paths_exist(served):
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


def test_every_response_is_described(models, tmp_path):
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


def test_explanations_by_term_and_column(served):
    for rows in ([], [{"height": 2.0}]):
        told = problem(ask(served, "/explain?by=row", rows), 422)
        assert (told["value"], "by=column" in told["remedy"]) == ("row", True)


def test_the_page_and_the_model(served):
    assert ask(served, "/report").body.startswith(b"<!doctype html>")
    assert {each["label"] for each in ask(served, "/model").json["classes"]} == {"cut", "stay"}


def test_mutated_requests_get_a_response(models):
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
