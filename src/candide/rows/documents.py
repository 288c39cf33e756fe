"""Text: how a document becomes terms, and documents as a block of rows.

By default a term is what scikit-learn's CountVectorizer makes of a document: lower-cased, every run of two or more
word characters. Documents are read where they lie, in Arrow's buffers or in Python's strings, by compiled loops; an
own pattern, and documents given as lists of words or word numbers, take a slower way through Python.

>>> terms_of("Call 0800-FREE: it's free!", Tokens(ngrams=(1, 2)))
['call', '0800', 'free', 'it', 'free', 'call 0800', '0800 free', 'free it', 'it free']
>>> documents = Documents.of(["Free prize", None, ""])
>>> count(documents, np.array([0, 0, 1]), None, n_classes=2, tokens=Tokens()).keys()
[b'free', b'prize']
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, InputTypeError, unknown
from candide.kernels import text as kernel
from candide.kernels import threads
from candide.kernels.text_twin import BINARY, PLAIN, SUBLINEAR, keys_of
from candide.kernels.text_twin import Terms as Twin
from candide.rows.labels import is_absent, is_arrow

MANNERS = {"plain": PLAIN, "binary": BINARY, "sublinear": SUBLINEAR}
_WORD = re.compile(r"(?u)\b\w\w+\b")
_SPACES = re.compile(r"\s\s+")
_LONGEST = 1 << 62
_MOST_BITS = 28


@dataclass(frozen=True)
class Tokens:
    """How a document is divided into terms, and how terms are counted: encoding, so a change needs the data again."""

    analyzer: str = "word"  # "word" | "char"
    lowercase: bool = True
    ngrams: tuple[int, int] = (1, 1)  # shortest and longest run of words or characters that is a term
    stop_words: tuple[str, ...] = ()  # words left out, as they stand after lower-casing
    max_token_length: int | None = None  # longer words are left out
    pattern: str | None = None  # an own regular expression for words; slower
    errors: str = "strict"  # of bytes that are no UTF-8: "strict" | "replace" | "ignore"
    bits: int = 0  # terms are hashed into 2**bits buckets; 0: the vocabulary is open
    signed: bool = False  # a hashed term is counted with the sign of its hash
    sublinear: bool = False  # n occurrences in a document count 1 + log n

    def __post_init__(self) -> None:
        if self.analyzer not in ("word", "char"):
            raise unknown("analyzer", self.analyzer, ("word", "char"))
        if self.errors not in ("strict", "replace", "ignore"):
            raise unknown("rule for invalid UTF-8 (errors)", self.errors, ("strict", "replace", "ignore"))
        if isinstance(self.stop_words, str):
            raise InputTypeError(f"stop_words: pass the words themselves, not the name {self.stop_words!r} of a list")
        object.__setattr__(self, "stop_words", tuple(sorted(set(map(str, self.stop_words or ())))))
        try:
            low, high = (int(n) for n in self.ngrams)
        except (TypeError, ValueError):
            raise InputTypeError(f"ngrams: pass a pair such as (1, 2), not {self.ngrams!r}") from None
        if not 1 <= low <= high <= 1000:
            raise InputError(f"ngrams: {self.ngrams!r}; pass 1 <= shortest <= longest <= 1000")
        object.__setattr__(self, "ngrams", (low, high))
        if not 0 <= self.bits <= _MOST_BITS:
            raise InputError(
                f"bits: {self.bits}; terms can be hashed into 2**1 to 2**{_MOST_BITS} buckets, or 0 for none"
            )
        if self.signed and not self.bits:
            raise InputError("signed counts need hashed terms; pass bits=20, say, or signed=False")
        if self.max_token_length is not None and self.max_token_length < 1:
            raise InputError(f"max_token_length: {self.max_token_length}; pass 1 or more, or None")
        if self.pattern is not None:
            self._check_pattern()

    def _check_pattern(self) -> None:
        if self.analyzer == "char":
            raise InputError("pattern divides a document into words; it has no meaning with analyzer='char'")
        try:
            groups = re.compile(str(self.pattern)).groups
        except re.error as error:
            raise InputError(f"pattern {self.pattern!r} is no regular expression: {error}") from None
        if groups > 1:
            raise InputError(f"pattern {self.pattern!r} has {groups} groups; a word is one group, or the whole match")

    @property
    def manner(self) -> int:
        return SUBLINEAR if self.sublinear else PLAIN

    def most_bytes(self, n_classes: int) -> int:
        """What the counts of hashed terms take at most, when every bucket is met in every class."""
        return (1 << self.bits) * (12 + 20 * n_classes) if self.bits else 0


def tokens_of(settings: Any) -> Tokens:
    """The part of some settings that says how documents become terms."""
    return Tokens(**{field.name: getattr(settings, field.name) for field in fields(Tokens)})


def shown(key: bytes, tokens: Tokens) -> str:
    """A key as it is shown: a term as text, a hashed one as the number of its bucket."""
    return f"bucket {int.from_bytes(key[:4], 'little')}" if tokens.bits else key.decode("utf-8", "surrogatepass")


def terms_of(text: str | Sequence[Any], tokens: Tokens) -> list[str]:
    """The terms of one document, in Python: the definition that the compiled loops keep to.

    A document given as a sequence of words, or of word numbers, is taken as divided already.
    """
    if not isinstance(text, str):
        units = [str(word) for word in text]
    else:
        text = text.lower() if tokens.lowercase else text
        if tokens.analyzer == "char":
            return _grams(_SPACES.sub(" ", text), tokens.ngrams, "")
        units = (_WORD if tokens.pattern is None else re.compile(tokens.pattern)).findall(text)
    stop, longest = set(tokens.stop_words), tokens.max_token_length or _LONGEST
    return _grams([word for word in units if word not in stop and len(word) <= longest], tokens.ngrams, " ")


def _grams(units: Sequence[str], ngrams: tuple[int, int], gap: str) -> list[str]:
    low, high = ngrams
    lengths = range(low, min(high, len(units)) + 1)
    return [gap.join(units[i : i + n]) for n in lengths for i in range(len(units) - n + 1)]


@dataclass(frozen=True, eq=False)
class Documents:
    """Rows of one column of documents: Python objects, or Arrow's bytes and where each document starts in them."""

    objects: list[Any] | None
    letters: NDArray[np.uint8] | None = None
    starts: NDArray | None = None
    present: NDArray[np.bool_] | None = None
    first: int = 0  # the number of the first row, for messages

    @classmethod
    def of(cls, column: Any) -> "Documents":
        """Read a list, an array, a series or an Arrow array of documents; None and NaN are absent."""
        if isinstance(column, cls):
            return column
        if isinstance(column, str | bytes | Mapping) or not (
            hasattr(column, "__len__") or isinstance(column, Iterable)
        ):
            raise InputTypeError(f"a single {type(column).__name__} where documents are expected; pass a list of them")
        if hasattr(column, "to_arrow"):
            column = column.to_arrow()
        if is_arrow(column):
            return _of_arrow(column)
        if hasattr(column, "to_numpy"):
            column = column.to_numpy()
        if isinstance(column, np.ndarray):
            if column.ndim == 2 and column.shape[1] == 1:
                column = column[:, 0]
            if column.ndim != 1:
                raise InputError(f"documents: expected one a row, got an array of {column.ndim} dimensions")
        return cls(column.tolist() if isinstance(column, np.ndarray) else list(column))

    def __len__(self) -> int:
        return len(self.objects) if self.objects is not None else len(self.starts) - 1  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def width(self) -> int:
        """Bytes of a document, about: what the work for a row grows with."""
        if self.starts is not None:
            return int(self.starts[-1] - self.starts[0]) // max(1, len(self))
        some = (self.objects or [])[:: max(1, len(self) // 256)]
        return sum(len(text) for text in some if hasattr(text, "__len__")) // max(1, len(some))

    def __getitem__(self, rows: slice) -> "Documents":
        start, stop, _ = rows.indices(len(self))
        first = self.first + start
        if self.objects is not None:
            return Documents(self.objects[start:stop], first=first)
        present = None if self.present is None else self.present[start:stop]
        return Documents(None, self.letters, self.starts[start : stop + 1], present, first)  # type: ignore[index]

    @cached_property
    def given(self) -> bool:
        """Whether a document is a sequence of words rather than text."""
        return any(isinstance(text, list | tuple | np.ndarray) for text in self.objects or ())

    def absent(self) -> NDArray[np.bool_]:
        """Which rows hold no document."""
        if self.objects is not None:
            return np.fromiter((_is_missing(text) for text in self.objects), bool, len(self))
        return np.zeros(len(self), bool) if self.present is None else ~self.present

    def text(self, row: int, errors: str) -> Any:
        """One document as a string (or as the sequence that it is); None where absent."""
        where = f"row {self.first + row}"
        if self.objects is None:
            if self.present is not None and not self.present[row]:
                return None
            value: Any = self.letters[self.starts[row] : self.starts[row + 1]].tobytes()  # type: ignore[index]
        else:
            value = self.objects[row]
        if isinstance(value, bytes):
            try:
                return value.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                why = f"byte 0x{value[error.start]:02x} at position {error.start} is no UTF-8"
                raise InputError(f"{where}: {why}; pass errors='replace' or errors='ignore', or decode it") from None
        if isinstance(value, str | list | tuple | np.ndarray):
            return value
        if _is_missing(value):
            return None
        raise InputTypeError(f"{where}: {value!r} is not a document; pass text, or a list of words")

    def views(self, tokens: Tokens) -> tuple[NDArray, NDArray, NDArray, list[Any]]:
        """Addresses, lengths and kinds for the compiled loops, and what must live as long as they are used."""
        assert kernel.compiled is not None
        if self.objects is not None:
            *view, odd = kernel.compiled.gather(self.objects, 0, len(self))
            for row in odd:
                self.text(row, tokens.errors)  # an absent value passes, anything else is an error
        else:
            assert self.letters is not None
            assert self.starts is not None
            start = self.starts[:-1].astype(np.int64, copy=False)
            kind = np.full(len(self), 8, np.uint8) if self.present is None else self.present.astype(np.uint8) * 8
            size = self.starts[1:].astype(np.int64, copy=False) - start
            view = [start.astype(np.uint64) + np.uint64(self.letters.ctypes.data), size, kind]
        bad = kernel.compiled.unsound(*view, kernel.characters(tokens.lowercase))
        repaired = [self.text(row, tokens.errors) for row in bad.tolist()]
        repaired = [text.lower() for text in repaired] if tokens.lowercase else repaired
        for mine, new in zip(view, kernel.compiled.gather(repaired, 0, len(repaired)), strict=False):
            mine[bad] = new
        return view[0], view[1], view[2], [self, repaired]


def _is_missing(value: Any) -> bool:
    return not isinstance(value, str | bytes | list | tuple | np.ndarray) and is_absent(value)


def _of_arrow(column: Any) -> Documents:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_string_view(kind) or (hasattr(column, "nbytes") and column.nbytes >> 31):
        column = column.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Documents(column.to_pylist())
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise InputTypeError(f"a column of {kind} holds no documents; pass text")
    _, where, data = column.buffers()
    n, at = len(column), column.offset
    starts = np.zeros(1, np.int64) if where is None else np.frombuffer(where, np.int64 if wide else np.int32)
    starts = starts[at : at + n + 1] if len(starts) > n + at else np.zeros(n + 1, np.int64)
    letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    present = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    return Documents(None, letters, starts, present)


class Counted(NamedTuple):
    """The terms of some documents, and class after class the cells (term, total, documents) that are not empty."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    classes: NDArray[np.int64]
    word: NDArray[np.int32]
    total: NDArray[np.float64]
    documents: NDArray[np.float64]
    length: NDArray[np.float64]

    def keys(self) -> list[bytes]:
        return keys_of(self.letters, self.starts)


@cache
def _compiled(tokens: Tokens, role: str, signs: bool) -> Any:
    assert kernel.compiled is not None
    stop = [word.encode("utf-8", "surrogatepass") for word in tokens.stop_words]
    starts = np.concatenate([[0], np.cumsum([len(word) for word in stop], dtype=np.int64)])
    return getattr(kernel.compiled, role)(
        kernel.folds(tokens.lowercase),
        kernel.characters(tokens.lowercase),
        characters=tokens.analyzer == "char",
        ngrams=tokens.ngrams,
        shortest=2,
        longest=min(tokens.max_token_length or _LONGEST, _LONGEST),
        stop=kernel.compiled.Words(np.frombuffer(b"".join(stop), np.uint8), starts) if stop else None,
        bits=tokens.bits,
        signs=signs,
    )


def _read(documents: Documents, tokens: Tokens, role: str, signs: bool = False) -> tuple[Any, tuple, Any]:
    """The loops for some documents, the documents as these want them, and what must live meanwhile.

    ``role`` is "Counter" or "Scorer".
    """
    if kernel.compiled is not None and tokens.pattern is None and not documents.given:
        *view, keep = documents.views(tokens)
        return _compiled(tokens, role, signs), tuple(view), keep
    texts = (documents.text(row, tokens.errors) for row in range(len(documents)))
    keys = [None if t is None else [w.encode("utf-8", "surrogatepass") for w in terms_of(t, tokens)] for t in texts]
    return Twin(bits=tokens.bits, signs=signs), (keys,), None


def count(documents: Documents, y: NDArray, weight: NDArray | None, *, n_classes: int, tokens: Tokens) -> Counted:
    """Count the terms of documents class by class."""
    loops, read, _keep = _read(documents, tokens, "Counter")
    y = np.ascontiguousarray(y, np.int64)
    w = np.ones(len(y)) if weight is None else np.ascontiguousarray(weight, np.float64)
    order = np.argsort(y, kind="stable").astype(np.int64, copy=False)
    return Counted(*loops.count(*read, order, y, w, n_classes=n_classes, manner=tokens.manner, signed=tokens.signed))


def score(words: Any, documents: Documents, tokens: Tokens, table: tuple, out: NDArray, manner: int) -> NDArray:
    """Add the weights of each document's terms to its row of ``out``; (rows, 2) sums of what is common to classes."""
    loops, read, _keep = _read(documents, tokens, "Scorer", tokens.signed)
    sums = np.zeros((len(documents), 2))
    loops.score(words, *read, *table, out, sums, manner=manner)
    return sums


def rows(words: Any, documents: Documents, tokens: Tokens) -> tuple[NDArray, NDArray, NDArray]:
    """Sparse rows (counts, positions, where rows start) of the known terms of documents."""
    loops, read, _keep = _read(documents, tokens, "Scorer", tokens.signed)
    return loops.rows(words, *read)


def count_on_threads(
    documents: Documents, y: NDArray, weight: NDArray | None, *, n_classes: int, tokens: Tokens
) -> list[Counted]:
    """Count slices of the rows, one a thread."""

    def work(part: slice) -> Counted:
        w = None if weight is None else weight[part]
        return count(documents[part], y[part], w, n_classes=n_classes, tokens=tokens)

    return threads.over_rows(work, len(documents), cost=max(1, documents.width))
