"""Token counts: for every class the weight of each token and of the documents that have it; the vocabulary is open.

A cell is a token in a class; only cells that occur take memory. Adding unites vocabularies; removing documents forgets
the tokens that nothing else holds. Hashed tokens are kept the same way, with the number of the bucket as their key.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.encoding.base import CodeMapping, Encoding
from candide.encoding.tokens import CountedTokens, Tokens, count_tokens_on_threads
from candide.errors import InputError, NotCountedError
from candide.kernels import text as kernel
from candide.kernels.text import join_keys, split_keys
from candide.tally import base, sorted_keys
from candide.tally.base import Tally, TallySpec

_DTYPES = {
    "n": "f8",
    "length": "f8",
    "letters": "u1",
    "starts": "i8",
    "classes": "i8",
    "word": "i4",
    "total": "f8",
    "documents": "f8",
}


@dataclass(frozen=True, eq=False)
class TokenCounts(Tally):
    encoding: ClassVar[Encoding] = Tokens()
    state: ClassVar[tuple[str, ...]] = tuple(_DTYPES)
    has_open_vocabulary: ClassVar[bool] = True

    n: Floats  # (classes, 1) weight of the documents present
    length: Floats  # (classes, 1) weight of all their tokens
    letters: NDArray[np.uint8]  # the tokens, one after another, as UTF-8 or as numbers of buckets
    starts: NDArray[np.int64]  # (tokens + 1)
    classes: NDArray[np.int64]  # (classes + 1) class c has the cells classes[c]:classes[c+1]
    word: NDArray[np.int32]  # (cells) which token
    total: Floats  # (cells) weight of its occurrences
    documents: Floats  # (cells) weight of the documents that have it, > 0

    @classmethod
    def from_rows(
        cls, block: Documents, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec
    ) -> Self:
        [tokens] = spec.encodings
        assert isinstance(tokens, Tokens)
        check_memory(tokens, n_classes, block)
        parts = count_tokens_on_threads(block, y, weight, n_classes=n_classes, tokens=tokens)
        is_present = ~block.absent_mask()
        if weight is not None:
            is_present &= weight > 0
        n = base.sum_class_weights(y[is_present], None if weight is None else weight[is_present], n_classes)[:, None]
        whole = reduce(add, [cls._from_counted(part, n_classes) for part in parts])
        return cls(n, whole.length, whole.letters, whole.starts, *whole._cell_arrays())

    @classmethod
    def _from_counted(cls, c: CountedTokens, n_classes: int) -> Self:
        zero = np.zeros((n_classes, 1))
        return cls(zero, c.length[:, None], c.letters, c.starts, c.classes, c.word, c.total, c.documents)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        zero, nothing = np.zeros((n_classes, 1)), np.empty(0)
        classes = np.zeros(n_classes + 1, np.int64)
        letters, starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
        return cls(zero, zero, letters, starts, classes, nothing.astype(np.int32), nothing, nothing)

    def _cell_arrays(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        return self.classes, self.word, self.total, self.documents

    @property
    def n_classes(self) -> int:
        return len(self.n)

    @property
    def n_tokens(self) -> int:
        return len(self.starts) - 1

    @property
    def class_of_cell(self) -> Codes:
        """(cells) the class of each cell."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.classes))

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)

    def key(self, i: int) -> bytes:
        return self.letters[self.starts[i] : self.starts[i + 1]].tobytes()

    def token_texts(self) -> list[str]:
        return [key.decode("utf-8", "surrogatepass") for key in self.keys()]

    def class_counts(self, token: str) -> tuple[list[float], list[float]]:
        """Weight and document weight of one token in every class."""
        key = join_keys([token.encode("utf-8", "surrogatepass")])
        cells = self.word == kernel.Words(self.letters, self.starts).positions(*key)[0]
        out = np.zeros((2, self.n_classes))
        out[:, self.class_of_cell[cells]] = self.total[cells], self.documents[cells]
        return out[0].tolist(), out[1].tolist()

    def find_too_large(self) -> tuple[int, int] | None:
        for cells in filter(base.is_too_large, (self.total, self.documents)):
            return int(self.class_of_cell[(~(np.abs(cells) <= base.MAX_SUM)).argmax()]), 0
        return super().find_too_large()

    def _bounded_arrays(self) -> Iterator[NDArray]:
        yield from (self.n, self.length)

    def __add__(self, other: Self) -> Self:
        base.check_same_shape(self.n, other.n)
        if other.n_tokens > self.n_tokens:  # the shorter vocabulary is looked up in the longer
            return other + self
        places, new = kernel.unite(self.letters, self.starts, other.letters, other.starts)
        letters, starts = self.letters, self.starts
        if len(new):
            added, at = sorted_keys.take_keys(other.letters, other.starts, new)
            letters, starts = np.concatenate([letters, added]), np.concatenate([starts, starts[-1] + at[1:]])
        cells = kernel.sum_cells(self._cell_arrays(), other._cell_arrays(), places, len(starts) - 1)
        return type(self)(self.n + other.n, self.length + other.length, letters, starts, *cells)

    def __sub__(self, part: Self) -> Self:
        n = base.subtract_weights(self.n, part.n)
        places = kernel.Words(self.letters, self.starts).positions(part.letters, part.starts)
        total, documents = self.total.copy(), self.documents.copy()
        at = self._find_cells(part, places)
        total[at] = base.subtract_sums(total[at], part.total)
        documents[at] = base.subtract_sums(documents[at], part.documents)
        length = base.subtract_sums(self.length, part.length)
        is_plain = self._check_remaining(n, length, total, documents)
        documents = np.maximum(documents, 0.0)
        total = np.where(is_plain, np.maximum(total, documents), total)
        return self._with_cells(n, np.where(n > 0, length, 0.0), total, documents)

    def _check_remaining(self, n: Floats, length: Floats, total: Floats, documents: Floats) -> NDArray[np.bool_]:
        """Check that documents can have these counts; return (cells) where no token was counted with a minus."""
        c = self.class_of_cell
        is_plain = sum_by_index(c, self.total, self.n_classes) >= (1 - 1e-9) * self.length[:, 0]
        rest = np.where(documents > 1e-9 * np.maximum(self.documents, 1.0), documents, 0.0)
        slack = 1e-6 * np.maximum(np.abs(self.total), 1.0)
        outside = documents < -1e-9 * np.maximum(self.documents, 1.0)
        outside |= rest > n[c, 0] + 1e-6 * np.maximum(self.n[c, 0], 1.0)
        outside |= is_plain[c] & (total < rest - slack)  # a document that has a token has it at least once
        outside |= (rest == 0) & (np.abs(total) > slack)
        if outside.any():
            raise self._not_counted_error(int(outside.argmax()))
        rest = length[:, 0] - sum_by_index(c, np.abs(total), self.n_classes)
        slack = 1e-6 * np.maximum(self.length[:, 0], 1.0)
        if (outside := (rest < -slack) | ((n[:, 0] <= 0) & (rest > slack))).any():
            raise NotCountedError("other tokens are removed than were counted", (int(outside.argmax()), 0))
        return is_plain[c]

    def _find_cells(self, part: Self, places: Codes) -> Codes:
        """Where the cells of ``part`` are among the cells of ``self``."""
        codes = self.class_of_cell * self.n_tokens + self.word
        part_codes = part.class_of_cell * self.n_tokens + places[part.word]
        if not len(part_codes):
            return np.zeros(0, np.intp)
        if not len(codes):
            raise part._not_counted_error(0)
        order = np.argsort(codes)
        at = order[np.minimum(np.searchsorted(codes, part_codes, sorter=order), len(order) - 1)]
        is_missing = (places[part.word] < 0) | (codes[at] != part_codes)
        if is_missing.any():
            raise part._not_counted_error(int(is_missing.argmax()))
        return at

    def _not_counted_error(self, cell: int) -> NotCountedError:
        what = f"more or less of the token {self.key(self.word[cell])!r} is removed than was counted"
        return NotCountedError(what, (int(self.class_of_cell[cell]), 0))

    def _with_cells(self, n: Floats, length: Floats, total: Floats, documents: Floats) -> Self:
        """The same cells with other weights; cells without documents and tokens without cells are dropped."""
        keep = documents > 0
        classes = np.concatenate([[0], np.cumsum(keep)])[self.classes].astype(np.int64)
        word, used = self.word[keep], np.zeros(self.n_tokens, bool)
        used[word] = True
        letters, starts = self.letters, self.starts
        if not used.all():
            letters, starts = sorted_keys.take_keys(letters, starts, np.flatnonzero(used))
            word = (np.cumsum(used) - 1)[word].astype(np.int32)
        return type(self)(n, length, letters, starts, classes, word, total[keep], documents[keep])

    def select_tokens(self, keep: NDArray[np.bool_]) -> Self:
        length = self.length - self.sum_by_class(np.where(keep[self.word], 0.0, np.abs(self.total)))[:, None]
        return self._with_cells(self.n, length, self.total, np.where(keep[self.word], self.documents, 0.0))

    def sum_by_class(self, values: Floats) -> Floats:
        """(class,) sums of the values of cells, the same in whatever order the cells of a class lie."""
        if len(values) and not np.array_equal(values, np.rint(values)):  # whole numbers add exactly
            values = values.copy()
            for start, stop in pairwise(self.classes.tolist()):
                values[start:stop].sort()
        return sum_by_index(self.class_of_cell, values, self.n_classes)

    def scale(self, factor: float | Floats) -> Self:
        of_class = base.broadcast_by_class(factor, 2)
        of_cell = factor if np.ndim(factor) == 0 else np.asarray(factor)[self.class_of_cell]
        n, length = self.n * of_class, self.length * of_class
        return self._with_cells(n, length, self.total * of_cell, self.documents * of_cell)

    def _take_cells(self, n: Floats, length: Floats, sizes: Codes, cells: Codes) -> Self:
        """The cells in another order, ``sizes`` of them in each class."""
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        arrays = self.word[cells], self.total[cells], self.documents[cells]
        return type(self)(n, length, self.letters, self.starts, ends, *arrays)

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[CodeMapping] = ()) -> Self:
        order = np.argsort(np.asarray(classes)[self.class_of_cell], kind="stable")
        arrays = (self.n, self.length, np.diff(self.classes))
        n, length, sizes = (base.move_classes(a, classes, n_classes) for a in arrays)
        return self._take_cells(n, length, sizes, order)

    def select_classes(self, classes: Codes) -> Self:
        """The tally of the documents of these classes, in the given order; tokens of none of them are dropped."""
        sizes, first = np.diff(self.classes)[classes], self.classes[:-1][classes]
        cells = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        tally = self._take_cells(self.n[classes], self.length[classes], sizes, cells)
        return tally._with_cells(tally.n, tally.length, tally.total, tally.documents)

    def select_features(self, features: Codes) -> Self:
        """The tally itself: documents are one feature."""
        if list(features) != [0]:
            raise InputError(f"features {list(features)} of a column of documents, which is one", value=list(features))
        return self

    def pool(self) -> Self:
        total, documents = (sum_by_index(self.word, v, self.n_tokens) for v in (self.total, self.documents))
        classes, word = np.array([0, self.n_tokens], np.int64), np.arange(self.n_tokens, dtype=np.int32)
        n, length = self.n.sum(keepdims=True), self.length.sum(keepdims=True)
        return type(self)(n, length, self.letters, self.starts, classes, word, total, documents)

    def sort_tokens(self) -> Self:
        """The same tally with its tokens, and the cells of each class, in ascending order."""
        order = sorted_keys.sort_order(self.letters, self.starts)
        letters, starts, word = self.letters, self.starts, self.word
        if (order[1:] < order[:-1]).any():
            letters, starts = sorted_keys.take_keys(letters, starts, order)
            place = np.empty(len(order), np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            word = place[word]
        cells = word, self.total, self.documents
        if not is_sorted_by_token(self.classes, word):
            by_token = np.argsort(self.class_of_cell * len(order) + word)
            cells = word[by_token], self.total[by_token], self.documents[by_token]
        return type(self)(self.n, self.length, letters, starts, self.classes, *cells)

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"token": self.n_tokens}

    def arrays(self) -> dict[str, NDArray]:
        """The whole state, in an order that does not depend on that of the documents."""
        whole = self.sort_tokens()
        return {name: getattr(whole, name) for name in self.state}

    @classmethod
    def from_lazy_arrays(cls, arrays: dict[str, NDArray], check: Callable[[dict[str, NDArray]], Any]) -> Self:
        """A tally whose arrays are checked when the first of them is used: those of a mapped file are read then."""
        self = object.__new__(cls)
        self.__dict__.update(n=arrays["n"], length=arrays["length"], _later=(arrays, check))
        return self

    if not TYPE_CHECKING:  # which would take any name for a field

        def __getattr__(self, name: str) -> Any:
            arrays, check = self.__dict__.get("_later", ((), None))
            if name not in arrays:
                raise AttributeError(f"token counts have no {name!r}")
            check(arrays)
            self.__dict__.update(arrays)
            self.__dict__.pop("_later", None)
            return arrays[name]

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec | None = None) -> Self:
        """Offsets and places go to compiled loops, so all of them are checked."""
        tally = cls(*(np.asarray(arrays[name]) for name in cls.state))
        _check_state(tally)
        is_sorted = sorted_keys.is_ascending(tally.letters, tally.starts)
        if not is_sorted or not is_sorted_by_token(tally.classes, tally.word):
            raise InputError("the tokens are not in ascending order, each once")
        return tally


def sum_by_index(index: NDArray, values: Floats, n: int) -> Floats:
    return np.bincount(index, values, n).astype(np.float64)  # of no values numpy makes integers


def is_sorted_by_token(classes: NDArray, word: NDArray) -> bool:
    """Whether the tokens of the cells of each class are in ascending order, each once."""
    falls = np.flatnonzero(word[1:] <= word[:-1]) + 1
    return bool(np.isin(falls, classes).all())


def check_memory(tokens: Tokens, n_classes: int, block: Documents, memory: int | None = None) -> None:
    """Refuse hashed tokens that may need more memory than the machine has."""
    low, high = tokens.ngrams
    most = len(block) * block.width * (high - low + 1) // 2 + 1  # tokens there can be: two characters each, or more
    need = min(tokens.max_bytes(n_classes), most * 32)
    if memory is None:
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            memory = 1 << 62
    if tokens.bits and need > memory:
        buckets = f"2**{tokens.bits} buckets of {n_classes} classes"
        what = f"{buckets} may take {need:,} bytes, and the machine has {memory:,}"
        raise InputError(what, value=need, remedy="pass fewer bits, or count the documents in parts and add")


def _check_state(t: TokenCounts) -> None:
    """Check that arrays from elsewhere are the state of a tally."""
    is_valid = all(getattr(t, name).dtype == np.dtype(dtype) for name, dtype in _DTYPES.items())
    is_valid = is_valid and t.n.ndim == 2 and t.n.shape == t.length.shape == (len(t.classes) - 1, 1)
    lists = (t.letters, t.starts, t.classes, t.word, t.total, t.documents)
    is_valid = is_valid and all(a.ndim == 1 for a in lists) and len(t.word) == len(t.total) == len(t.documents)
    for ends, size in ((t.starts, len(t.letters)), (t.classes, len(t.word))):
        is_valid = is_valid and len(ends) > 0 and ends[0] == 0 and ends[-1] == size
        is_valid = is_valid and not (ends[1:] < ends[:-1]).any()
    is_valid = is_valid and (not len(t.word) or (t.word.min() >= 0 and t.word.max() < t.n_tokens))
    numbers = [a for a in (t.n, t.length, t.total, t.documents) if a.size] if is_valid else []
    is_valid = is_valid and all(np.isfinite(a.min()) and np.isfinite(a.max()) for a in numbers)
    if not is_valid or any(a.size and a.min() < 0 for a in (t.n, t.length, t.documents)):
        raise InputError("these arrays are not token counts")
