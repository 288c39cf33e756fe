"""Scores: how well a model does on rows whose class is known, beside what the class shares alone would do.

>>> from candide.demo import run
>>> demo = run(400)
>>> found = of_scores(demo.learned.fitted, demo.scores)
>>> [(one.name, round(one.value, 2), round(one.baseline, 2)) for one in found.metrics[:1]], found.rows
([('accuracy', 0.93, 0.36)], 100.0)
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from candide import wording
from candide.explain.voices import voices
from candide.model.fitted import Fitted
from candide.model.policy import shares_of
from candide.model.select import overstated
from candide.report.record import Summary
from candide.rows.blocks import Floats
from candide.tasks.calibration import Calibration
from candide.tasks.curves import POINTS, Curve, Threshold
from candide.tasks.decide import Chosen
from candide.tasks.fold_bootstrap import FEW, intervals_of
from candide.tasks.held_out import HeldOut
from candide.tasks.metrics import AVERAGES, BY_CLASS, headline_of, titled
from candide.tasks.models import Model, fitted_of
from candide.tasks.scores import METRICS, ClassScore, Scores, by_shares, spread

_DRAWN = 64  # classes whose curves are kept, those of most rows


@dataclass(frozen=True)
class MetricSummary:
    """One metric of all rows scored, beside its mean and deviation over folds, and what the class shares alone have."""

    name: str
    value: float  # of all rows, as the confusion matrix: a mean over folds counts classes as often as folds hold them
    fold_mean: float
    fold_sd: float
    baseline: float  # NaN where the class shares have none to compare with
    meaning: str
    low: float = float("nan")  # between which values it would lie on other rows, in 95 of 100 cases
    high: float = float("nan")
    of: str = ""  # the class it is of, or "macro"; empty where it is of all classes alike

    @property
    def title(self) -> str:
        """The name as it is printed."""
        return titled(self.name, {self.name: self.of} if self.of else {})


@dataclass(frozen=True)
class DecidedSummary:
    """What a policy comes to: what decisions cost, and how many rows are left open."""

    policy: str
    coverage: float  # share of the rows that are decided
    mean_cost: float
    total_cost: float
    baseline_cost: float  # a row, if all that is known are the class shares
    baseline_coverage: float  # and the share of the rows that are decided then


@dataclass(frozen=True)
class CurveSummary:
    """A line to draw: roc, precision_recall, gain, lift or calibration of a class, or coverage of all."""

    name: str
    label: Any
    axes: tuple[str, str]
    x: tuple[float, ...]
    y: tuple[float, ...]
    threshold: tuple[float, ...]  # p(class | x) at and above which rows are taken
    weight: tuple[float, ...] | None = None  # rows of each point, where they are apart

    @classmethod
    def of(cls, curve: Curve) -> "CurveSummary":
        x, y, at = (tuple(v.tolist()) for v in (curve.x, curve.y, curve.threshold))
        weight = None if curve.weight is None else tuple(curve.weight.tolist())
        return cls(curve.name, curve.label, curve.axes, x, y, at, weight)


@dataclass(frozen=True, repr=False)
class ScoreSummary(Summary):
    """How well a model does, on a table or in every fold."""

    rows: float  # weight of the rows scored
    folds: int  # 1: a model on rows it had not seen
    metrics: tuple[MetricSummary, ...]
    labels: tuple[Any, ...]
    confusion: tuple[tuple[float, ...], ...]  # true classes down, predicted across
    notes: tuple[str, ...]
    by_class: tuple[ClassScore, ...]
    averages: Mapping[str, Mapping[str, float]]  # of precision, recall and F1: macro, micro, weighted
    top: Mapping[int, float]  # of several classes: how often the true one is among so many
    calibration: tuple[tuple[float, float, float], ...]  # stated, came true, weight of rows: of the most probable class
    calibration_words: str
    thresholds: tuple[Threshold, ...]  # of two classes, for the second
    curves: tuple["CurveSummary", ...]
    decided: "DecidedSummary | None" = None  # where something else than the most probable class decides
    chosen: Threshold | None = None  # the threshold that was asked for, and what it comes to
    intervals_by: str = "rows"  # what was drawn for intervals of metrics: rows or folds


@dataclass(frozen=True, repr=False)
class TrustSummary(Summary):
    """What a weighted model chose to hear, and what it may be trusted for: scores on rows that were held out."""

    rows: int  # of the sample, divided into folds
    folds: int
    voices: Mapping[str, int]  # how many of each kind
    model: Mapping[str, float]  # metrics by name
    plain: Mapping[str, float]  # those of naive Bayes on the same rows
    baseline: Mapping[str, float]  # and of the class shares
    of_rows: int = 0  # of which the rows are a sample; 0: they are all


_ANOTHER_PRIOR = 0.1  # difference of a class prior from the proportions in the rows, which explains a poor log-loss
JUDGED_BY = ("accuracy", "auc", "log_loss")  # metrics by which a fit is judged in one line


def of_trust(model: Model, found: HeldOut) -> TrustSummary:
    """The summary of rows that were held out while a model was fitted."""
    heard = sorted(voices(fitted_of(model)), key=lambda one: len(one.columns))
    kinds = Counter(one.kind for one in heard)
    scores = (found.scores, found.of_plain, found.shares)
    model, plain, baseline = ({name: one.metrics()[name] for name in JUDGED_BY} for one in scores)
    return TrustSummary(found.seen.n_rows, found.folds, dict(kinds), model, plain, baseline, found.n_all)


def of_scores(
    model: Model,
    scores: Scores | Sequence[Scores],
    notes_before: Sequence[str] = (),
    chosen: Chosen | None = None,
    intervals_by: str = "rows",
) -> ScoreSummary:
    """The summary of a model's scores, or of those of folds, with what is to be told of the rows."""
    fitted = fitted_of(model)
    folds = [scores] if isinstance(scores, Scores) else list(scores)
    total = reduce(add, folds)
    expected = expected_shares(fitted)
    of_all, baseline, of_folds = total.metrics(), _baseline(total, expected), spread(folds)
    drawn, unknown = intervals_of(folds, by=intervals_by), (float("nan"), float("nan"))
    of = headline_of(fitted.labels.values)
    metrics = [
        MetricSummary(
            name, of_all[name], *of_folds[name], baseline[name], meaning, *drawn.get(name, unknown), of.get(name, "")
        )
        for name, meaning in METRICS.items()
    ]
    confusion = tuple(map(tuple, total.confusion.tolist()))
    [loss] = (one for one in metrics if one.name == "log_loss")
    notes = (
        *notes_before,
        *([_worse_than_shares(loss, fitted, total.confusion.sum(axis=1))] if loss.value > loss.baseline else []),
    )
    if intervals_by == "folds" and len(folds) < FEW:
        notes = (*notes, f"intervals from {len(folds)} folds are coarse: take {FEW} or more (--folds)")
    labels = fitted.labels.values
    known = {**_in_detail(total, labels), "chosen": chosen and chosen.expected, "intervals_by": intervals_by}
    if fitted.rule is not None:
        known["decided"] = _decided(fitted, total, by_shares(total, expected, fitted.rule))
        if total.coverage < 1:
            some = f"the {wording.percent(total.coverage)} of the rows that are decided"
            figures = f"accuracy, precision, recall, F1 and the confusion are of {some}"
            notes = (*notes, f"{figures}; baseline, log-loss, AUC and thresholds are of all rows")
    return ScoreSummary(total.n, len(folds), tuple(metrics), labels, confusion, notes, **known)


def _baseline(total: Scores, expected: Floats) -> dict[str, float]:
    """The metrics of the class shares; NaN where these are right by definition, or give no row to the class."""
    shares = by_shares(total, expected)
    found = {**shares.metrics(), "calibration_error": float("nan")}
    if len(expected) == 2 and not shares.counts.predicted[1]:
        found["precision"] = float("nan")
    return found


def expected_shares(fitted: Fitted) -> Floats:
    """(classes,) the shares that are known of the rows to be scored."""
    if fitted.policy is None or not fitted.policy.moves:
        return fitted.shares
    assert fitted.policy.class_prior is not None
    return shares_of(fitted.policy.class_prior, fitted.labels)


def _decided(fitted: Fitted, total: Scores, shares: Scores) -> DecidedSummary:
    assert fitted.policy is not None
    said, alone = fitted.policy.said(fitted.labels), (shares.mean_cost, shares.coverage)
    return DecidedSummary(said, total.coverage, total.mean_cost, float(total.cost), *alone)


def chosen_at(at: Threshold) -> str:
    """A threshold that was chosen; one of 1 stands for log-odds beyond what doubles tell from it."""
    return "nearly 1" if at.threshold == 1 else wording.threshold(at.threshold)


def chosen_words(at: Threshold) -> str:
    """What a threshold that was chosen comes to."""
    label, many = wording.value(at.label), wording.percent(at.flagged)
    return (
        f"rows are taken for {label!r} from a probability of {chosen_at(at)} on; where each fold takes the one that "
        f"the others choose, {many} of them are: precision {at.precision:.4f}, recall {at.recall:.4f}"
    )


def _in_detail(total: Scores, labels: tuple[Any, ...]) -> dict[str, Any]:
    """What scores say beyond one figure each: by class, by threshold, and as lines to draw."""
    found, k = total.calibration(), len(labels)
    some = None if k <= _DRAWN else np.sort(np.argsort(-total.of_class, kind="stable")[:_DRAWN]).tolist()
    lines = [*total.curves(labels, classes=some, most=POINTS), total.coverage_curve(POINTS)]
    return {
        "by_class": tuple(total.by_class(labels)),
        "averages": {name: {how: total.average(name, how) for how in AVERAGES} for name in BY_CLASS},
        "top": {n: total.top(n) for n in (2, 3, 5, 10) if n < k},
        "calibration": tuple(zip(found.stated.tolist(), found.observed.tolist(), found.n.tolist(), strict=True)),
        "calibration_words": in_words(found),
        "thresholds": tuple(total.thresholds(labels)) if k == 2 else (),
        "curves": tuple(map(CurveSummary.of, lines)),
    }


def in_words(found: Calibration, most: int = 3) -> str:
    """What stated probabilities are worth, where most rows are.

    >>> import numpy as np
    >>> p = np.repeat([0.9, 0.7], 50)
    >>> in_words(Calibration.of(p, np.arange(100) % 50 < np.repeat([43, 36], 50), 15))
    'When it says 90%, it is right in 86%; when it says 70%, in 72%.'
    """
    first = np.argsort(-found.n, kind="stable")[:most]
    pairs = [(found.stated[i], found.observed[i]) for i in sorted(first.tolist(), reverse=True)]
    said = [
        f"when it says {wording.percent(a)}, {'' if i else 'it is right '}in {wording.percent(b)}"
        for i, (a, b) in enumerate(pairs)
    ]
    return f"W{'; '.join(said)[1:]}." if said else ""


def _worse_than_shares(loss: MetricSummary, fitted: Fitted, rows: Floats) -> str:
    """A note where the probabilities are worse than none, which names what is to blame; ``rows`` of each class."""
    start = (
        f"the log loss, {loss.value:.4f}, is worse than the {loss.baseline:.4f} of giving every row the class shares"
    )
    moves = fitted.policy is not None and fitted.policy.moves
    prior, there = expected_shares(fitted) if moves else fitted.base, rows / max(float(rows.sum()), 1e-300)
    if np.abs(prior - there).max() > _ANOTHER_PRIOR:
        c = int(np.abs(prior - there).argmax())
        label, gives, has = wording.value(fitted.labels.values[c]), *map(wording.percent, (prior[c], there[c]))
        return (
            f"{start}: the class prior gives {label} {gives}, and it is the class of {has} of these rows; "
            "for probabilities that fit them "
            'leave out --class-prior (class_prior="empirical")'
        )
    found = (
        f"{start}: trust the order of the rows, not the probabilities; columns that tell the same (--drop, --select) "
        "and event models that do not fit (--event) make them too sure"
    )
    wrong = overstated(fitted.chosen, fitted.settings.priors) if fitted.has_counts else []
    if not wrong:
        return found
    names, seem = wording.listing(wrong, 3), "seems" if len(wrong) == 1 else "seem"
    return f"{found}; {names} {seem} to tell more than there is to tell: try another event model there"
