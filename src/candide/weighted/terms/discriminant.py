"""Discriminants: joint normal distributions of the normal scores of numbers and the indicators of categories.

The linear discriminant has one covariance for all classes; the quadratic one has a covariance for each class, and is a
multivariate t with heavier tails for classes with few rows. Columns are read as normal scores
(:mod:`candide.encoding.normal_score`), so units and increasing transformations of a column make no difference.
Contributions are divided by the root of the width: the scale of a single column.

>>> z, y = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, -1.0], [1.5, 0.0]]), np.array([0, 0, 1, 1, 1])
>>> event = Discriminant()
>>> tally = CoMoments.from_rows(z, y, n_classes=2, spec=event.spec(2))
>>> event.estimate(tally).log_prob(z).argmax(axis=1).tolist(), event.term_names(("a", "b"))
([0, 0, 1, 1, 1], (('a', 'b'), ('a', 'b')))
>>> event.held_out_contributions(tally, None, "predictive", z, y).shape  # (row, class, linear and quadratic)
(5, 2, 2)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.data.table import Name
from candide.encoding.base import Encoding
from candide.encoding.normal_score import NormalScore
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.tally import CoMoments
from candide.weighted.limits import LIMITS
from candide.weighted.terms.base import JointTerm, make_part

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.weighted.selection import TermSelector


@dataclass(frozen=True)
class Discriminant(JointTerm):
    """One covariance for all classes and, if ``quadratic``, also one for each class."""

    name: ClassVar[str] = "discriminant"
    kind: ClassVar[str] = "comoments"
    is_joint: ClassVar[bool] = True
    accepts_groups: ClassVar[bool] = True

    quadratic: bool = True
    towards_diagonal: float = 0.1  # how far the common covariance is shrunk to the unit matrix, in columns a row

    @property
    def encoding(self) -> Encoding:
        return NormalScore()

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return (tuple(columns),) * (1 + self.quadratic)

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """By the number of its numeric and categorical columns.

        >>> Discriminant(quadratic=False).term_titles(("age", "height"), (NormalScore(), NormalScore()))
        ('linear discriminant of 2 numbers',)
        """
        n_text = sum(encoding.is_read_as_text for encoding in encodings)
        counts = (len(columns) - n_text, "number", "numbers"), (n_text, "category", "categories")
        of = " and ".join(formatting.format_count(n, *names) for n, *names in counts if n)
        return tuple(f"{kind} discriminant of {of}" for kind in ("linear", "quadratic")[: 1 + self.quadratic])

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """Both discriminants of the numbers: fewer rows than numbers determine no covariance."""
        scores = selector.normal_scores
        return [make_part(cls(), scores)] if selector.can_join_numbers else []

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        """A linear discriminant of numbers and categories, if it improves on the terms so far."""
        scores, categories = selector.normal_scores, selector.indicators
        width = sum(encoding.width for _, encoding in scores + categories)
        if categories and 2 <= width <= min(LIMITS.max_indicators, selector.table.n_rows - 1):
            part = make_part(cls(quadratic=False, towards_diagonal=1.0), scores + categories)
            if selector.is_needed(part):
                yield part

    @classmethod
    def distribution_class(cls) -> "type[Distribution]":
        from candide.weighted.terms.discriminant_scores import DiscriminantScores

        return DiscriminantScores

    def _estimate(self, tally: CoMoments, prior: Any, how: str) -> "Distribution":
        from candide.weighted.terms.discriminant_scores import estimate

        try:
            return estimate(tally, quadratic=self.quadratic, towards_diagonal=self.towards_diagonal)
        except np.linalg.LinAlgError:
            raise InputError("the products counted of joint columns are those of no rows") from None

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
        from candide.weighted.terms.discriminant_scores import held_out_contributions

        z, settings = np.asarray(to_dense(block), np.float64), (self.quadratic, self.towards_diagonal)
        contributions = held_out_contributions(tally, z, y, weight, quadratic=settings[0], towards_diagonal=settings[1])
        if out is None:
            return contributions
        out[:] = contributions
        return out
