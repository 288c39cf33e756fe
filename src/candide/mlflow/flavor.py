"""The Candide flavor of MLflow: how a model is saved, logged, loaded and served by ``mlflow.pyfunc``.

The saved folder holds the model file itself, ``data/model.candide``, and nothing that is pickled.

>>> import tempfile
>>> import candide as cd
>>> X = {"size": [1.0, 1.2, 3.1, 2.9], "colour": ["blue", "blue", "red", "red"]}
>>> folder = tempfile.mkdtemp() + "/model"
>>> save_model(cd.NaiveBayes().fit(X, ["+", "+", "-", "-"]), folder)
>>> load_model(folder).predict({"size": [3.0], "colour": ["red"]}).tolist()
['-']
>>> import mlflow, pandas
>>> model = mlflow.pyfunc.load_model(folder)
>>> list(model.predict(pandas.DataFrame({"size": [3, 1]}), params={"output": "table"}))
['prediction', 'p_+', 'p_-', 'log_density']
"""

import os
import shutil
import sys
import tempfile
from typing import Any

from candide import __version__, store
from candide.api.fitting import load
from candide.api.models import predict_table
from candide.errors import InputError, MissingLibraryError, ModelFileError, unknown_name_error
from candide.model.fitted import FittedModel
from candide.store.file import ModelLike, load_fitted
from candide.store.input_schema import InputSchema, example_row

FLAVOR = "candide"
_MODEL_FILE = "model.candide"
_OUTPUTS = ("prediction", "table")
_SIGNATURE_TYPES = {bool: "boolean", int: "long", float: "double"}  # of labels, as MLflow names them; others are text


def save_model(model: ModelLike, path: str | os.PathLike, *, mlflow_model: Any = None, **options: Any) -> None:
    """Save a model, a fitted estimator or the path of a model file, in a new folder that MLflow can load.

    ``signature`` and ``input_example`` are made from the model unless they are given: its columns, all optional, and a
    row of valid values (False: none). ``pip_requirements``, ``extra_pip_requirements``, ``metadata`` and other options
    are those of ``mlflow.pyfunc.save_model``.
    """
    mlflow = _import_mlflow()
    fitted = load_fitted(model)
    mlflow_model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    mlflow_model.add_flavor(FLAVOR, candide_version=__version__, data=f"data/{_MODEL_FILE}")  # where pyfunc copies it
    if not {"pip_requirements", "conda_env"} & options.keys():
        options["pip_requirements"] = [f"candide=={__version__}"]
    if options.get("signature") is None:
        options["signature"] = _make_signature(fitted)
    if options.get("input_example") is None:
        import pandas as pd

        options["input_example"] = pd.DataFrame([example_row(fitted)])
    elif options["input_example"] is False:
        del options["input_example"]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, _MODEL_FILE)
        if isinstance(model, str | os.PathLike):
            shutil.copyfile(model, file)
        else:
            store.save(fitted, file)
        options |= {"loader_module": __name__, "data_path": file, "mlflow_model": mlflow_model}
        mlflow.pyfunc.save_model(os.fspath(path), **options)


def log_model(model: ModelLike, name: str, **options: Any) -> Any:
    """Log a model to the active MLflow run, and return MLflow's record of it with its ``model_uri``.

    ``options`` are those of :func:`save_model` and of ``mlflow.models.Model.log``: ``registered_model_name``, ``tags``.
    """
    flavor = sys.modules[__name__]
    return _import_mlflow().models.Model.log(name=name, artifact_path=None, flavor=flavor, model=model, **options)


def load_model(model_uri: str | os.PathLike) -> Any:
    """Return the saved estimator, by its address in MLflow (``models:/...``, ``runs:/...``) or its folder."""
    mlflow = _import_mlflow()
    folder = mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(model_uri))
    flavors = mlflow.models.Model.load(folder).flavors
    if FLAVOR not in flavors:
        what = f"{model_uri} is not a Candide model; its flavors are {', '.join(flavors)}"
        raise ModelFileError(what, value=model_uri, remedy="load it by mlflow.pyfunc.load_model")
    return load(os.path.join(folder, flavors[FLAVOR]["data"]))


def _load_pyfunc(path: str) -> "_PyfuncModel":
    """Load the model file for ``mlflow.pyfunc.load_model``."""
    return _PyfuncModel(store.load(path))


class _PyfuncModel:
    """A model for ``mlflow.pyfunc``: it predicts the label of each row, or the whole scored table."""

    def __init__(self, fitted: FittedModel):
        self._fitted = fitted

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        output = (params or {}).get("output", _OUTPUTS[0])
        if output not in _OUTPUTS:
            raise unknown_name_error("output", output, _OUTPUTS)
        if not hasattr(rows, "columns"):
            raise InputError("the rows have no column names", remedy="pass a data frame")
        scored = predict_table(self._fitted, rows)
        return scored.to_pandas() if output == "table" else scored.column("prediction").to_numpy()


def _make_signature(fitted: FittedModel) -> Any:
    """Return the columns and the type of the labels.

    Columns may hold any type: MLflow would reject whole numbers in a column of fractions, and categories in a column of
    text; the model reads both.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    kinds = InputSchema.from_model(fitted).column_types.items()
    inputs: list[Any] = [ColSpec("string" if k == "text" else AnyType(), name, required=False) for name, k in kinds]
    types = {type(label) for label in fitted.labels.array.tolist()}
    label_type = _SIGNATURE_TYPES.get(types.pop(), "string") if len(types) == 1 else "string"
    params = ParamSchema([ParamSpec("output", DataType.string, _OUTPUTS[0])])
    return ModelSignature(Schema(inputs), Schema([ColSpec(label_type)]), params)


def _import_mlflow() -> Any:
    try:
        import mlflow.artifacts
        import mlflow.models
        import mlflow.pyfunc
    except ImportError as error:
        what, remedy = f"MLflow models need {error.name}", "pip install 'candide[mlflow]'"
        raise MissingLibraryError(what, remedy=remedy) from None
    return mlflow
