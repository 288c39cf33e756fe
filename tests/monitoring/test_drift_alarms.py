"""False alarms of drift: columns that have not changed are named in one list of a hundred, whatever their type."""

import sys

import numpy as np
import pytest
from benchmarks import honesty_drift

import candide as cd
from candide.monitoring import drift_tests as compare
from candide.monitoring.level_tests import LevelCounts
from candide.report import summary

pytestmark = pytest.mark.filterwarnings("ignore:column.*levels in")

ALLOWED = 0.02


def shares(name):
    ranks = np.arange(1, 5001)
    return {"zipf": ranks**-1.3, "long": ranks[:500] ** -1.0, "even": np.ones(200), "few": ranks[:5] ** -1.0}[name]


@pytest.mark.parametrize("sizes", honesty_drift.SIZES)
@pytest.mark.parametrize("name", ["zipf", "long", "even", "few"])
def test_levels_that_have_not_changed_are_not_named(name, sizes):
    rng, p = np.random.default_rng(7), shares(name)
    tables = [np.stack([rng.multinomial(n, p / p.sum()) for n in sizes]).astype(float) for _ in range(1000)]
    found = [LevelCounts(table).p_value_and_test()[0] for table in tables]
    assert np.mean(np.array(found) < 0.01) <= ALLOWED
    assert np.mean(np.array(found) < 0.2) > 0.05  # and the test is not one that never finds anything


def _moments(values):
    return float(len(values)), float(values.mean()), float(((values - values.mean()) ** 2).sum())


FEW = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "counts": lambda rng, n: rng.poisson(22.0, n).astype(float),
    "rare counts": lambda rng, n: rng.poisson(0.5, n).astype(float),
    "two values": lambda rng, n: rng.choice([-1.0, 1.0], n),
}


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", FEW)
def test_a_few_numbers_that_have_not_changed_are_not_named(name, given):
    rng = np.random.default_rng(7)
    for few in (*range(1, 11), 20):
        wrong = 0
        for _ in range(400):
            before, after = FEW[name](rng, 300), FEW[name](rng, few)
            seen = [before, after] if given else [after]
            sums = zip(_moments(before), _moments(after), strict=True)
            wrong += compare._test_numbers(*sums, (300.0, float(few)), seen).p_value < 0.01
        assert wrong <= 400 * (ALLOWED + 0.005), few


@pytest.mark.all_cases
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", ["exponential", "negative binomial", "two amounts"])
def test_rates_of_a_few_rows_that_have_not_changed_are_not_named(kind, given):
    rng = np.random.default_rng(7)
    draw = {
        "exponential": lambda n: rng.exponential(size=n),
        "negative binomial": lambda n: rng.negative_binomial(0.5, 0.1, n).astype(float),
        "two amounts": lambda n: rng.choice([0.5, 1.5], n),
    }[kind]
    for few in (*range(1, 11), 20):
        wrong = 0
        for _ in range(400):
            sides = [draw(300), draw(few)]
            seen = sides if given else sides[1:]
            sums = sides[0].sum(), sides[1].sum()
            wrong += compare._test_rates((300.0, few), sums, (300.0, few), seen).p_value < 0.01
        assert wrong <= 400 * (ALLOWED + 0.005), few


def test_two_new_rows_of_a_number_raise_no_alarm():
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=500), "y": rng.choice(["a", "b"], 500)}
    model = cd.fit(rows, "y", model="naive", events={"x": "gaussian"})
    assert not cd.detect_drift(model, {"x": [0.3, -0.4]}).drifted_columns
    rows["x"][rng.random(500) < 0.6] = np.nan
    model = cd.fit(rows, "y", model="naive", events={"x": "gaussian"})
    assert not cd.detect_drift(model, {"x": [0.3, None, -0.4, None, None]}, before=rows).drifted_columns


def levels(rng, n, p, first=0):
    return np.array([f"level {first + code}" for code in rng.choice(len(p), n, p=p / p.sum())])


@pytest.mark.parametrize("given", [False, True])
def test_a_long_tail_that_has_not_changed_is_not_named(given):
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(12):
        before, after = ({"shop": levels(rng, n, shares("zipf"))} for n in (500, 300))
        model = cd.fit(before | {"y": rng.choice(["a", "b"], 500)}, "y", model="naive")
        found = cd.detect_drift(model, after, before=before if given else None)
        wrong += bool(found.drifted_columns)
        assert found.columns[0].stability_index < 0.25
    assert wrong <= 1


def test_a_long_tail_that_has_changed_is_named():
    rng = np.random.default_rng(0)
    p = shares("zipf")
    before = {"shop": levels(rng, 500, p), "y": rng.choice(["a", "b"], 500)}
    model = cd.fit(before, "y", model="naive")
    [one] = cd.detect_drift(model, {"shop": levels(rng, 300, np.r_[p[0] / 4, p[1:]])}).drifted_columns
    assert one.most_changed_level == "level 0"
    rare = np.where(rng.random(300) < 0.5, levels(rng, 300, p), levels(rng, 300, np.ones(900), first=5000))
    [one] = cd.detect_drift(model, {"shop": rare}).drifted_columns
    assert one.most_changed_level == "unseen"
    assert one.stability_index > 0.25


def test_unseen_levels_are_counted_the_same_in_files_and_memory(tmp_path):
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(1)
    before = {"shop": levels(rng, 500, shares("zipf")), "y": rng.choice(["a", "b"], 500)}
    after = {"shop": levels(rng, 300, shares("zipf"))}
    model = cd.fit(before, "y", model="naive")
    csv.write_csv(pa.table(after), tmp_path / "new.csv")
    parquet.write_table(pa.table(after), tmp_path / "new.parquet")
    [expected] = cd.detect_drift(model, after).columns
    for name in ("new.csv", "new.parquet"):
        [one] = cd.detect_drift(model, str(tmp_path / name)).columns
        assert one.p_value == pytest.approx(expected.p_value, rel=1e-9)
        assert one.stability_index == pytest.approx(expected.stability_index, rel=1e-9)


def test_levels_beyond_the_bound_count_as_one_row_each(monkeypatch):
    rng = np.random.default_rng(1)
    ids = [f"id {i}" for i in range(800)]
    model = cd.fit(
        {"id": ids[:500], "y": rng.choice(["a", "b"], 500)}, "y", model="naive", events={"id": "categorical"}
    )
    [whole] = cd.detect_drift(model, {"id": ids[500:]}).columns
    monkeypatch.setattr(sys.modules["candide.monitoring.drift"], "_MAX_UNSEEN_LEVELS", 40)
    [cut] = cd.detect_drift(model, {"id": ids[500:]}).columns
    assert whole.p_value == cut.p_value == 1.0
    assert whole.stability_index == pytest.approx(cut.stability_index)


@pytest.mark.parametrize("sizes", honesty_drift.SIZES)
def test_means_of_skewed_numbers_have_not_moved(sizes):
    rng, p = np.random.default_rng(3), []
    for _ in range(1000):
        sides = [np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(0, 1.5, n)) for n in sizes]
        p.append(compare._means_p_value(sizes, *(tuple(f(side) for side in sides) for f in (np.mean, np.var))))
    assert np.mean(np.array(p) < 0.01) <= ALLOWED


def test_a_few_new_rows_of_one_value_are_not_drift():
    rng = np.random.default_rng(0)
    fees = np.where(rng.random(2000) < 0.97, 0.0, rng.lognormal(size=2000))
    before = {"fee": fees, "y": rng.choice(["a", "b"], 2000)}
    model = cd.fit(before, "y", model="naive", events={"fee": "gaussian"})
    for given in (None, before):
        assert not cd.detect_drift(model, {"fee": np.zeros(50)}, before=given).drifted_columns
        assert cd.detect_drift(model, {"fee": np.zeros(1000)}, before=given).drifted_columns
    stuck = cd.detect_drift(model, {"fee": np.full(20, 3.5)})
    assert stuck.drifted_columns
    assert "nan" not in str(summary.summarize_drift(stuck))


def test_the_benchmark_finds_changes_and_no_others():
    found = honesty_drift.measure(500, 300, 4)
    names = set(honesty_drift.COLUMNS) - {"text"}
    assert set(found["compared"]) - {"the whole list"} == names
    assert max(found["counts"].values(), default=0) <= 1
    assert max(found["rows"].values(), default=0) <= 1
    assert sum(found["changed"][name] >= 2 for name in names) >= 0.8 * len(names)
