"""Resemblance: what numbers say together by the typical rows that a row is like, whatever shape the classes have.

A linear discriminant, not of the scores of the columns but of how much the row is like each of some typical rows
(:mod:`candide.encoding.prototypes`). Every typical row speaks for some classes, the louder the more the row is like it.

>>> like = Prototypes.from_scores(np.random.default_rng(0).normal(size=(40, 2)), max_prototypes=4)
>>> PrototypeTerm().term_titles(("age", "height")), PrototypeTerm().spec(1, (like,)).n_features
(('resemblance to typical rows of 2 numbers',), 4)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.encoding.base import Encoding
from candide.encoding.prototypes import Prototypes
from candide.events.discriminant import Discriminant

__all__ = ["PrototypeTerm", "Prototypes", "np"]


@dataclass(frozen=True)
class PrototypeTerm(Discriminant):
    """One covariance of likeness for all classes."""

    name: ClassVar[str] = "resemblance"

    quadratic: bool = False

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        return (f"resemblance to typical rows of {formatting.format_count(len(columns), 'number', 'numbers')}",)
