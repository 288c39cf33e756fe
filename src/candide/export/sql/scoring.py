"""Scoring: what is gathered while the parts of a model are written as SQL."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from candide.export.scorer.numbers import decode_numbers
from candide.export.sql.columns import QueryColumn
from candide.export.sql.layers import Layers
from candide.export.sql.lookups import CellLookup, KnownLevels


class ScoringQuery:
    """The columns of a model, read as its laws want them, and the terms of each class."""

    def __init__(self, layers: Layers, parameters: dict[str, Any]):
        self.layers, self.parameters = layers, parameters
        self.n_classes = len(parameters["classes"])
        self.reads = parameters["reads"]
        na = parameters.get("na", ())
        self.columns = [QueryColumn(layers, about, na) for about in parameters["columns"]]
        self.class_terms: list[list[str]] = [[] for _ in range(self.n_classes)]
        self.has_impossible = False  # whether some value cannot be
        self.complete_groups: list[list[Any]] = []  # columns of which none may be missing
        self._lookups: dict[tuple[int, bool], CellLookup | KnownLevels] = {}

    def number(self, read: int) -> str:
        """The number that is read."""
        return self.columns[self.reads[read]["column"]].number_name

    def find_lookup(self, read: int) -> CellLookup | KnownLevels:
        """The table of constants of the column that is read: as a number, or as a level."""
        at, of_levels = self.reads[read]["column"], "levels" in self.reads[read]
        if (at, of_levels) not in self._lookups:
            others = [one for one in self.reads if one["column"] == at and one["read"] in ("grid", "score")]
            column = self.columns[at]
            self._lookups[at, of_levels] = found = KnownLevels(column) if of_levels else CellLookup(column, others)
            found.width = self.n_classes
        return self._lookups[at, of_levels]

    def score(self, read: int) -> str:
        """A normal score."""
        found, about = self.find_lookup(read), self.reads[read]
        assert isinstance(found, CellLookup)
        return found.score(about, self.scores[about["scores"]])

    @cached_property
    def scores(self) -> list[list[float]]:
        return [decode_numbers(one) for one in self.parameters["scores"]]

    def add_terms(self, terms: Sequence[str]) -> None:
        """Terms, one a class."""
        for own, term in zip(self.class_terms, terms, strict=True):
            own.append(term)
