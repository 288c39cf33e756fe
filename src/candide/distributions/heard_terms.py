"""Heard terms: a law of documents whose terms count more or less than once, and long documents less a word.

With ``w`` the weight of a term, ``x`` its weighed occurrences and ``t`` what the law says of it, a class has the score

    sum(w * x * t) / sum(x) ** power

Words of a document repeat what others said: a sum of n of them says less than n times as much as one. The power is how
much less; 0 is naive Bayes, 1/2 the growth of a sum of chance. What comes out is a score, and no log-probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.distributions.arrays import Found, Rule, Shape, number, one, take
from candide.distributions.base import Distribution
from candide.distributions.documents import Cells, OfDocuments
from candide.distributions.term_scores import TermScores
from candide.encode.tokens import Tokens, score
from candide.errors import InputError
from candide.kernels.text_twin import weights_of
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.documents import Documents

if TYPE_CHECKING:
    from candide.distributions.form import Unwritten

_POWER = Rule("a number from 0 to 1", lambda a: (a >= 0) & (a <= 1))


@dataclass(frozen=True, eq=False)
class HeardTerms(OfDocuments):
    base: TermScores
    weight: Floats  # (term,)
    power: float
    silent: Floats | None = None  # (class,) what is said where none of the terms of a document is known

    name: ClassVar[str] = "heard_terms"
    has_density = False
    not_linear: ClassVar[str] = "each word says less in a longer document; use weights=None"

    def __post_init__(self) -> None:
        if self.base.constant is not None or self.base.common is not None or self.base.only_known is not None:
            raise InputError("these scores are no sums over terms alone", remedy="use Text(model='multinomial')")

    @property
    def tokens(self) -> Tokens:  # type: ignore[override]
        return self.base.tokens

    @property
    def cells(self) -> Cells:  # type: ignore[override]
        return self.base.cells

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        """What the loops read: the weighted cells, the weights, and ones that add up to the length."""
        cells, weight = self.cells, self.weight if self.base.unit is None else self.weight * self.base.unit
        each = np.repeat(self.weight, np.diff(cells.ends))
        return cells.ends, cells.column, cells.value * each, weight, np.ones(len(weight))

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, mine = Documents.of(block), np.zeros(out.shape)
        sums = score(self.cells.words, documents, self.tokens, self._table, mine, self.base.manner)
        mine += sums[:, :1] * self.base.shared
        mine *= self._share(sums[:, 1:])
        if self.silent is not None:
            mine[sums[:, 1] == 0] += self.silent
        out += mine
        return int(documents.absent().sum())

    def _share(self, length: Floats) -> Floats:
        """What each word of a document of this length says, beside one that is alone."""
        return np.where(length > 0, np.maximum(length, 1e-300) ** -self.power, 1.0)

    def weights(self, place: Codes, times: Floats) -> Floats:
        return self.base.weights(place, times) * self.weight[place][:, None]

    def heard_as(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> Floats:
        place = self.cells.words.positions(letters, starts)
        return np.where(place >= 0, self.weight[np.maximum(place, 0)], 0.0)

    def said(self, place: Codes, times: Floats) -> Floats:
        length = weights_of(self.base.manner, times).sum(keepdims=True)
        return self.weights(place, times) * self._share(length)

    def shares(self, place: Codes) -> Floats | None:
        return self.base.shares(place)

    def scaled(self, weight: Floats) -> "HeardTerms":
        w = float(weight[0])
        return replace(self, weight=self.weight * w, silent=None if self.silent is None else self.silent * w)

    @property
    def story(self) -> Distribution:
        return self.base

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of the law that is heard: weights are about the class, not about the documents."""
        return self.base.sample(y, rng)

    def describe(
        self, j: int, columns: Sequence[Any] = (), levels: Sequence[str] = (), often: Any = None, most: int = 12
    ) -> tuple[list[str], Floats]:
        """Of each class the terms that say most for it, as the shares that the law behind gives them."""
        return self.base.describe_by(self.weight, most)

    def form(self) -> "Unwritten":
        from candide.distributions.form import Unwritten

        return Unwritten(self.not_linear)

    def exported(self) -> dict[str, Any]:
        silent = {} if self.silent is None else {"silent": self.silent}
        return {**self.base.exported(), "heard": self.weight, "power": self.power, **silent}

    @property
    def inner(self) -> Distribution:
        return self.base

    def arrays(self) -> dict[str, NDArray]:
        """The weights in the ascending order of their terms."""
        silent = {} if self.silent is None else {"silent": self.silent}
        return {"weight": self.weight[self.cells.in_order()[1]], **one(self.power, "power"), **silent}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        if not isinstance(base, TermScores):
            raise InputError("the scores of terms that are heard are missing")
        silent = take(arrays, "silent", (shape.n_classes,)) if arrays.get("silent") is not None else None
        return cls(base, take(arrays, "weight", (base.cells.n_terms,)), number(arrays, "power", _POWER), silent)
