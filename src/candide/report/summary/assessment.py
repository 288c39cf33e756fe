"""The assessment of a model on some rows, in figures and in sentences.

>>> from candide.demo import run_demo
>>> from candide.validation.row_errors import RowEvaluation
>>> demo = run_demo(400)
>>> assessment = assess_model(demo.fit_result.fitted, RowEvaluation(demo.scores, (), ()))
>>> assessment.sentences[0]
'Accuracy 93% on 100 rows; always predicting thyme, the most frequent class, gives 36%.'
>>> assessment.confusions[0].sentence
"'lavender' is predicted as 'sage' in 4 of 32 rows (12.5%)."
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import formatting
from candide.model.fitted import FittedModel
from candide.report.summary.scores import ScoreSummary, expected_class_proportions, summarize_scores
from candide.validation.row_errors import RowEvaluation

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


def assess_model(fitted: FittedModel, evaluation: RowEvaluation, data: str | None = None) -> Assessment:
    """Return the assessment of a model that was evaluated on some data."""
    scores = summarize_scores(fitted, evaluation.scores, list(dict.fromkeys(map(str, evaluation.notes))))
    baseline = formatting.format_value(fitted.labels.values[int(expected_class_proportions(fitted).argmax())])
    sentences = (*_policy_sentences(scores), *_metric_sentences(scores, baseline), *_calibration_sentences(scores))
    is_training_data = data is not None and fitted.provenance.get("source") == data
    return Assessment(scores, sentences, _confusions(scores), is_training_data)


def _policy_sentences(scores: ScoreSummary) -> list[str]:
    result = scores.policy_result
    if result is None:
        return []
    abstained = f"; abstains on {formatting.format_percent(1 - result.coverage)} of the rows"
    return [f"Decision policy: {result.policy}{abstained if result.coverage < 1 else ''}."]


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
    """Return how far predicted probabilities can be trusted."""
    if scores.rows < _MIN_ROWS:
        return ["Too few rows to assess the calibration."]
    error = scores.metrics["calibration_error"].value
    excess = sum(one.rows * (one.predicted - one.observed) for one in scores.calibration)
    manner, figure = "overconfident" if excess > 0 else "underconfident", f"expected calibration error {error:.1%}"
    if error < _WELL_CALIBRATED:
        text = f"Well calibrated: {figure}."
    elif error < _USABLY_CALIBRATED:
        text = f"Roughly calibrated, slightly {manner}: {figure}."
    else:
        text = f"Poorly calibrated, {manner}: {figure}."
    return [scores.calibration_note, text]


def _confusions(scores: ScoreSummary) -> tuple[ClassConfusion, ...]:
    matrix = np.array(scores.confusion)
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_CONFUSIONS]
    at = np.stack(np.unravel_index(order, wrong.shape), axis=1).tolist()
    totals = matrix.sum(axis=1)
    return tuple(
        ClassConfusion(scores.labels[i], scores.labels[j], float(wrong[i, j]), float(totals[i]))
        for i, j in at
        if wrong[i, j]
    )
