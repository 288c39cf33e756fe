"""Models that are kept in MLflow are those that were saved, and answer as they do elsewhere."""

import os
from pathlib import Path

import numpy as np
import pytest

import candide as cd
from candide import store
from candide.errors import InputError, ModelFileError
from candide.serve import app

pytest.importorskip("mlflow")
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow
import pandas as pd
from mlflow.models import Model
from tests.serve.live import listening

from candide.mlflow import load_model, log_model, save_model

X = {"size": [1.0, 1.2, 3.1, None] * 9, "sort": ["a", "a", "b", None] * 9, "n": [1, 2, 3, 4] * 9}
Y = ["low", "low", "high", "high"] * 9
ROWS = pd.DataFrame({"size": [3.0, 1.0, None], "sort": ["b", None, "new"], "n": [3, 1, 2]})


@pytest.fixture(scope="module")
def fitted():
    return cd.NaiveBayes().fit(X, Y)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "model"
    save_model(fitted, path)
    return str(path)


def test_what_is_saved(fitted, folder, tmp_path):
    files = {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}
    texts = {"MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "input_example.json"}
    assert files == {*texts, "serving_input_example.json", os.path.join("data", "model.candide")}
    assert store.is_model_file(os.path.join(folder, "data", "model.candide"))
    told = Model.load(folder)
    assert told.flavors["candide"]["candide_version"] == cd.__version__
    assert told.signature.inputs.input_names() == ["size", "sort", "n"]
    assert told.load_input_example(folder).shape == (1, 3)
    assert f"candide=={cd.__version__}" in Path(folder, "requirements.txt").read_text().splitlines()
    fitted.save(tmp_path / "m.candide", detail="score")
    save_model(str(tmp_path / "m.candide"), tmp_path / "of a file", input_example=False, metadata={"by": "Ada"})
    again = (tmp_path / "of a file" / "data" / "model.candide").read_bytes()
    assert again == (tmp_path / "m.candide").read_bytes()
    assert Model.load(str(tmp_path / "of a file")).metadata == {"by": "Ada"}


def test_loaded_as_itself_and_as_a_function(fitted, folder):
    again = load_model(folder)
    assert type(again) is cd.NaiveBayes
    assert np.array_equal(again.predict_proba(ROWS), fitted.predict_proba(ROWS))
    function = mlflow.pyfunc.load_model(folder)
    for rows in (ROWS, ROWS.astype({"sort": "category"}), ROWS.assign(n=ROWS.n.astype("int32"), more=1)):
        assert function.predict(rows).tolist() == fitted.predict(ROWS).tolist()
    table = function.predict(ROWS, params={"output": "table"})
    assert np.allclose(table[["p_high", "p_low"]], fitted.predict_proba(ROWS), rtol=1e-12)
    with pytest.raises(InputError, match="output"):
        function.predict(ROWS, params={"output": "tables"})
    few = ROWS[["size"]]  # what is not there is missing
    assert function.predict(few).tolist() == fitted.predict_table(few).column("prediction").to_pylist()


@pytest.mark.parametrize(
    ("labels", "kind"), [([0, 1] * 18, "long"), ([False, True] * 18, "boolean"), ([0.0, 1.0] * 18, "double")]
)
def test_labels_that_are_not_text(labels, kind, tmp_path):
    model = cd.NaiveBayes().fit(X, labels)
    save_model(model, tmp_path / "m")
    [told] = Model.load(str(tmp_path / "m")).signature.outputs.inputs
    assert told.type.name == kind
    found = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(ROWS)
    assert found.tolist() == model.predict(ROWS).tolist()


def test_logged_in_a_run(fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    try:
        mlflow.set_experiment("trees")
        with mlflow.start_run():
            told = log_model(fitted, "trees")
        assert load_model(told.model_uri).predict(ROWS).tolist() == fitted.predict(ROWS).tolist()
        assert mlflow.pyfunc.load_model(told.model_uri).predict(ROWS).tolist() == fitted.predict(ROWS).tolist()
    finally:
        mlflow.set_tracking_uri(None)


def test_a_model_of_another_kind(tmp_path):
    Model(flavors={"sklearn": {}}).save(str(tmp_path / "MLmodel"))
    with pytest.raises(ModelFileError) as error:
        load_model(tmp_path)
    assert "sklearn" in error.value.problem


def test_its_client_asks_the_server(fitted):
    """The client of MLflow's own scoring server, on ours."""
    from mlflow.pyfunc.scoring_server.client import ScoringServerClient

    with listening(app(fitted)) as address:
        client = ScoringServerClient("127.0.0.1", int(address.rpartition(":")[2]))
        client.ping()
        answer = client.invoke(ROWS)
    assert answer.get_predictions().iloc[:, 0].tolist() == fitted.predict(ROWS).tolist()
