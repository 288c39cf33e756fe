"""The default model where rows repeat: copies count once, natural repeats as often as drawn."""

import numpy as np
import pytest

import candide as cd
from candide.data.equal_rows import DistinctRows
from candide.data.notes import DataWarning
from candide.fit_source import fit_model


def mixed(n, seed, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    numbers = rng.normal(size=(n, 3)) + np.outer(y, [0.8, 0.4, 0.0])
    job = np.array(list("abcd"))[(rng.integers(0, 4, n) + (rng.random(n) < 0.3) * y) % 4]
    return {**{f"x{j}": numbers[:, j] for j in range(3)}, "job": job}, y


def pick(X, rows):
    return {name: column[rows] for name, column in X.items()}


def log_loss(model, X, y, factor=1.0):
    p = model.predict_proba(X) * factor
    p /= p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean())


NEW = {classes: mixed(4000, 99, classes) for classes in (2, 3)}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("times", [2, 10])
def test_copies_of_all_rows(classes, times):
    X, y = mixed(300, 0, classes)
    once = log_loss(cd.BayesClassifier().fit(X, y), *NEW[classes])
    rows = np.repeat(np.arange(300), times)
    assert log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), *NEW[classes]) == pytest.approx(once, rel=0.005)
    printed = fit_model({**pick(X, rows), "y": y[rows]}, "y", keep_held_out=True).held_out.scores.log_loss
    alone = fit_model({**X, "y": y}, "y", keep_held_out=True).held_out.scores.log_loss
    assert printed == pytest.approx(alone, rel=0.01)


def test_one_class_five_times_and_a_bootstrap_sample():
    X, y = mixed(300, 1)
    once = log_loss(cd.BayesClassifier().fit(X, y), *NEW[2])
    rows = np.concatenate([np.arange(300), *[np.flatnonzero(y == 1)] * 4])
    shares = np.bincount(y) / np.bincount(y[rows])
    found = log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), *NEW[2], shares)
    assert found == pytest.approx(once, rel=0.01)
    rows = np.random.default_rng(0).integers(0, 300, 300)
    some = np.unique(rows)
    once = log_loss(cd.BayesClassifier().fit(pick(X, some), y[some]), *NEW[2])
    assert log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), *NEW[2]) < 1.05 * once


@pytest.mark.parametrize(("n", "times"), [(300, 67), (4000, 6)])
def test_copies_are_recognised_in_tables_that_are_sampled(n, times):
    """Of categories that say nothing: the log-loss on new rows was 1.47, and .26 was printed."""
    rng = np.random.default_rng(0)
    X, y = {f"c{j}": rng.integers(0, 12, n).astype(str) for j in range(3)}, rng.integers(0, 2, n)
    new, truth = {f"c{j}": rng.integers(0, 12, 4000).astype(str) for j in range(3)}, rng.integers(0, 2, 4000)
    rows = rng.permutation(np.repeat(np.arange(n), times))
    assert log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), new, truth) < 0.72
    printed = fit_model({**pick(X, rows), "y": y[rows]}, "y", keep_held_out=True).held_out.scores.log_loss
    assert printed == pytest.approx(np.log(2), abs=0.02)


@pytest.mark.parametrize("times", [1, 2])
def test_the_order_of_rows_does_not_matter_in_tables_that_are_sampled(times):
    X, y = mixed(25_000 // times, 5)
    rows = np.repeat(np.arange(len(y)), times)
    other = np.random.default_rng(0).permutation(rows)
    first, second = (cd.BayesClassifier().fit(pick(X, order), y[order]) for order in (rows, other))
    np.testing.assert_allclose(first.predict_proba(NEW[2][0]), second.predict_proba(NEW[2][0]), atol=1e-9)


@pytest.mark.parametrize("factor", [3.0, 1e6])
def test_a_common_factor_of_weights_changes_nothing(factor):
    X, y = mixed(300, 2)
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    want = cd.BayesClassifier().fit(X, y, sample_weight=weight).predict_proba(NEW[2][0])
    found = cd.BayesClassifier().fit(X, y, sample_weight=factor * weight).predict_proba(NEW[2][0])
    np.testing.assert_allclose(found, want, atol=1e-3)


def test_weights_below_one_are_fewer_rows_with_a_warning():
    X, y = mixed(300, 2)
    with pytest.warns(UserWarning, match="row weights have a mean of 0.01"):
        few = cd.BayesClassifier().fit(X, y, sample_weight=np.full(300, 0.01))
    assert np.abs(few.predict_proba(NEW[2][0]) - 0.5).mean() < 0.2


def test_a_weight_is_as_many_copies():
    X, y = mixed(200, 3)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    weighted = cd.BayesClassifier().fit(X, y, sample_weight=weight)
    copied = cd.BayesClassifier().fit(pick(X, rows), y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-9)


def test_exclusive_or_of_rows_that_repeat_by_chance():
    rng = np.random.default_rng(0)
    a, b, noise = rng.integers(0, 2, 1000), rng.integers(0, 2, 1000), rng.random(1000) < 0.1
    X, y = {"a": a, "b": b}, (a ^ b) ^ noise
    assert log_loss(cd.BayesClassifier().fit(X, y), X, y) < 0.40
    assert fit_model({**X, "y": y}, "y", keep_held_out=True).held_out.scores.log_loss < 0.40


def test_a_model_of_copies_is_the_same_from_a_file_and_after_a_merge(tmp_path):
    X, y = mixed(200, 4)
    rows = np.repeat(np.arange(200), 3)
    model = cd.BayesClassifier().fit(pick(X, rows), y[rows])
    model.save(tmp_path / "m.candide")
    np.testing.assert_allclose(cd.load(tmp_path / "m.candide").predict_proba(X), model.predict_proba(X), atol=1e-12)
    twice = model + cd.BayesClassifier(like=model).fit(pick(X, rows), y[rows])
    np.testing.assert_allclose(twice.fitted_.term_weights.copies, 3.0)


@pytest.mark.parametrize("times", [2, 5])
def test_copies_of_documents(times):
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(60)])

    def some(n, rng):
        y = rng.integers(0, 2, n)
        p = np.ones((2, 60))
        p[0, :20], p[1, 20:40] = 2.5, 2.5
        return [" ".join(rng.choice(words, 12, p=p[c] / p[c].sum())) for c in y], y

    (X, y), (asked, truth) = some(150, rng), some(1000, rng)
    once = log_loss(cd.TextNB().fit(X, y), asked, truth)
    assert log_loss(cd.TextNB().fit(X * times, np.tile(y, times)), asked, truth) == pytest.approx(once, rel=0.01)


@pytest.mark.parametrize("times", [3, 12])
def test_text_that_is_copied_with_its_row_stays_text(times):
    X, y = mixed(120, 6)
    X["note"] = np.array([f"w{i % 7} and v{i % 11} but u{i} here" for i in range(120)], object)
    rows = np.repeat(np.arange(120), times)
    for found in (cd.BayesClassifier().fit(pick(X, rows), y[rows]), cd.fit({**pick(X, rows), "y": y[rows]}, "y")):
        assert {part.block_kind for part in found.counts_.plan.parts if "note" in part.columns} == {"documents"}


def few_categories(n, seed, a=2, b=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    columns = {"a": rng.integers(0, a, n), "b": rng.integers(0, b, n)}
    return {name: np.where(rng.random(n) < 0.3, y, column).astype(str) for name, column in columns.items()}, y


@pytest.mark.all_cases
@pytest.mark.parametrize("n", [500, 5000, 15_000])
@pytest.mark.parametrize(("a", "b"), [(2, 3), (3, 2), (4, 2), (3, 3)])
def test_held_out_scores_of_few_categories(a, b, n):
    """Rounding made weights of the folds no copies: .693 was printed, where new rows have .593."""
    true, printed = [], []
    for seed in range(8 if n == 500 else 1):  # of few rows both figures vary with the rows drawn
        X, y = few_categories(n, n + 2 * seed, a, b)
        true.append(log_loss(cd.BayesClassifier().fit(X, y), *few_categories(20_000, n + 2 * seed + 1, a, b)))
        printed.append(fit_model({**X, "y": y}, "y", keep_held_out=True).held_out.scores.log_loss)
    assert np.mean(printed) == pytest.approx(np.mean(true), rel=0.05)


def test_calibration_of_few_categories_changes_little():
    """The log-loss was 2.74 on these rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    a = np.where(rng.random(5000) < 0.3 + 0.4 * y, "u", "v")
    b = np.array(list("xyz"))[np.where(rng.random(5000) < 0.3, y, rng.integers(0, 3, 5000))]
    plain, bent = (cd.BayesClassifier(calibration=how).fit({"a": a, "b": b}, y) for how in (None, "logistic"))
    new = {"a": a, "b": b}, y
    assert log_loss(bent, *new) == pytest.approx(log_loss(plain, *new), rel=0.01)


@pytest.mark.parametrize("change", [lambda n: 1.001 * n, lambda n: n + 0.5, lambda n: n + (n == n[0]) * 1e-6])
def test_counts_of_cells_are_rows_whole_or_not(change):
    """Weights that are not whole made a model of the class prior alone, with a log-loss of .696."""
    X, y = few_categories(1000, 0)
    new = few_categories(20_000, 1)
    cells, n = np.unique(np.array([X["a"], X["b"], y.astype(str)]), axis=1, return_counts=True)
    counted = {"a": cells[0], "b": cells[1]}, cells[2].astype(int)
    rows = log_loss(cd.BayesClassifier().fit(X, y), *new)
    found = cd.BayesClassifier().fit(*counted, sample_weight=change(n.astype(float)))
    assert log_loss(found, *new) == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize(("n", "rows"), [(500, 1500), (150, 1500)])
def test_a_bootstrap_sample_with_one_column_of_measurements(n, rows):
    """Beside columns of few values: the log-loss was 1.4 instead of .7."""
    rng = np.random.default_rng(0)

    def draw(n):
        y = rng.integers(0, 2, n)
        levels = (rng.integers(0, 3, (n, 3)) + (rng.random((n, 3)) < 0.1) * y[:, None]) % 3
        return {"x": rng.normal(0.3 * y), **{f"c{j}": levels[:, j].astype(str) for j in range(3)}}, y

    (X, y), new, rows = draw(n), draw(5000), rng.integers(0, n, rows)
    some = np.unique(rows)
    once = log_loss(cd.BayesClassifier().fit(pick(X, some), y[some]), *new)
    found = log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), *new)
    assert found < 1.03 * once
    printed = fit_model({**pick(X, rows), "y": y[rows]}, "y", keep_held_out=True).held_out.scores.log_loss
    assert printed == pytest.approx(found, rel=0.1)


def some_documents(n, rng):
    words = np.array([f"w{i}" for i in range(300)])
    y, p = rng.integers(0, 2, n), np.ones((2, 300))
    p[0, :100], p[1, 100:200] = 1.25, 1.25
    return np.array([" ".join(rng.choice(words, 15, p=p[c] / p[c].sum())) for c in y], object), y


@pytest.mark.parametrize("copies", ["three times", "ten times", "fifty of them often"])
def test_documents_that_are_copied_at_random(copies):
    """An accuracy of .88 was printed, where new documents have .56."""
    rng = np.random.default_rng(0)
    (X, y), (asked, truth) = some_documents(400, rng), some_documents(2000, rng)
    rows = {
        "three times": rng.integers(0, 400, 1200),
        "ten times": rng.integers(0, 400, 4000),
        "fifty of them often": np.concatenate([np.arange(400), np.repeat(np.arange(50), 20)]),
    }[copies]
    model = cd.BayesClassifier().fit({"text": X[rows]}, y[rows])
    found = log_loss(model, {"text": asked}, truth)
    assert found < 0.73
    printed = fit_model({"text": X[rows], "y": y[rows]}, "y", keep_held_out=True).held_out.scores
    assert printed.log_loss == pytest.approx(found, rel=0.05)
    assert printed.accuracy < 0.65


def test_a_bootstrap_sample_of_documents():
    """TextNB had a log-loss of 3.0 instead of .75."""
    rng = np.random.default_rng(0)
    (X, y), new, rows = some_documents(100, rng), some_documents(2000, rng), rng.integers(0, 100, 1000)
    once = log_loss(cd.TextNB().fit(X, y), *new)
    assert log_loss(cd.TextNB().fit(X[rows], y[rows]), *new) < 1.05 * once


def test_copies_of_a_table_that_is_sampled_are_left_out_as_often_as_they_were_counted():
    """More was left out than was counted, and weights were NaN."""
    rng = np.random.default_rng(0)
    y, rows = rng.integers(0, 2, 1500), rng.integers(0, 1500, 30_000)
    X = {"a": rng.normal(y, 2), "b": np.round(rng.normal(y, 1.5))}
    some = np.unique(rows)
    once = cd.BayesClassifier().fit(pick(X, some), y[some])
    many = cd.BayesClassifier().fit(pick(X, rows), y[rows])
    truth = rng.integers(0, 2, 5000)
    new = {"a": rng.normal(truth, 2), "b": np.round(rng.normal(truth, 1.5))}, truth
    assert log_loss(many, *new) == pytest.approx(log_loss(once, *new), rel=0.03)


def test_many_classes_and_whole_numbers_of_which_some_rows_are_copies():
    """Fewer rows are sampled where classes are many; weights were NaN."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 26, 12_500)
    spread = np.where(np.arange(26) % 5 == 0, 0.25, 0.8)  # rows of some classes repeat by chance
    X = rng.normal(8, 2.5, (26, 16))[y] + spread[y, None] * rng.normal(size=(len(y), 16))
    rows = np.concatenate([np.arange(len(y)), np.repeat(rng.integers(0, len(y), 150), 3)])
    X, y = np.clip(X, 0, 15).round()[rows], y[rows]
    model = cd.BayesClassifier().fit(X, y)
    assert np.isfinite(model.predict_proba(X[:500])).all()
    assert model.score(X[:500], y[:500]) > 0.9


def zip_codes(n, rng):
    """One category of many levels, each of which is mostly of one class."""
    code = rng.integers(0, 600, n)
    p = np.where(np.random.default_rng(7).random(600) < 0.5, 0.9, 0.1)[code]
    return {"code": np.char.add("z", code.astype(str))}, (rng.random(n) < p).astype(int)


def inactive_users(n, rng):
    """Counts that are all 0 in three rows of ten, in both classes."""
    y, is_active = rng.integers(0, 2, n), rng.random(n) < 0.7
    return {f"c{j}": np.where(is_active, rng.poisson(3 + 0.3 * y), 0) for j in range(10)}, y


@pytest.mark.parametrize(("draw", "n", "most"), [(zip_codes, 1000, 0.55), (inactive_users, 400, 0.7)])
def test_equal_rows_of_different_classes_are_not_copies(draw, n, most):
    """A copy keeps its class. Such rows were taken for copies: .693 on new rows, and 2 to 3 printed."""
    rng = np.random.default_rng(1)
    (X, y), new = draw(n, rng), draw(5000, rng)
    assert log_loss(cd.BayesClassifier().fit(X, y), *new) < most
    assert fit_model({**X, "y": y}, "y", keep_held_out=True).held_out.scores.log_loss < most + 0.05


def sparse_categories(n, rng):
    """Five categories of seven levels, of which few rows are equal by chance."""
    y = rng.integers(0, 2, n)
    levels = [np.where(rng.random(n) < 0.12, y, rng.integers(0, 7, n)) for _ in range(5)]
    return {f"c{j}": np.array(list("abcdefg"))[level] for j, level in enumerate(levels)}, y


def test_a_bootstrap_sample_of_categories():
    """No row has more copies than chance may give it, but they are eight times too many: the log-loss was .774."""
    rng = np.random.default_rng(0)
    (X, y), new = sparse_categories(2000, rng), sparse_categories(4000, rng)
    rows = rng.integers(0, 2000, 2000)
    sample, once = ({name: column[some] for name, column in X.items()} for some in (rows, np.unique(rows)))
    found = log_loss(cd.BayesClassifier().fit(sample, y[rows]), *new)
    assert found == pytest.approx(log_loss(cd.BayesClassifier().fit(once, y[np.unique(rows)]), *new), rel=0.03)


def test_tables_without_copies_keep_all_their_rows():
    rng = np.random.default_rng(0)
    for n in (600, 2000):
        X, y = sparse_categories(n, rng)
        assert DistinctRows.from_columns(list(X.values()), y).draws.sum() == n


def test_an_identifier_that_is_left_out_hides_no_copies():
    X, y = mixed(300, 0)
    rows = np.repeat(np.arange(300), 10)
    copies = pick(X, rows)
    expected = cd.BayesClassifier().fit(copies, y[rows]).predict_proba(X)
    numbered = {**copies, "row_id": np.arange(len(rows))}
    with pytest.warns(DataWarning, match="'row_id' is left out"):
        model = cd.BayesClassifier().fit(numbered, y[rows])
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_allclose(model.reweight(numbered, y[rows]).predict_proba(X), expected, rtol=1e-9)
    with pytest.warns(DataWarning, match="'row_id' is left out"):
        from_table = cd.fit({**numbered, "y": y[rows]}, "y")
    np.testing.assert_allclose(from_table.predict_proba(X), expected, rtol=1e-9)
