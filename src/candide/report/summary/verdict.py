"""The verdict: how good a model is on some rows, in sentences a person can repeat.

>>> from candide.demo import run
>>> from candide.tasks.judge import Judged
>>> demo = run(400)
>>> found = of_judged(demo.learned.fitted, Judged(demo.scores, (), ()))
>>> found.sentences[0]
'On 100 rows it names the right class in 93%; always thyme, the class that it expects most, would be right in 36%.'
>>> found.confusions[0].sentence
"'lavender' is taken for 'sage' in 4 of 32 rows (12.5%)."
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import wording
from candide.model.fitted import Fitted
from candide.report.summary.scores import ScoreSummary, expected_shares, of_scores
from candide.tasks.judge import Judged

_NAMED = 5  # confusions that are told
_FEW = 50.0  # rows below which a share of them says little
_SAME = 1e-3  # share of the log-loss, a difference below which is none
# Expected calibration errors that a person would call honest, and still usable: a point or two of a hundred, and five.
_HONEST, _USABLE = 0.02, 0.05


@dataclass(frozen=True)
class Confusion:
    """Rows of one class that were taken for another."""

    true: Any
    predicted: Any
    rows: float
    of: float  # all rows of the true class

    @property
    def sentence(self) -> str:
        share = wording.percent(self.rows / self.of)
        rows = f"{self.rows:,.10g} of {wording.plural(self.of)}"
        return f"{str(self.true)!r} is taken for {str(self.predicted)!r} in {rows} ({share})."


@dataclass(frozen=True)
class Verdict:
    """What a model scores, in figures and in sentences."""

    scores: ScoreSummary
    sentences: tuple[str, ...]
    confusions: tuple[Confusion, ...]  # worst first
    known_rows: bool  # whether these are the rows that it was learned from


def of_judged(fitted: Fitted, judged: Judged, data: str | None = None) -> Verdict:
    """The verdict on a model that was judged on some data."""
    found = of_scores(fitted, judged.scores, list(dict.fromkeys(map(str, judged.remarks))))
    known = data is not None and fitted.provenance.get("source") == data
    return Verdict(
        found,
        (*_decided(found), *_figures(found, _expected(fitted)), *_calibration(found)),
        _confusions(found),
        known,
    )


def _decided(found: ScoreSummary) -> list[str]:
    """By what rule classes are given, where that is not the most probable one."""
    if found.decided is None:
        return []
    some = f", and leaves {wording.percent(1 - found.decided.coverage)} of the rows open"
    return [f"It decides by a rule: {found.decided.policy}{some if found.decided.coverage < 1 else ''}."]


def _expected(fitted: Fitted) -> str:
    """The class to name by one who knows nothing but the class shares."""
    return wording.value(fitted.labels.values[int(expected_shares(fitted).argmax())])


def _figures(found: ScoreSummary, expected: str) -> list[str]:
    by_name = {one.name: one for one in found.metrics}
    right, auc, loss = (by_name[name] for name in ("accuracy", "auc", "log_loss"))
    out = [
        f"On {wording.plural(found.rows)} it names the right class in {wording.percent(right.value)}; always "
        f"{expected}, the class that it expects most, would be right in {wording.percent(right.baseline)}."
    ]
    if auc.value == auc.value:
        out.append(
            f"Of two rows of different classes it puts the right one first in {wording.percent(auc.value)} (the area "
            "under the ROC curve; by chance 50%)."
        )
    told = (
        f"Its log-loss is {loss.value:.3f} nats a row, where the class shares that it learned have {loss.baseline:.3f}"
    )
    less = 1 - loss.value / loss.baseline if loss.baseline > 0 else 0.0
    better = f": {wording.percent(less)} of the surprise is gone." if less > 0 else ": worse than knowing nothing."
    return [*out, told + (better if abs(less) > _SAME else ": it knows no more than these.")]


def _calibration(found: ScoreSummary) -> list[str]:
    """What its probabilities are worth."""
    if found.rows < _FEW:
        return ["There are too few rows to say whether its probabilities can be believed."]
    [error] = (one.value for one in found.metrics if one.name == "calibration_error")
    over = sum(weight * (stated - true) for stated, true, weight in found.calibration) > 0
    off, manner = f"off by {error:.1%} in the mean", "sure" if over else "careful"
    if error < _HONEST:
        worth = f"Its probabilities can be believed: {off}."
    elif error < _USABLE:
        worth = f"Its probabilities are roughly right, a little too {manner}: {off}."
    else:
        worth = f"Its probabilities are too {manner}: {off}."
    return [found.calibration_words, worth]


def _confusions(found: ScoreSummary) -> tuple[Confusion, ...]:
    matrix = np.array(found.confusion)
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_NAMED]
    at = np.stack(np.unravel_index(order, wrong.shape), axis=1).tolist()
    whole = matrix.sum(axis=1)
    return tuple(
        Confusion(found.labels[i], found.labels[j], float(wrong[i, j]), float(whole[i])) for i, j in at if wrong[i, j]
    )
