"""The default model where rows repeat: copies teach once, natural repeats as often as they are drawn."""

import numpy as np
import pytest

import candide as cd
from candide.tasks.learn import learn


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
def test_rows_that_are_all_there_several_times(classes, times):
    X, y = mixed(300, 0, classes)
    once = log_loss(cd.BayesClassifier().fit(X, y), *NEW[classes])
    rows = np.repeat(np.arange(300), times)
    assert log_loss(cd.BayesClassifier().fit(pick(X, rows), y[rows]), *NEW[classes]) == pytest.approx(once, rel=0.005)
    printed = learn({**pick(X, rows), "y": y[rows]}, "y", trust=True).held_out.scores.log_loss
    alone = learn({**X, "y": y}, "y", trust=True).held_out.scores.log_loss
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
    printed = learn({**pick(X, rows), "y": y[rows]}, "y", trust=True).held_out.scores.log_loss
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
    assert learn({**X, "y": y}, "y", trust=True).held_out.scores.log_loss < 0.40


def test_a_model_of_copies_is_the_same_from_a_file_and_after_a_merge(tmp_path):
    X, y = mixed(200, 4)
    rows = np.repeat(np.arange(200), 3)
    model = cd.BayesClassifier().fit(pick(X, rows), y[rows])
    model.save(tmp_path / "m.candide")
    np.testing.assert_allclose(cd.load(tmp_path / "m.candide").predict_proba(X), model.predict_proba(X), atol=1e-12)
    twice = model + cd.BayesClassifier(like=model).fit(pick(X, rows), y[rows])
    np.testing.assert_allclose(twice.fitted_.voices.copies, 3.0)


@pytest.mark.parametrize("times", [2, 5])
def test_documents_that_are_there_several_times(times):
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
        assert {part.holds for part in found.census_.plan.parts if "note" in part.columns} == {"documents"}
