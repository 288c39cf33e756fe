"""Discriminant: numbers and indicators of levels that speak together, by their scores.

A linear discriminant says what a linear model of all columns would say, a quadratic one what normal laws with a
covariance for each class say. Columns are read as scores (:mod:`candide.encoding.normal_score`), so that units and
increasing changes of a column make no difference.

>>> z, y = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, -1.0], [1.5, 0.0]]), np.array([0, 0, 1, 1, 1])
>>> event = Discriminant()
>>> law = event.estimate(CoMoments.from_rows(z, y, n_classes=2, spec=event.spec(2)))
>>> law.log_prob(z).argmax(axis=1).tolist(), event.term_names(("a", "b"))
([0, 0, 1, 1, 1], (('a', 'b'), ('a', 'b')))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import conjugate, formatting
from candide import distributions as laws
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.data.table import Name
from candide.encoding.base import Encoding
from candide.encoding.normal_score import NormalScore
from candide.errors import InputError
from candide.events.base import EventModel, Support
from candide.tally import CoMoments


@dataclass(frozen=True)
class Discriminant(EventModel):
    """One covariance for all classes, and with ``quadratic`` besides one for each."""

    name: ClassVar[str] = "discriminant"
    kind: ClassVar[str] = "comoments"
    has_density: ClassVar[bool] = False
    is_joint: ClassVar[bool] = True
    accepts_groups: ClassVar[bool] = True
    support: ClassVar[Support | None] = None

    quadratic: bool = True
    towards_diagonal: float = 0.1  # how far the common covariance is drawn to the unit matrix, in columns a row

    @property
    def encoding(self) -> Encoding:
        return NormalScore()

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return (tuple(columns),) * (1 + self.quadratic)

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """By how many numbers and categories it is of.

        >>> Discriminant(quadratic=False).term_titles(("age", "height"), (NormalScore(), NormalScore()))
        ('linear discriminant of 2 numbers',)
        """
        written = sum(one.is_read_as_text for one in encodings)
        sorts = (len(columns) - written, "number", "numbers"), (written, "category", "categories")
        of = " and ".join(formatting.format_count(n, *names) for n, *names in sorts if n)
        kinds = ("linear", "quadratic")[: 1 + self.quadratic]
        return tuple(f"{kind} discriminant of {of}" for kind in kinds)

    def _estimate(self, tally: CoMoments, prior: Any, how: str) -> "laws.Discriminants":
        try:
            return conjugate.discriminant.estimate(
                tally, quadratic=self.quadratic, towards_diagonal=self.towards_diagonal
            )
        except np.linalg.LinAlgError:
            raise InputError("the products counted of columns that speak together are those of no rows") from None

    def held_out_contributions(
        self,
        tally: CoMoments,
        prior: Any,
        how: str,
        block: Block,
        y: Codes,
        weight: Floats | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        z, given = np.asarray(to_dense(block), np.float64), {"towards_diagonal": self.towards_diagonal}
        terms = conjugate.discriminant.held_out_contributions(tally, z, y, weight, quadratic=self.quadratic, **given)
        if out is None:
            return terms
        out[:] = terms
        return out

    def information(self, tally: Any) -> None:
        return None

    def association_test(self, tally: Any) -> None:
        return None
