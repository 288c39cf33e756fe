"""Cross-validation of a weighted model equals refitting on every fold, with the grids of all rows."""

import warnings
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from tests.tasks.test_validate import assert_same_scores, folds_of

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.engines.base import Folds, LabelledSource, open_source
from candide.engines.draw_sample import draw_sample
from candide.engines.planning import prepare_source
from candide.metrics.scores import Scores
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.settings import Settings
from candide.operations.fit import fit_model
from candide.validation import cross_validation
from candide.validation.cross_validation import cross_validate
from candide.weighted.fit import learn_weights_from_sample
from candide.weighted.selection import LearnedEncodings, select_terms

SETTINGS = Settings(class_prior="jeffreys")


def made(n=300, seed=0, gaps=0.1) -> pa.Table:
    """Columns that tell something only together, missing values, and towns that lie in one fold only."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, (2, n))
    y = np.where(rng.random(n) < 0.9, (a + b) % 3, rng.integers(0, 3, n))
    size = y + rng.normal(0, 2, n)
    return pa.table({
        "size": pa.array(size, mask=rng.random(n) < gaps),
        "width": size + rng.normal(0, 1, n),
        "a": pa.array([f"a{v}" for v in a], mask=rng.random(n) < gaps),
        "b": pa.array([f"b{v}" for v in b], mask=rng.random(n) < gaps),
        "town": [f"t{v}" for v in rng.integers(0, n // 3, n)],
        "y": y,
    })  # fmt: skip


def refitted(data: pa.Table, seen, fold: np.ndarray, folds: int):
    """The scores of each fold by a model that is fitted to the rows of the others; ``seen`` are those looked at."""
    y, labels = data["y"].to_numpy(), np.unique(data["y"])
    X = data.drop_columns(["y"])
    every, part = Labels.from_values(y), len(seen) / len(y)
    encodings = LearnedEncodings.from_sample(
        Sample(Table.from_data(X.take(seen)), seen, every.encode(y[seen]), every, fraction=part).pool_rows()
    )
    for f in range(folds):
        train, test, some = np.flatnonzero(fold != f), np.flatnonzero(fold == f), seen[fold[seen] != f]
        table, sample = Table.from_data(X.take(train)), Table.from_data(X.take(some))
        mine, of_sample = Labels.from_values(y[train]), Labels.from_values(y[some])
        pooled = Sample(sample, some, of_sample.encode(y[some]), of_sample, fraction=part).pool_rows()
        plan, found = select_terms(pooled, settings=SETTINGS, encodings=encodings)
        census = arrays.count_table(table, y[train], plan=plan.with_levels(table), labels=mine)
        voices = learn_weights_from_sample(pooled, census, SETTINGS, found)
        fitted = FittedModel(census, SETTINGS, term_weights=voices)
        n, unmet = len(train), len(labels) - len(mine)  # an unmet class has the share of one row more
        known = np.full((len(test), len(labels)), np.log(1 / (n + unmet)))
        known[:, np.searchsorted(labels, mine.array)] = fitted.apply(Model.log_posterior, X.take(test)) - np.log1p(
            unmet / n
        )
        yield Scores.from_log_posterior(known, np.searchsorted(labels, y[test])), plan


@pytest.mark.parametrize("kind", [lambda data: data, Table.from_data], ids=["duckdb", "arrays"])
def test_equals_refitting_on_every_fold(kind):
    frame = made().to_pandas()
    frame.loc[17, ["town", "y"]] = None, 3  # a class that lies in one fold only
    data, n = pa.Table.from_pandas(frame, preserve_index=False), len(frame)
    found = cross_validate(kind(data), "y", folds=3, settings=SETTINGS, model="bayes")
    plans = []
    for scores, (wanted, plan) in zip(
        found.folds, refitted(data, np.arange(n), folds_of(kind(data), 3, 0), 3), strict=True
    ):
        assert_same_scores(scores, wanted)
        plans.append({one for part in plan.parts for one in part.event.term_names(part.columns)})
    assert all(("a", "b") in plan for plan in plans)
    assert found.total.accuracy > cross_validate(data, "y", folds=3, model="naive").total.accuracy + 0.2


def test_counts_are_of_all_rows_and_weights_of_those_looked_at(monkeypatch):
    data = made(2000, gaps=0.0)
    monkeypatch.setattr(cross_validation, "draw_sample", partial(draw_sample, rows=400))
    found = cross_validate(data, "y", folds=3, settings=SETTINGS, model="bayes")
    with open_source(data) as source:
        source.materialise()
        seen = draw_sample(
            LabelledSource(source, "y", None, Folds(3, 0, "y")), prepare_source(source, "y"), rows=400
        ).row_number
    assert len(seen) == 400
    assert found.fit_result.fitted.term_weights.n_learned_rows == 400
    assert found.fit_result.fitted.counts.n_rows == 2000
    for scores, (wanted, _) in zip(found.folds, refitted(data, seen, folds_of(data, 3, 0), 3), strict=True):
        assert_same_scores(scores, wanted)


def test_the_model_of_all_rows_is_the_one_that_is_fitted():
    data = made()
    found = cross_validate(data, "y", folds=3, model="bayes").fit_result.fitted
    wanted = fit_model(data, "y", model="bayes").fitted
    assert found.plan.columns == wanted.plan.columns
    rows = data.drop_columns(["y"])
    np.testing.assert_allclose(found.posterior(rows), wanted.posterior(rows), rtol=1e-9, atol=1e-12)


def test_no_fold_hears_what_its_own_rows_say():
    """Many columns of noise on few rows: a pair that is chosen by all rows would tell the folds' own classes."""
    rng = np.random.default_rng(1)
    noise = {f"c{j}": [f"v{v}" for v in rng.integers(0, 4, 120)] for j in range(20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = rng.integers(0, 2, 120)
        found = cross_validate({**noise, "y": y}, "y", folds=4, model="bayes").total
    assert found.auc < 0.62
    shares = np.bincount(y) / 120
    assert found.log_loss > -shares @ np.log(shares)  # the class prior
