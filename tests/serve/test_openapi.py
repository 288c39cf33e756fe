"""The OpenAPI description agrees with the responses."""

from tests.serve.client import ask


def test_warnings_are_in_the_schema(served):
    known = ask(served, "/openapi.json").json["components"]["schemas"]
    [note] = ask(served, "/predict", {"height": 12.0}).json["warnings"]
    assert note.keys() == known["Warning"]["properties"].keys()
    for name in ("Prediction", "Decision", "Labels"):
        assert known[name]["properties"]["warnings"]["items"] == {"$ref": "#/components/schemas/Warning"}
        assert "warnings" not in known[name]["required"]
