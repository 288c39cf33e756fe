"""Distributions of documents: what each known token adds to each class. Unseen tokens add nothing.

Most tokens occur in few classes, so :class:`TokenCells` holds the (token, class) pairs that differ from the value that
all tokens of a class have in common.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Block, Codes, Floats
from candide.data.documents import Documents
from candide.distributions.arrays import (
    FINITE,
    POSITIVE,
    ArrayRule,
    ArraySource,
    DistributionShape,
    check_rising,
    read_array,
    read_list,
)
from candide.distributions.base import Distribution, PickledWithoutCaches, multiply_contributions
from candide.distributions.score_expression import Expression, joint
from candide.encoding.tokens import Tokens, token_rows
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.tally import sorted_keys
from candide.tally.token_counts import is_sorted_by_token

_CELLS = {"letters": np.uint8, "starts": np.int64, "ends": np.int64, "column": np.int32, "value": np.float64}


@dataclass(frozen=True, eq=False)
class TokenCells(PickledWithoutCaches):
    """Values of (token, class) cells, by token: token i has the cells ``ends[i]:ends[i+1]``."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    column: NDArray[np.int32]
    value: Floats

    @cached_property
    def hash_table(self) -> Any:
        """The tokens as a hash table, made when the first document is scored."""
        return kernel.Words(self.letters, self.starts)

    @property
    def n_tokens(self) -> int:
        return len(self.starts) - 1

    def key(self, i: int) -> bytes:
        return self.letters[self.starts[i] : self.starts[i + 1]].tobytes()

    def token_texts(self, token_indices: Codes) -> list[str]:
        whole, starts = self.letters.tobytes(), self.starts.tolist()
        spans = (slice(starts[i], starts[i + 1]) for i in np.asarray(token_indices).tolist())
        return [whole[span].decode("utf-8", "surrogatepass") for span in spans]

    def sort_tokens(self) -> tuple["TokenCells", Codes]:
        """The same cells with the tokens in ascending order, and that order."""
        order = sorted_keys.sort_order(self.letters, self.starts)
        at, _ = self.find_cells(order)
        ends = np.concatenate([[0], np.cumsum(np.diff(self.ends)[order])]).astype(np.int64)
        keys = sorted_keys.take_keys(self.letters, self.starts, order)
        return TokenCells(*keys, ends, self.column[at], self.value[at]), order

    def split_by_class(self, n_classes: int) -> tuple[list[Codes], list[Floats]]:
        """Class by class the tokens of its cells, and their values."""
        order = np.argsort(self.column, kind="stable")
        ends = np.searchsorted(self.column[order], np.arange(1, n_classes))
        token = np.repeat(np.arange(self.n_tokens), np.diff(self.ends))
        return np.split(token[order], ends), np.split(self.value[order], ends)

    def arrays(self) -> dict[str, NDArray]:
        return {name: np.ascontiguousarray(getattr(self, name), kind) for name, kind in _CELLS.items()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, rule: ArrayRule = FINITE) -> Self:
        """Offsets and places go to compiled loops, so all of them are checked before they are used."""
        cells = cls(**{name: read_list(arrays, name, dtype) for name, dtype in _CELLS.items()})
        if len(cells.starts) != len(cells.ends) or len(cells.column) != len(cells.value):
            raise InputError("the arrays of its tokens and their cells differ in length")
        check_rising(cells.starts, "starts", len(cells.letters))
        check_rising(cells.ends, "ends", len(cells.column))
        if len(cells.column) and not (cells.column.min() >= 0 and cells.column.max() < shape.n_classes):
            raise InputError(f"array 'column' names a class that is none of {shape.n_classes}")
        if not is_sorted_by_token(cells.ends, cells.column):
            raise InputError("array 'column' does not name the classes of a token in ascending order, each once")
        if not sorted_keys.is_ascending(cells.letters, cells.starts):
            raise InputError("its tokens are not in ascending order, each once")
        read_array(arrays, "value", cells.value.shape, rule)
        return cells

    def find_cells(self, token_indices: Codes) -> tuple[Codes, Codes]:
        """The cells of tokens, and for each the position of its token in ``token_indices``."""
        sizes = np.diff(self.ends)[token_indices]
        owner = np.repeat(np.arange(len(token_indices)), sizes)
        first = np.cumsum(sizes) - sizes
        return np.arange(len(owner)) + np.repeat(self.ends[token_indices] - first, sizes), owner


class DocumentDistribution(Distribution):
    """Shared by the distributions of documents: one feature, no infinities, the contributions are the score itself."""

    block_kind = "documents"
    tokens: Tokens
    cells: TokenCells

    def contributions(self, block: Block) -> Floats:
        return self.log_prob(block)[:, :, None]

    def _contributions(self, x: NDArray) -> Floats:
        raise InputError("documents are scored as documents, not as numbers")

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        raise InputError(
            "these weights are not probabilities of words and cannot sample; use Text(model='multinomial')"
        )

    def parameters(self) -> dict[str, NDArray]:
        return {}

    def add_weighted(self, block: Block, weight: Floats, out: Floats) -> int:
        score = np.zeros_like(out)
        n_absent = self.add_log_prob(block, score)
        out += multiply_contributions(score, weight)
        return n_absent

    def _export_tokens(self) -> dict[str, Any]:
        """The tokens by their letters, or hashed ones by the number of their bucket, and the cells of each."""
        keys, cells = map(self.cells.key, range(self.cells.n_tokens)), self.cells
        tokens = [format_bucket(key) if self.tokens.bits else key.decode("utf-8", "surrogatepass") for key in keys]
        return {"tokens": tokens, "cells": np.diff(cells.ends), "classes": cells.column, "value": cells.value}

    @abstractmethod
    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        """(token, class) what so many occurrences of these tokens add."""

    def document_contributions(self, token_indices: Codes, occurrences: Floats) -> Floats:
        """(token, class) what all known tokens of one document add to its score."""
        return self.token_scores(token_indices, occurrences)

    def token_weights(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> Floats:
        """(token,) how much tokens count: once, where they have no weights."""
        return np.ones(len(starts) - 1)

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        """(token, class) the probability that the next token is this one; None where scores are not probabilities."""
        return None

    def token_rows(self, documents: Documents) -> tuple[NDArray, NDArray, NDArray]:
        """Sparse rows of the known tokens of documents."""
        return token_rows(self.cells.hash_table, documents, self.tokens)


def format_bucket(key: bytes) -> str:
    """The key of a hashed token as text: the number of its bucket, and a sign where the hash has one.

    >>> format_bucket(bytes([7, 1, 0, 0])), format_bucket(bytes([7, 1, 0, 0, 1]))
    ('263', '263-')
    """
    return f"{int.from_bytes(key[:4], 'little')}{'-' if key[4:] == bytes([1]) else ''}"


@dataclass(frozen=True, eq=False)
class PolyaDocuments(DocumentDistribution):
    """The Dirichlet-multinomial of tokens: one that occurred is likelier to occur again."""

    tokens: Tokens
    cells: TokenCells  # alpha of the tokens that occur in a class
    alpha: Floats  # (class,) of a token that does not
    concentration: Floats  # (class,) sum of alpha over all tokens

    name: ClassVar[str] = "polya_documents"
    nonlinear_reason: ClassVar[str] = "under the model 'polya' repeats count less; use the model 'multinomial'"

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.alpha), 1

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
        distinct, which = np.unique(times, return_inverse=True)
        common = numerics.log_rising_factorial(self.alpha, distinct[:, None])  # (distinct, class)
        shape = (len(documents), max(1, len(distinct)))
        if len(distinct):
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
        cells, _ = self.cells.sort_tokens()
        return {**cells.arrays(), "alpha": self.alpha, "concentration": self.concentration}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        alpha, mass = (read_array(arrays, name, (shape.n_classes,), POSITIVE) for name in ("alpha", "concentration"))
        return cls(shape.tokens, TokenCells.from_arrays(arrays, shape, POSITIVE), alpha, mass)
