"""Folds: copies of a row stay together, plans are counted together, and fold models score rows encoded once."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines.base import Folds, LabelledSource, open_source
from candide.engines.counting import prepare_source
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.validation.cross_validation import compare_settings, cross_validate
from candide.validation.folds import FoldModel, keep_copies_together, part_places, select_counts, unite_plans
from candide.validation.held_out import expand_classes
from candide.weighted.fit import count_sample, fit_weighted
from candide.weighted.selection import LearnedEncodings, select_terms


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


def make_sample(n=600, seed=0):
    """Two pairs of columns that predict the class, each in one half of the rows; rare levels, a rare class."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.integers(0, 2, (4, n))
    half = np.arange(n) < n // 2
    y = np.where(half, a ^ b, c ^ d)
    y[0] = 2
    town = np.where(np.arange(n) < 5, "only in the first half", np.array(["york", "bath"])[rng.integers(0, 2, n)])
    columns = {name: np.array(["no", "yes"])[x] for name, x in zip("abcd", (a, b, c, d), strict=True)}
    table = Table.from_data({**columns, "town": town, "x": rng.normal(size=n)})
    return Sample(table, np.arange(n), y, Labels((0, 1, 2)), fold=np.where(half, 0, 1))


@pytest.fixture(scope="module")
def folds():
    sample = make_sample()
    encodings = LearnedEncodings.from_sample(sample.pool_rows())
    parts = [sample.take(np.flatnonzero(sample.fold == fold)).with_seen_labels() for fold in (0, 1)]
    selected = [select_terms(part.pool_rows(), encodings=encodings) for part in parts]
    return sample, parts, selected, unite_plans([plan for plan, _ in selected])


def interactions(plan):
    return {names for part in plan.parts if part.spec.sets for names in part.event.term_names(part.columns)}


def test_a_united_plan_has_the_terms_of_all(folds):
    _, _, ((first, _), (second, _)), united = folds
    assert ("a", "b") in interactions(first) - interactions(second)
    assert ("c", "d") in interactions(second) - interactions(first)
    assert interactions(united) == interactions(first) | interactions(second)
    for part, place in zip(first.parts, part_places(united, first), strict=True):
        assert set(part.columns) <= set(united.parts[place].columns)
        assert type(part.event) is type(united.parts[place].event)


def test_selected_counts_are_those_of_the_plan_itself(folds):
    _, parts, selected, united = folds
    for part, (plan, _) in zip(parts, selected, strict=True):
        found, expected = select_counts(count_sample(part, united), plan), count_sample(part, plan).prune()
        assert found.labels == expected.labels
        assert interactions(found.plan) == interactions(plan)
        np.testing.assert_array_equal(found.class_weight, expected.class_weight)
        scores, own = (FittedModel(counts).apply(Model.log_posterior, part.table) for counts in (found, expected))
        np.testing.assert_allclose(scores, own, atol=1e-12)


def test_a_fold_model_scores_rows_encoded_for_all_folds(folds):
    sample, parts, selected, united = folds
    whole = count_sample(sample, united)
    for part, (plan, start) in zip(parts, selected, strict=True):
        fitted = fit_weighted(part, partial(select_counts, count_sample(part, united)), plan=plan, start=start)
        model = FoldModel(whole, fitted, part_places(whole.plan, plan))
        expected = fitted.apply(Model.log_posterior, sample.table)
        codes = np.array([sample.labels.index[label] for label in fitted.labels.values])
        expected = expand_classes(expected, fitted.counts, codes, 3)
        np.testing.assert_allclose(model.log_posterior(whole.plan.blocks(sample.table)), expected, atol=1e-12)
        np.testing.assert_allclose(np.exp(expected).sum(axis=1), 1.0)
