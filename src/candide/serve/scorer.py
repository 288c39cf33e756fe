"""Scorer: what a server computes once for its model: how rows are read, and the names in a response.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> scorer = Scorer(FittedModel(garden(), target="herb"))
>>> plant = {"height_cm": 21.0, "leaf_mm": 8.0, "flowers": 14, "soil": "mud", "scented": "yes"}
>>> scored, notes = scorer.score_row(plant)
>>> scored["prediction"], round(scored["p_thyme"], 2), [note.column for note in notes]
('thyme', 1.0, ['soil'])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.notes import Note
from candide.engines.scoring import score_blocks
from candide.errors import InputError
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.serve.row_reader import RowReader
from candide.store.input_schema import InputSchema


@dataclass(frozen=True)
class ScoredColumns:
    """Scored rows by column, with the column names of ``candide predict``."""

    names: list[str]
    columns: list[list[Any]]  # labels as they are, numbers, or None
    labels: list[Any]  # of all classes

    def to_rows(self) -> list[dict[str, Any]]:
        return [dict(zip(self.names, row, strict=True)) for row in zip(*self.columns, strict=True)]


class Scorer:
    """One model, ready to score. It never changes: another model has another scorer."""

    def __init__(self, fitted: FittedModel):
        self.fitted = fitted
        if not len(fitted.labels):
            raise InputError("this model has no rows left, and so no class", remedy="count rows into it")
        self.model, self.decision_rule, self.reader = fitted.model, fitted.decision_rule, RowReader(fitted)
        self.labels = fitted.labels.array.tolist()
        self.classes = [f"p_{label}" for label in self.labels]
        self.names = ["prediction", *self.classes, "log_density"]
        _check_distinct(self.classes, "classes", "responses")
        self._has_density = all(distribution.has_density for distribution in self.model.distributions)
        self._column_names = frozenset(self.reader.names)
        self._level_counts = _level_counts(self.reader.plan)

    def score_row(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[Note]]:
        """Return the scored row and the warnings on it."""
        blocks = self.reader.read_row(row)
        has_unseen = any((blocks[i][0] >= sizes).any() for i, sizes in self._level_counts.items())
        is_plain = not has_unseen and row.keys() == self._column_names
        notes = [] if is_plain else self.reader.notes(row.keys(), blocks)
        log_posterior, density = score_blocks(self.reader.plan, self.model, blocks)
        code = int(self._decide(log_posterior)[0])
        values = [self.labels[code] if code >= 0 else None, *np.exp(log_posterior[0]).tolist()]
        values.append(float(density[0]) if self._has_density else None)
        return dict(zip(self.names, values, strict=True)), notes

    def score_columns(self, columns: Mapping[str, Any], n_rows: int) -> tuple[ScoredColumns, list[Note]]:
        """Return scored rows and the warnings on them."""
        if not n_rows:
            return ScoredColumns(self.names, [[] for _ in self.names], self.labels), []
        blocks = self.reader.read_columns(columns, n_rows)
        notes = self.reader.notes(columns.keys(), blocks)
        log_posterior, density = score_blocks(self.reader.plan, self.model, blocks)
        labels = [*self.labels, None]
        predictions = [labels[code] for code in self._decide(log_posterior).tolist()]
        densities: list[Any] = density.tolist() if self._has_density else [None] * len(density)
        return ScoredColumns(
            self.names, [predictions, *np.exp(log_posterior.T).tolist(), densities], self.labels
        ), notes

    def _decide(self, log_posterior: Floats) -> Codes:
        return log_posterior.argmax(axis=1) if self.decision_rule is None else self.decision_rule(log_posterior)

    @cached_property
    def typical_values(self) -> dict[Any, Any]:
        """A typical value of each column, where one is known."""
        from candide.explain.axes import find_typical_values

        return find_typical_values(self.fitted)

    @cached_property
    def input_schema(self) -> InputSchema:
        """The columns of the model, and how they are read."""
        return InputSchema.from_model(self.fitted)

    @cached_property
    def report_page(self) -> bytes:
        """The report of the model as a page."""
        from candide.report.build import build_report

        return build_report(self.fitted).text.encode()

    @cached_property
    def model_summary(self) -> bytes:
        """The output of ``candide show --json``."""
        from candide.report import json, summary

        return json.dumps(summary.summarize_model(self.fitted)).encode()


def _check_distinct(names: Sequence[str], what: str, where: str) -> None:
    """Reject classes or columns that are written alike: one would replace the other in JSON objects."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two {what} are both named {twice!r} in {where}", value=twice, remedy="rename one of them")


def check_names(fitted: FittedModel) -> None:
    """Reject a model with names that cannot be sent: not valid Unicode, or columns that are written alike."""
    columns = list(map(str, fitted.plan.columns))
    _check_distinct(columns, "columns", "requests")
    for text in [*columns, *map(str, fitted.labels.values)]:
        _check_unicode(text)
    for part in fitted.plan.parts:
        for name, encoding in zip(part.columns, part.encodings, strict=False):
            for level in encoding.labels.values if encoding.value_kind == "level" else ():  # type: ignore[attr-defined]
                _check_unicode(str(level), column=str(name))


def _check_unicode(text: str, **location: Any) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            what = f"{text!r} is not valid Unicode text and cannot be sent"
            raise InputError(what, value=text, remedy="rename it, and fit the model again", **location) from None


def _level_counts(plan: Plan) -> dict[int, NDArray]:
    """Return by part the number of levels of each column that is read as text; each column in one part only."""
    checked: set[Any] = set()
    counts = {}
    for i, part in enumerate(plan.parts):
        is_new = [e.is_read_as_text and (name, e) not in checked for name, e in part.coded_columns]
        if any(is_new):
            unlimited = np.iinfo(np.int32).max
            sizes = [len(levels) if new else unlimited for new, levels in zip(is_new, part.levels, strict=True)]
            counts[i] = np.array(sizes)
            checked.update(part.coded_columns)
    return counts
