"""Forms: the score of a block written out as numbers, where it is linear or quadratic in something read from the row.

    score of a class = sum of base over the values present + weight . z + z' square z + what is the same in every class

``z`` are the inputs read from the row: the numbers themselves, their logs, whether they lie above a threshold, which
level they are, how often a term occurs. A value that is absent adds nothing, neither its weight nor its base. A row
that no class can have, such as one with a negative waiting time, has no score: it is left with the class prior.

>>> form = OfNumbers(weight=np.array([[0.0], [2.0]]), base=np.array([[0.0], [-3.0]]))
>>> form.names(["height"], ()), form.inputs(np.array([[1.5], [np.nan]])).tolist()
(['height'], [[1.5], [nan]])
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.rows.blocks import Codes, Csr, Floats
from candide.rows.labels import Labels

UNSEEN = "<unseen>"  # the level that stands for all that were never counted


@dataclass(frozen=True, eq=False)
class Form:
    """One block's part of the score of each class, and how its inputs are read from rows."""

    weight: Floats  # (class, input)
    base: Floats  # (class, unit) what a unit adds where its value is present: a column, or columns modelled together
    square: Floats | None = None  # (class, input), or (class, input, input) where columns are modelled together

    @abstractmethod
    def names(self, columns: Sequence[str], levels: Sequence[Labels]) -> list[str]:
        """A name for each input."""

    @abstractmethod
    def inputs(self, block: Any) -> Any:
        """(row, input) numbers, NaN where absent; sparse where most are zero."""

    def absent(self, block: Any) -> NDArray[np.bool_] | None:
        """(row, unit) where the value is absent; None where absent values need no care."""
        return None

    def impossible(self, block: Any) -> NDArray[np.bool_] | None:
        """(row,) where no class can have the values, whatever a linear score makes of them; None where all can be."""
        return None


@dataclass(frozen=True, eq=False)
class OfNumbers(Form):
    """Inputs that are the columns themselves, or one function of each."""

    function: str = ""  # "" the number itself | "log" | "above" a threshold
    threshold: float = 0.0
    zero_if_absent: bool = False  # words that did not occur
    law: Any = None  # the distribution, where it rules values out

    def names(self, columns: Sequence[str], levels: Sequence[Labels]) -> list[str]:
        if self.function == "log":
            return [f"log({name})" for name in columns]
        return [f"{name}>{self.threshold:g}" if self.function == "above" else name for name in columns]

    def inputs(self, block: Any) -> Any:
        if isinstance(block, Csr):
            from scipy.sparse import csr_array

            stored = slice(block.indptr[0], block.indptr[-1])
            data = self._of(block.data[stored].astype(np.float64))
            return csr_array((data, block.indices[stored], block.indptr - block.indptr[0]), shape=block.shape)
        z = self._of(np.asarray(block, np.float64))
        return np.nan_to_num(z, nan=0.0) if self.zero_if_absent else z

    def _of(self, x: Floats) -> Floats:
        if self.function == "log":
            return np.log(x, out=np.full(x.shape, np.nan), where=x > 0)
        if self.function == "above":
            return np.where(np.isnan(x), np.nan, (x > self.threshold).astype(np.float64))
        return x

    def absent(self, block: Any) -> NDArray[np.bool_] | None:
        if isinstance(block, Csr) or self.zero_if_absent or self.base.shape != self.weight.shape:
            return None  # of columns modelled together nothing can be said for one alone: NaN goes through
        return np.isnan(np.asarray(block, np.float64))

    def impossible(self, block: Any) -> NDArray[np.bool_] | None:
        return None if self.law is None else np.isneginf(self.law.log_prob(block)).all(axis=1)


@dataclass(frozen=True, eq=False)
class OfLevels(Form):
    """Inputs that say which level a value is: one for every level, and one for all levels never counted."""

    offsets: Any = ()  # (features + 1) of the levels counted

    def names(self, columns: Sequence[str], levels: Sequence[Labels]) -> list[str]:
        return [
            f"{name}={level}"
            for name, known in zip(columns, levels, strict=True)
            for level in [*known.values, UNSEEN]
        ]  # fmt: skip

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        codes = np.asarray(block).astype(np.intp)
        sizes = np.diff(self.offsets)
        place = self.offsets[:-1] + np.arange(len(sizes)) + np.minimum(codes, sizes)
        there = codes >= 0
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        shape = (len(codes), int(self.offsets[-1]) + len(sizes))
        return csr_array((np.ones(int(ends[-1])), place[there], ends), shape=shape)


def with_unseen(table: Floats, unseen: Floats, offsets: Codes) -> Floats:
    """(class, input) of a (level, class) table: after the levels of each feature what a level never counted adds."""
    at = np.asarray(offsets[1:], np.intp)
    return np.insert(table, at, unseen, axis=0).T


@dataclass(frozen=True, eq=False)
class OfTerms(Form):
    """Inputs that say how often each known term occurs in a document, as the model weighs occurrences."""

    law: Any = None  # the distribution of documents: its terms, and the rows of documents
    manner: int = 0  # what several occurrences in a document count

    def names(self, columns: Sequence[str], levels: Sequence[Labels]) -> list[str]:
        n_terms = self.weight.shape[1]
        if self.law.tokens.bits:
            return [f"{columns[0]}#{i}" for i in range(n_terms)]
        return self.law.cells.names(np.arange(n_terms))

    def inputs(self, block: Any) -> Any:
        from scipy.sparse import csr_array

        from candide.kernels.text_twin import weight_of

        times, place, ends = self.law.rows(block)
        counts, which = np.unique(times, return_inverse=True)
        weighed = np.array([weight_of(self.manner, n) for n in counts.tolist()], np.float64)
        return csr_array((weighed[which], place, ends), shape=(len(ends) - 1, self.weight.shape[1]))

    def absent(self, block: Any) -> NDArray[np.bool_] | None:
        return block.absent()[:, None]
