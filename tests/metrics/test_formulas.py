"""Metrics against scikit-learn's, on random rows with ties, weights and classes that do not occur."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from candide.errors import InputError, UnknownNameError
from candide.metrics.auc import log_odds
from candide.metrics.formulas import METRICS, Metric, fold_metrics, resampled_intervals
from candide.metrics.scores import Scores

CLOSE = 1e-12


@st.composite
def cases(draw):
    """log p(class | x), class codes and weights (or None): ties, weights of 0, classes without rows."""
    k, n = draw(st.integers(2, 5)), draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = rng.dirichlet(np.full(k, 0.7), n) + 1e-6
    if draw(st.booleans()):  # many rows alike
        p = p[rng.integers(max(1, n // 4), size=n)]
    if draw(st.booleans()):  # classes alike within a row
        p = np.round(p, 1) + 0.05
    p /= p.sum(axis=1, keepdims=True)
    y = rng.choice(np.arange(k)[: draw(st.integers(1, k))], n)
    weight = draw(st.sampled_from([None, "any", "some"]))
    w = None if weight is None else rng.random(n) * (1 if weight == "any" else rng.integers(0, 2, n))
    if w is not None and not w.sum() > 0:
        w[0] = 1.0
    return np.log(p), y, w


def quiet(metric, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return metric(*args, **how)


@given(cases())
@settings(deadline=None, max_examples=200)
def test_metrics_of_decisions_are_those_of_scikit_learn(case):
    log_p, y, w = case
    scores, said = Scores.from_log_posterior(log_p, y, w), log_p.argmax(axis=1)
    counts = y if w is None else y[w > 0]  # a class of rows without weight does not occur
    given_some = said if w is None else said[w > 0]
    occur = np.union1d(counts, given_some)
    for how in ("macro", "micro", "weighted"):
        wanted = quiet(
            sk.precision_recall_fscore_support, y, said, average=how, sample_weight=w, labels=occur, zero_division=0
        )
        found = [scores.average(name, how) for name in ("precision", "recall", "f1")]
        assert found == pytest.approx(wanted[:3], abs=CLOSE)
    of = {"average": "binary", "pos_label": 1} if log_p.shape[1] == 2 else {"average": "macro", "labels": occur}
    wanted = quiet(sk.precision_recall_fscore_support, y, said, sample_weight=w, zero_division=0, **of)
    assert [scores.precision, scores.f1] == pytest.approx([wanted[0], wanted[2]], abs=CLOSE)
    each = quiet(
        sk.precision_recall_fscore_support, y, said, sample_weight=w, labels=range(log_p.shape[1]), zero_division=0
    )
    found = [[one.precision, one.recall, one.f1, one.weight] for one in scores.class_scores()]
    assert np.allclose(np.array(found).T, each, atol=CLOSE, rtol=CLOSE)
    assert scores.matthews == pytest.approx(quiet(sk.matthews_corrcoef, y, said, sample_weight=w), abs=CLOSE)
    assert scores.accuracy == pytest.approx(sk.accuracy_score(y, said, sample_weight=w), abs=CLOSE)
    rows = slice(None) if w is None else w > 0
    weight = None if w is None else w[rows]
    wanted = quiet(sk.balanced_accuracy_score, y[rows], said[rows], sample_weight=weight)
    assert scores.balanced_accuracy == pytest.approx(wanted, abs=CLOSE)


@given(cases())
@settings(deadline=None, max_examples=200)
def test_areas_and_curves_are_those_of_scikit_learn(case):
    log_p, y, w = case
    if w is not None:  # scikit-learn leaves out rows without weight here and not there
        log_p, y, w = log_p[w > 0], y[w > 0], w[w > 0]
    scores, odds = Scores.from_log_posterior(log_p, y, w), odds_of(log_p)
    for c, one in enumerate(scores.class_scores()):
        own = y == c
        if not own.any():
            assert np.isnan(one.average_precision)
            continue
        assert one.average_precision == pytest.approx(
            sk.average_precision_score(own, odds[:, c], sample_weight=w), abs=CLOSE
        )
        if own.all():
            assert np.isnan(one.auc)
            continue
        assert one.auc == pytest.approx(sk.roc_auc_score(own, odds[:, c], sample_weight=w), abs=CLOSE)
        line, right, *_, calibrated = scores.curves(classes=[c])
        x, height, at = sk.roc_curve(own, odds[:, c], sample_weight=w, drop_intermediate=False)
        same(line.x, x)
        same(line.y, height)
        same(line.threshold[1:], 1 / (1 + np.exp(-at[1:])))
        found, recalled, _ = quiet(sk.precision_recall_curve, own, odds[:, c], sample_weight=w)
        same(right.x, recalled[::-1])
        same(right.y, found[::-1])
        if w is None:
            p = 1 / (1 + np.exp(-odds[:, c]))
            if np.abs(p * 10 - np.round(p * 10)).min() > 1e-9:  # none at an edge
                true, stated = calibration_curve(own, p, n_bins=10)
                same(calibrated.x, stated)
                same(calibrated.y, true)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_threshold_tables_are_counts(case):
    log_p, y, w = case
    scores, odds = Scores.from_log_posterior(log_p, y, w), odds_of(log_p)
    w = np.ones(len(y)) if w is None else w
    for c in range(log_p.shape[1]):
        for one in scores.thresholds(levels=(0.0, 0.137, 0.5, 0.83, 1.0), c=c):
            with np.errstate(divide="ignore"):
                flagged = odds[:, c] >= np.log(one.threshold) - np.log1p(-one.threshold)
            own, every = w @ (flagged & (y == c)), w @ flagged
            assert one.flagged == pytest.approx(every / w.sum(), abs=CLOSE)
            assert one.precision == pytest.approx(own / every if every else np.nan, abs=CLOSE, nan_ok=True)
            of_class = w @ (y == c)
            assert one.recall == pytest.approx(own / of_class if of_class else np.nan, abs=CLOSE, nan_ok=True)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_top_k_is_that_of_scikit_learn_with_the_first_of_equals_first(case):
    log_p, y, w = case
    k = log_p.shape[1]
    if k == 2:
        assert Scores.from_log_posterior(log_p, y, w).top_k_accuracy(1) == pytest.approx(
            Scores.from_log_posterior(log_p, y, w).accuracy, abs=CLOSE
        )
        return
    for top in range(1, k):  # scikit-learn has the last of equals first: here the classes stand in reverse
        wanted = quiet(sk.top_k_accuracy_score, k - 1 - y, log_p[:, ::-1], k=top, sample_weight=w, labels=range(k))
        assert Scores.from_log_posterior(log_p, y, w).top_k_accuracy(top) == pytest.approx(wanted, abs=CLOSE)


def test_lift_and_gain_of_a_tenth():
    rng = np.random.default_rng(0)
    y = (rng.random(1000) < 0.2).astype(int)
    odds = rng.normal(2.0 * y, 1.0)
    log_p = np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)
    first = np.argsort(-odds)[:100]
    one = Scores.from_log_posterior(log_p, y).class_scores()[1]
    assert one.lift == pytest.approx(y[first].mean() / y.mean(), abs=1e-12)
    _, _, gain, lift, _ = Scores.from_log_posterior(log_p, y).curves()
    assert gain.y[100] == pytest.approx(y[first].sum() / y.sum(), abs=1e-12)
    assert lift.y[[100, -1]] == pytest.approx([one.lift, 1.0], abs=1e-12)
    thin = gain.thin(21)
    assert len(thin.x) <= 22
    assert thin.x[[0, -1]].tolist() == [0, 1]
    assert set(thin.y) <= set(gain.y)


def test_the_parts_of_scores_add():
    rng = np.random.default_rng(1)
    log_p = np.log(rng.dirichlet(np.ones(4), 500))
    y, w = rng.integers(4, size=500), rng.random(500)
    whole = Scores.from_log_posterior(log_p, y, w)
    parts = [Scores.from_log_posterior(log_p[i : i + 50], y[i : i + 50], w[i : i + 50]) for i in range(0, 500, 50)]
    for added in (sum(parts[1:], parts[0]), sum(parts[-2::-1], parts[-1])):
        assert added.metrics() == pytest.approx(whole.metrics(), abs=1e-12)
        assert [added.top_k_accuracy(k) for k in (1, 2, 3)] == pytest.approx(
            [whole.top_k_accuracy(k) for k in (1, 2, 3)]
        )
    in_order, backwards = sum(parts[1:], parts[0]).intervals(), sum(parts[-2::-1], parts[-1]).intervals()
    assert all(in_order[name] == pytest.approx(backwards[name], abs=1e-12) for name in in_order)


def binary(rng, n, share=0.3):
    y = (rng.random(n) < share).astype(int)
    odds = rng.normal(1.5 * y - 1.0, 1.0)
    return np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1), y


def test_a_drawing_is_scored_as_its_rows_are():
    rng = np.random.default_rng(2)
    log_p = np.log(rng.dirichlet(np.ones(3), 80))
    y = rng.integers(3, size=80)
    sample = Scores.from_log_posterior(log_p, y).sample
    times = rng.integers(0, 4, 80)
    rows = np.repeat(np.arange(80), times)
    drawn = sample._metrics(times[None, :].astype(float))
    wanted = Scores.from_log_posterior(log_p[rows], y[rows]).metrics()
    assert {name: values.item() for name, values in drawn.items()} == pytest.approx(
        {name: wanted[name] for name in drawn}, abs=1e-12
    )
    assert set(METRICS) - set(drawn) == {"calibration_error"}


def test_intervals_hold_the_figure_of_all_rows_at_their_nominal_rate():
    rng = np.random.default_rng(3)
    truth = Scores.from_log_posterior(*binary(np.random.default_rng(99), 400_000)).metrics()
    held = dict.fromkeys(("accuracy", "log_loss", "auc", "f1", "matthews", "average_precision"), 0)
    for i in range(200):
        found = Scores.from_log_posterior(*binary(rng, 500)).intervals(0.9, draws=200, seed=i)
        for name in held:
            low, high = found[name]
            held[name] += low <= truth[name] <= high
    assert all(0.83 <= n / 200 <= 0.97 for n in held.values()), held  # three deviations of 200 trials about .9


def test_a_metric_that_is_off_by_more_than_it_varies_has_no_interval():
    """Of few rows the average precision is too high, of drawings from them higher still."""
    rng = np.random.default_rng(0)

    def drawn(n, k=20):
        y, x = rng.integers(0, k, n), rng.normal(size=(n, k))
        x[np.arange(n), y] += 1
        return Scores.from_log_posterior(x - np.log(np.exp(x).sum(axis=1, keepdims=True)), y)

    true, held, told = drawn(40_000), 0, 0
    for _ in range(12):
        scores = drawn(300)
        low, high = scores.intervals(draws=100)["average_precision"]
        told += low == low
        held += not low <= true.average_precision <= high and low == low
        accuracy = scores.intervals(draws=100)["accuracy"]
        assert accuracy[0] < scores.accuracy < accuracy[1]
    assert told < 12, "none is refused, and all would lie above the true one"
    assert held <= 2, f"{held} of {told} intervals miss it"
    low, high = drawn(20_000, 3).intervals(draws=100)["average_precision"]
    assert low < high


def test_rows_that_are_all_right_have_the_exact_bound_of_a_share():
    log_posterior = np.log(np.tile([0.2, 0.8], (50, 1)))
    for y, want in ((1, (0.025 ** (1 / 50), 1.0)), (0, (0.0, 1 - 0.025 ** (1 / 50)))):
        found = Scores.from_log_posterior(log_posterior, np.full(50, y)).intervals()
        assert found["accuracy"] == pytest.approx(want)  # of 50 of 50: binom.test(50, 50) of R has 0.9289 to 1
        assert np.isnan(found["f1"]).all()


def test_intervals_of_many_rows_are_those_of_all_of_them():
    log_p, y = binary(np.random.default_rng(4), 60_000)
    parts = [Scores.from_log_posterior(log_p[i : i + 5000], y[i : i + 5000]) for i in range(0, 60_000, 5000)]
    scores = sum(parts[1:], parts[0])
    low, high = scores.intervals()["accuracy"]
    wide = 2 * 1.96 * np.sqrt(scores.accuracy * (1 - scores.accuracy) / len(y))
    assert high - low == pytest.approx(wide, rel=0.2)
    assert low < scores.accuracy < high
    assert len(scores.sample.random_key) < 20_000


def test_intervals_are_the_same_each_time_and_others_by_another_seed():
    scores = Scores.from_log_posterior(*binary(np.random.default_rng(5), 300))
    assert scores.intervals() == scores.intervals()
    assert scores.intervals(seed=1) != scores.intervals()


@pytest.mark.parametrize("k", [2, 3])
def test_drawings_of_folds_are_scored_as_their_rows_are(k):
    rng = np.random.default_rng(6)
    rows = [(np.log(rng.dirichlet(np.ones(k), n).round(2) + 0.01), rng.integers(k, size=n)) for n in (20, 35, 5, 40)]
    folds = [Scores.from_log_posterior(*fold, rng.random(len(fold[1]))) for fold in rows]
    weights = [one.sample.weight for one in folds]
    times = rng.multinomial(4, np.full(4, 1 / 4), 15)
    found = fold_metrics(folds, times.astype(float))
    for i, each in enumerate(times):
        drawn = np.repeat(np.arange(4), each)  # explicitly: the rows of the folds, one after the other
        log_p, y = (np.concatenate([rows[f][part] for f in drawn]) for part in (0, 1))
        wanted = Scores.from_log_posterior(log_p, y, np.concatenate([weights[f] for f in drawn])).metrics()
        got = {name: values[i] for name, values in found.items()}
        assert got == pytest.approx({name: wanted[name] for name in got}, abs=1e-12, nan_ok=True)


def test_intervals_over_folds_are_those_of_the_mean_of_folds():
    rng, right = np.random.default_rng(7), np.array([80, 90, 70, 85, 95, 60, 75, 88])
    sure = np.log(np.tile([0.7, 0.3], (100, 1)))
    folds = [
        Scores.from_log_posterior(sure, (rng.permutation(100) >= n).astype(int)) for n in right
    ]  # rows of a fold go together
    low, high = resampled_intervals(folds, by="folds", draws=4000)["accuracy"]
    error = right.std(ddof=1) / 100 / np.sqrt(8)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.08)
    assert low + high == pytest.approx(2 * right.mean() / 100, abs=error / 3)
    by_rows = resampled_intervals(folds)["accuracy"]
    assert by_rows[1] - by_rows[0] < 0.8 * (high - low)


def test_ranks_of_many_rows_share_cells_between_folds():
    folds = [
        Scores.from_log_posterior(*binary(np.random.default_rng(i), 6000)) for i in range(3)
    ]  # more values than cells
    found = fold_metrics(folds, np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]]))["auc"]
    wanted = [(folds[0] + folds[1] + folds[2]).auc, (folds[0] + folds[0] + folds[2]).auc]
    assert found == pytest.approx(wanted, abs=1e-4)


def test_a_row_that_was_impossible_raises_no_warning():
    impossible = Scores.from_log_posterior(np.array([[0.0, -np.inf], [-0.1, -2.4]]), np.array([1, 0]))
    found = resampled_intervals(
        [impossible, *(Scores.from_log_posterior(*binary(np.random.default_rng(i), 20)) for i in (0, 1))], by="folds"
    )
    assert 0 < found["accuracy"][0] < found["accuracy"][1] < 1


def test_folds_that_cannot_be_drawn():
    one = Scores.from_log_posterior(*binary(np.random.default_rng(5), 30))
    with pytest.raises(InputError) as error:
        resampled_intervals([one], by="folds")
    assert "rows" in error.value.remedy
    with pytest.raises(UnknownNameError, match="folds"):
        resampled_intervals([one, one], by="fold")


def same(found, wanted):
    assert np.allclose(found, wanted, rtol=CLOSE, atol=CLOSE)


def odds_of(log_p):
    """Log-odds of each class against the rest, as the ranks have them."""
    scores = Scores.from_log_posterior(log_p, np.zeros(len(log_p), int))
    odds = scores.ranks.chunks[0].log_odds
    return np.hstack([-odds, odds]) if log_p.shape[1] == 2 else odds


def sixty_classes(spread, n=2000, k=60):
    rng = np.random.default_rng(8)
    y, scores = rng.integers(0, k, n), rng.normal(size=(n, k)) * spread
    scores[np.arange(n), y] += 1.5 * spread
    return scores - np.logaddexp.reduce(scores, axis=1)[:, None], y, rng.exponential(size=n)


def test_areas_of_sixty_weighted_classes_are_those_of_scikit_learn():
    """To 1e-12 where no probability rounds to 0 or 1; where some do, of the log-odds, which are no ties."""
    for spread in (1.0, 8.0, 60.0):
        log_p, y, w = sixty_classes(spread)
        scores, p = Scores.from_log_posterior(log_p, y, w), np.exp(log_p)
        odds = log_odds(log_p, p, np.arange(len(y)) * 60 + log_p.argmax(axis=1))
        areas = np.array([sk.roc_auc_score(y == c, odds[:, c], sample_weight=w) for c in range(60)])
        of_class = np.bincount(y, w)
        assert scores.auc == pytest.approx(areas.mean(), abs=1e-12)
        assert scores.weighted_auc == pytest.approx(areas @ of_class / of_class.sum(), abs=1e-12)
        if spread < 60:
            for how, found in (("macro", scores.auc), ("weighted", scores.weighted_auc)):
                wanted = sk.roc_auc_score(y, p, multi_class="ovr", average=how, sample_weight=w)
                assert found == pytest.approx(wanted, abs=1e-12)


def test_a_new_metric_is_a_function_and_a_line(monkeypatch):
    def error_rate(figures):
        return 1 - METRICS["accuracy"].compute(figures)

    monkeypatch.setitem(METRICS, "error_rate", Metric(error_rate, "predicted class is wrong", lower_is_better=True))
    scores = Scores.from_log_posterior(np.log(np.tile([0.2, 0.8], (100, 1))), (np.arange(100) < 80).astype(int))
    assert scores.error_rate == scores.metrics()["error_rate"] == pytest.approx(0.2)
    low, high = scores.intervals()["error_rate"]
    assert low < 0.2 < high
    assert "error_rate" in str(scores)
