"""Prototype terms: a linear discriminant of how similar a row is to each of some prototype rows (a Nystroem kernel).

It follows classes of any shape: each prototype raises the log-odds of some classes, the more the more similar the row
is to it (:mod:`candide.encoding.prototypes`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from candide import formatting
from candide.data.table import Name
from candide.encoding.base import Encoding
from candide.model.plan import PlanPart
from candide.weighted.terms.base import make_part
from candide.weighted.terms.discriminant import Discriminant

if TYPE_CHECKING:
    from candide.weighted.selection import TermSelector


@dataclass(frozen=True)
class PrototypeTerm(Discriminant):
    """One covariance of similarities for all classes."""

    name: ClassVar[str] = "prototype"

    quadratic: bool = False

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """By the number of columns.

        >>> PrototypeTerm().term_titles(("age", "height"))
        ('similarity to prototypes of 2 numbers',)
        """
        return (f"similarity to prototypes of {formatting.format_count(len(columns), 'number', 'numbers')}",)

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """One term of all numbers."""
        if not selector.can_join_numbers:
            return []
        return [selector.encodings.with_prototypes(make_part(cls(), selector.normal_scores))]

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        return ()
