"""Cross-validation keeps copies of a row in one fold, and divides rows that are equal by chance."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from candide.data.table import Table
from candide.engines.base import Folds, LabelledSource, open_source
from candide.engines.planning import prepare_source
from candide.validation.comparison import compare_settings
from candide.validation.copy_folds import keep_copies_together
from candide.validation.cross_validation import cross_validate


def noise(n, times, seed=0):
    """Columns that say nothing of the class, every row several times."""
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.normal(size=n) for j in range(3)} | {"job": rng.choice(list("abcdefgh"), n)}
    rows = rng.permutation(np.repeat(np.arange(n), times))
    return {name: column[rows] for name, column in {**columns, "y": rng.integers(0, 2, n)}.items()}, rows


def fold_of(source, folds):
    return np.concatenate([np.asarray(batch["fold"]) for batch in source.batches(["y"], 1000, folds)])


@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_scores_of_copied_noise_are_those_of_noise(model):
    once, _ = noise(800, 1)
    copied, _ = noise(800, 5)
    events = {"x0": "binned", "x1": "binned", "x2": "binned"} if model == "naive" else "auto"
    want = cross_validate(once, "y", folds=5, model=model, events=events).total
    found = cross_validate(copied, "y", folds=5, model=model, events=events).total
    assert want.log_loss > 0.68
    assert found.log_loss > 0.68
    assert found.accuracy == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(("n", "times"), [(500, 3), (4000, 7)])
@pytest.mark.parametrize("form", ["memory", "file"])
def test_copies_of_a_row_are_in_one_fold(tmp_path, n, times, form):
    data, rows = noise(n, times)
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table(data), path)
    with open_source(Table.from_data(data) if form == "memory" else str(path)) as source:
        folds, notes = keep_copies_together(LabelledSource(source, "y"), prepare_source(source, "y"), Folds(5, 0, "y"))
        fold = fold_of(source, folds)
    assert notes == []
    first = np.unique(rows, return_index=True)[1]
    np.testing.assert_array_equal(fold, fold[first][rows])
    assert np.bincount(fold).min() > 0.9 * len(rows) / 5


def test_rows_that_are_equal_by_chance_are_divided():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 1000))
    data = {"a": a, "b": b, "y": (a ^ b) ^ (rng.random(1000) < 0.1)}
    assert cross_validate(data, "y", folds=5).total.log_loss < 0.4
    with open_source(data) as source:
        folds, notes = keep_copies_together(LabelledSource(source, "y"), prepare_source(source, "y"), Folds(5, 0, "y"))
    assert (folds, notes) == (Folds(5, 0, "y"), [])


def test_a_source_that_cannot_be_given_folds_has_a_note():
    data, _ = noise(300, 3)
    with open_source(Table.from_data(data)) as source:
        source.takes_folds = False
        found = cross_validate(source, "y", folds=5, model="naive")
    [note] = [one for one in found.fit_result.notes if one.code == "repeated-rows"]
    assert str(note).startswith("100.0% of the rows are copies of another row, and are divided among the folds")


def test_settings_without_a_column_are_compared_on_the_same_folds():
    data, rows = noise(300, 3)
    data["id"] = np.arange(len(rows))  # by which no two rows are equal
    with open_source(Table.from_data(data)) as source:
        kept, _ = keep_copies_together(
            LabelledSource(source, "y"), prepare_source(source, "y"), Folds(5, 0, "y"), ["id"]
        )
        fold = fold_of(source, kept)
    np.testing.assert_array_equal(fold, fold[np.unique(rows, return_index=True)[1]][rows])
    variants = {"all": {"model": "naive"}, "some": {"model": "naive", "drop": ["id"]}}
    found = compare_settings(data, "y", variants, folds=5)
    assert found.validations["some"].total.log_loss > 0.67
