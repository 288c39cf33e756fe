"""Score a model on labelled rows: its metrics, and the rows with the largest errors."""

from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.notes import Note
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import score_labelled, sum_labelled
from candide.metrics.scores import Scores
from candide.model.policy import PolicyLike
from candide.store.file import ModelLike, load_fitted, resolve_target

if TYPE_CHECKING:
    from candide.explain.rows import ExplainedRow


class RowError(NamedTuple):
    """A row by its number, counted from 1, its label, and its log-loss, -log p(label | row)."""

    row: int
    label: Any
    log_loss: float


@dataclass(frozen=True)
class RowEvaluation:
    """The scores of a model, the rows with the largest errors, largest first, and the explanations of these."""

    scores: Scores
    largest_errors: tuple[RowError, ...]
    explanations: "tuple[ExplainedRow, ...]"
    notes: tuple[Note, ...] = ()  # on rows left out, and columns that are missing


def evaluate(
    model: ModelLike,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    policy: PolicyLike = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Scores:
    """Score a model on a source, as :func:`candide.evaluate` documents."""
    fitted = load_fitted(model).with_policy(policy)
    name, score = resolve_target(fitted, target), partial(Scores.from_log_posterior, rule=fitted.decision_rule)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        result = sum_labelled(source, fitted, name, score, weight)
    result.skipped_rows.warn(name)
    assert result.total is not None
    return result.total


def evaluate_rows(
    model: ModelLike,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    max_errors: int = 10,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> RowEvaluation:
    """Score a model as ``evaluate`` does, and keep the ``max_errors`` rows with the largest log-loss."""
    from candide.explain.rows import explain_rows

    fitted = load_fitted(model)
    name = resolve_target(fitted, target)

    def score(log_posterior: Floats, y: NDArray[np.intp], w: Floats | None) -> tuple[Scores, Floats, NDArray[np.intp]]:
        scores = Scores.from_log_posterior(log_posterior, y, w, fitted.decision_rule)
        return scores, -log_posterior[np.arange(len(y)), y], y

    parts, losses, rows, codes = list[Scores](), np.empty(0), np.empty(0, np.intp), np.empty(0, np.intp)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        scored = score_labelled(source, fitted, name, score, weight)
        for scores, loss, y in scored.results:
            parts.append(scores)
            losses, codes = np.concatenate([losses, loss]), np.concatenate([codes, y])
            rows = np.concatenate([rows, scored.skipped_rows.kept_rows])
            worst = np.sort(np.argsort(-losses, kind="stable")[:max_errors])  # in row order: the first of equals stays
            losses, rows, codes = losses[worst], rows[worst], codes[worst]
    scored.skipped_rows.warn(name)
    labels, order = fitted.labels.values, np.argsort(-losses, kind="stable").tolist()
    errors = tuple(RowError(int(rows[i]) + 1, labels[codes[i]], float(losses[i])) for i in order)
    is_explained = len(labels) > 1 and not (isinstance(data, str) and data == "-")  # standard input is read once
    explained = tuple(explain_rows(fitted, data, [e.row for e in errors], reading=reading)) if is_explained else ()
    notes = *scored.source_notes, *scored.skipped_rows.notes(name)
    return RowEvaluation(reduce(add, parts), errors, explained, notes)
