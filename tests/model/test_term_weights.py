"""Voices: of a row left out each says what it says when fitted without it; weights of sums are means."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding import Grid, LevelEncoding
from candide.engines import arrays
from candide.events import Binned, Categorical, Gaussian
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.model.term_weights import TermWeights
from candide.weighted import learning
from candide.weighted.terms.interaction import Interaction
from candide.weighted.training_rows import TrainingRows

N = 40
LABELS = Labels(("a", "b", "c"))


def some_rows(seed):
    """Numbers, levels, gaps and weights; a class of one row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    y[0] = 2
    x, z = rng.normal(size=N).round(1) + y, rng.normal(size=N)
    x[rng.random(N) < 0.15] = np.nan
    job = np.array(["cook", "smith", "clerk"], object)[rng.integers(0, 3, N)]
    job[rng.random(N) < 0.15] = None
    return Table.from_data({"x": x, "job": job, "z": z}), y, rng.choice([0.5, 1.0, 2.0], N)


def plan_of(table):
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
def test_what_is_said_of_a_row_left_out_is_said_by_laws_without_it(seed, weighted):
    table, y, w = some_rows(seed)
    w, plan = w if weighted else None, plan_of(table)
    census = arrays.count_table(table, LABELS.array[y], w, plan=plan, labels=LABELS)
    blocks = plan.blocks(table)
    fold = np.arange(N) % 5
    found = learning.training_contributions(census, Settings(), TrainingRows(blocks, y, w, fold=fold))
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
            plan.parts, census.tallies, alone.tallies, apart.tallies, blocks, found, strict=True
        ):
            law = part.event.freeze_structure(tally - others).estimate(
                tally - gone
            )  # in bins that its fold has not chosen
            want = law.contributions(np.asarray(block)[row])[0]
            want -= want.mean(axis=0)
            silent = ~terms.any(axis=(0, 1))  # a column that tells these rows worse than nothing
            assert part.event.has_density or not silent.any()
            np.testing.assert_allclose(terms[i], np.where(silent, 0.0, want), atol=1e-8, err_msg=part.event.name)


def test_a_cut_that_chance_has_made_tells_nothing_of_rows_that_have_not_made_it():
    """Of many columns of noise some have a cut that seems to tell of every row, even without the row itself."""
    rng = np.random.default_rng(0)
    y, x = rng.integers(0, 2, 120), rng.normal(size=(120, 1500))
    table = Table.from_data(x)
    plan = Plan(table.names, (PlanPart(Binned(), table.names),)).with_levels(table)
    census, blocks, own = arrays.count_table(table, y, plan=plan), plan.blocks(table), np.arange(120)
    [apart] = learning.training_contributions(census, Settings(), TrainingRows(blocks, y, fold=own % 5))
    at_once = Binned().held_out_contributions(census.tallies[0], None, "predictive", blocks[0], y)
    told, believed = ((terms[own, y] - terms[own, 1 - y]).mean(axis=0) for terms in (at_once, apart))
    cut = np.abs(told) > 1e-3
    assert 3 < cut.sum() < 60
    assert told[cut].mean() > 0.1
    assert believed[cut].mean() < 0.3 * told[cut].mean()


WEIGHTS = st.builds(
    lambda seed, rows, gone: TermWeights(
        (np.random.default_rng(seed).normal(size=3), np.random.default_rng(seed + 1).normal(size=2)),
        np.random.default_rng(seed + 2).normal(size=2),
        rows,
        np.random.default_rng(seed + 3).uniform(0.1, 9, 2),
        rows,
        gone,
    ),
    st.integers(0, 10**6),
    st.integers(0, 1000),
    st.sampled_from([0, 0, 3, 2000]),
)


def alike(a, b):
    for name in ("weight", "bias", "strength"):
        mine, theirs = (np.concatenate([np.atleast_1d(one) for one in getattr(v, name)]) for v in (a, b))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert (a.n_learned_rows, a.n_counted_rows, a.n_removed_rows) == (
        b.n_learned_rows,
        b.n_counted_rows,
        b.n_removed_rows,
    )


@given(WEIGHTS, WEIGHTS)
def test_a_sum_of_two_has_no_order(a, b):
    if a.n_remaining_rows or b.n_remaining_rows:
        alike(a + b, b + a)


@given(st.lists(WEIGHTS.filter(lambda v: v.n_removed_rows == 0 and v.n_learned_rows), min_size=3, max_size=3))
def test_a_sum_of_three_has_no_brackets(three):
    a, b, c = three
    alike((a + b) + c, a + (b + c))


def test_what_was_learned_from_rows_that_are_gone_has_no_say():
    a = TermWeights((np.ones(2),), np.zeros(2), 100, np.ones(1), 100)
    b = TermWeights((np.full(2, 9.0),), np.zeros(2), 300, np.ones(1), 300).with_removed_rows(300)
    assert (a + b) is a
    assert (b + a) is a


@pytest.mark.parametrize(("counted", "at_hand", "due"), [(199, 100, False), (200, 100, True), (200, 99, False)])
def test_weights_are_due_when_rows_have_doubled_and_as_many_are_at_hand(counted, at_hand, due):
    known = TermWeights((np.ones(2),), np.zeros(2), 100, np.ones(1), 100)
    assert known.is_relearning_due(counted, at_hand) is due
    assert known.with_removed_rows(1).is_relearning_due(counted, at_hand) is (at_hand >= 100)


def test_fewer_rows_than_weights_teach_nothing():
    known = TermWeights((np.ones(6), np.ones(2)), np.zeros(2), 0, np.ones(1), 0)
    assert not known.is_relearning_due(40, 9)
    assert known.is_relearning_due(40, 10)
