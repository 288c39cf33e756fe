"""A new distribution is one class: with its score expression it is exported to every target."""

from dataclasses import dataclass

import duckdb
import numpy as np
import pytest
from tests.export.scorers import SCORERS, rows_of

import candide as cd
from candide.distributions.density import Elementwise
from candide.distributions.score_expression import OPERATIONS, parameter, where, zero_if_missing
from candide.export.onnx import operations as onnx
from candide.export.onnx.model import build_onnx_model
from candide.export.python_js import operations as scorer
from candide.export.sql import operations as sql
from candide.export.sql.query import write_select
from candide.model.fitted import FittedModel, Parameters
from candide.model.model import Model


@dataclass(frozen=True, eq=False)
class Laplace(Elementwise):
    loc: np.ndarray  # (class, feature)
    scale: np.ndarray

    @property
    def params(self):
        return {"loc": self.loc, "scale": self.scale}

    def _log_density(self, x, params):
        return -np.log(2 * params["scale"]) - np.abs(x - params["loc"]) / params["scale"]

    def sample(self, y, rng):
        return rng.laplace(self.loc[y], self.scale[y])

    def score_expression(self, x):
        loc = parameter("loc", self.loc)
        away = where(x < loc, loc - x, x - loc)
        return zero_if_missing(
            x, parameter("constant", -np.log(2 * self.scale)) - away / parameter("scale", self.scale)
        )


@pytest.fixture(scope="module")
def fitted():
    X, y = {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, [0, 1, 1]
    numbers = cd.NaiveBayes("gaussian").fit(X, y).fitted_
    model = Model(
        np.log([0.4, 0.6]), (Laplace(np.array([[1.0, 0.0], [2.0, -1.0]]), np.array([[1.0, 3.0], [0.5, 2.0]])),)
    )
    return FittedModel(None, parameters=Parameters(numbers.plan, numbers.labels, model))


ROWS = {"a": np.array([0.5, 1.7, np.nan, -30.0]), "b": np.array([2.0, np.nan, 0.3, 4.0])}


@pytest.mark.parametrize("name", SCORERS)
def test_modules(fitted, name, tmp_path):
    found = SCORERS[name](fitted, rows_of(ROWS, ["a", "b"]), tmp_path)
    assert np.array([row["probabilities"] for row in found]) == pytest.approx(fitted.posterior(ROWS), abs=1e-12)


def test_sql(fitted):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT UNNEST(?) AS a, UNNEST(?) AS b", [list(ROWS["a"]), list(ROWS["b"])]
        )
        rows = connection.execute(write_select(fitted, dialect="duckdb", table="t")).fetchall()
    assert np.array([row[1:] for row in rows]) == pytest.approx(fitted.posterior(ROWS), abs=1e-12)


def test_onnx(fitted):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(build_onnx_model(fitted).SerializeToString())
    _, found = session.run(None, {name: values[:, None] for name, values in ROWS.items()})
    assert found == pytest.approx(fitted.posterior(ROWS), abs=1e-12)


def test_every_target_has_every_operation():
    texts = {"tokens", "polya"}  # SQL refuses them, ONNX has no operations on text
    assert {*scorer.ELEMENTWISE, *scorer.REDUCTIONS, *scorer.JOINT} == set(OPERATIONS)
    assert {*sql.OPERATIONS, *sql.REDUCTIONS, *sql.JOINT, *sql.TABLES} == set(OPERATIONS)
    assert {*onnx.OPERATIONS, *onnx.JOINT} == set(OPERATIONS) - texts
