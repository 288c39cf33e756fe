"""Learning weights: training rows, leave-one-out contributions, and shrinkage towards the class prior."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.encoding import Grid, LevelEncoding
from candide.engines import arrays
from candide.events import Binned, Categorical, Gaussian
from candide.model import plan as planning
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.weighted import learning
from candide.weighted.learning import FurtherRows, TrainingRows, count_candidates, shrink_to_prior, shrinkage_factor
from candide.weighted.terms.interaction import Interaction

N = 40
LABELS = Labels(("a", "b", "c"))


def make_rows(seed):
    """Numbers, levels, gaps and weights; a class of one row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    y[0] = 2
    x, z = rng.normal(size=N).round(1) + y, rng.normal(size=N)
    x[rng.random(N) < 0.15] = np.nan
    job = np.array(["cook", "smith", "clerk"], object)[rng.integers(0, 3, N)]
    job[rng.random(N) < 0.15] = None
    return Table.from_data({"x": x, "job": job, "z": z}), y, rng.choice([0.5, 1.0, 2.0], N)


def make_plan(table):
    cells = (
        Grid(cells=4).learn(table.column("x")),
        LevelEncoding().learn(table.column("job")),
        Grid(cells=3).learn(table.column("z")),
    )
    names = ("x", "job", "z")
    parts = [
        PlanPart(Binned(), ("x",)),
        PlanPart(Categorical(), ("job",)),
        PlanPart(Gaussian(), ("z",)),
        *(PlanPart(Interaction(tuple(combinations(range(3), order))), names, cells) for order in (2, 3)),
    ]
    return Plan(names, tuple(parts)).with_levels(table)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_left_out_contributions_are_those_of_distributions_without_the_row(seed, weighted):
    table, y, w = make_rows(seed)
    w, plan = w if weighted else None, make_plan(table)
    counts = arrays.count_table(table, LABELS.array[y], w, plan=plan, labels=LABELS)
    blocks = plan.blocks(table)
    fold = np.arange(N) % 5
    found = learning.row_contributions(counts, Settings(), TrainingRows(blocks, y, w, fold=fold))
    for i in (0, 1, 7):
        row = np.array([i])
        one = {name: table.column(name)[row] for name in table.names}
        alone = arrays.count_table(
            Table.from_data(one), LABELS.array[y[row]], w if w is None else w[row], plan=plan, labels=LABELS
        )
        same = np.flatnonzero(fold == fold[i])
        many = {name: table.column(name)[same] for name in table.names}
        apart = arrays.count_table(
            Table.from_data(many), LABELS.array[y[same]], w if w is None else w[same], plan=plan, labels=LABELS
        )
        for part, tally, gone, others, block, terms in zip(
            plan.parts, counts.tallies, alone.tallies, apart.tallies, blocks, found, strict=True
        ):
            distribution = part.event.freeze_structure(tally - others).estimate(
                tally - gone
            )  # in bins that its fold has not chosen
            want = distribution.contributions(np.asarray(block)[row])[0]
            want -= want.mean(axis=0)
            inactive = ~terms.any(axis=(0, 1))  # a column that predicts these rows worse than the prior
            assert part.event.has_density or not inactive.any()
            np.testing.assert_allclose(terms[i], np.where(inactive, 0.0, want), atol=1e-8, err_msg=part.event.name)


def test_cuts_due_to_chance_contribute_little_to_rows_of_other_folds():
    """Of many columns of noise some have a cut that seems to predict every row, even without the row itself."""
    rng = np.random.default_rng(0)
    y, x = rng.integers(0, 2, 120), rng.normal(size=(120, 1500))
    table = Table.from_data(x)
    plan = Plan(table.names, (PlanPart(Binned(), table.names),)).with_levels(table)
    counts, blocks, own = arrays.count_table(table, y, plan=plan), plan.blocks(table), np.arange(120)
    [apart] = learning.row_contributions(counts, Settings(), TrainingRows(blocks, y, fold=own % 5))
    at_once = Binned().held_out_contributions(counts.tallies[0], None, "predictive", blocks[0], y)
    naive, by_fold = ((terms[own, y] - terms[own, 1 - y]).mean(axis=0) for terms in (at_once, apart))
    cut = np.abs(naive) > 1e-3
    assert 3 < cut.sum() < 60
    assert naive[cut].mean() > 0.1
    assert by_fold[cut].mean() < 0.3 * naive[cut].mean()


def test_the_factor_follows_the_gain_and_the_candidates():
    gains = np.array([-1.0, 0.0, 1.0, 5.0, 20.0, 500.0, 1e6])
    few, many = (np.array([shrinkage_factor(gain, n) for gain in gains]) for n in (5, 500))
    assert few[0] == few[1] == 0.0
    assert (np.diff(few) >= 0).all()
    assert (many <= few).all()
    assert few[-2] > 0.9999
    assert shrinkage_factor(2.0 * np.log(40), 40) == pytest.approx(0.5)
    assert [shrinkage_factor(gain, 1) for gain in gains] == [1.0] * len(gains)  # nothing was chosen


def test_weights_of_noise_are_shrunk_and_those_of_signal_stay():
    rng = np.random.default_rng(0)
    noise = {f"x{j}": np.array(list("abc"), object)[rng.integers(0, 3, 200)] for j in range(12)}
    y = rng.integers(0, 2, 200)
    clear = noise | {"x0": np.where(rng.random(200) < 0.9, y, 1 - y).astype(str)}
    labels = Labels((0, 1))
    for columns, low, high in ((noise, 0.0, 0.1), (clear, 0.98, 1.0)):
        table = Table.from_data(columns)
        names = tuple(columns)
        plan = Plan(names, (PlanPart(Categorical(), names),)).with_levels(table)
        counts = arrays.count_table(table, y, plan=plan, labels=labels)
        terms = learning.row_contributions(counts, Settings(), TrainingRows(plan.blocks(table), y, None))
        learned = learning.learn_non_text_weights(counts, y, None, terms, (None,), None)
        shrunk = shrink_to_prior(counts, y, None, terms, learned)
        factor = np.abs(shrunk.weight[0]).sum() / max(np.abs(learned.weight[0]).sum(), 1e-9)
        assert low <= factor <= high
        np.testing.assert_allclose(shrunk.bias, factor * learned.bias, atol=1e-9)


def test_a_constant_column_is_not_a_candidate():
    table = Table.from_data({"a": list("xyxy"), "b": list("zzzz"), "c": [1.0, 2.0, 1.0, 2.0], "d": list("pqpq")})
    names = tuple(table.names)
    plan = Plan(names, tuple(PlanPart(Categorical(), (name,)) for name in names)).with_levels(table)
    assert count_candidates(plan) == 3
    pair = PlanPart(Interaction(((0, 1),)), ("a", "d"), (LevelEncoding().learn(table.column("a")),) * 2)
    assert count_candidates(Plan(names, (*plan.parts, pair))) == 3 + 3


# Training rows


def counted():
    rng = np.random.default_rng(0)
    table, y = (
        Table.from_data({"a": rng.choice(["x", "y"], 50), "b": rng.choice(["p", "q", "r"], 50)}),
        np.arange(50) % 2,
    )
    plan = planning.make_plan(table, "categorical").with_levels(table)
    return arrays.count_table(table, y, plan=plan, labels=Labels((0, 1))), TrainingRows(plan.blocks(table), y)


def test_rows_of_a_sample_are_pooled_with_their_weights():
    table = Table.from_data({"a": ["x", "x", "y", "y"]})
    sample = Sample.from_table(table, np.array([0, 0, 1, 0]), Labels((0, 1))).pool_rows()
    plan = planning.make_plan(table, "categorical").with_levels(table)
    rows = TrainingRows.from_sample(sample, plan)
    assert len(rows) == len(sample) == len(rows.blocks[0])
    assert rows.fold is sample.bin_fold
    assert rows.removed_weight is (sample.weight if sample.left_out_weight is None else sample.left_out_weight)


@pytest.mark.parametrize(
    ("y", "expected"), [([0, 1, 2, 2, 2], None), ([0, 1, 2, 2], [0.0, 0.0, 1.0, 1.0]), ([0, 1, 2], [0.0, 0.0, 0.0])]
)
def test_rows_alone_in_their_class_do_not_count_where_they_are_most(y, expected):
    weight = TrainingRows([], np.array(y)).learning_weight(np.bincount(y).astype(float))
    assert (None if weight is None else weight.tolist()) == expected


def test_some_of_the_rows():
    counts, rows = counted()
    part = rows.take(slice(10, 20))
    assert len(part) == 10
    np.testing.assert_array_equal(part.y, rows.y[10:20])
    np.testing.assert_array_equal(part.blocks[0], rows.blocks[0][10:20])
    assert counts.n_rows == 50


def test_further_rows_are_scored_in_chunks(monkeypatch):
    counts, rows = counted()
    monkeypatch.setattr(learning, "_CHUNK_ROWS", 7)
    weight = [np.array([0.5, 2.0])]
    further = FurtherRows(rows, np.arange(50))
    further.score_terms(counts, Settings(), weight)
    [contributions] = learning.row_contributions(counts, Settings(), rows)
    np.testing.assert_allclose(further.offset, contributions @ weight[0], atol=1e-12)
