"""Comparisons: several settings beside each other, and which differences are more than chance.

>>> from candide.demo import rows
>>> from candide.tasks import compare
>>> plants, herb = rows(300, seed=0)
>>> settings = {"naive": {"model": "naive"}, "again": {"model": "naive"}}
>>> of_compared(compare({**plants, "herb": herb}, "herb", settings, folds=3)).verdicts
('again cannot be told from naive: no difference in accuracy, log loss or auc is more than chance',)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from candide import wording
from candide.report.record import Summary
from candide.report.summary.scores import JUDGED_BY
from candide.tasks.compare import Compared, Difference
from candide.tasks.metrics import headline_of, titled


@dataclass(frozen=True)
class DifferenceSummary:
    """A metric of a setting against that of the first: mean over folds, interval, whether it is more than chance."""

    name: str
    metric: str
    mean: float
    low: float
    high: float
    matters: bool
    better: bool


@dataclass(frozen=True, repr=False)
class CompareSummary(Summary):
    """Settings beside each other, on the same folds."""

    rows: float
    folds: int
    names: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, float]]  # by setting, of all rows
    differences: tuple[DifferenceSummary, ...]  # of all but the first, against it
    verdicts: tuple[str, ...]  # one for each but the first
    metrics_of: Mapping[str, str]  # the class that a metric is of, or "macro"

    def title(self, metric: str) -> str:
        """The name of a metric as it is printed."""
        return titled(metric, self.metrics_of)


def of_compared(found: Compared) -> CompareSummary:
    """The summary of a comparison."""
    first, *others = found.names
    each = tuple(
        DifferenceSummary(d.name, d.metric, d.mean, d.low, d.high, d.matters, d.better) for d in found.differences
    )
    verdicts = tuple(_verdict(first, name, [d for d in found.differences if d.name == name]) for name in others)
    totals = {name: one.metrics() for name, one in found.totals.items()}
    one = found.validations[first]
    of = headline_of(one.learned.fitted.labels.values)
    return CompareSummary(one.total.n, len(one.folds), tuple(found.names), totals, each, verdicts, of)


def _verdict(first: str, name: str, differences: list[Difference]) -> str:
    """Which of two settings is the better one, in words, by the metrics by which a fit is judged."""
    judged = [d for d in differences if d.metric in JUDGED_BY]
    better, worse = ([_called(d) for d in judged if d.matters and d.better == sign] for sign in (True, False))
    if better and worse:
        return f"{name} is better than {first} in {wording.listing(better)}, worse in {wording.listing(worse)}"
    if better or worse:
        return f"{name} is {'better' if better else 'worse'} than {first} in {wording.listing(better or worse)}"
    names = [_called(d) for d in judged]
    told = f"{', '.join(names[:-1])} or {names[-1]}"
    return f"{name} cannot be told from {first}: no difference in {told} is more than chance"


def _called(one: Difference) -> str:
    return one.metric.replace("_", " ")
