"""Resemblance: what numbers say together by the typical rows that a row is like, whatever shape the classes have.

A linear discriminant, not of the scores of the columns but of how much the row is like each of some typical rows
(:mod:`candide.encode.likeness`). Every typical row speaks for some classes, the louder the more the row is like it.

>>> like = Likeness.of(np.random.default_rng(0).normal(size=(40, 2)), most=4)
>>> Resemblance().titles(("age", "height")), Resemblance().spec(1, (like,)).n_features
(('resemblance to typical rows of 2 numbers',), 4)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from candide import wording
from candide.encode.base import Encoding
from candide.encode.likeness import Likeness
from candide.events.discriminant import Discriminant
from candide.rows.table import Name

__all__ = ["Likeness", "Resemblance", "np"]


@dataclass(frozen=True)
class Resemblance(Discriminant):
    """One covariance of likeness for all classes."""

    name: ClassVar[str] = "resemblance"

    quadratic: bool = False

    def titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        return (f"resemblance to typical rows of {wording.plural(len(columns), 'number', 'numbers')}",)
