"""Plans of folds are counted together, and fold models score rows that are encoded by the plan of all rows."""

from functools import partial

import numpy as np
import pytest

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.validation.fold_models import FoldModel, part_places, select_counts, unite_plans
from candide.validation.held_out import expand_classes
from candide.weighted.fit import count_sample, fit_weighted
from candide.weighted.selection import LearnedEncodings, select_terms


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
