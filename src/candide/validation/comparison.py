"""Compare settings by cross-validation on the same folds, with intervals for the differences of metrics.

Differences are paired by fold. Folds share most of their training rows, so the variance of the mean difference is
corrected to (1 / folds + 1 / (folds - 1)) times that of the folds (Nadeau and Bengio, 2003). Intervals are Student's,
corrected for the number of settings that are compared with the first (Bonferroni).

>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(300, seed=0)
>>> variants = {"all": {"model": "naive"}, "few": {"model": "naive", "drop": ["soil", "scented", "flowers"]}}
>>> comparison = compare_settings({**plants, "herb": herb}, "herb", variants, folds=5)
>>> [difference] = [one for one in comparison.differences if one.metric == "log_loss"]
>>> difference.name, difference.mean > 0, difference.is_significant, difference.is_better
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
from candide.metrics.formulas import METRICS, Floats
from candide.metrics.scores import LOWER_IS_BETTER, Scores
from candide.validation.cross_validation import Validation, cross_validate

CONFIDENCE_LEVEL = 0.95  # of all intervals of a metric together


@dataclass(frozen=True)
class MetricDifference:
    """By how much a metric of one setting lies above that of the first, on the same rows."""

    name: str
    metric: str
    mean: float  # over folds
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def is_better(self) -> bool:
        """Whether the mean is in favour of the setting."""
        return self.mean < 0 if self.metric in LOWER_IS_BETTER else self.mean > 0


@dataclass(frozen=True)
class SettingsComparison:
    """The cross-validations of settings by name, on the same folds."""

    validations: Mapping[str, Validation]

    @property
    def names(self) -> list[str]:
        """The settings, in the order in which they were given."""
        return list(self.validations)

    @cached_property
    def totals(self) -> dict[str, Scores]:
        """The scores of each on all rows."""
        return {name: validation.total for name, validation in self.validations.items()}

    @cached_property
    def differences(self) -> list[MetricDifference]:
        """Every metric of every setting against the first."""
        first, *others = self.names
        level = 1 - (1 - CONFIDENCE_LEVEL) / max(len(others), 1)

        def fold_values(name: str, metric: str) -> Floats:
            return np.array([getattr(fold, metric) for fold in self.validations[name].folds])

        return [
            MetricDifference(
                name, metric, *paired_interval(fold_values(name, metric) - fold_values(first, metric), level)
            )
            for name in others
            for metric in METRICS
        ]


def paired_interval(differences: Floats, level: float = CONFIDENCE_LEVEL) -> tuple[float, float, float]:
    """The mean of the differences of folds, and its interval; NaN for fewer than two folds.

    >>> [round(v, 3) for v in paired_interval(np.array([0.1, 0.2, 0.3]))]
    [0.2, -0.193, 0.593]
    """
    from scipy.stats import t

    finite = differences[~np.isnan(differences)]
    n, mean = len(finite), float(finite.mean()) if len(finite) else float("nan")
    if n < 2:
        return mean, float("nan"), float("nan")
    error = float(np.sqrt((1 / n + 1 / (n - 1)) * finite.var(ddof=1)))
    half_width = float(t.ppf((1 + level) / 2, n - 1)) * error
    return mean, mean - half_width, mean + half_width


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
    """Cross-validate several settings on the same folds: by name, the keywords of ``cross_validate``."""
    if len(variants) < 2:
        remedy = "pass at least two, such as --model naive --model bayes"
        raise InputError(f"{len(variants)} setting to compare", value=list(variants), remedy=remedy)
    if isinstance(data, str) and data == "-":
        raise InputError("standard input can be read once only", value=data, remedy="write it to a file first")
    shared: dict[str, Any] = {"folds": folds, "seed": seed, "fold_by": fold_by, "weight": weight}
    shared |= {"reading": reading, "watch": watch}
    shared["ignored"] = sorted({name for variant in variants.values() for name in variant.get("drop", ())})
    return SettingsComparison(
        {name: cross_validate(data, target, **shared, **variant) for name, variant in variants.items()}
    )
