"""Calibrators: probabilities adjusted to the frequencies observed in held-out rows.

Logistic calibration (Platt, 1999) multiplies the log-probabilities by one number and adds one to each class,

    log p'(c | x) = a log p(c | x) + b_c - log of their sum

which weights and intercepts can absorb: the model stays a sum of terms. Isotonic calibration (Zadrozny and Elkan, 2002)
fits a non-decreasing curve of the log-odds of each class; it needs many rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.model.settings import CALIBRATIONS

_MAX_STEPS = 50
_SCALE_STRENGTH, _BIAS_STRENGTH = 1.0, 0.1  # precisions around 1 and 0: those of one row, and of less


@dataclass(frozen=True, eq=False)
class LogisticCalibrator:
    """A factor of the log-probabilities, and an intercept of each class."""

    scale: float
    bias: Floats  # (class)

    def __call__(self, log_posterior: Floats) -> Floats:
        joint = self.scale * log_posterior + self.bias
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def fit_logistic(log_posterior: Floats, y: Codes, weight: Floats | None = None) -> LogisticCalibrator:
    """The scale and intercepts that maximise the penalised likelihood, by Newton's method."""
    n, k = log_posterior.shape
    w = np.ones(n) if weight is None else weight
    centred = log_posterior - log_posterior.mean(axis=1, keepdims=True)
    target, strength = np.eye(k)[y], np.diag([_SCALE_STRENGTH, *[_BIAS_STRENGTH] * k])
    x = start = np.array([1.0, *[0.0] * k])

    def loss(x: Floats) -> float:
        calibrated = LogisticCalibrator(float(x[0]), x[1:])(centred)
        return float(-(w @ calibrated[np.arange(n), y]) + 0.5 * (x - start) @ strength @ (x - start))

    for _ in range(_MAX_STEPS):
        p = np.exp(LogisticCalibrator(float(x[0]), x[1:])(centred))
        error = w[:, None] * (p - target)
        slope = np.array([(error * centred).sum(), *error.sum(axis=0)]) + strength @ (x - start)
        mean = (p * centred).sum(axis=1)
        cross = (w[:, None] * p * (centred - mean[:, None])).sum(axis=0)
        curvature = strength.copy()
        curvature[0, 0] += w @ ((p * centred**2).sum(axis=1) - mean**2)
        curvature[0, 1:] = curvature[1:, 0] = cross
        curvature[1:, 1:] += np.diag(w @ p) - (w[:, None] * p).T @ p
        move, size, before = np.linalg.solve(curvature, slope), 1.0, loss(x)
        while size > 1e-6 and loss(x - size * move) > before:
            size /= 2
        x = x - size * move
        if float(slope @ move) < 1e-12 * (1.0 + abs(before)):
            break
    return LogisticCalibrator(float(x[0]), x[1:])


@dataclass(frozen=True, eq=False)
class IsotonicCalibrator:
    """For each class, or the second of two: ascending predicted log-odds, and the frequencies observed there."""

    log_odds: tuple[Floats, ...]
    observed_frequencies: tuple[Floats, ...]

    def __call__(self, log_posterior: Floats) -> Floats:
        odds = _log_odds(log_posterior)
        curves = enumerate(zip(self.log_odds, self.observed_frequencies, strict=True))
        true = np.column_stack([np.interp(odds[:, c], known, np.log(p / (1.0 - p))) for c, (known, p) in curves])
        if len(self.log_odds) == 1:
            return -np.logaddexp(0.0, np.hstack([true, -true]))
        joint = -np.logaddexp(0.0, -true)
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    def to_export_dict(self) -> dict[str, Any]:
        """The curves as data: predicted and observed log-odds."""
        return {"stated": list(self.log_odds), "true": [np.log(p / (1.0 - p)) for p in self.observed_frequencies]}


def fit_isotonic(log_posterior: Floats, y: Codes, weight: Floats | None = None) -> IsotonicCalibrator:
    """The non-decreasing curves nearest to the observed classes, through the middle of each step.

    Half a row is added either way to the rows of a step, so that no probability is 0 or 1.
    """
    from scipy.optimize import isotonic_regression

    odds, w = _log_odds(log_posterior), np.ones(len(y)) if weight is None else weight
    log_odds, frequencies = list[Floats](), list[Floats]()
    for c in range(odds.shape[1]):
        order = np.argsort(odds[:, c], kind="stable")
        order = order[w[order] > 0]
        is_class, x, n = (y == c + (odds.shape[1] == 1))[order].astype(float), odds[order, c], w[order]
        steps = isotonic_regression(is_class, weights=n).blocks[:-1]
        rows, positive, sums = (np.add.reduceat(values, steps) for values in (n, n * is_class, n * x))
        log_odds.append(np.maximum.accumulate(sums / rows))
        frequencies.append(np.maximum.accumulate((positive + 0.5) / (rows + 1.0)))
    return IsotonicCalibrator(tuple(log_odds), tuple(frequencies))


def _log_odds(log_posterior: Floats) -> Floats:
    """(row, class) log p / (1 - p); for two classes only that of the second."""
    if log_posterior.shape[1] == 2:
        return log_posterior[:, 1:] - log_posterior[:, :1]
    with np.errstate(divide="ignore"):
        return np.clip(log_posterior - np.log(-np.expm1(np.minimum(log_posterior, 0.0))), -700.0, 700.0)


CalibratorFit = Callable[[Floats, Codes, Floats | None], LogisticCalibrator | IsotonicCalibrator]
CALIBRATION_METHODS: dict[str, CalibratorFit] = dict(zip(CALIBRATIONS, (fit_logistic, fit_isotonic), strict=True))
