"""Polya documents: the Dirichlet-multinomial of terms: one that occurred is likelier to occur again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.distributions.arrays import POSITIVE, Found, Shape, take
from candide.distributions.base import Distribution
from candide.distributions.documents import Cells, OfDocuments
from candide.encode.tokens import Tokens
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.documents import Documents

if TYPE_CHECKING:
    from candide.distributions.form import Unwritten


@dataclass(frozen=True, eq=False)
class PolyaDocuments(OfDocuments):
    tokens: Tokens
    cells: Cells  # alpha of the terms met in a class
    alpha: Floats  # (class,) of a term not met in it
    concentration: Floats  # (class,) sum of alpha over all terms

    name: ClassVar[str] = "polya_documents"
    not_linear: ClassVar[str] = "under the model 'polya' repeats count less; use the model 'multinomial'"

    @property
    def n_classes(self) -> int:
        return len(self.alpha)

    def weights(self, place: Codes, times: Floats) -> Floats:
        at, owner = self.cells.at(place)
        alpha = np.tile(self.alpha, (len(place), 1))
        alpha[owner, self.cells.column[at]] = self.cells.value[at]
        return numerics.log_rising(alpha, times[:, None])

    def shares(self, place: Codes) -> Floats:
        return np.exp(self.weights(place, np.ones(len(place)))) / self.concentration

    def add_log_prob(self, block: Block, out: Floats) -> int:
        from scipy.sparse import csr_array

        documents = Documents.of(block)
        times, place, ends = self.rows(documents)
        different, which = np.unique(times, return_inverse=True)
        common = numerics.log_rising(self.alpha, different[:, None])  # (different, class)
        shape = (len(documents), max(1, len(different)))
        if len(different):
            out += csr_array((np.ones(len(times)), which.astype(np.int32), ends), shape) @ common
            at, owner = self.cells.at(place)
            column, row = self.cells.column[at], np.repeat(np.arange(len(documents)), np.diff(ends))[owner]
            gain = numerics.log_rising(self.cells.value[at], times[owner]) - common[which[owner], column]
            out += np.bincount(row * self.n_classes + column, gain, out.size).reshape(out.shape)
        length = np.add.reduceat(np.append(times, 0.0), ends[:-1]) * (np.diff(ends) > 0)
        out -= numerics.log_rising(self.concentration, length[:, None])
        return int(documents.absent().sum())

    def form(self) -> "Unwritten":
        from candide.distributions.form import Unwritten

        return Unwritten(self.not_linear)

    def exported(self) -> dict[str, Any]:
        held = {"alpha": self.alpha, "concentration": self.concentration}
        return {"rule": "polya", **self._terms_exported(), **held}

    def arrays(self) -> dict[str, NDArray]:
        """The terms in ascending order."""
        cells, _ = self.cells.in_order()
        return {**cells.arrays(), "alpha": self.alpha, "concentration": self.concentration}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        alpha, mass = (take(arrays, name, (shape.n_classes,), POSITIVE) for name in ("alpha", "concentration"))
        return cls(shape.tokens, Cells.from_arrays(arrays, shape, POSITIVE), alpha, mass)
