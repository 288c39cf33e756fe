"""Terms: for every class the weight of each term and of the documents that have it; the vocabulary is open.

Only what was met takes room: a cell is a term in a class. Adding unites vocabularies; removing documents forgets the
terms that nothing else holds. Hashed terms are kept the same way, with the number of the bucket as their name.

>>> spec, two = Spec("terms", (Tokens(),)), np.array([0, 1])
>>> spam = Terms.of(Documents.of(["free prize free", "see you"]), two, n_classes=2, spec=spec)
>>> more = Terms.of(Documents.of(["prize call", None]), two, n_classes=2, spec=spec)
>>> spam.words(), (spam + more).table("prize")
(['free', 'prize', 'see', 'you'], ([2.0, 0.0], [2.0, 0.0]))
>>> (spam + more - spam).words(), (spam + more).n.tolist()
(['prize', 'call'], [[2.0], [1.0]])
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.encode.base import Encoding, Move
from candide.encode.tokens import Counted, Tokens, count_on_threads
from candide.errors import InputError, NotWithinError
from candide.kernels import text as kernel
from candide.kernels.text_twin import keys_of
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.tally import keys
from candide.tally.base import (
    LARGEST,
    Spec,
    Tally,
    by_class,
    class_weights,
    difference,
    is_too_large,
    same_shape,
    spread,
)

STATE = ("n", "length", "letters", "starts", "classes", "word", "total", "documents")


@dataclass(frozen=True, eq=False)
class Terms(Tally):
    """Counts of terms, class by class."""

    encoding: ClassVar[Encoding] = Tokens()
    state: ClassVar[tuple[str, ...]] = STATE
    open_ended: ClassVar[bool] = True

    n: Floats  # (classes, 1) weight of the documents present
    length: Floats  # (classes, 1) weight of all their terms
    letters: NDArray[np.uint8]  # the terms, one after another, as UTF-8 or as numbers of buckets
    starts: NDArray[np.int64]  # (terms + 1)
    classes: NDArray[np.int64]  # (classes + 1) class c owns the cells classes[c]:classes[c+1]
    word: NDArray[np.int32]  # (cells) which term
    total: Floats  # (cells) weight of its occurrences
    documents: Floats  # (cells) weight of the documents that have it, > 0

    @classmethod
    def of(cls, block: Documents, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: Spec) -> Self:
        """Tally one batch of documents, on threads."""
        [tokens] = spec.encodings
        assert isinstance(tokens, Tokens)
        check_room(tokens, n_classes, block)
        parts = count_on_threads(block, y, weight, n_classes=n_classes, tokens=tokens)
        present = ~block.absent()
        if weight is not None:
            present &= weight > 0
        n = class_weights(y[present], None if weight is None else weight[present], n_classes)[:, None]
        whole = reduce(add, [cls._counted(part, n_classes) for part in parts])
        return cls(n, whole.length, whole.letters, whole.starts, *whole._cells())

    @classmethod
    def _counted(cls, c: Counted, n_classes: int) -> Self:
        zero = np.zeros((n_classes, 1))
        return cls(zero, c.length[:, None], c.letters, c.starts, c.classes, c.word, c.total, c.documents)

    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self:
        zero, nothing = np.zeros((n_classes, 1)), np.empty(0)
        classes = np.zeros(n_classes + 1, np.int64)
        letters, starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
        return cls(zero, zero, letters, starts, classes, nothing.astype(np.int32), nothing, nothing)

    def _cells(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        return self.classes, self.word, self.total, self.documents

    @property
    def n_classes(self) -> int:
        return len(self.n)

    @property
    def n_terms(self) -> int:
        return len(self.starts) - 1

    @property
    def class_of_cell(self) -> Codes:
        """(cells) the class of each cell."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.classes))

    def keys(self) -> list[bytes]:
        """The terms as bytes."""
        return keys_of(self.letters, self.starts)

    def key(self, i: int) -> bytes:
        """One of the terms as bytes."""
        return self.letters[self.starts[i] : self.starts[i + 1]].tobytes()

    def words(self) -> list[str]:
        """The terms as text."""
        return [key.decode("utf-8", "surrogatepass") for key in self.keys()]

    def table(self, word: str) -> tuple[list[float], list[float]]:
        """Weight and document weight of one term in every class."""
        place = kernel.Words(self.letters, self.starts).positions(*_joined(word.encode("utf-8", "surrogatepass")))
        mine = self.word == place[0]
        out = np.zeros((2, self.n_classes))
        out[:, self.class_of_cell[mine]] = self.total[mine], self.documents[mine]
        return out[0].tolist(), out[1].tolist()

    def too_large(self) -> tuple[int, int] | None:
        for cells in filter(is_too_large, (self.total, self.documents)):
            return int(self.class_of_cell[(~(np.abs(cells) <= LARGEST)).argmax()]), 0
        return super().too_large()

    def _bounded(self) -> Iterator[NDArray]:
        yield from (self.n, self.length)

    def __add__(self, other: Self) -> Self:
        same_shape(self.n, other.n)
        if other.n_terms > self.n_terms:  # the shorter vocabulary is looked up in the longer
            return other + self
        places, new = kernel.unite(self.letters, self.starts, other.letters, other.starts)
        letters, starts = self.letters, self.starts
        if len(new):
            more, at = keys.taken(other.letters, other.starts, new)
            letters, starts = np.concatenate([letters, more]), np.concatenate([starts, starts[-1] + at[1:]])
        cells = kernel.sum_cells(self._cells(), other._cells(), places, len(starts) - 1)
        return type(self)(self.n + other.n, self.length + other.length, letters, starts, *cells)

    def __sub__(self, part: Self) -> Self:
        """Remove documents counted earlier. A partial inverse: ``part`` must lie within ``self``."""
        same_shape(self.n, part.n)
        places = kernel.Words(self.letters, self.starts).positions(part.letters, part.starts)
        n = difference(self.n, part.n)
        if (n < -1e-9 * np.maximum(self.n, 1.0)).any():
            c = int(n.argmin())
            raise NotWithinError(f"more is removed than was counted, {part.n[c, 0]:g} of {self.n[c, 0]:g}", (c, 0))
        total, documents = self.total.copy(), self.documents.copy()
        at = self._cells_of(part, places)
        total[at] = difference(total[at], part.total)
        documents[at] = difference(documents[at], part.documents)
        length = difference(self.length, part.length)
        plain = self._check_left(n, length, total, documents)
        documents = np.maximum(documents, 0.0)
        total = np.where(plain, np.maximum(total, documents), total)
        return self._with_cells(np.maximum(n, 0.0), np.where(n > 0, length, 0.0), total, documents)

    def _check_left(self, n: Floats, length: Floats, total: Floats, documents: Floats) -> NDArray[np.bool_]:
        """Whether documents can have been left with these counts; (cells) where no term was counted with a minus."""
        c = self.class_of_cell
        plain = summed(c, self.total, self.n_classes) >= (1 - 1e-9) * self.length[:, 0]
        rest = np.where(documents > 1e-9 * np.maximum(self.documents, 1.0), documents, 0.0)
        slack = 1e-6 * np.maximum(np.abs(self.total), 1.0)
        outside = documents < -1e-9 * np.maximum(self.documents, 1.0)
        outside |= rest > n[c, 0] + 1e-6 * np.maximum(self.n[c, 0], 1.0)
        outside |= plain[c] & (total < rest - slack)  # a document that has a term has it once, or more often
        outside |= (rest == 0) & (np.abs(total) > slack)
        if outside.any():
            raise self._not_within(int(outside.argmax()))
        room = length[:, 0] - summed(c, np.abs(total), self.n_classes)
        slack = 1e-6 * np.maximum(self.length[:, 0], 1.0)
        if (outside := (room < -slack) | ((n[:, 0] <= 0) & (room > slack))).any():
            raise NotWithinError("other terms are removed than were counted", (int(outside.argmax()), 0))
        return plain[c]

    def _cells_of(self, part: Self, places: Codes) -> Codes:
        """Where the cells of ``part`` are among the cells of ``self``."""
        mine = self.class_of_cell * self.n_terms + self.word
        theirs = part.class_of_cell * self.n_terms + places[part.word]
        order = np.argsort(mine)
        found = np.searchsorted(mine, theirs, sorter=order)
        at = order[np.minimum(found, len(order) - 1)] if len(order) else np.zeros(len(theirs), np.intp)
        missing = places[part.word] < 0
        if len(theirs) and len(mine):
            missing |= mine[at] != theirs
        if missing.any() or (len(theirs) and not len(mine)):
            raise part._not_within(int(missing.argmax()))
        return at

    def _not_within(self, cell: int) -> NotWithinError:
        key = self.keys()[self.word[cell]]
        return NotWithinError(
            f"more or less of the term {key!r} is removed than was counted", (int(self.class_of_cell[cell]), 0)
        )

    def _with_cells(self, n: Floats, length: Floats, total: Floats, documents: Floats) -> Self:
        """The same cells with other weights; cells without documents, and terms without cells, are forgotten."""
        keep = documents > 0
        classes = np.concatenate([[0], np.cumsum(keep)])[self.classes].astype(np.int64)
        word, used = self.word[keep], np.zeros(self.n_terms, bool)
        used[word] = True
        letters, starts = self.letters, self.starts
        if not used.all():
            letters, starts = keys.taken(letters, starts, np.flatnonzero(used))
            word = (np.cumsum(used) - 1)[word].astype(np.int32)
        return type(self)(n, length, letters, starts, classes, word, total[keep], documents[keep])

    def kept(self, keep: NDArray[np.bool_]) -> Self:
        """Only some of the terms."""
        length = self.length - self.by_class(np.where(keep[self.word], 0.0, np.abs(self.total)))[:, None]
        return self._with_cells(self.n, length, self.total, np.where(keep[self.word], self.documents, 0.0))

    def by_class(self, values: Floats) -> Floats:
        """(class,) sums of the values of cells, the same in whatever order the cells of a class lie."""
        if len(values) and not np.array_equal(values, np.rint(values)):  # whole numbers add exactly
            values = values.copy()
            for start, stop in zip(self.classes[:-1].tolist(), self.classes[1:].tolist(), strict=True):
                values[start:stop].sort()
        return summed(self.class_of_cell, values, self.n_classes)

    def scale(self, factor: float | Floats) -> Self:
        """Let every document count ``factor`` times: forgetting."""
        of_class = by_class(factor, 2)
        of_cell = factor if np.ndim(factor) == 0 else np.asarray(factor)[self.class_of_cell]
        n, length = self.n * of_class, self.length * of_class
        return self._with_cells(n, length, self.total * of_cell, self.documents * of_cell)

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[Move] = ()) -> Self:
        """Move each class to its code in a larger label set."""
        sizes_now = spread(np.diff(self.classes), classes, n_classes)
        order = np.argsort(np.asarray(classes)[self.class_of_cell], kind="stable")
        cells = self.word[order], self.total[order], self.documents[order]
        n, length = spread(self.n, classes, n_classes), spread(self.length, classes, n_classes)
        ends = np.concatenate([[0], np.cumsum(sizes_now)]).astype(np.int64)
        return type(self)(n, length, self.letters, self.starts, ends, *cells)

    def some_classes(self, classes: Codes) -> Self:
        """The tally of the documents of some classes, in the given order; terms of none of them are forgotten."""
        sizes, first = np.diff(self.classes)[classes], self.classes[:-1][classes]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        cells = np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)
        rest = self.word[cells], self.total[cells], self.documents[cells]
        some = type(self)(self.n[classes], self.length[classes], self.letters, self.starts, ends, *rest)
        return some._with_cells(some.n, some.length, some.total, some.documents)

    def only(self, features: Codes) -> Self:
        """The tally itself: documents are one feature."""
        if list(features) != [0]:
            raise InputError(f"features {list(features)} of a column of documents, which is one", value=list(features))
        return self

    def pool(self) -> Self:
        """The tally of all documents as if they were of one class."""
        total, documents = (summed(self.word, v, self.n_terms) for v in (self.total, self.documents))
        one = np.array([0, self.n_terms], np.int64)
        n, length = self.n.sum(keepdims=True), self.length.sum(keepdims=True)
        word = np.arange(self.n_terms, dtype=np.int32)
        return type(self)(n, length, self.letters, self.starts, one, word, total, documents)

    def in_order(self) -> Self:
        """The same tally with its terms, and the cells of each class, in ascending order."""
        order = keys.order(self.letters, self.starts)
        letters, starts, word = self.letters, self.starts, self.word
        if (order[1:] < order[:-1]).any():
            letters, starts = keys.taken(letters, starts, order)
            place = np.empty(len(order), np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            word = place[word]
        by_term = _by_term(self.classes, word, len(order))
        if by_term is None:
            return type(self)(self.n, self.length, letters, starts, self.classes, word, self.total, self.documents)
        cells = word[by_term], self.total[by_term], self.documents[by_term]
        return type(self)(self.n, self.length, letters, starts, self.classes, *cells)

    def seen(self, j: int) -> dict[str, float]:
        """What a person sees of a pooled tally."""
        return {"term": self.n_terms}

    def arrays(self) -> dict[str, NDArray]:
        """The whole state in one order, whatever order the documents came in."""
        whole = self.in_order()
        return {name: getattr(whole, name) for name in STATE}

    @classmethod
    def later(cls, arrays: dict[str, NDArray], check: Callable[[dict[str, NDArray]], Any]) -> Self:
        """A tally whose arrays are checked when the first of them is used: those of a mapped file are read then."""
        self = object.__new__(cls)
        self.__dict__.update(n=arrays["n"], length=arrays["length"], _later=(arrays, check))
        return self

    if not TYPE_CHECKING:  # which would take any name for a field

        def __getattr__(self, name: str) -> Any:
            arrays, check = self.__dict__.get("_later", ((), None))
            if name not in arrays:
                raise AttributeError(f"a tally of terms has no {name!r}")
            check(arrays)
            self.__dict__.update(arrays)
            self.__dict__.pop("_later", None)
            return arrays[name]

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: Spec | None = None) -> Self:
        """Offsets and places go to compiled loops, so all of them are checked."""
        state = [np.asarray(arrays[name]) for name in STATE]
        _check_state(*state)
        tally = cls(*state)
        if not keys.ascending(tally.letters, tally.starts) or not rising(tally.classes, tally.word):
            raise InputError("the terms are not in ascending order, each once")
        return tally


_KINDS = ("f8", "f8", "u1", "i8", "i8", "i4", "f8", "f8")


def summed(place: NDArray, values: Floats, n: int) -> Floats:
    """Sums of values by their places among n."""
    return np.bincount(place, values, n).astype(np.float64)  # of no values numpy makes integers


def _joined(key: bytes) -> tuple[NDArray, NDArray]:
    return np.frombuffer(key, np.uint8), np.array([0, len(key)], np.int64)


def _by_term(classes: NDArray, word: NDArray, n_terms: int) -> NDArray | None:
    """The cells of each class in the order of their terms; None where they are so already."""
    if rising(classes, word):
        return None
    parts, place = [], np.full(n_terms, -1, np.int64)
    for start, stop in zip(classes[:-1].tolist(), classes[1:].tolist(), strict=True):
        mine = word[start:stop]
        if len(mine) * 8 < n_terms:
            parts.append(np.argsort(mine) + start)
            continue
        place[mine] = np.arange(start, stop)  # there are so many that each may be laid on its place
        parts.append(place[place >= 0])
        place[mine] = -1
    return np.concatenate(parts)


def rising(classes: NDArray, word: NDArray) -> bool:
    """Whether the terms of the cells of each class are in ascending order, each once."""
    falls = np.flatnonzero(word[1:] <= word[:-1]) + 1
    return bool(np.isin(falls, classes).all())


def check_room(tokens: Tokens, n_classes: int, block: Documents, memory: int | None = None) -> None:
    """Say what hashed terms would take before it is taken, where it is more than the machine has."""
    low, high = tokens.ngrams
    met = len(block) * block.width * (high - low + 1) // 2 + 1  # terms there can be: two characters each, or more
    need = min(tokens.most_bytes(n_classes), met * 32)
    memory = _memory() if memory is None else memory
    if tokens.bits and need > memory:
        raise InputError(
            f"2**{tokens.bits} buckets of {n_classes} classes may take {need:,} bytes here, and the machine has "
            f"{memory:,}",
            value=need,
            remedy="pass fewer bits, or count the documents in parts and add",
        )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def _check_state(
    n: Any, length: Any, letters: Any, starts: Any, classes: Any, word: Any, total: Any, docs: Any
) -> None:
    """Whether arrays from elsewhere are the state of a tally."""
    arrays = (n, length, letters, starts, classes, word, total, docs)
    good = all(a.dtype == np.dtype(kind) for a, kind in zip(arrays, _KINDS, strict=True))
    good = good and n.ndim == 2 and n.shape == length.shape == (len(classes) - 1, 1)
    good = good and all(a.ndim == 1 for a in arrays[2:]) and len(word) == len(total) == len(docs)
    for ends, size in ((starts, len(letters)), (classes, len(word))):
        good = good and len(ends) > 0 and ends[0] == 0 and ends[-1] == size and not (ends[1:] < ends[:-1]).any()
    good = good and (not len(word) or (word.min() >= 0 and word.max() < len(starts) - 1))
    good = good and all(not a.size or (np.isfinite(a.min()) and np.isfinite(a.max())) for a in (n, length, total, docs))
    if not good or any(a.size and a.min() < 0 for a in (n, length, docs)):
        raise InputError("these arrays are not the counts of terms")
