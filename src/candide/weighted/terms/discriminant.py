"""Discriminants and prototype terms: joint normal distributions of scores of numbers and indicators of categories.

The linear discriminant has one covariance for all classes; the quadratic one has a covariance for each class, and is a
multivariate t with heavier tails for classes with few rows. Columns are read as normal scores
(:mod:`candide.encoding.scores`), so units and increasing transformations of a column make no difference.
Contributions are divided by the root of the width: the scale of a single column.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, to_dense
from candide.data.table import Name
from candide.encoding.base import Encoding
from candide.encoding.scores import NormalScore
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.model.settings import LIMITS
from candide.tally import CoMoments
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
        """By the number of its numeric and categorical columns: "linear discriminant of 2 numbers"."""
        n_text = sum(encoding.is_read_as_text for encoding in encodings)
        counts = (len(columns) - n_text, "number", "numbers"), (n_text, "category", "categories")
        of = " and ".join(formatting.format_count(n, *names) for n, *names in counts if n)
        return tuple(f"{kind} discriminant of {of}" for kind in ("linear", "quadratic")[: 1 + self.quadratic])

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """Both discriminants of the numbers: fewer rows than numbers determine no covariance."""
        return [make_part(cls(), selector.normal_scores)] if selector.can_join_numbers else []

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
            return estimate(tally, self.quadratic, self.towards_diagonal)
        except np.linalg.LinAlgError:
            raise InputError("the counted products of joint columns are not those of any rows") from None

    def held_out_contributions(
        self, tally: CoMoments, prior: Any, how: str, block: Any, y: Codes, weight: Any = None, out: Any = None
    ) -> NDArray:
        from candide.weighted.terms.discriminant_scores import held_out_contributions

        z = np.asarray(to_dense(block), np.float64)
        contributions = held_out_contributions(tally, z, y, weight, self.quadratic, self.towards_diagonal)
        if out is None:
            return contributions
        out[:] = contributions
        return out


@dataclass(frozen=True)
class PrototypeTerm(Discriminant):
    """A linear discriminant of how similar a row is to each of some prototype rows (a Nystroem kernel).

    It follows classes of any shape: each prototype raises the log-odds of some classes, the more the more similar the
    row is to it (:mod:`candide.encoding.scores`).
    """

    name: ClassVar[str] = "prototype"

    quadratic: bool = False

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        return (f"similarity to prototypes of {formatting.format_count(len(columns), 'number', 'numbers')}",)

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """One term of all numbers."""
        parts = [make_part(cls(), selector.normal_scores)] if selector.can_join_numbers else []
        return [selector.encodings.with_prototypes(part) for part in parts]

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        return ()
