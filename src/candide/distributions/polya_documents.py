"""Polya documents: the Dirichlet-multinomial of terms: one that occurred is likelier to occur again."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Block, Codes, Floats
from candide.data.documents import Documents
from candide.distributions.arrays import POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution
from candide.distributions.documents import DocumentDistribution, TokenCells
from candide.distributions.score_expression import Expression, joint
from candide.encoding.tokens import Tokens


@dataclass(frozen=True, eq=False)
class PolyaDocuments(DocumentDistribution):
    tokens: Tokens
    cells: TokenCells  # alpha of the tokens that occur in a class
    alpha: Floats  # (class,) of a token that does not
    concentration: Floats  # (class,) sum of alpha over all terms

    name: ClassVar[str] = "polya_documents"
    nonlinear_reason: ClassVar[str] = "under the model 'polya' repeats count less; use the model 'multinomial'"

    @property
    def n_classes(self) -> int:
        return len(self.alpha)

    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        at, owner = self.cells.find_cells(token_indices)
        alpha = np.tile(self.alpha, (len(token_indices), 1))
        alpha[owner, self.cells.column[at]] = self.cells.value[at]
        return numerics.log_rising_factorial(alpha, occurrences[:, None])

    def token_probabilities(self, token_indices: Codes) -> Floats:
        return np.exp(self.token_scores(token_indices, np.ones(len(token_indices)))) / self.concentration

    def add_log_prob(self, block: Block, out: Floats) -> int:
        from scipy.sparse import csr_array

        documents = Documents.from_column(block)
        times, place, ends = self.token_rows(documents)
        different, which = np.unique(times, return_inverse=True)
        common = numerics.log_rising_factorial(self.alpha, different[:, None])  # (different, class)
        shape = (len(documents), max(1, len(different)))
        if len(different):
            out += csr_array((np.ones(len(times)), which.astype(np.int32), ends), shape) @ common
            at, owner = self.cells.find_cells(place)
            column, row = self.cells.column[at], np.repeat(np.arange(len(documents)), np.diff(ends))[owner]
            gain = numerics.log_rising_factorial(self.cells.value[at], times[owner]) - common[which[owner], column]
            out += np.bincount(row * self.n_classes + column, gain, out.size).reshape(out.shape)
        length = np.add.reduceat(np.append(times, 0.0), ends[:-1]) * (np.diff(ends) > 0)
        out -= numerics.log_rising_factorial(self.concentration, length[:, None])
        return int(documents.absent_mask().sum())

    def score_expression(self, x: Expression) -> Expression:
        return joint("polya", **self._export_tokens(), alpha=self.alpha, concentration=self.concentration)

    def arrays(self) -> dict[str, NDArray]:
        """The terms in ascending order."""
        cells, _ = self.cells.sort_tokens()
        return {**cells.arrays(), "alpha": self.alpha, "concentration": self.concentration}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        alpha, mass = (read_array(arrays, name, (shape.n_classes,), POSITIVE) for name in ("alpha", "concentration"))
        return cls(shape.tokens, TokenCells.from_arrays(arrays, shape, POSITIVE), alpha, mass)
