"""The verdict: how good a model is on some rows, in sentences a person can repeat.

>>> from candide.demo import run_demo
>>> from candide.operations.row_errors import RowEvaluation
>>> demo = run_demo(400)
>>> found = assess_model(demo.fit_result.fitted, RowEvaluation(demo.scores, (), ()))
>>> found.sentences[0]
'On 100 rows it names the right class in 93%; always thyme, the class that it expects most, would be right in 36%.'
>>> found.confusions[0].sentence
"'lavender' is taken for 'sage' in 4 of 32 rows (12.5%)."
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import formatting
from candide.model.fitted import FittedModel
from candide.operations.row_errors import RowEvaluation
from candide.report.summary.scores import ScoreSummary, expected_class_proportions, summarize_scores

_MAX_CONFUSIONS = 5  # confusions that are told
_FEW_ROWS = 50.0  # rows below which a share of them says little
_NEGLIGIBLE_LOSS_DIFFERENCE = 1e-3  # share of the log-loss, a difference below which is none
# Expected calibration errors that a person would call honest, and still usable: a point or two of a hundred, and five.
_WELL_CALIBRATED, _USABLY_CALIBRATED = 0.02, 0.05


@dataclass(frozen=True)
class ClassConfusion:
    """Rows of one class that were taken for another."""

    true_class: Any
    predicted_class: Any
    rows: float
    class_rows: float  # all rows of the true class

    @property
    def sentence(self) -> str:
        share = formatting.format_percent(self.rows / self.class_rows)
        rows = f"{self.rows:,.10g} of {formatting.format_count(self.class_rows)}"
        return f"{str(self.true_class)!r} is taken for {str(self.predicted_class)!r} in {rows} ({share})."


@dataclass(frozen=True)
class Assessment:
    """What a model scores, in figures and in sentences."""

    scores: ScoreSummary
    sentences: tuple[str, ...]
    confusions: tuple[ClassConfusion, ...]  # worst first
    is_training_data: bool  # whether these are the rows that it was learned from


def assess_model(fitted: FittedModel, evaluation: RowEvaluation, data: str | None = None) -> Assessment:
    """The verdict on a model that was judged on some data."""
    found = summarize_scores(fitted, evaluation.scores, list(dict.fromkeys(map(str, evaluation.notes))))
    known = data is not None and fitted.provenance.get("source") == data
    return Assessment(
        found,
        (*_policy_sentences(found), *_metric_sentences(found, _baseline_class(fitted)), *_calibration_sentences(found)),
        _confusions(found),
        known,
    )


def _policy_sentences(found: ScoreSummary) -> list[str]:
    """By what rule classes are given, where that is not the most probable one."""
    if found.policy_result is None:
        return []
    some = f", and leaves {formatting.format_percent(1 - found.policy_result.coverage)} of the rows open"
    return [f"It decides by a rule: {found.policy_result.policy}{some if found.policy_result.coverage < 1 else ''}."]


def _baseline_class(fitted: FittedModel) -> str:
    """The class to name by one who knows nothing but the class shares."""
    return formatting.format_value(fitted.labels.values[int(expected_class_proportions(fitted).argmax())])


def _metric_sentences(found: ScoreSummary, expected: str) -> list[str]:
    by_name = {one.name: one for one in found.metrics}
    right, auc, loss = (by_name[name] for name in ("accuracy", "auc", "log_loss"))
    out = [
        f"On {formatting.format_count(found.rows)} it names the right class in {formatting.format_percent(right.value)}; always "
        f"{expected}, the class that it expects most, would be right in {formatting.format_percent(right.baseline)}."
    ]
    if auc.value == auc.value:
        out.append(
            f"Of two rows of different classes it puts the right one first in {formatting.format_percent(auc.value)} (the area "
            "under the ROC curve; by chance 50%)."
        )
    told = (
        f"Its log-loss is {loss.value:.3f} nats a row, where the class shares that it learned have {loss.baseline:.3f}"
    )
    less = 1 - loss.value / loss.baseline if loss.baseline > 0 else 0.0
    better = (
        f": {formatting.format_percent(less)} of the surprise is gone." if less > 0 else ": worse than knowing nothing."
    )
    return [*out, told + (better if abs(less) > _NEGLIGIBLE_LOSS_DIFFERENCE else ": it knows no more than these.")]


def _calibration_sentences(found: ScoreSummary) -> list[str]:
    """What its probabilities are worth."""
    if found.rows < _FEW_ROWS:
        return ["There are too few rows to say whether its probabilities can be believed."]
    [error] = (one.value for one in found.metrics if one.name == "calibration_error")
    over = sum(weight * (stated - true) for stated, true, weight in found.calibration) > 0
    off, manner = f"off by {error:.1%} in the mean", "sure" if over else "careful"
    if error < _WELL_CALIBRATED:
        worth = f"Its probabilities can be believed: {off}."
    elif error < _USABLY_CALIBRATED:
        worth = f"Its probabilities are roughly right, a little too {manner}: {off}."
    else:
        worth = f"Its probabilities are too {manner}: {off}."
    return [found.calibration_note, worth]


def _confusions(found: ScoreSummary) -> tuple[ClassConfusion, ...]:
    matrix = np.array(found.confusion)
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_CONFUSIONS]
    at = np.stack(np.unravel_index(order, wrong.shape), axis=1).tolist()
    whole = matrix.sum(axis=1)
    return tuple(
        ClassConfusion(found.labels[i], found.labels[j], float(wrong[i, j]), float(whole[i]))
        for i, j in at
        if wrong[i, j]
    )
