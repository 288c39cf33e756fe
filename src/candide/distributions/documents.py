"""Distributions of documents: what each known token adds to each class. Unseen tokens add nothing.

Most tokens occur in few classes, so :class:`TokenCells` holds the (token, class) pairs that differ from the value that
all tokens of a class have in common.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.data.documents import Documents
from candide.distributions.arrays import FINITE, ArrayRule, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, PickledWithoutCaches, multiply_contributions
from candide.encoding.tokens import Tokens, token_rows
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.tally import sorted_keys
from candide.tally.token_counts import is_sorted_by_token

_CELLS = {"letters": np.uint8, "starts": np.int64, "ends": np.int64, "column": np.int32, "value": np.float64}


@dataclass(frozen=True, eq=False)
class TokenCells(PickledWithoutCaches):
    """Values of (term, class) cells, by term: term i owns the cells ``ends[i]:ends[i+1]``."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    column: NDArray[np.int32]
    value: Floats

    @cached_property
    def hash_table(self) -> Any:
        """The terms as a hash table, made when the first document is scored."""
        return kernel.Words(self.letters, self.starts)

    @property
    def n_tokens(self) -> int:
        return len(self.starts) - 1

    def key(self, i: int) -> bytes:
        """One of the terms as bytes."""
        return self.letters[self.starts[i] : self.starts[i + 1]].tobytes()

    def token_texts(self, token_indices: Codes) -> list[str]:
        """Some of the terms as text."""
        whole, starts = self.letters.tobytes(), self.starts
        return [
            whole[starts[i] : starts[i + 1]].decode("utf-8", "surrogatepass")
            for i in np.asarray(token_indices).tolist()
        ]

    def sort_tokens(self) -> tuple["TokenCells", Codes]:
        """The same cells with the terms in ascending order, and the order they were brought in."""
        order = sorted_keys.sort_order(self.letters, self.starts)
        at, _ = self.find_cells(order)
        ends = np.concatenate([[0], np.cumsum(np.diff(self.ends)[order])]).astype(np.int64)
        return TokenCells(
            *sorted_keys.take_keys(self.letters, self.starts, order), ends, self.column[at], self.value[at]
        ), order

    def split_by_class(self, n_classes: int) -> tuple[list[Codes], list[Floats]]:
        """Class by class the terms of its cells, and their values."""
        order = np.argsort(self.column, kind="stable")
        ends = np.searchsorted(self.column[order], np.arange(1, n_classes))
        term = np.repeat(np.arange(self.n_tokens), np.diff(self.ends))
        return np.split(term[order], ends), np.split(self.value[order], ends)

    def arrays(self) -> dict[str, NDArray]:
        return {name: np.ascontiguousarray(getattr(self, name), kind) for name, kind in _CELLS.items()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, rule: ArrayRule = FINITE) -> Self:
        """Offsets and places go to compiled loops, so all of them are checked before they are used."""
        found = {name: arrays.get(name) for name in _CELLS}
        for name, array in found.items():
            if array is None or array.ndim != 1 or array.dtype != _CELLS[name]:
                raise InputError(f"array {name!r} is missing, or not a list of {np.dtype(_CELLS[name]).name}")
        cells = cls(**found)  # type: ignore[arg-type]
        if len(cells.starts) != len(cells.ends) or len(cells.column) != len(cells.value):
            raise InputError("the arrays of its terms and their cells are not of one length")
        for name, size in (("starts", len(cells.letters)), ("ends", len(cells.column))):
            ends = getattr(cells, name)
            if not len(ends) or ends[0] != 0 or ends[-1] != size or (ends[1:] < ends[:-1]).any():
                raise InputError(f"array {name!r} does not rise from 0 to {size}")
        if len(cells.column) and not (cells.column.min() >= 0 and cells.column.max() < shape.n_classes):
            raise InputError(f"array 'column' names a class that is none of {shape.n_classes}")
        if not is_sorted_by_token(cells.ends, cells.column):
            raise InputError("array 'column' does not name the classes of a term in ascending order, each once")
        if not sorted_keys.is_ascending(cells.letters, cells.starts):
            raise InputError("its terms are not in ascending order, each once")
        read_array(arrays, "value", cells.value.shape, rule)
        return cells

    def find_cells(self, token_indices: Codes) -> tuple[Codes, Codes]:
        """The cells of some terms, and for each the position in ``places`` it belongs to."""
        sizes = np.diff(self.ends)[token_indices]
        owner = np.repeat(np.arange(len(token_indices)), sizes)
        first = np.cumsum(sizes) - sizes
        return np.arange(len(owner)) + np.repeat(self.ends[token_indices] - first, sizes), owner


class DocumentDistribution(Distribution):
    """Shared by the distributions of documents: one feature, no infinities, the contributions are the score itself."""

    block_kind = "documents"
    tokens: Tokens
    cells: TokenCells

    @property
    def n_features(self) -> int:
        return 1

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
        """The terms by their letters, or hashed ones by the number of their bucket, and the cells of each."""
        keys, cells = map(self.cells.key, range(self.cells.n_tokens)), self.cells
        terms = [format_bucket(key) if self.tokens.bits else key.decode("utf-8", "surrogatepass") for key in keys]
        return {"tokens": terms, "cells": np.diff(cells.ends), "classes": cells.column, "value": cells.value}

    @abstractmethod
    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        """(term, class) what so many occurrences of these terms add."""

    def document_contributions(self, token_indices: Codes, occurrences: Floats) -> Floats:
        """(term, class) what the terms of one document add to its score: these are all of them that are known."""
        return self.token_scores(token_indices, occurrences)

    def token_weights(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> Floats:
        """(term,) how much some terms count: once, where they have no weights."""
        return np.ones(len(starts) - 1)

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        """(token, class) the probability that the next token is this one; None where scores are not probabilities."""
        return None

    def token_rows(self, documents: Documents) -> tuple[NDArray, NDArray, NDArray]:
        """Sparse rows of the known terms of documents."""
        return token_rows(self.cells.hash_table, documents, self.tokens)


def format_bucket(key: bytes) -> str:
    """The key of a hashed token as text: the number of its bucket, and a sign where the hash has one.

    >>> format_bucket(bytes([7, 1, 0, 0])), format_bucket(bytes([7, 1, 0, 0, 1]))
    ('263', '263-')
    """
    return f"{int.from_bytes(key[:4], 'little')}{'-' if key[4:] == bytes([1]) else ''}"
