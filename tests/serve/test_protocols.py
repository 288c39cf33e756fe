"""Clients that exist ask in their own words, and get the same predictions."""

import json

import numpy as np
import pytest
from tests.serve.client import ask
from tests.serve.live import listening
from tests.serve.test_endpoints import rows_for

from candide.serve import app

ROWS = rows_for("naive")[:8]
NAMES = ["height", "age", "soil", "wet", "site", "kind"]


def columns():
    return {name: [row.get(name) for row in ROWS] for name in NAMES}


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": NAMES, "data": [[row.get(n) for n in NAMES] for row in ROWS], "index": [0]}},
        {"dataframe_records": ROWS},
        {"inputs": columns(), "params": {"a": 1}},
        {"inputs": ROWS},
        {"instances": ROWS},
        {"instances": columns()},
    ],
)
def test_mlflow(served, body):
    wanted = [row["prediction"] for row in ask(served, "/predict", ROWS).json]
    assert ask(served, "/invocations", body).json["predictions"] == wanted


def test_what_is_missing_may_be_nan(served):
    """As Python's clients write it, in numbers and in text; an infinity is told by its column."""
    row = {"height": float("nan"), "age": 3, "soil": float("nan"), "wet": 1}
    [wanted] = ask(served, "/predict", [{"age": 3, "wet": 1}]).json
    assert ask(served, "/invocations", {"dataframe_records": [row]}).json["predictions"] == [wanted["prediction"]]
    kinds = {"height": "FP64", "age": "INT64", "soil": "BYTES", "wet": "INT64"}
    inputs = [{"name": n, "shape": [1], "datatype": kinds[n], "data": [value]} for n, value in row.items()]
    answer = ask(served, "/v2/models/trees/infer", {"inputs": inputs}).json
    assert [one["data"] for one in answer["outputs"]][:2] == [[wanted["prediction"]], [wanted["p_cut"]]]
    named = [{"age": 3, "wet": 1, "NaN": 2, "soil": 'a "NaN', "site": "NaN\\"}, {"age": float("nan")}]
    plain = json.dumps({"inputs": named}).replace(": NaN", ": null").encode()
    assert ask(served, "/invocations", {"inputs": named}).json == ask(served, "/invocations", plain).json
    assert ask(served, "/invocations", {"inputs": [{**row, "age": float("inf")}]}).status == 400
    assert ask(served, "/v2/models/trees/infer", b'{"inputs": [{"nam\\ud800": NaN}]}').status in (400, 422)
    assert ask(served, "/invocations", b'{"inputs": [{"age": NaN, "' + b'\\"' * 999_999).status == 400  # at once
    for broken in (b'{"inputs": [NaN', b'{"inputs": NaN, "instances": 3}', b"[NaN]" * 9, b'{"inputs": ' + b"[" * 9999):
        assert ask(served, "/invocations", broken + b" NaN").status in (400, 422)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "dataframe_split"),
        ({"inputs": [], "instances": []}, "dataframe_split"),
        ({"dataframe_split": {"columns": ["a", "b"], "data": [[1]]}}, "1 value for 2 columns"),
        ({"dataframe_split": {"columns": ["a", "a"], "data": [[1, 2]]}}, "same name"),
        ({"inputs": {"a": [1], "b": [1, 2]}}, "length"),
        ({"inputs": [[1.0, 2.0]]}, "$.inputs[0]"),
        ({"dataframe_spilt": {"columns": ["a"], "data": [[1]]}}, "unknown field 'dataframe_spilt'"),
        ({"dataframe_split": {"columns": ["a"], "data": [[1]], "rows": 3}}, "unknown field 'rows' in dataframe_split"),
    ],
)
def test_mlflow_refused(served, body, named):
    answer = ask(served, "/invocations", body)
    assert answer.status == 422
    assert named in answer.json["detail"]


def tensors():
    kinds = {"height": "FP64", "age": "FP64", "wet": "INT64"}
    held = columns()
    return [{"name": n, "shape": [8], "datatype": kinds.get(n, "BYTES"), "data": held[n]} for n in NAMES]


def test_open_inference(served):
    told = ask(served, "/v2/models/trees").json
    assert [one["name"] for one in told["inputs"]] == NAMES
    assert [one["datatype"] for one in told["outputs"]] == ["BYTES", "FP64", "FP64"]
    wanted = ask(served, "/predict", ROWS).json
    answer = ask(served, "/v2/models/trees/infer", {"id": "7", "inputs": tensors()}).json
    assert (answer["id"], answer["model_name"]) == ("7", "trees")
    for one in answer["outputs"]:
        assert one["shape"] == [8]
        assert one["data"] == [row[one["name"]] for row in wanted]
    assert ask(served, "/v2/models/other").status == 404
    for path in ("/ping", "/health", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/trees/ready"):
        assert ask(served, path).status == 200


@pytest.mark.parametrize(
    ("change", "named", "near"),
    [
        ({"output": [{"name": "prediction"}]}, "unknown field 'output'", "'outputs'"),
        ({"inputs": [{**tensors()[0], "dtype": "FP64"}]}, "unknown field 'dtype' in inputs[0]", "'datatype'"),
        ({"outputs": [{"name": "prediction", "size": 3}]}, "unknown field 'size' in outputs[0]", "name, parameters"),
    ],
)
def test_open_inference_names_unknown_fields(served, change, named, near):
    answer = ask(served, "/v2/models/trees/infer", {"inputs": tensors(), **change})
    assert (answer.status, answer.json["detail"]) == (422, named)
    assert near in answer.json["remedy"]


def test_open_inference_in_bytes(served):
    """As Triton's client sends tensors: after the JSON, texts each with its length."""
    height, age = np.array([9.5, 20.0], "<f4"), np.array([3, 80], "<i8")
    soil = b"".join(len(text).to_bytes(4, "little") + text for text in (b"clay", b"sand"))
    raw = [height.tobytes(), age.tobytes(), soil, b"\x01\x00"]
    kinds = [("height", "FP32", [2, 1]), ("age", "INT64", [2]), ("soil", "BYTES", [2]), ("wet", "BOOL", [2])]
    inputs = [
        {"name": n, "datatype": kind, "shape": shape, "parameters": {"binary_data_size": len(part)}}
        for (n, kind, shape), part in zip(kinds, raw, strict=True)
    ]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    length = {"inference_header_content_length": len(head)}
    answer = ask(served, "/v2/models/trees/infer", head + b"".join(raw), **length)
    wanted = ask(
        served,
        "/predict",
        [
            {"height": 9.5, "age": 3, "soil": "clay", "wet": True},
            {"height": 20.0, "age": 80, "soil": "sand", "wet": False},
        ],
    )
    assert answer.json["outputs"][0]["data"] == [row["prediction"] for row in wanted.json]
    assert answer.json["outputs"][1]["data"] == [row["p_cut"] for row in wanted.json]
    short = ask(served, "/v2/models/trees/infer", (head + b"".join(raw))[:-3], **length)
    assert (short.status, short.json["column"]) == (422, "soil")
    for wrong in ("-1", "x", str(len(head) + 10**6), "9" * 5000):
        assert ask(served, "/v2/models/trees/infer", head, inference_header_content_length=wrong).status == 400


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [8, 2]},
        {"shape": [7]},
        {"data": [[1, 2], *([[3]] * 5), 4]},
        {"shape": [-1]},
        {"datatype": "FP128", "parameters": {"binary_data_size": 0}},
    ],
)
def test_a_tensor_that_is_not_a_column(served, change):
    inputs = tensors()
    inputs[1] |= change
    answer = ask(served, "/v2/models/trees/infer", {"inputs": inputs})
    assert (answer.status, answer.json["column"]) == (422, "age")


def test_outputs_that_are_asked_for(served):
    outputs = [{"name": "p_stay", "parameters": {"binary_data": True}}]
    answer = ask(served, "/v2/models/trees/infer", {"inputs": tensors(), "outputs": outputs}).json
    assert [one["name"] for one in answer["outputs"]] == ["p_stay"]
    told = ask(served, "/v2/models/trees/infer", {"inputs": tensors(), "outputs": [{"name": "p_burn"}]})
    assert (told.status, told.json["value"]) == (422, "p_burn")
    twice = ask(served, "/v2/models/trees/infer", {"inputs": [*tensors(), tensors()[0]]})
    assert (twice.status, twice.json["column"]) == (422, "height")


def test_labels_of_tensors(models):
    """Of the type that the metadata say, though there are no rows; of rows left open empty."""
    served = app(models["numbers"], name="m")
    none = [{"name": "0", "shape": [0], "datatype": "FP64", "data": []}]
    assert ask(served, "/v2/models/m").json["outputs"][0]["datatype"] == "INT64"
    assert ask(served, "/v2/models/m/infer", {"inputs": none}).json["outputs"][0]["datatype"] == "INT64"
    answer = ask(app(models["decides"], name="m"), "/v2/models/m/infer", {"inputs": tensors()}).json
    wanted = [row["prediction"] or "" for row in ask(app(models["decides"]), "/predict", ROWS).json]
    assert "" in wanted
    assert answer["outputs"][0]["data"] == wanted


def test_a_problem_is_reported_as_the_protocol_demands(served):
    for told in (ask(served, "/v2/models/other"), ask(served, "/v2/models/trees/infer", {"inputs": 3})):
        assert told.json["error"] == told.json["detail"]
    assert "error" not in ask(served, "/predict", b"3").json


def test_a_packed_body_is_refused(served):
    for path in ("/predict", "/v2/models/trees/infer"):
        assert ask(served, path, b"", content_encoding="gzip").status == 415


@pytest.mark.parametrize("in_bytes", [True, False])
def test_the_client_of_triton(models, in_bytes):
    client = pytest.importorskip("tritonclient.http")
    columns = {
        "height": (np.array([9.5, np.nan, 12.0]), "FP64"),
        "age": (np.array([3, 80, 9]), "INT64"),
        "soil": (np.array(["clay", "sand", "peat"], object), "BYTES"),
        "wet": (np.array([True, False, True]), "BOOL"),
    }
    served = app(models["naive"], name="trees")
    with listening(served) as address:
        asked = client.InferenceServerClient(address.removeprefix("http://"))
        assert asked.is_server_live()
        assert asked.is_server_ready()
        assert asked.is_model_ready("trees")
        assert not asked.is_model_ready("other")
        assert [one["name"] for one in asked.get_model_metadata("trees")["inputs"]] == NAMES
        sent = [client.InferInput(name, list(values.shape), kind) for name, (values, kind) in columns.items()]
        for one, (values, _) in zip(sent, columns.values(), strict=True):
            one.set_data_from_numpy(values, binary_data=in_bytes)
        wants = [client.InferRequestedOutput(name, binary_data=in_bytes) for name in ("prediction", "p_cut")]
        found = asked.infer("trees", sent, outputs=wants, request_id="7")
        with pytest.raises(client.InferenceServerException, match="nothing at this path"):
            asked.get_model_metadata("other")
        asked.close()
    held = {name: [None if v != v else v for v in values.tolist()] for name, (values, _) in columns.items()}
    wanted = ask(served, "/predict", [dict(zip(held, row, strict=True)) for row in zip(*held.values(), strict=True)])
    assert found.get_response()["id"] == "7"
    assert found.as_numpy("prediction").tolist() == [row["prediction"] for row in wanted.json]
    assert found.as_numpy("p_cut").tolist() == [row["p_cut"] for row in wanted.json]
    assert found.as_numpy("p_stay") is None
