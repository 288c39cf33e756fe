"""Discriminants, calibration and confusion say what independent code says."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import confusion_matrix

import candide as cd
from candide import plot


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer()
    y = data.target_names[data.target]
    return cd.NaiveBayes().fit(data.data[:300], y[:300]), data.data[300:], y[300:]


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    model = cd.GaussianNB(var_smoothing=0.1).fit(data.data[:900], data.target[:900])
    return model, data.data[900:], data.target[900:]


def crosses(ax):
    return [c for c in ax.collections if c.get_label() == "error"]


def test_bars_are_the_log_odds_in_order_and_the_errors_are_crossed(cancer):
    model, X, y = cancer
    ax = plot.discriminant(model, X, y, kind="bars")
    log_p = model.predict_log_proba(X)
    odds = log_p[:, 1] - log_p[:, 0]
    drawn = sorted((b.get_x(), b.get_height()) for bars in ax.containers for b in bars)
    np.testing.assert_allclose([h for _, h in drawn], np.sort(odds), rtol=1e-9)
    wrong = model.predict(X) != y
    [cross] = crosses(ax)
    order = np.argsort(odds, kind="stable")
    np.testing.assert_array_equal(np.sort(cross.get_offsets()[:, 0]), np.flatnonzero(wrong[order]))
    assert ax.get_title(loc="left") == f"{wrong.sum()} errors in {len(y)}"
    of_class = {bars.get_label(): len(bars) for bars in ax.containers}
    assert of_class == {label: int((y == label).sum()) for label in model.classes_}


def test_a_strip_has_a_point_a_row_and_a_cross_an_error(cancer):
    model, X, y = cancer
    ax = plot.discriminant(model, X, y)
    log_p = model.predict_log_proba(X)
    odds = log_p[:, 1] - log_p[:, 0]
    points = {c.get_label(): c.get_offsets() for c in ax.collections}
    for i, label in enumerate(model.classes_):
        np.testing.assert_allclose(np.sort(points[label][:, 0]), np.sort(odds[y == label]), rtol=1e-9)
        assert (np.abs(points[label][:, 1] - i) < 0.5).all()
    wrong = model.predict(X) != y
    np.testing.assert_allclose(np.sort(points["error"][:, 0]), np.sort(odds[wrong]), rtol=1e-9)


def test_of_many_rows_it_is_a_histogram_a_class_with_its_errors_in_black():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 3000)
    X = rng.normal(2.0 * (y == "b"), 1.0)[:, None]
    model = cd.GaussianNB().fit(X, y)
    ax = plot.discriminant(model, X, y)
    assert not ax.collections  # no points
    log_p = model.predict_log_proba(X)
    odds, wrong = log_p[:, 1] - log_p[:, 0], model.predict(X) != y
    for i, label in enumerate("ab"):
        right, missed = ax.containers[2 * i : 2 * i + 2]
        assert (right.get_label(), {bar.get_facecolor() for bar in missed}) == (label, {(0.0, 0.0, 0.0, 1.0)})
        tall, black = (sum(abs(bar.get_height()) for bar in bars) for bars in (right, missed))
        assert black / (tall + black) == pytest.approx(wrong[y == label].mean())
        for bar in right:
            inside = (odds[y == label] >= bar.get_x()) & (odds[y == label] < bar.get_x() + bar.get_width())
            if bar.get_height():
                assert abs(bar.get_height()) / tall == pytest.approx(inside.sum() / (y[~wrong] == label).sum())
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "error"]
    assert len(plot.discriminant(model, X[:2000], y[:2000]).collections) == 3
    assert len(plot.discriminant(model, X, y, kind="strip").collections[0].get_offsets()) == (y == "a").sum()
    with pytest.raises(cd.errors.InputError, match="unknown kind 'strp'; did you mean 'strip'"):
        plot.discriminant(model, X, y, kind="strp")


def test_positive_turns_the_sign_and_sets_one_class_against_the_rest(cancer, digits):
    model, X, y = cancer
    a, b = (plot.discriminant(model, X, y, positive=v) for v in model.classes_)
    one, other = (ax.collections[0].get_offsets()[:, 0] for ax in (a, b))
    np.testing.assert_allclose(one, -other)
    model, X, y = digits
    ax = plot.discriminant(model, X, y, positive=3)
    p = model.predict_proba(X)[:, 3]
    moderate = (p > 1e-6) & (p < 1 - 1e-6)
    drawn = np.concatenate([c.get_offsets()[:, 0] for c in ax.collections if c.get_label() != "error"])
    for want in np.log(p[moderate] / (1 - p[moderate])):
        assert np.abs(drawn - want).min() < 1e-6
    assert len(crosses(ax)[0].get_offsets()) == ((p > 0.5) != (y == 3)).sum()


def test_an_impossible_row_is_drawn_at_the_edge():
    X = {"word": ["a", "a", "b", "b"]}
    model = cd.NaiveBayes(estimate="mle").fit(X, [0, 0, 1, 1])
    ax = plot.discriminant(model, X, [0, 0, 1, 1])
    assert "infinite" in ax.get_title(loc="left")
    assert all(np.isfinite(c.get_offsets()).all() for c in ax.collections)


@pytest.mark.parametrize("bins", [5, 10, 20])
def test_calibration_of_two_classes_is_scikit_learns(cancer, bins):
    model, X, y = cancer
    ax = plot.calibration(model, X, y, bins=bins)
    observed, stated = calibration_curve(y == model.classes_[1], model.predict_proba(X)[:, 1], n_bins=bins)
    points = ax.containers[1].lines[0].get_xydata()
    np.testing.assert_allclose(points, np.column_stack([stated, observed]))
    shares = [b.get_height() for b in ax.containers[0]]
    assert sum(shares) == pytest.approx(1)


def test_calibration_of_many_classes_is_that_of_the_winner(digits):
    model, X, y = digits
    p = model.predict_proba(X)
    observed, stated = calibration_curve(model.predict(X) == y, p.max(axis=1), n_bins=10)
    want = np.column_stack([stated, observed])
    for ax in (plot.calibration(model, X, y), plot.calibration(p, None, y)):
        np.testing.assert_allclose(ax.containers[1].lines[0].get_xydata(), want)
    ax = plot.calibration(model, X, y, positive=8)
    observed, stated = calibration_curve(y == 8, p[:, 8], n_bins=10)
    np.testing.assert_allclose(ax.containers[1].lines[0].get_xydata(), np.column_stack([stated, observed]))


def test_calibration_of_bare_probabilities():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    observed, stated = calibration_curve(y, p, n_bins=10)
    points = plot.calibration(p, None, y).containers[1].lines[0].get_xydata()
    np.testing.assert_allclose(points, np.column_stack([stated, observed]))


def test_the_limits_of_calibration_are_wilsons():
    from scipy.stats import binomtest

    from candide.metrics.curves import Calibration

    truth = np.array([True] * 7 + [False] * 13)
    low, high = Calibration.from_probabilities(np.full(20, 0.4), truth).confidence_limits()
    want = binomtest(7, 20).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((want.low, want.high), abs=1e-7)


@pytest.mark.parametrize("normalise", [False, True])
def test_confusion_is_scikit_learns(digits, normalise):
    model, X, y = digits
    ax = plot.confusion(model, X, y, normalise=normalise)
    matrix = confusion_matrix(y, model.predict(X))
    share = matrix / matrix.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ax.images[0].get_array(), share)
    texts = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert len(texts) == 100
    for (i, j), text in texts.items():
        if normalise:
            assert float(text) == pytest.approx(share[i, j], abs=0.0051)
        else:
            assert int(text) == matrix[i, j]
    assert [t.get_text() for t in ax.get_yticklabels()] == list("0123456789")


def test_documents_are_evaluated_too():
    texts, y = ["free prize", "see you", "free call", "five to see"], ["spam", "ham", "spam", "ham"]
    model = cd.TextNB().fit(texts, y)
    matrix = plot.confusion(model, texts, y).images[0].get_array()
    np.testing.assert_allclose(matrix, np.eye(2))
    drawn = plot.discriminant(model, texts, y).collections[1].get_offsets()[:, 0]
    log_p = model.predict_log_proba(["free prize", "free call"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(log_p[:, 1] - log_p[:, 0]))
