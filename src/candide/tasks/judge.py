"""Judging: a model scored on a source whose labels are known, and the rows that surprised it most, in one pass.

>>> from candide.demo import garden, rows
>>> from candide.model.fitted import Fitted
>>> plants, herbs = rows(500, seed=0)
>>> found = judge(Fitted(garden()), {**plants, "herb": herbs}, "herb", most=2)
>>> round(found.scores.accuracy, 2), [(one.row, one.label, round(one.nats, 1)) for one in found.surprises]
(0.94, [(162, 'sage', 4.8), (116, 'sage', 3.9)])
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.engines.base import Watch, open_source, silent
from candide.engines.reading import Reading
from candide.rows.blocks import Floats
from candide.rows.remarks import Remark
from candide.tasks.explain import Explained, explain
from candide.tasks.models import Model, fitted_of, reading_of, target_of
from candide.tasks.scores import Scores
from candide.tasks.scoring import labelled


class Surprise(NamedTuple):
    """A row by its number, counted from 1, its label, and -log p(label | row): how much it surprised the model."""

    row: int
    label: Any
    nats: float


@dataclass(frozen=True)
class Judged:
    """What a model scores, the rows that surprised it most, strongest first, and why these were given their class."""

    scores: Scores
    surprises: tuple[Surprise, ...]
    explained: tuple[Explained, ...]
    remarks: tuple[Remark, ...] = ()  # what was warned of: rows left out, columns that are not there


def judge(
    model: Model,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    most: int = 10,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Judged:
    """Score a model on a source whose labels are known; ``most`` is how many rows that surprised it are kept.

    Rows without a label, or with one that the model does not know, are left out, and a warning says how many.
    """
    fitted = fitted_of(model)
    name = target_of(fitted, target)

    def work(log_posterior: Floats, y: NDArray[np.intp], w: Floats | None) -> tuple[Scores, Floats, NDArray[np.intp]]:
        return Scores.of(log_posterior, y, w, fitted.rule), -log_posterior[np.arange(len(y)), y], y

    scores, nats, rows, codes = list[Scores](), np.empty(0), np.empty(0, np.intp), np.empty(0, np.intp)
    with open_source(data, reading_of(fitted, reading)) as source, watch(source, "scoring"):
        found = labelled(source, fitted, name, work, weight)
        for one, lost, y in found.results:
            scores.append(one)
            nats, codes = np.concatenate([nats, lost]), np.concatenate([codes, y])
            rows = np.concatenate([rows, found.left_out.kept])
            best = np.sort(np.argsort(-nats, kind="stable")[:most])  # in their order, so that of equals the first stays
            nats, rows, codes = nats[best], rows[best], codes[best]
    found.left_out.tell(name)
    order = np.argsort(-nats, kind="stable").tolist()
    labels = fitted.labels.values
    most_surprising = tuple(Surprise(int(rows[i]) + 1, labels[codes[i]], float(nats[i])) for i in order)
    numbers = [one.row for one in most_surprising]
    again = not (isinstance(data, str) and data == "-")  # standard input is read once
    explained = tuple(explain(fitted, data, numbers, reading)) if len(labels) > 1 and again else ()
    return Judged(reduce(add, scores), most_surprising, explained, (*found.told, *found.left_out.remarks(name)))
