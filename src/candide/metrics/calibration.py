"""Calibration: predicted probabilities against observed frequencies, in bins of predicted probability.

>>> calibrated = Calibration.from_probabilities(
...     np.array([0.1, 0.15, 0.8, 0.9]), np.array([False, True, True, True]), bins=2
... )
>>> calibrated.mean_predicted.round(3).tolist(), calibrated.observed_frequency.tolist(), calibrated.n.tolist()
([0.125, 0.85], [0.5, 1.0], [2, 2])
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Z_95 = 1.959964  # standard normal quantile of two-sided 95 %


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean prediction, observed frequency and rows of the bins that are not empty."""

    mean_predicted: NDArray
    observed_frequency: NDArray
    n: NDArray
    edges: NDArray  # of all bins
    bin_index: NDArray  # which of them each entry is

    @classmethod
    def from_probabilities(
        cls, p: NDArray, truth: NDArray, bins: int = 10, weight: NDArray | None = None
    ) -> "Calibration":
        """From probabilities and outcomes, or proportions of outcomes; ``n`` is in weights where given."""
        edges = np.linspace(0.0, 1.0, bins + 1)
        at = np.searchsorted(edges[1:-1], p)
        n = np.bincount(at, weight, minlength=bins)
        w = 1.0 if weight is None else weight
        used = np.flatnonzero(n)
        predicted, observed = (np.bincount(at, w * v, bins)[used] / n[used] for v in (p, truth.astype(float)))
        return cls(predicted, observed, n[used], edges, used)

    @property
    def row_fraction(self) -> NDArray:
        """The fraction of all rows in each bin."""
        return self.n / self.n.sum()

    def confidence_limits(self) -> tuple[NDArray, NDArray]:
        """95 % limits of the observed frequency (Wilson, 1927)."""
        z2, n, p = _Z_95**2, self.n, self.observed_frequency
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = np.sqrt(z2 * p * (1 - p) / n + z2**2 / (4 * n**2)) / (1 + z2 / n)
        return np.minimum(centre - half, p), np.maximum(centre + half, p)


def predicted_and_observed(posterior: NDArray, codes: NDArray, c: int | None = None) -> tuple[NDArray, NDArray]:
    """(row,) the probability of class ``c`` and whether it is the true one, without rows whose code is below 0.

    The default is the second of two classes, or the most probable of several.

    >>> p, truth = predicted_and_observed(np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), np.array([1, 2]))
    >>> p.tolist(), truth.tolist()
    ([0.5, 0.6], [True, False])
    """
    posterior, codes = posterior[codes >= 0], codes[codes >= 0]
    c = assessed_class(posterior.shape[1], c)
    if c is None:
        return posterior.max(axis=1), posterior.argmax(axis=1) == codes
    return posterior[:, c], codes == c


def assessed_class(n_classes: int, c: int | None = None) -> int | None:
    """The class whose probability is assessed; None for the most probable of each row."""
    return 1 if c is None and n_classes == 2 else c


def log_odds(joint: NDArray, c: int) -> NDArray:
    """(row,) log p(c | x) / p(not c | x), of log p(x, class) (row, class); 0 where no class is possible.

    >>> log_odds(np.log([[0.2, 0.6, 0.2]]), 1).round(4).tolist()
    [0.4055]
    """
    others = np.delete(joint, c, axis=1)
    top = others.max(axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = shift + np.log(np.exp(others - shift[:, None]).sum(axis=1))
        odds = joint[:, c] - rest
    return np.where(np.isnan(odds), 0.0, odds)


def confusion_matrix(true: NDArray, predicted: NDArray, n_classes: int) -> NDArray[np.intp]:
    """(true class, predicted class) numbers of rows; those without a class are left out.

    >>> confusion_matrix(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    known = true >= 0
    cells = np.bincount(true[known] * n_classes + predicted[known], minlength=n_classes * n_classes)
    return cells.reshape(n_classes, n_classes)
