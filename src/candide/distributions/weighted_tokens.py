"""Scores of documents whose tokens have weights, and count less in long documents.

With ``w`` the weight of a token, ``x`` its (transformed) occurrences and ``t`` its score, a class has the score

    sum(w * x * t) / sum(x) ** power

Tokens of a document are not independent: n of them are worth less than n times one. The power is how much less; 0 is
naive Bayes, 1/2 the growth of a random walk. The result is a score, not a log-probability.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.data.documents import Documents
from candide.distributions.arrays import (
    ArrayRule,
    ArraySource,
    DistributionShape,
    number_as_array,
    read_array,
    read_number,
    read_optional_array,
)
from candide.distributions.base import Distribution, Names, Rows
from candide.distributions.documents import DocumentDistribution, TokenCells
from candide.distributions.score_expression import Expression
from candide.distributions.token_scores import TokenScores
from candide.encoding.tokens import Tokens, score_documents
from candide.errors import InputError
from candide.kernels.text_reference import occurrence_weights

_POWER_RULE = ArrayRule("a number from 0 to 1", lambda a: (a >= 0) & (a <= 1))


@dataclass(frozen=True, eq=False)
class WeightedTokens(DocumentDistribution):
    base: TokenScores
    weight: Floats  # (token,)
    power: float
    unknown_scores: Floats | None = None  # (class,) the score of a document without known tokens; None: 0

    name: ClassVar[str] = "weighted_tokens"
    has_density = False
    nonlinear_reason: ClassVar[str] = "each word counts less in a longer document; use weights=None"

    def __post_init__(self) -> None:
        if self.base.constant is not None or self.base.common is not None or self.base.only_known is not None:
            raise InputError("these scores are not sums over tokens alone", remedy="use Text(model='multinomial')")

    @property
    def tokens(self) -> Tokens:  # type: ignore[override]
        return self.base.tokens

    @property
    def cells(self) -> TokenCells:  # type: ignore[override]
        return self.base.cells

    @property
    def n_classes(self) -> int:
        return self.base.n_classes

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        """What the kernels read: the weighted cells, the weights, and ones that add up to the length."""
        cells, weight = self.cells, self.weight if self.base.unit is None else self.weight * self.base.unit
        by_cell = np.repeat(self.weight, np.diff(cells.ends))
        return cells.ends, cells.column, cells.value * by_cell, weight, np.ones(len(weight))

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, scores = Documents.from_column(block), np.zeros(out.shape)
        sums = score_documents(self.cells.hash_table, documents, self.tokens, self._table, scores, self.base.count_mode)
        scores += sums[:, :1] * self.base.shared
        scores *= self._length_factor(sums[:, 1:])
        if self.unknown_scores is not None:
            scores[sums[:, 1] == 0] += self.unknown_scores
        out += scores
        return int(documents.absent_mask().sum())

    def _length_factor(self, length: Floats) -> Floats:
        return np.where(length > 0, np.maximum(length, 1e-300) ** -self.power, 1.0)

    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        return self.base.token_scores(token_indices, occurrences) * self.weight[token_indices][:, None]

    def token_weights(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> Floats:
        place = self.cells.hash_table.positions(letters, starts)
        return np.where(place >= 0, self.weight[np.maximum(place, 0)], 0.0)

    def document_contributions(self, token_indices: Codes, occurrences: Floats) -> Floats:
        length = occurrence_weights(self.base.count_mode, occurrences).sum(keepdims=True)
        return self.token_scores(token_indices, occurrences) * self._length_factor(length)

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        return self.base.token_probabilities(token_indices)

    def scale_tables(self, weight: Floats) -> "WeightedTokens":
        w = float(weight[0])
        unknown = None if self.unknown_scores is None else self.unknown_scores * w
        return replace(self, weight=self.weight * w, unknown_scores=unknown)

    @property
    def generative_distribution(self) -> Distribution:
        return self.base

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of the unweighted distribution: weights are about the class, not about the documents."""
        return self.base.sample(y, rng)

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The tokens that most raise the log-odds of each class, by their unweighted probabilities."""
        return self.base.describe_weighted(self.weight, max_rows)

    def score_expression(self, x: Expression) -> Expression:
        unknown = {} if self.unknown_scores is None else {"unknown_scores": self.unknown_scores}
        return self.base.score_expression(x, token_weights=self.weight, power=self.power, **unknown)

    @property
    def inner_distribution(self) -> Distribution:
        return self.base

    def arrays(self) -> dict[str, NDArray]:
        """The weights in the ascending order of their tokens."""
        unknown = {} if self.unknown_scores is None else {"unknown_scores": self.unknown_scores}
        return {"weight": self.weight[self.cells.sort_tokens()[1]], **number_as_array(self.power, "power"), **unknown}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        if not isinstance(base, TokenScores):
            raise InputError("the scores of weighted tokens are missing")
        weight, power = read_array(arrays, "weight", (base.cells.n_tokens,)), read_number(arrays, "power", _POWER_RULE)
        return cls(base, weight, power, read_optional_array(arrays, "unknown_scores", (shape.n_classes,)))
