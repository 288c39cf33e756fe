"""Digits: means far from zero, long streams, and learning and forgetting for a long time."""

from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest

from candide import encoding
from candide.encoding import Identity
from candide.tally import LevelTally, Moments, Sums, TallySpec


def exact_moments(x):
    values = [Fraction(v) for v in x.tolist()]
    mean = sum(values) / len(values)
    return float(mean), float(sum((v - mean) ** 2 for v in values) / len(values))


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e9, 1e9])
@pytest.mark.parametrize("chunk", [1, 7, 5000])
def test_variance_far_from_zero(offset, chunk):
    x = offset + np.random.default_rng(1).normal(size=(5000, 1))
    y = np.zeros(len(x), np.intp)
    parts = [Moments.from_rows(x[a : a + chunk], y[a : a + chunk], n_classes=1) for a in range(0, len(x), chunk)]
    tally = reduce(add, parts)
    mean, variance = exact_moments(x[:, 0])
    rounding = np.finfo(float).eps * (len(parts) + 4)  # each merge rounds the mean once
    assert tally.mean[0, 0] == pytest.approx(mean, rel=rounding, abs=rounding)
    assert tally.m2[0, 0] / tally.n[0, 0] == pytest.approx(variance, rel=1e-6)


def test_float32_values_are_tallied_in_float64():
    x = (1e4 + np.random.default_rng(2).normal(size=(20_000, 1))).astype(np.float32)
    tally = Moments.from_rows(x, np.zeros(len(x), np.intp), n_classes=1)
    mean, variance = exact_moments(x[:, 0].astype(float))
    assert tally.mean[0, 0] == pytest.approx(mean, rel=1e-13)
    assert tally.m2[0, 0] / len(x) == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-140, 1e-6, 1e6, 1e140])
def test_units_do_not_matter(scale):
    x = np.random.default_rng(3).normal(3, 1, (500, 2))
    y = np.random.default_rng(4).integers(0, 3, 500).astype(np.intp)
    one, other = Moments.from_rows(x, y, n_classes=3), Moments.from_rows(x * scale, y, n_classes=3)
    np.testing.assert_allclose(other.mean / scale, one.mean, rtol=1e-13)
    np.testing.assert_allclose(other.m2 / scale / scale, one.m2, rtol=1e-12)


def test_a_constant_column_has_no_spread_at_all():
    for value in (0.1, 1e9 + 0.1, 1e-200):
        x, y = np.full((1000, 1), value), np.zeros(1000, np.intp)
        whole = Moments.from_rows(x, y, n_classes=1)
        parts = Moments.from_rows(x[:333], y[:333], n_classes=1) + Moments.from_rows(x[333:], y[333:], n_classes=1)
        for tally in (whole, parts):
            assert tally.m2[0, 0] <= 1000 * (4 * np.spacing(value)) ** 2
            assert tally.mean[0, 0] == pytest.approx(value, rel=1e-15)


def test_a_thousand_rounds_of_learning_and_forgetting_do_not_drift():
    rng = np.random.default_rng(5)
    n, d, k = 200, 4, 3
    y = rng.integers(0, k, n).astype(np.intp)
    blocks = {
        Moments: (1e8 + rng.normal(size=(n, d)), TallySpec.from_encoding("moments", Identity(), d)),
        LevelTally: (
            rng.integers(-1, 5, (n, d)),
            TallySpec.from_encoding("levels", encoding.LevelEncoding.from_size(5), d),
        ),
        Sums: (
            rng.poisson(3.0, (n, d)).astype(float),
            TallySpec.from_encoding("sums", Identity(), d, keep={"log_factorial"}),
        ),
    }
    for kind, (block, spec) in blocks.items():
        start = now = kind.from_rows(block, y, n_classes=k, spec=spec)
        for _ in range(1000):
            rows = rng.integers(0, n, 50)
            weight = rng.choice([0.0, 0.1, 1.0, 3.3], 50)
            batch = kind.from_rows(block[rows], y[rows], weight, n_classes=k, spec=spec)
            now = (now + batch) - batch
        for name, state in start.arrays().items():
            np.testing.assert_allclose(
                now.arrays()[name], state, rtol=1e-6, atol=1e-9, err_msg=f"{kind.__name__}.{name}"
            )


def test_a_sliding_window_forgets_exactly():
    """Rows enter and leave for a long time; in the end only the last window is tallied, with no trace of the rest."""
    x = np.random.default_rng(6).normal(5, 2, (3000, 2))
    x[:1500] *= 1000  # the forgotten past was far noisier
    y, width = np.zeros(len(x), np.intp), 100
    batches = [Moments.from_rows(x[a : a + 10], y[a : a + 10], n_classes=1) for a in range(0, len(x), 10)]
    window = reduce(add, batches[: width // 10])
    for new, old in zip(batches[width // 10 :], batches, strict=False):
        window = (window + new) - old
    want = Moments.from_rows(x[-width:], y[-width:], n_classes=1)
    np.testing.assert_allclose(window.mean, want.mean, rtol=1e-9)
    np.testing.assert_allclose(window.m2, want.m2, rtol=1e-6)
    assert window.n.tolist() == want.n.tolist()
