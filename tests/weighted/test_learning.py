"""Shrinkage: scores whose gain may be due to chance are drawn towards the class prior, others stay."""

import numpy as np
import pytest

from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding import LevelEncoding
from candide.engines import arrays
from candide.events import Categorical
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.weighted import learning
from candide.weighted.learning import count_candidates, shrink_to_prior, shrinkage_factor
from candide.weighted.terms.interaction import Interaction
from candide.weighted.training_rows import TrainingRows


def test_a_score_is_shrunk_as_far_as_its_gain_may_be_due_to_chance():
    gains = np.array([-1.0, 0.0, 1.0, 5.0, 20.0, 500.0, 1e6])
    few, many = (np.array([shrinkage_factor(gain, n) for gain in gains]) for n in (5, 500))
    assert few[0] == few[1] == 0.0
    assert (np.diff(few) >= 0).all()
    assert (many <= few).all()
    assert few[-2] > 0.9999
    assert shrinkage_factor(2.0 * np.log(40), 40) == pytest.approx(0.5)
    assert [shrinkage_factor(gain, 1) for gain in gains] == [1.0] * len(gains)  # nothing was chosen


def test_weights_of_noise_are_shrunk_to_the_class_prior_and_others_stay():
    rng = np.random.default_rng(0)
    noise = {f"x{j}": np.array(list("abc"), object)[rng.integers(0, 3, 200)] for j in range(12)}
    y = rng.integers(0, 2, 200)
    clear = noise | {"x0": np.where(rng.random(200) < 0.9, y, 1 - y).astype(str)}
    labels = Labels((0, 1))
    for columns, low, high in ((noise, 0.0, 0.1), (clear, 0.98, 1.0)):
        table = Table.from_data(columns)
        names = tuple(columns)
        plan = Plan(names, (PlanPart(Categorical(), names),)).with_levels(table)
        census = arrays.count_table(table, y, plan=plan, labels=labels)
        terms = learning.training_contributions(census, Settings(), TrainingRows(plan.blocks(table), y, None))
        learned = learning.learn_non_text_weights(census, y, None, terms, (None,), None)
        shrunk = shrink_to_prior(census, y, None, terms, learned)
        factor = np.abs(shrunk.weight[0]).sum() / max(np.abs(learned.weight[0]).sum(), 1e-9)
        assert low <= factor <= high
        np.testing.assert_allclose(shrunk.bias, factor * learned.bias, atol=1e-9)


def test_a_constant_column_is_no_candidate():
    table = Table.from_data({"a": list("xyxy"), "b": list("zzzz"), "c": [1.0, 2.0, 1.0, 2.0], "d": list("pqpq")})
    names = tuple(table.names)
    plan = Plan(names, tuple(PlanPart(Categorical(), (name,)) for name in names)).with_levels(table)
    assert count_candidates(plan) == 3
    pair = PlanPart(Interaction(((0, 1),)), ("a", "d"), (LevelEncoding().learn(table.column("a")),) * 2)
    assert count_candidates(Plan(names, (*plan.parts, pair))) == 3 + 3
