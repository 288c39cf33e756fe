"""What has moved in new rows: tests from two tallies against SciPy's on the rows, and no alarm where nothing moved."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import candide as cd
from candide.cli import cli
from candide.errors import InputError
from candide.monitoring.drift_tests import adjust_p_values, mean_difference_p_value
from candide.monitoring.level_tests import pooled_levels_test
from candide.report import summary


def rows(n, seed, shift=0.0, wide=1.0, soils=(0.5, 0.3, 0.2), gone=0.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    size = rng.normal(np.where(y, 1.5, 0.0) + shift, wide)
    size[rng.random(n) < gone] = np.nan
    return {
        "size": size,
        "weight": rng.normal(np.where(y, -1.0, 0.0), 1.0),
        "soil": rng.choice(["clay", "sand", "chalk"], n, p=soils),
        "kind": np.where(y, "yes", "no"),
    }


BEFORE = rows(4000, 0)


@pytest.fixture(scope="module", params=["naive", "bayes"])
def model(request):
    return cd.fit(BEFORE, "kind", model=request.param)


def by_name(found):
    return {one.column: one for one in found.columns}


def test_levels_are_compared_as_scipy_does():
    naive = cd.fit(BEFORE, "kind", model="naive")
    later = rows(1500, 1, soils=(0.4, 0.35, 0.25))
    one = by_name(cd.detect_drift(naive, later))["soil"]
    table = [[(some["soil"] == soil).sum() for soil in ("chalk", "clay", "sand")] for some in (BEFORE, later)]
    assert one.p_value == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, rel=1e-9)
    assert one.most_changed_level == "clay"
    assert one.values["share"] == pytest.approx([(some["soil"] == "clay").mean() for some in (BEFORE, later)])


def test_numbers_are_compared_as_scipy_does():
    naive = cd.fit(BEFORE, "kind", model="naive", events={"size": "gaussian", "weight": "gaussian"})
    later = rows(1500, 1, shift=0.1)
    one = by_name(cd.detect_drift(naive, later))["size"]
    a, b = BEFORE["size"], later["size"]
    welch = max(stats.ttest_ind(a, b, equal_var=equal).pvalue for equal in (False, True))
    ratio = a.var(ddof=1) / b.var(ddof=1)
    f = stats.f(len(a) - 1, len(b) - 1)
    assert one.p_value == pytest.approx(min(1, 3 * min(welch, 2 * min(f.sf(ratio), f.cdf(ratio)))), rel=1e-6)
    assert one.values["mean"] == pytest.approx((a.mean(), b.mean()))


def test_few_rows_are_tested_exactly():
    table = np.array([[8.0, 2.0], [1.0, 5.0]])
    assert pooled_levels_test(table) == (pytest.approx(stats.fisher_exact(table).pvalue), "Fisher")
    assert pooled_levels_test(np.array([[8.0, 0.0], [3.0, 0.0]])) == (1.0, "none")
    assert pooled_levels_test(np.array([[8.0, 3.0], [0.0, 0.0]])) == (1.0, "none")
    p, test = pooled_levels_test(np.array([[500.0, 400.0, 3.0, 2.0, 1.0], [480.0, 430.0, 1.0, 2.0, 2.0]]))
    joined = [[500, 400, 6], [480, 430, 5]]
    assert (p, test) == (pytest.approx(stats.chi2_contingency(joined, correction=False).pvalue), "chi-squared")


def test_p_values_of_levels_are_even_where_nothing_moved():
    rng = np.random.default_rng(0)
    proportions = [0.6, 0.3, 0.07, 0.02, 0.01]
    p = [pooled_levels_test(np.stack([rng.multinomial(n, proportions) for n in (800, 300)]).astype(float))[0]
         for _ in range(1000)]  # fmt: skip
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p) < level) == pytest.approx(level, abs=3.5 * np.sqrt(level * (1 - level) / 1000))


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "student": lambda rng, n: rng.standard_t(3, n),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("both", [False, True])
def test_variances_that_stray_by_long_tails_are_not_drift(law, both):
    """A variance is the mean of squares; those of 800 rows, of whom nothing else is known, and of 300 at hand."""
    rng, p = np.random.default_rng(1), []
    for _ in range(600):
        sides = [LAWS[law](rng, n) for n in (800, 300)]
        squares = [(side - side.mean()) ** 2 / side.var() for side in sides]
        p.append(
            mean_difference_p_value(
                (800, 300), tuple(side.var(ddof=1) for side in sides), np.concatenate(squares[1 - both :])
            )
        )
    for level in (0.01, 0.05):
        most = level + 3 * np.sqrt(level * (1 - level) / 600)
        assert np.mean(np.array(p) < level) < most
    if law == "normal":
        assert np.mean(np.array(p) < 0.05) > 0.02
        assert mean_difference_p_value((800, 300), (1.0, 1.6), np.concatenate(squares[1 - both :])) < 0.001


@pytest.mark.parametrize("event", ["gaussian", "exponential"])
def test_numbers_with_long_tails_have_not_moved(event):
    rng = np.random.default_rng(0)
    events = dict.fromkeys("ab", event)

    def some(n):
        return {name: 1000 * LAWS["lognormal"](rng, n) for name in "ab"} | {"y": rng.random(n) < 0.5}

    pairs = [(cd.fit(some(1000), "y", model="naive", events=events), some(500)) for _ in range(8)]
    assert sum(bool(cd.detect_drift(model, later).drifted_columns) for model, later in pairs) <= 1
    assert all(cd.detect_drift(model, {**later, "a": 2 * later["a"]}).drifted_columns for model, later in pairs[:3])


def test_counts_that_come_in_bursts_have_not_moved():
    rng = np.random.default_rng(0)

    def some(n):
        return {"n": rng.poisson(rng.gamma(0.3, 10.0, n)), "y": rng.random(n) < 0.5}

    pairs = [(cd.fit(some(800), "y", model="naive", events={"n": "poisson"}), some(400)) for _ in range(8)]
    assert sum(bool(cd.detect_drift(model, later).drifted_columns) for model, later in pairs) <= 1


def test_nothing_moved(model):
    wrong = sum(bool(cd.detect_drift(model, rows(800, seed)).drifted_columns) for seed in range(10, 30))
    assert wrong <= 2  # one list in a hundred is wrong


@pytest.mark.parametrize(
    ("how", "column"),
    [
        ({"shift": 0.5}, "size"),
        ({"wide": 1.6}, "size"),
        ({"soils": (0.3, 0.3, 0.4)}, "soil"),
        ({"gone": 0.1}, "size"),
    ],
)
def test_what_moved_is_named(model, how, column):
    found = cd.detect_drift(model, rows(1500, 5, **how))
    assert [one.column for one in found.drifted_columns] == [column]
    assert found.columns[0].column == column
    assert found.columns[0].stability_index == max(one.stability_index for one in found.columns)


def test_unseen_values_are_drift(model):
    later = rows(1000, 6)
    later["soil"] = np.where(np.arange(1000) % 4 == 0, "peat", later["soil"])
    one = cd.detect_drift(model, later).drifted_columns[0]
    assert (one.column, one.most_changed_level, one.values["share"]) == (
        "soil",
        "unseen",
        pytest.approx((0.0, 0.25)),
    )


def test_expected_accuracy_is_near_the_real_one():
    model = cd.fit(BEFORE, "kind")
    some = rows(6000, 7)
    found = cd.detect_drift(model, some)
    real = cd.evaluate(model, some, "kind").accuracy
    assert found.summary_after.expected_accuracy == pytest.approx(real, abs=0.02)
    p = model.predict_proba({name: some[name] for name in ("size", "weight", "soil")})
    assert found.summary_after.expected_accuracy == pytest.approx(p.max(axis=1).mean())
    assert list(found.summary_after.class_proportions.values()) == pytest.approx(p.mean(axis=0))


def test_rows_are_less_likely_where_they_have_moved():
    model = cd.fit(BEFORE, "kind", model="naive")
    same, moved = (cd.detect_drift(model, some, before=BEFORE) for some in (rows(2000, 9), rows(2000, 9, shift=3.0)))
    assert same.summary_before.unlikely_share == pytest.approx(0.01, abs=0.002)
    assert same.summary_after.unlikely_share < 0.03 < 0.1 < moved.summary_after.unlikely_share
    X = {name: BEFORE[name] for name in ("size", "weight", "soil")}
    assert same.summary_before.mean_density == pytest.approx(model.log_density(X).mean())
    assert not same.is_before_drawn
    assert cd.detect_drift(model, rows(2000, 9)).is_before_drawn


def test_holm_is_that_of_the_book():
    assert adjust_p_values([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert adjust_p_values([]) == []


def test_counts_and_groups_can_be_compared():
    rng = np.random.default_rng(0)

    def some(n, rate):
        y = rng.random(n) < 0.5
        return {"n": rng.poisson(rate, n), "u": rng.normal(y, 1.0), "v": rng.normal(0, 1, n), "y": y}

    events = {"n": "poisson", ("u", "v"): "gaussian-full"}
    model = cd.fit(some(2000, 3.0), "y", model="naive", events=events)
    assert [one.column for one in cd.detect_drift(model, some(1000, 3.5)).drifted_columns] == ["n"]
    assert not cd.detect_drift(model, some(1000, 3.0)).drifted_columns


def test_text_is_left_out():
    words = {
        "text": ["free prize now", "see you at five"] * 30,
        "n": np.arange(60.0) ** 2,
        "kind": ["spam", "ham"] * 30,
    }
    model = cd.fit(words, "kind", model="naive", events={"text": "text"})
    found = cd.detect_drift(model, words)
    assert found.skipped_columns == ["text"]
    assert [one.column for one in found.columns] == ["n"]
    told = str(summary.summarize_drift(found))
    assert "'text' is not compared" in told
    assert "no earlier rows were given" in told


def test_the_head_of_the_table_is_not_cut(model, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = str(summary.summarize_drift(cd.detect_drift(model, rows(500, 1))))
    assert "…" not in told
    assert "rows drawn from the model" in told
    assert "drawn" not in str(summary.summarize_drift(cd.detect_drift(model, rows(500, 1), before=BEFORE)))


def test_the_command(model, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    model.save(tmp_path / "m.candide")
    parquet.write_table(pa.table(rows(1500, 5, shift=0.5)), tmp_path / "new.parquet")
    typed = ["drift", str(tmp_path / "m.candide"), str(tmp_path / "new.parquet")]
    text = CliRunner().invoke(cli, typed, catch_exceptions=False).output
    assert "'size' has drifted" in text
    facts = json.loads(CliRunner().invoke(cli, [*typed, "--json"], catch_exceptions=False).output)
    assert facts["drifted_columns"] == ["size"]
    assert len(facts["after"]["density_quantiles"]) == len(facts["quantiles"])
    assert set(facts["after"]["class_proportions"]) == {"no", "yes"}


def test_what_cannot_be_compared(model):
    with pytest.raises(InputError, match="none of the model's columns"):
        cd.detect_drift(model, {"other": [1.0]})
    with pytest.raises(InputError, match="no rows"):
        cd.detect_drift(model, {name: values[:0] for name, values in BEFORE.items()})
    with pytest.raises(InputError, match="has no counts"):
        cd.detect_drift(model.fitted_.without_counts(), BEFORE)


def test_a_column_that_is_not_there_is_missing(model):
    with pytest.warns(UserWarning, match="lacks"):
        found = cd.detect_drift(model, {name: values for name, values in rows(500, 3).items() if name != "soil"})
    assert found.drifted_columns[0].column == "soil"
    assert found.drifted_columns[0].most_changed_level == "missing"


@pytest.mark.parametrize("event", ["gaussian", "poisson", "exponential"])
def test_numbers_that_are_not_there_have_no_mean(event):
    rng = np.random.default_rng(0)
    table = {"x": rng.poisson(3.0, 200) + 1.0, "z": rng.normal(size=200), "y": ["a", "b"] * 100}
    model = cd.fit(table, "y", model="naive", events={"x": event, "z": "gaussian"})
    gone = cd.detect_drift(model, {"x": [None] * 50, "z": table["z"][:50]})
    [one] = gone.drifted_columns
    assert (one.column, one.values) == ("x", {"missing": (0.0, 1.0)})
    assert np.isfinite(one.stability_index)
    shown = str(summary.summarize_drift(gone))
    assert "missing 0% -> 100%" in shown
    assert "nan" not in shown
    single = cd.detect_drift(model, {"x": [2.0], "z": [0.5]})
    assert all(not np.isnan(pair).any() for one in single.columns for pair in one.values.values())
