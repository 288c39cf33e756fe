"""Calibration: stated probabilities bent to what came true, on rows that the model had not met.

Logistic calibration (Platt, 1999) multiplies the scores by one number and adds one to each class,

    log p'(c | x) = a log p(c | x) + b_c - log of their sum

which weights and class biases can say themselves: the model stays a sum that can be read. Isotonic calibration
(Zadrozny and Elkan, 2002) takes for each class any curve of its log-odds that does not fall; it wants many rows.

>>> rng = np.random.default_rng(0)
>>> truth = rng.normal(0, 1.5, 2000)  # log-odds
>>> y = (rng.random(2000) < 1 / (1 + np.exp(-truth))).astype(int)
>>> too_sure = np.stack([-np.logaddexp(0, 3 * truth), -np.logaddexp(0, -3 * truth)], axis=1)
>>> found = fit_logistic(too_sure, y)
>>> round(found.scale, 1), found.bias.round(1).tolist()
(0.3, [0.0, 0.0])
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.model.settings import CALIBRATIONS

_MAX_STEPS = 50
_SCALE_STRENGTH, _BIAS_STRENGTH = (
    1.0,
    0.1,
)  # the strengths with which they are held at 1 and at 0: those of one row, and of less


@dataclass(frozen=True, eq=False)
class LogisticCalibrator:
    """What scores are multiplied by, and what is added to those of each class."""

    scale: float
    bias: Floats  # (class)

    def __call__(self, log_posterior: Floats) -> Floats:
        """(row, class) log p(class | x) of stated ones."""
        joint = self.scale * log_posterior + self.bias
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def fit_logistic(log_posterior: Floats, y: Codes, weight: Floats | None = None) -> LogisticCalibrator:
    """The scale and biases under which the classes of some rows are most probable: by Newton's method."""
    n, k = log_posterior.shape
    w = np.ones(n) if weight is None else weight
    centred = log_posterior - log_posterior.mean(axis=1, keepdims=True)
    target, strength = np.eye(k)[y], np.diag([_SCALE_STRENGTH, *[_BIAS_STRENGTH] * k])
    x, start = np.array([1.0, *[0.0] * k]), np.array([1.0, *[0.0] * k])

    def loss(x: Floats) -> float:
        said = LogisticCalibrator(float(x[0]), x[1:])(centred)
        return float(-(w @ said[np.arange(n), y]) + 0.5 * (x - start) @ strength @ (x - start))

    for _ in range(_MAX_STEPS):
        p = np.exp(LogisticCalibrator(float(x[0]), x[1:])(centred))
        away = w[:, None] * (p - target)
        slope = np.array([(away * centred).sum(), *away.sum(axis=0)]) + strength @ (x - start)
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
    """For each class, or the second of two, log-odds that are stated, ascending, and the share that came true."""

    log_odds: tuple[Floats, ...]
    observed_frequencies: tuple[Floats, ...]

    def __call__(self, log_posterior: Floats) -> Floats:
        """(row, class) log p(class | x) of stated ones: log-odds between those known lie on a straight line."""
        odds = _log_odds(log_posterior)
        curves = enumerate(zip(self.log_odds, self.observed_frequencies, strict=True))
        true = np.column_stack([np.interp(odds[:, c], known, np.log(p / (1.0 - p))) for c, (known, p) in curves])
        if len(self.log_odds) == 1:
            return -np.logaddexp(0.0, np.hstack([true, -true]))
        joint = -np.logaddexp(0.0, -true)
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    def to_export_dict(self) -> dict[str, Any]:
        """The curves as data: log-odds that are stated, and those that came true."""
        return {"stated": list(self.log_odds), "true": [np.log(p / (1.0 - p)) for p in self.observed_frequencies]}


def fit_isotonic(log_posterior: Floats, y: Codes, weight: Floats | None = None) -> IsotonicCalibrator:
    """The curves that do not fall and come nearest to what came true: from the middle of a step to the next.

    Of the rows of a step half a row more is either way, so that nothing is certain.

    >>> log_p = np.log([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]])
    >>> np.exp(fit_isotonic(log_p, np.array([0, 0, 1, 1]))(log_p)).round(2).tolist()
    [[0.83, 0.17], [0.76, 0.24], [0.21, 0.79], [0.17, 0.83]]
    """
    from scipy.optimize import isotonic_regression

    odds, w = _log_odds(log_posterior), np.ones(len(y)) if weight is None else weight
    known, shares = list[Floats](), list[Floats]()
    for c in range(odds.shape[1]):
        order = np.argsort(odds[:, c], kind="stable")
        order = order[w[order] > 0]
        own, x, n = (y == c + (odds.shape[1] == 1))[order].astype(float), odds[order, c], w[order]
        steps = isotonic_regression(own, weights=n).blocks[:-1]
        rows, met, sums = (np.add.reduceat(values, steps) for values in (n, n * own, n * x))
        known.append(np.maximum.accumulate(sums / rows))
        shares.append(np.maximum.accumulate((met + 0.5) / (rows + 1.0)))
    return IsotonicCalibrator(tuple(known), tuple(shares))


def _log_odds(log_posterior: Floats) -> Floats:
    """(row, class) log p / (1 - p), of two classes of the second alone."""
    if log_posterior.shape[1] == 2:
        return log_posterior[:, 1:] - log_posterior[:, :1]
    with np.errstate(divide="ignore"):
        return np.clip(log_posterior - np.log(-np.expm1(np.minimum(log_posterior, 0.0))), -700.0, 700.0)


CalibratorFit = Callable[[Floats, Codes, Floats | None], LogisticCalibrator | IsotonicCalibrator]
CALIBRATION_METHODS: dict[str, CalibratorFit] = dict(zip(CALIBRATIONS, (fit_logistic, fit_isotonic), strict=True))
