"""The report page: a model, its assessment in figures and sentences, and what is missing, with how to add it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain.effects import Effects
from candide.explain.terms import build_axis, list_terms
from candide.model.fitted import FittedModel
from candide.report.records import INTERNAL, LabelledParagraphs, Paragraph, Section, Summary, section
from candide.report.summary.columns import default_class, describe_extremes
from candide.report.summary.models import ModelSummary, summarize_model
from candide.report.summary.monitoring import CheckSummary, DriftSummary
from candide.report.summary.rows import DecisionSummary
from candide.report.summary.scores import ScoreSummary, expected_class_proportions, summarize_scores
from candide.store.file import ModelLike, load_fitted
from candide.validation.evaluation import RowEvaluation

_MAX_LEVELS = 12  # levels of a category given the class
PERFORMANCE, WHAT_IF, TERMS, DATA_WARNINGS = "Performance", "What if", "Terms", "Data warnings"  # sections of the page
_MAX_CONFUSIONS = 5  # confusions that are listed in sentences
_MIN_ROWS = 50.0  # fewer rows do not show whether probabilities are calibrated
_NEGLIGIBLE_DIFFERENCE = 1e-3  # relative difference of the log loss that is not mentioned
_WELL_CALIBRATED, _USABLY_CALIBRATED = 0.02, 0.05  # expected calibration errors


@dataclass(frozen=True)
class ClassConfusion:
    """Rows of one class that were predicted as another."""

    true_class: Any
    predicted_class: Any
    rows: float
    class_rows: float  # all rows of the true class

    @property
    def sentence(self) -> str:
        part = formatting.format_percent(self.rows / self.class_rows)
        rows = f"{self.rows:,.10g} of {formatting.format_count(self.class_rows)}"
        return f"{str(self.true_class)!r} is predicted as {str(self.predicted_class)!r} in {rows} ({part})."


@dataclass(frozen=True)
class Assessment:
    """The scores of a model, in figures and in sentences."""

    scores: ScoreSummary
    sentences: tuple[str, ...]
    confusions: tuple[ClassConfusion, ...]  # the most frequent first
    is_training_data: bool  # whether the model was fitted on these rows


@dataclass(frozen=True)
class TermSummary:
    """A term along its values. What is not known, or cannot be drawn, is empty."""

    title: str
    columns: tuple[Name, ...]
    kind: str
    weight: float
    importance: float | None
    sentence: str  # where it contributes most
    shape: str = ""  # "levels" | "steps" | "curve" | "table" | "words" | ""
    names: tuple[tuple[str, ...], ...] = ()  # the levels, bins or cells of each column
    contributions: tuple[tuple[float, ...], ...] = ()  # of each class, against the mean of the others, at each cell
    frequencies: tuple[float, ...] = ()  # the proportion of the rows in each cell
    positions: tuple[float, ...] = ()  # the points of a curve, or the edges between steps
    histogram: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # edges, and the proportion of rows in each bar
    top_words: tuple[tuple[tuple[str, float], ...], ...] = ()  # of each class its words, and their log-odds
    typical_value: str | float | None = None  # a frequent level, or the median of numbers
    n_terms: int = 1  # that a column is in; its total effect over all of them is shown

    @property
    def label(self) -> str:
        """What stands beside the title: the weight of a term, or how many terms a column is in."""
        return f"{self.kind}, in {self.n_terms} terms" if self.n_terms > 1 else f"{self.kind}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class RowErrorSummary:
    """A row whose own label had a low probability, and why another class was predicted."""

    row: int
    label: Any
    probability: float
    decision: DecisionSummary | None


@dataclass(frozen=True)
class MissingSection:
    """A section of the page that could not be made, why, and how to add it."""

    section: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.section}: {self.reason}"


def _missing_sections(record: Any, missing: Sequence[Any]) -> Iterator[Section]:
    yield LabelledParagraphs([("note", str(part), "") for part in missing])


@dataclass(frozen=True, repr=False)
class PageSummary(Summary):
    title: str
    model: ModelSummary
    class_proportions: tuple[float, ...]
    default_class: int  # the class whose charts are shown first
    terms: tuple[TermSummary, ...]  # the most important first
    assessment: Assessment | None = field(
        metadata=section(lambda page, assessment: [Paragraph(text) for text in assessment.sentences])
    )
    largest_errors: tuple[RowErrorSummary, ...]
    check: CheckSummary | None
    missing_sections: tuple[MissingSection, ...] = field(metadata=section(_missing_sections))
    data: str | None = None  # what the model was evaluated on
    parameters: Mapping[str, Any] | None = field(default=None, metadata=INTERNAL)  # to score a row in the browser
    policy: str | None = None  # what decides, where that is not the most probable class
    drift: DriftSummary | None = None  # of the data from the training rows

    @property
    def headline(self) -> str:
        return self.title


@dataclass(frozen=True, repr=False)
class ReportSummary(Summary):
    """A page in a file: its size, and what is missing."""

    model: str
    output: str
    size_bytes: int
    missing_sections: tuple[str, ...] = field(metadata=section(_missing_sections))

    @property
    def headline(self) -> str:
        return f"report of {self.model} written to {self.output} ({self.size_bytes / 1000:,.0f} kB)"


def summarize_page(
    model: ModelLike,
    evaluation: RowEvaluation | None = None,
    check: CheckSummary | None = None,
    *,
    data: str | None = None,
    drift: DriftSummary | None = None,
    missing_sections: Sequence[MissingSection] = (),
) -> PageSummary:
    """Return the page of a model, with its evaluation and data check where there are any."""
    fitted = load_fitted(model)
    summary, proportions = summarize_model(fitted, _MAX_LEVELS), fitted.class_proportions
    c, missing = default_class(proportions), list(missing_sections)
    if evaluation is None and not missing:
        how = "name a table with known classes: candide report MODEL DATA -o report.html (model.report(data))"
        missing.append(MissingSection(PERFORMANCE, "the model was not evaluated on any rows", how))
    if not fitted.has_counts:
        why = "the model file has no counts, so the frequencies of values and the strongest words are not known"
        missing.append(MissingSection("Counts", why, "save it with its counts: model.save(path), detail='tally'"))
    if len(fitted.labels) < 2:
        why = f"the model has {formatting.format_count(len(fitted.labels), 'class', 'classes')}"
        missing.append(MissingSection(TERMS, why, "fit it on rows of two classes or more"))
    errors = list[RowErrorSummary]()
    if evaluation is not None:
        decisions = {explained.row: DecisionSummary(*explained) for explained in evaluation.explanations}
        errors = [
            RowErrorSummary(error.row, error.label, float(np.exp(-error.log_loss)), decisions.get(error.row))
            for error in evaluation.largest_errors
        ]
    return PageSummary(
        f"Model report: {'class' if fitted.target is None else fitted.target}",
        summary,
        tuple(proportions.tolist()),
        c,
        tuple(_summarize_terms(fitted, c)) if len(proportions) > 1 else (),
        None if evaluation is None else assess_model(fitted, evaluation, data),
        tuple(errors),
        check,
        tuple(missing),
        data,
        drift=drift,
        policy=summary.policy if fitted.decision_rule is not None else None,
    )


def _summarize_terms(fitted: FittedModel, c: int) -> list[TermSummary]:
    """Return every term, the most important first; a column with its total effect over all terms that it is in."""
    terms = list_terms(fitted)
    totals = {effect.column: effect for effect in Effects(fitted, terms).column_effects if effect.n_terms > 1}
    proportions, shown = fitted.class_proportions, list[TermSummary]()
    for term in terms:
        total = totals.get(term.columns[0]) if len(term.columns) == 1 else None
        axis = build_axis(fitted, term) if total is None else total.axis
        classes = () if axis.contributions is None else range(len(fitted.labels))
        summary = TermSummary(
            term.title,
            term.columns,
            "column" if len(term.columns) == 1 else term.kind,
            term.weight,
            term.importance if total is None else total.importance,
            describe_extremes(fitted, axis, c),
            axis.shape,
            axis.names,
            tuple(_to_floats(axis.contrast(proportions, k)) for k in classes),
            _to_floats(axis.frequencies),
            _to_floats(axis.positions),
            ((), ()) if axis.histogram is None else (_to_floats(axis.histogram[0]), _to_floats(axis.histogram[1])),
            tuple(tuple((word.word, word.log_odds) for word in words) for words in axis.top_words),
            axis.typical_value,
            1 if total is None else total.n_terms,
        )
        shown.append(summary)
    return sorted(shown, key=lambda term: np.inf if term.importance is None else -term.importance)


def _to_floats(values: Floats | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.ravel().tolist())


def assess_model(fitted: FittedModel, evaluation: RowEvaluation, data: str | None = None) -> Assessment:
    scores = summarize_scores(fitted, evaluation.scores, list(dict.fromkeys(map(str, evaluation.notes))))
    baseline = formatting.format_value(fitted.labels.values[int(expected_class_proportions(fitted).argmax())])
    sentences, result = (*_metric_sentences(scores, baseline), *_calibration_sentences(scores)), scores.policy_result
    if result is not None:
        abstained = f"; abstains on {formatting.format_percent(1 - result.coverage)} of the rows"
        sentences = (f"Decision policy: {result.policy}{abstained if result.coverage < 1 else ''}.", *sentences)
    wrong, labels = np.array(scores.confusion), scores.labels
    totals = wrong.sum(axis=1)
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_CONFUSIONS]
    cells = [(i, j) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True) if wrong[i, j]]
    confusions = (ClassConfusion(labels[i], labels[j], float(wrong[i, j]), float(totals[i])) for i, j in cells)
    is_training_data = data is not None and fitted.provenance.get("source") == data
    return Assessment(scores, sentences, tuple(confusions), is_training_data)


def _metric_sentences(scores: ScoreSummary, baseline: str) -> list[str]:
    accuracy, auc, loss = (scores.metrics[name] for name in ("accuracy", "auc", "log_loss"))
    percent = formatting.format_percent
    sentences = [
        f"Accuracy {percent(accuracy.value)} on {formatting.format_count(scores.rows)}; always predicting {baseline}, "
        f"the most frequent class, gives {percent(accuracy.baseline)}."
    ]
    if auc.value == auc.value:
        sentences.append(
            f"Area under the ROC curve {auc.value:.3f}: of two rows of different classes, {percent(auc.value)} are "
            "ranked correctly (50% by chance)."
        )
    gain = 1 - loss.value / loss.baseline if loss.baseline > 0 else 0.0
    relation = f"{percent(abs(gain))} {'lower' if gain > 0 else 'higher'} than"
    relation = relation if abs(gain) > _NEGLIGIBLE_DIFFERENCE else "no better than"
    return [*sentences, f"Log loss {loss.value:.3f}, {relation} that of the class prior ({loss.baseline:.3f})."]


def _calibration_sentences(scores: ScoreSummary) -> list[str]:
    if scores.rows < _MIN_ROWS:
        return ["Too few rows to assess the calibration."]
    error = scores.metrics["calibration_error"].value
    excess = sum(part.rows * (part.predicted - part.observed) for part in scores.calibration)
    manner, text = "overconfident" if excess > 0 else "underconfident", "Well calibrated"
    if error >= _WELL_CALIBRATED:
        is_usable = error < _USABLY_CALIBRATED
        text = f"Roughly calibrated, slightly {manner}" if is_usable else f"Poorly calibrated, {manner}"
    return [scores.calibration_note, f"{text}: expected calibration error {error:.1%}."]
