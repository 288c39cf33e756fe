"""Scores: how well a model predicts labelled rows, beside what the class prior alone achieves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.decisions.thresholds import ThresholdChoice
from candide.metrics.curves import MAX_POINTS, Calibration, Curve, Threshold
from candide.metrics.formulas import AVERAGES, CLASS_METRICS, METRICS, MIN_FOLDS, resampled_intervals
from candide.metrics.scores import ClassScore, Scores, fold_statistics, headline_titles, metric_title, score_class_prior
from candide.model.feature_selection import overstated_columns
from candide.model.fitted import FittedModel
from candide.model.policy import parse_class_proportions
from candide.report.records import Column, Paragraph, Section, Summary, TableSection, notes, paragraph, section, table
from candide.store.file import ModelLike, load_fitted

HEADLINE_METRICS = ("accuracy", "auc", "log_loss")
_MAX_CURVE_CLASSES = 64  # classes whose curves are kept, those with the most rows
_MAX_MATRIX_CLASSES = 12  # classes of a confusion matrix on a terminal
_OTHER_PRIOR = 0.1  # a difference of the class prior from the class proportions that explains a poor log loss
_UNKNOWN = float("nan")


@dataclass(frozen=True)
class MetricSummary:
    """A metric over all rows, its mean and deviation over folds, and the value that the class prior alone has."""

    title: str
    value: float  # over all rows, as the confusion matrix: a mean over folds weights classes by the folds they are in
    fold_mean: float
    fold_sd: float
    baseline: float  # NaN where the class prior has none to compare with
    meaning: str
    low: float = _UNKNOWN  # a 95% interval over other samples of rows or folds
    high: float = _UNKNOWN
    positive_class: str = ""  # the class it is of, or "macro"; empty where it is of all classes


_METRIC_TABLE = (
    Column("metric", "title"),
    Column("value", "value", ".4f"),
    Column("95%", lambda m: "" if np.isnan(m.low) else f"{m.low:.4f} to {m.high:.4f}", is_optional=True),
    Column("± fold sd", "fold_sd", ".4f"),
    Column("baseline", "baseline", ".4f"),
    Column("meaning", "meaning", is_text=True, style=lambda metric: "dim"),
)
_CLASS_TABLE = (
    Column("class", "label", formatting.format_label),
    Column("rows", "weight", formatting.format_weight),
    *(Column(name, name.lower(), ".4f") for name in ("precision", "recall", "F1", "AUC")),
    Column("PR-AUC", "average_precision", ".4f", is_optional=True),
    Column("lift", "lift", ".2f", is_optional=True),
)
_LIFT_HINT = "lift: in the tenth of the rows where the class is most probable"
_THRESHOLD_TABLE = (
    Column("threshold", "threshold", "g"),
    Column("predicted", "flagged", formatting.format_percent),
    *(Column(name, name.lower(), ".4f") for name in ("precision", "recall", "F1")),
)


@dataclass(frozen=True)
class PolicySummary:
    """What a decision policy achieves: the cost of its decisions, and how many rows it abstains on."""

    policy: str
    coverage: float  # the proportion of rows that are decided
    mean_cost: float
    total_cost: float
    baseline_cost: float  # per row, if only the class prior is known
    baseline_coverage: float

    def describe(self) -> str:
        decided = f"{formatting.format_percent(self.coverage)} of the rows are decided; " if self.coverage < 1 else ""
        baseline = f"{self.baseline_cost:.4g}" if self.baseline_coverage else "no row is decided"
        cost = f"mean cost {self.mean_cost:.4g}, total {self.total_cost:,.6g}"
        return f"Decision policy: {self.policy}. {decided}{cost}; with the class prior alone: {baseline}."


@dataclass(frozen=True)
class CurveSummary:
    """A curve to draw: roc, precision_recall, gain, lift or calibration of a class, or coverage of all."""

    name: str
    label: Any
    axes: tuple[str, str]
    x: tuple[float, ...]
    y: tuple[float, ...]
    threshold: tuple[float, ...]  # p(class | x) at and above which rows are predicted to be in the class
    weight: tuple[float, ...] | None = None  # rows of each point, where these are separate

    @classmethod
    def from_curve(cls, curve: Curve) -> "CurveSummary":
        x, y, threshold = (tuple(v.tolist()) for v in (curve.x, curve.y, curve.threshold))
        weight = None if curve.weight is None else tuple(curve.weight.tolist())
        return cls(curve.name, curve.label, curve.axes, x, y, threshold, weight)


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose most probable class has about the same probability, and how often it was the true one."""

    predicted: float
    observed: float
    rows: float


def _top_k_sentence(proportions: Mapping[int, float]) -> str:
    parts = [f"{k} most probable in {formatting.format_percent(p)}" for k, p in proportions.items()]
    return f"The true class is among the {', '.join(parts)} of the rows."


def _confusion_section(scores: "ScoreSummary", confusion: Any) -> Iterator[Section]:
    """Yield true classes down and predicted classes across; with a chosen threshold, first the matrix under it."""
    title = "Confusion matrix"
    if (chosen := scores.chosen_threshold) is not None:
        n, label = sum(confusion[scores.labels.index(chosen.label)]), formatting.format_label(chosen.label)
        others = scores.rows - n
        true, false = chosen.recall * n, chosen.false_positive_rate * others
        counts = (others - false, false), (n - true, true)
        yield _matrix(f"{title}, threshold of {label} chosen on the other folds", (f"not {label}", label), counts)
        title += ", most probable class"
    if len(scores.labels) > _MAX_MATRIX_CLASSES:
        yield Paragraph(f"--json has the confusion matrix of {len(scores.labels)} classes.", "dim")
    else:
        yield _matrix(title, [formatting.format_label(label) for label in scores.labels], confusion)


def _matrix(title: str, names: Sequence[str], counts: Sequence[Sequence[float]]) -> TableSection:
    cells = [[formatting.format_weight(round(n, 6)) for n in row] for row in counts]
    rows = [[name, *row] for name, row in zip(names, cells, strict=True)]
    return TableSection.from_cells(title, ["true \\ predicted", *names], rows)


def _scores_title(scores: "ScoreSummary") -> str:
    rows = formatting.format_count(scores.rows)
    title = f"Cross-validated, {scores.folds} folds, {rows}" if scores.folds > 1 else f"Evaluated on {rows}"
    return f"{title}, most probable class" if scores.chosen_threshold is not None else title


def describe_chosen_threshold(threshold: Threshold) -> str:
    """Return what a chosen threshold achieves; 1 stands for log-odds too large for a probability below 1."""
    at = "nearly 1" if threshold.threshold == 1 else formatting.format_threshold(threshold.threshold)
    label, flagged = formatting.format_value(threshold.label), formatting.format_percent(threshold.flagged)
    return (
        f"Predicts {label!r} when its probability is at least {at}. "
        f"With thresholds chosen on the other folds: {flagged} of the rows, precision {threshold.precision:.4f}, "
        f"recall {threshold.recall:.4f}."
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class ScoreSummary(Summary):
    """How well a model predicts, on a table or in cross-validation."""

    rows: float  # the weight of the rows scored
    folds: int  # 1: a model on rows it was not fitted on
    intervals_by: str = "rows"  # what the intervals of metrics resample: rows or folds
    metrics: Mapping[str, MetricSummary] = field(
        metadata=table(
            _scores_title,
            *_METRIC_TABLE,
            hint=lambda scores: f"95%: interval over other {scores.intervals_by}; baseline: class prior",
            rows=lambda metrics: metrics.values(),
        )
    )
    notes: tuple[str, ...] = field(metadata=notes())
    chosen_threshold: Threshold | None = field(default=None, metadata=paragraph(describe_chosen_threshold))
    policy_result: PolicySummary | None = field(default=None, metadata=paragraph(PolicySummary.describe))
    calibration_note: str = field(metadata=paragraph())
    top_k_accuracy: Mapping[int, float] = field(metadata=paragraph(_top_k_sentence))  # with more than two classes
    by_class: tuple[ClassScore, ...] = field(metadata=table("By class", *_CLASS_TABLE, hint=_LIFT_HINT))
    averages: Mapping[str, Mapping[str, float]]  # of precision, recall and F1: macro, micro, weighted
    thresholds: tuple[Threshold, ...] = field(  # of two classes, for the second
        metadata=table(
            lambda scores: f"Predicting {formatting.format_label(scores.thresholds[0].label)} from a threshold",
            *_THRESHOLD_TABLE,
        )
    )
    labels: tuple[Any, ...]
    confusion: tuple[tuple[float, ...], ...] = field(metadata=section(_confusion_section))  # (true, predicted)
    calibration: tuple[CalibrationBin, ...]
    curves: tuple[CurveSummary, ...]


def summarize_scores(
    model: ModelLike,
    scores: Scores | Sequence[Scores],
    notes_before: Sequence[str] = (),
    chosen_threshold: ThresholdChoice | None = None,
    intervals_by: str = "rows",
) -> ScoreSummary:
    """Return the summary of the scores of a model, or of folds, with notes on the rows."""
    fitted = load_fitted(model)
    folds = [scores] if isinstance(scores, Scores) else list(scores)
    total, labels = reduce(add, folds), fitted.labels.values
    expected = expected_class_proportions(fitted)
    metrics = _metric_summaries(folds, total, expected, labels, intervals_by)
    texts, loss = list(notes_before), metrics["log_loss"]
    if loss.value > loss.baseline:
        texts.append(_worse_than_baseline_note(loss, fitted, total.confusion.sum(axis=1)))
    if intervals_by == "folds" and len(folds) < MIN_FOLDS:
        texts.append(f"intervals from {len(folds)} folds are coarse: use {MIN_FOLDS} or more (--folds)")
    policy = None
    if fitted.decision_rule is not None and fitted.policy is not None:
        prior = score_class_prior(total, expected, fitted.decision_rule)
        costs = total.coverage, total.mean_cost, total.sum_cost, prior.mean_cost, prior.coverage
        policy = PolicySummary(fitted.policy.describe(fitted.labels), *costs)
        if total.coverage < 1:
            texts.append(
                "accuracy, precision, recall, F1 and the confusion matrix are over the "
                f"{formatting.format_percent(total.coverage)} of the rows that are decided; baseline, log loss, AUC "
                "and thresholds are over all rows"
            )
    return ScoreSummary(
        rows=total.n,
        folds=len(folds),
        metrics=metrics,
        labels=labels,
        confusion=tuple(map(tuple, total.confusion.tolist())),
        notes=tuple(texts),
        chosen_threshold=None if chosen_threshold is None else chosen_threshold.expected_metrics,
        intervals_by=intervals_by,
        policy_result=policy,
        **_score_details(total, labels),
    )


def _metric_summaries(
    folds: list[Scores], total: Scores, expected: Floats, labels: tuple[Any, ...], intervals_by: str
) -> dict[str, MetricSummary]:
    prior, values, by_fold = score_class_prior(total, expected), total.metrics(), fold_statistics(folds)
    intervals, classes = resampled_intervals(folds, by=intervals_by), headline_titles(labels)
    baseline = prior.metrics() | {"calibration_error": _UNKNOWN}  # the class prior is calibrated by definition
    if len(expected) == 2 and not prior.class_counts.predicted[1]:
        baseline["precision"] = _UNKNOWN
    return {
        name: MetricSummary(
            metric_title(name, classes),
            values[name],
            by_fold[name][0],
            by_fold[name][1] if len(folds) > 1 else _UNKNOWN,
            baseline[name],
            metric.meaning,
            *intervals.get(name, (_UNKNOWN, _UNKNOWN)),
            classes.get(name, ""),
        )
        for name, metric in METRICS.items()
    }


def expected_class_proportions(fitted: FittedModel) -> Floats:
    """(classes,) Return the class proportions that the model expects in the rows to be scored."""
    if fitted.policy is None or not fitted.policy.has_shifted_prior:
        return fitted.class_proportions
    assert fitted.policy.class_prior is not None
    return parse_class_proportions(fitted.policy.class_prior, fitted.labels)


def _score_details(total: Scores, labels: tuple[Any, ...]) -> dict[str, Any]:
    calibration, k = total.calibration(), len(labels)
    classes = None
    if k > _MAX_CURVE_CLASSES:
        classes = np.sort(np.argsort(-total.class_weights, kind="stable")[:_MAX_CURVE_CLASSES]).tolist()
    curves = [*total.curves(labels, classes=classes, max_points=MAX_POINTS), total.coverage_curve(MAX_POINTS)]
    bins = (v.tolist() for v in (calibration.mean_predicted, calibration.observed_frequency, calibration.n))
    return {
        "by_class": tuple(total.class_scores(labels)),
        "averages": {name: {how: total.average(name, how) for how in AVERAGES} for name in CLASS_METRICS},
        "top_k_accuracy": {n: total.top_k_accuracy(n) for n in (2, 3, 5, 10) if n < k},
        "calibration": tuple(map(CalibrationBin, *bins)),
        "calibration_note": describe_calibration(calibration),
        "thresholds": tuple(total.thresholds(labels)) if k == 2 else (),
        "curves": tuple(map(CurveSummary.from_curve, curves)),
    }


def describe_calibration(calibration: Calibration, limit: int = 3) -> str:
    """Return how often predictions are right, for the probabilities that most rows have."""
    bins = np.sort(np.argsort(-calibration.n, kind="stable")[:limit])[::-1]
    if not len(bins):
        return ""
    predicted, observed = (
        [formatting.format_percent(values[i]) for i in bins]
        for values in (calibration.mean_predicted, calibration.observed_frequency)
    )
    rest = "".join(f"; {p}: {q}" for p, q in zip(predicted[1:], observed[1:], strict=True))
    return f"Predictions with probability {predicted[0]} are right in {observed[0]} of the rows{rest}."


def _worse_than_baseline_note(loss: MetricSummary, fitted: FittedModel, rows: Floats) -> str:
    """Return a note that the log loss is worse than that of the class prior, and why; ``rows`` are per class."""
    start = f"the log loss, {loss.value:.4f}, is worse than the {loss.baseline:.4f} of the class prior alone"
    is_shifted = fitted.policy is not None and fitted.policy.has_shifted_prior
    prior = expected_class_proportions(fitted) if is_shifted else fitted.base_proportions
    actual = rows / max(float(rows.sum()), 1e-300)
    if np.abs(prior - actual).max() > _OTHER_PRIOR:
        c = int(np.abs(prior - actual).argmax())
        label = formatting.format_value(fitted.labels.values[c])
        expected, observed = map(formatting.format_percent, (prior[c], actual[c]))
        return (
            f"{start}: the class prior of {label} is {expected}, and {observed} of these rows have this class; "
            'for probabilities that fit them leave out --class-prior (class_prior="empirical")'
        )
    text = (
        f"{start}: the ranking of the rows can be used, the probabilities cannot; redundant columns (--drop, --select) "
        "and event models that do not fit (--event) make them overconfident"
    )
    wrong = overstated_columns(fitted.selected_counts, fitted.settings.param_priors) if fitted.has_counts else []
    return f"{text}; try another event model for {formatting.format_list(wrong, 3)}" if wrong else text
