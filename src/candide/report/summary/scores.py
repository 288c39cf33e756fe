"""Scores: how well a model does on rows whose class is known, beside what the class shares alone would do.

>>> from candide.demo import run_demo
>>> demo = run_demo(400)
>>> found = summarize_scores(demo.fit_result.fitted, demo.scores)
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

from candide import formatting
from candide.data.blocks import Floats
from candide.decisions.thresholds import ThresholdChoice
from candide.explain.terms import list_terms
from candide.metrics.calibration import Calibration
from candide.metrics.curves import MAX_POINTS, Curve, Threshold
from candide.metrics.fold_bootstrap import MIN_FOLDS, resampled_intervals
from candide.metrics.formulas import AVERAGES, CLASS_METRICS, headline_titles, metric_title
from candide.metrics.scores import METRICS, ClassScore, Scores, fold_statistics, score_class_prior
from candide.model.feature_selection import overstated_columns
from candide.model.fitted import FittedModel
from candide.model.policy import parse_class_proportions
from candide.report.records import Summary
from candide.store.models import ModelLike, load_fitted
from candide.validation.held_out import HeldOutScores

_MAX_CURVE_CLASSES = 64  # classes whose curves are kept, those of most rows


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
    positive_class: str = ""  # the class it is of, or "macro"; empty where it is of all classes alike

    @property
    def title(self) -> str:
        """The name as it is printed."""
        return metric_title(self.name, {self.name: self.positive_class} if self.positive_class else {})


@dataclass(frozen=True)
class PolicySummary:
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
    def from_curve(cls, curve: Curve) -> "CurveSummary":
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
    top_k_accuracy: Mapping[int, float]  # of several classes: how often the true one is among so many
    calibration: tuple[tuple[float, float, float], ...]  # stated, came true, weight of rows: of the most probable class
    calibration_note: str
    thresholds: tuple[Threshold, ...]  # of two classes, for the second
    curves: tuple["CurveSummary", ...]
    policy_result: "PolicySummary | None" = None  # where something else than the most probable class decides
    chosen_threshold: Threshold | None = None  # the threshold that was asked for, and what it comes to
    intervals_by: str = "rows"  # what was drawn for intervals of metrics: rows or folds


@dataclass(frozen=True, repr=False)
class HeldOutSummary(Summary):
    """What a weighted model chose to hear, and what it may be trusted for: scores on rows that were held out."""

    rows: int  # of the sample, divided into folds
    folds: int
    term_counts: Mapping[str, int]  # how many of each kind
    model_metrics: Mapping[str, float]  # metrics by name
    naive_bayes_metrics: Mapping[str, float]  # those of naive Bayes on the same rows
    baseline_metrics: Mapping[str, float]  # and of the class shares
    total_rows: int = 0  # of which the rows are a sample; 0: they are all


_ANOTHER_PRIOR = 0.1  # difference of a class prior from the proportions in the rows, which explains a poor log-loss
HEADLINE_METRICS = ("accuracy", "auc", "log_loss")  # metrics by which a fit is judged in one line


def summarize_held_out(model: ModelLike, held_out: HeldOutScores) -> HeldOutSummary:
    """The summary of rows that were held out while a model was fitted."""
    heard = sorted(list_terms(load_fitted(model)), key=lambda one: len(one.columns))
    kinds = Counter(one.kind for one in heard)
    scores = (held_out.scores, held_out.naive_scores, held_out.class_prior_scores)
    model, plain, baseline = ({name: one.metrics()[name] for name in HEADLINE_METRICS} for one in scores)
    return HeldOutSummary(
        held_out.sample.n_rows, held_out.n_folds, dict(kinds), model, plain, baseline, held_out.n_source_rows
    )


def summarize_scores(
    model: ModelLike,
    scores: Scores | Sequence[Scores],
    notes_before: Sequence[str] = (),
    chosen_threshold: ThresholdChoice | None = None,
    intervals_by: str = "rows",
) -> ScoreSummary:
    """The summary of a model's scores, or of those of folds, with what is to be told of the rows."""
    fitted = load_fitted(model)
    folds = [scores] if isinstance(scores, Scores) else list(scores)
    total = reduce(add, folds)
    expected = expected_class_proportions(fitted)
    of_all, baseline, of_folds = total.metrics(), _baseline_metrics(total, expected), fold_statistics(folds)
    drawn, unknown = resampled_intervals(folds, by=intervals_by), (float("nan"), float("nan"))
    of = headline_titles(fitted.labels.values)
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
        *([_worse_than_baseline_note(loss, fitted, total.confusion.sum(axis=1))] if loss.value > loss.baseline else []),
    )
    if intervals_by == "folds" and len(folds) < MIN_FOLDS:
        notes = (*notes, f"intervals from {len(folds)} folds are coarse: take {MIN_FOLDS} or more (--folds)")
    labels = fitted.labels.values
    known = {
        **_score_details(total, labels),
        "chosen_threshold": chosen_threshold and chosen_threshold.expected_metrics,
        "intervals_by": intervals_by,
    }
    if fitted.decision_rule is not None:
        known["policy_result"] = _policy_result(fitted, total, score_class_prior(total, expected, fitted.decision_rule))
        if total.coverage < 1:
            some = f"the {formatting.format_percent(total.coverage)} of the rows that are decided"
            figures = f"accuracy, precision, recall, F1 and the confusion are of {some}"
            notes = (*notes, f"{figures}; baseline, log-loss, AUC and thresholds are of all rows")
    return ScoreSummary(total.n, len(folds), tuple(metrics), labels, confusion, notes, **known)


def _baseline_metrics(total: Scores, expected: Floats) -> dict[str, float]:
    """The metrics of the class shares; NaN where these are right by definition, or give no row to the class."""
    shares = score_class_prior(total, expected)
    found = {**shares.metrics(), "calibration_error": float("nan")}
    if len(expected) == 2 and not shares.class_counts.predicted[1]:
        found["precision"] = float("nan")
    return found


def expected_class_proportions(fitted: FittedModel) -> Floats:
    """(classes,) the shares that are known of the rows to be scored."""
    if fitted.policy is None or not fitted.policy.has_shifted_prior:
        return fitted.class_proportions
    assert fitted.policy.class_prior is not None
    return parse_class_proportions(fitted.policy.class_prior, fitted.labels)


def _policy_result(fitted: FittedModel, total: Scores, shares: Scores) -> PolicySummary:
    assert fitted.policy is not None
    said, alone = fitted.policy.describe(fitted.labels), (shares.mean_cost, shares.coverage)
    return PolicySummary(said, total.coverage, total.mean_cost, float(total.sum_cost), *alone)


def format_chosen_threshold(threshold: Threshold) -> str:
    """A threshold that was chosen; one of 1 stands for log-odds beyond what doubles tell from it."""
    return "nearly 1" if threshold.threshold == 1 else formatting.format_threshold(threshold.threshold)


def describe_chosen_threshold(threshold: Threshold) -> str:
    """What a threshold that was chosen comes to."""
    label, many = formatting.format_value(threshold.label), formatting.format_percent(threshold.flagged)
    return (
        f"rows are taken for {label!r} from a probability of {format_chosen_threshold(threshold)} on; where each fold takes the one that "
        f"the others choose, {many} of them are: precision {threshold.precision:.4f}, recall {threshold.recall:.4f}"
    )


def _score_details(total: Scores, labels: tuple[Any, ...]) -> dict[str, Any]:
    """What scores say beyond one figure each: by class, by threshold, and as lines to draw."""
    found, k = total.calibration(), len(labels)
    some = (
        None
        if k <= _MAX_CURVE_CLASSES
        else np.sort(np.argsort(-total.class_weights, kind="stable")[:_MAX_CURVE_CLASSES]).tolist()
    )
    lines = [*total.curves(labels, classes=some, max_points=MAX_POINTS), total.coverage_curve(MAX_POINTS)]
    return {
        "by_class": tuple(total.class_scores(labels)),
        "averages": {name: {how: total.average(name, how) for how in AVERAGES} for name in CLASS_METRICS},
        "top_k_accuracy": {n: total.top_k_accuracy(n) for n in (2, 3, 5, 10) if n < k},
        "calibration": tuple(
            zip(found.mean_predicted.tolist(), found.observed_frequency.tolist(), found.n.tolist(), strict=True)
        ),
        "calibration_note": describe_calibration(found),
        "thresholds": tuple(total.thresholds(labels)) if k == 2 else (),
        "curves": tuple(map(CurveSummary.from_curve, lines)),
    }


def describe_calibration(found: Calibration, limit: int = 3) -> str:
    """What stated probabilities are worth, where most rows are.

    >>> import numpy as np
    >>> p = np.repeat([0.9, 0.7], 50)
    >>> describe_calibration(Calibration.from_probabilities(p, np.arange(100) % 50 < np.repeat([43, 36], 50), 15))
    'When it says 90%, it is right in 86%; when it says 70%, in 72%.'
    """
    first = np.argsort(-found.n, kind="stable")[:limit]
    pairs = [(found.mean_predicted[i], found.observed_frequency[i]) for i in sorted(first.tolist(), reverse=True)]
    said = [
        f"when it says {formatting.format_percent(a)}, {'' if i else 'it is right '}in {formatting.format_percent(b)}"
        for i, (a, b) in enumerate(pairs)
    ]
    return f"W{'; '.join(said)[1:]}." if said else ""


def _worse_than_baseline_note(loss: MetricSummary, fitted: FittedModel, rows: Floats) -> str:
    """A note where the probabilities are worse than none, which names what is to blame; ``rows`` of each class."""
    start = (
        f"the log loss, {loss.value:.4f}, is worse than the {loss.baseline:.4f} of giving every row the class shares"
    )
    moves = fitted.policy is not None and fitted.policy.has_shifted_prior
    prior, there = (
        expected_class_proportions(fitted) if moves else fitted.base_proportions,
        rows / max(float(rows.sum()), 1e-300),
    )
    if np.abs(prior - there).max() > _ANOTHER_PRIOR:
        c = int(np.abs(prior - there).argmax())
        label, gives, has = (
            formatting.format_value(fitted.labels.values[c]),
            *map(formatting.format_percent, (prior[c], there[c])),
        )
        return (
            f"{start}: the class prior gives {label} {gives}, and it is the class of {has} of these rows; "
            "for probabilities that fit them "
            'leave out --class-prior (class_prior="empirical")'
        )
    found = (
        f"{start}: trust the order of the rows, not the probabilities; columns that tell the same (--drop, --select) "
        "and event models that do not fit (--event) make them too sure"
    )
    wrong = overstated_columns(fitted.selected_counts, fitted.settings.param_priors) if fitted.has_counts else []
    if not wrong:
        return found
    names, seem = formatting.format_list(wrong, 3), "seems" if len(wrong) == 1 else "seem"
    return f"{found}; {names} {seem} to tell more than there is to tell: try another event model there"
