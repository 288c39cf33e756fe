"""Comparing: several settings, cross-validated on the same folds, and which differences are more than chance.

The folds are the same for all, so that a difference is taken fold by fold: what is hard about a fold is hard for both.
Folds share most of their training rows, and their differences vary less than those of other tables would; the variance
of their mean is therefore taken as (1 / folds + 1 / (folds - 1)) times theirs (Nadeau and Bengio, 2003). The interval
is Student's; with several settings beside the first, all intervals together hold as often as they say (Bonferroni).

>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(300, seed=0)
>>> found = compare_settings({**plants, "herb": herb}, "herb", {"all": {"model": "naive"}, "few": {"model": "naive",
...     "drop": ["soil", "scented", "flowers"]}}, folds=5)
>>> [one] = [one for one in found.differences if one.metric == "log_loss"]
>>> one.name, one.mean > 0, one.is_significant, one.is_better
('few', True, True, False)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from candide.engines.base import Watch, no_progress
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.metrics.scores import LOWER_IS_BETTER, METRICS, Floats, Scores
from candide.validation.cross_validation import Validation, cross_validate

CONFIDENCE_LEVEL = 0.95  # of all intervals of a metric together


@dataclass(frozen=True)
class MetricDifference:
    """By how much a metric of one setting lies above that of the first, on the same rows.

    >>> one = MetricDifference("bayes", "log_loss", -0.2, -0.3, -0.1)
    >>> one.is_significant, one.is_better
    (True, True)
    """

    name: str
    metric: str
    mean: float  # over folds
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would hardly make it."""
        return self.low > 0 or self.high < 0

    @property
    def is_better(self) -> bool:
        """Whether the setting is the better one of the two, for all that is known."""
        return self.mean < 0 if self.metric in LOWER_IS_BETTER else self.mean > 0


@dataclass(frozen=True)
class SettingsComparison:
    """The cross-validations of settings by their names, on the same folds.

    >>> from candide.demo import garden_rows
    >>> plants, herb = garden_rows(300, seed=0)
    >>> table, again = {**plants, "herb": herb}, {"model": "naive"}
    >>> found = compare_settings(table, "herb", {"one": again, "other": again}, folds=3)
    >>> found.names, found.totals["one"].accuracy == found.totals["other"].accuracy, found.differences[0].mean
    (['one', 'other'], True, 0.0)
    """

    validations: Mapping[str, Validation]

    @property
    def names(self) -> list[str]:
        """The settings, in the order in which they were given."""
        return list(self.validations)

    @cached_property
    def totals(self) -> dict[str, Scores]:
        """What each scores on all rows."""
        return {name: one.total for name, one in self.validations.items()}

    @cached_property
    def differences(self) -> list[MetricDifference]:
        """Every metric of every setting against the first."""
        first, *others = self.names
        level = 1 - (1 - CONFIDENCE_LEVEL) / max(len(others), 1)
        return [
            MetricDifference(
                name,
                metric,
                *paired_interval(self._fold_values(name, metric) - self._fold_values(first, metric), level),
            )
            for name in others
            for metric in METRICS
        ]

    def _fold_values(self, name: str, metric: str) -> Floats:
        return np.array([getattr(fold, metric) for fold in self.validations[name].folds])


def paired_interval(differences: Floats, level: float = CONFIDENCE_LEVEL) -> tuple[float, float, float]:
    """The mean of the differences of folds, and between which values that of all rows lies; NaN of fewer than two.

    >>> [round(v, 3) for v in paired_interval(np.array([0.1, 0.2, 0.3]))]
    [0.2, -0.193, 0.593]
    """
    from scipy.stats import t

    known = differences[~np.isnan(differences)]
    n = len(known)
    if n < 2:
        return float(known.mean()) if n else float("nan"), float("nan"), float("nan")
    error = float(np.sqrt((1 / n + 1 / (n - 1)) * known.var(ddof=1)))
    half = float(t.ppf((1 + level) / 2, n - 1)) * error
    mean = float(known.mean())
    return mean, mean - half, mean + half


def compare_settings(
    data: Any,
    target: str,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    folds: int = 10,
    seed: int = 0,
    fold_by: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> SettingsComparison:
    """Cross-validate several settings on the same folds; each is what ``cross_validate`` takes, by its name."""
    if len(variants) < 2:
        what = f"{len(variants)} setting to compare"
        raise InputError(what, value=list(variants), remedy="pass at least two, such as --model naive --model bayes")
    if isinstance(data, str) and data == "-":
        raise InputError("standard input can be read once only", value=data, remedy="write it to a file first")
    how: dict[str, Any] = {"folds": folds, "seed": seed, "fold_by": fold_by, "weight": weight}
    how |= {"reading": reading, "watch": watch}
    how["ignored"] = sorted({name for one in variants.values() for name in one.get("drop", ())})  # the same folds
    return SettingsComparison({name: cross_validate(data, target, **how, **one) for name, one in variants.items()})
