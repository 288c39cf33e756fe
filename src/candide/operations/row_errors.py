"""Judging: a model scored on a source whose labels are known, and the rows that surprised it most, in one pass.

>>> from candide.demo import garden, garden_rows
>>> from candide.model.fitted import FittedModel
>>> plants, herbs = garden_rows(500, seed=0)
>>> found = evaluate_rows(FittedModel(garden()), {**plants, "herb": herbs}, "herb", max_errors=2)
>>> round(found.scores.accuracy, 2), [(one.row, one.label, round(one.log_loss, 1)) for one in found.largest_errors]
(0.94, [(162, 'sage', 4.8), (116, 'sage', 3.9)])
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.notes import Note
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions
from candide.engines.scoring import score_labelled
from candide.metrics.scores import Scores
from candide.operations.explain_rows import ExplainedRow, explain_rows
from candide.store.models import ModelLike, load_fitted, make_read_options, resolve_target


class RowError(NamedTuple):
    """A row by its number, counted from 1, its label, and -log p(label | row): how much it surprised the model."""

    row: int
    label: Any
    log_loss: float


@dataclass(frozen=True)
class RowEvaluation:
    """What a model scores, the rows that surprised it most, strongest first, and why these were given their class."""

    scores: Scores
    largest_errors: tuple[RowError, ...]
    explanations: tuple[ExplainedRow, ...]
    notes: tuple[Note, ...] = ()  # what was warned of: rows left out, columns that are not there


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
    """Score a model on a source whose labels are known; ``most`` is how many rows that surprised it are kept.

    Rows without a label, or with one that the model does not know, are left out, and a warning says how many.
    """
    fitted = load_fitted(model)
    name = resolve_target(fitted, target)

    def work(log_posterior: Floats, y: NDArray[np.intp], w: Floats | None) -> tuple[Scores, Floats, NDArray[np.intp]]:
        return (
            Scores.from_log_posterior(log_posterior, y, w, fitted.decision_rule),
            -log_posterior[np.arange(len(y)), y],
            y,
        )

    scores, nats, rows, codes = list[Scores](), np.empty(0), np.empty(0, np.intp), np.empty(0, np.intp)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        found = score_labelled(source, fitted, name, work, weight)
        for one, lost, y in found.results:
            scores.append(one)
            nats, codes = np.concatenate([nats, lost]), np.concatenate([codes, y])
            rows = np.concatenate([rows, found.skipped_rows.kept_rows])
            best = np.sort(
                np.argsort(-nats, kind="stable")[:max_errors]
            )  # in their order, so that of equals the first stays
            nats, rows, codes = nats[best], rows[best], codes[best]
    found.skipped_rows.warn(name)
    order = np.argsort(-nats, kind="stable").tolist()
    labels = fitted.labels.values
    most_surprising = tuple(RowError(int(rows[i]) + 1, labels[codes[i]], float(nats[i])) for i in order)
    numbers = [one.row for one in most_surprising]
    again = not (isinstance(data, str) and data == "-")  # standard input is read once
    explained = tuple(explain_rows(fitted, data, numbers, reading)) if len(labels) > 1 and again else ()
    return RowEvaluation(
        reduce(add, scores), most_surprising, explained, (*found.source_notes, *found.skipped_rows.notes(name))
    )
