"""Tokens: how a document becomes tokens, by default as scikit-learn's CountVectorizer does it.

Compiled loops read documents where they are in memory; custom patterns and documents given as lists of words go through
Python.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.documents import Documents
from candide.encoding import patterns
from candide.encoding.base import Encoding
from candide.errors import InputError, InputTypeError, unknown_name_error
from candide.kernels import text as kernel
from candide.kernels import threads
from candide.kernels.text import BINARY, PLAIN, SUBLINEAR, TokenKernel, split_keys

COUNT_MODES = {"plain": PLAIN, "binary": BINARY, "sublinear": SUBLINEAR}
ANALYZERS = ("word", "char", "char_wb")  # what a token is a run of: words, characters, characters within a word
_ERROR_RULES = ("strict", "replace", "ignore")
_DEFAULT_NGRAMS = {"char_wb": (3, 5)}  # else (1, 1)
_WORD = re.compile(r"(?u)\b\w\w+\b")
_PADDED_WORD = re.compile(r"\S+")
_NO_LENGTH_LIMIT = 1 << 62
_MAX_BITS = 28


@dataclass(frozen=True)
class Tokens(Encoding):
    """How a document is divided into tokens, and how tokens are counted."""

    block_kind = "documents"
    is_read_as_text: ClassVar[bool] = True
    is_python_only: ClassVar[bool] = True

    analyzer: str = "word"  # "word" | "char" | "char_wb": characters within a word, blanks at its ends
    lowercase: bool = True
    ngrams: tuple[int, int] = None  # type: ignore[assignment]  # shortest and longest run of units that is a token
    stop_words: tuple[str, ...] = ()  # words left out, as they are after lower-casing
    max_token_length: int | None = None  # longer words are left out
    pattern: str | None = None  # a regular expression for words; slower
    errors: str = "strict"  # for bytes that are not UTF-8: "strict" | "replace" | "ignore"
    bits: int = 0  # tokens are hashed into 2**bits buckets; 0: the vocabulary is open
    signed: bool = False  # a hashed token is counted with the sign of its hash
    sublinear: bool = False  # n occurrences in a document count 1 + log n

    def __post_init__(self) -> None:
        if self.analyzer not in ANALYZERS:
            raise unknown_name_error("analyzer", self.analyzer, ANALYZERS)
        if self.errors not in _ERROR_RULES:
            raise unknown_name_error("rule for invalid UTF-8 (errors)", self.errors, _ERROR_RULES)
        if isinstance(self.stop_words, str):
            what = f"stop_words: {self.stop_words!r} is the name of a list"
            raise InputTypeError(what, value=self.stop_words, remedy="pass the words themselves")
        object.__setattr__(self, "stop_words", tuple(sorted(set(map(str, self.stop_words or ())))))
        ngrams = self.ngrams
        try:
            low, high = map(int, _DEFAULT_NGRAMS.get(self.analyzer, (1, 1)) if ngrams is None else ngrams)
        except (TypeError, ValueError):
            what = f"ngrams: expected a pair, got {ngrams!r}"
            raise InputTypeError(what, value=ngrams, remedy="pass a pair such as (1, 2)") from None
        if not 1 <= low <= high <= 1000:
            raise InputError(f"ngrams: {ngrams!r}", value=ngrams, remedy="pass 1 <= shortest <= longest <= 1000")
        object.__setattr__(self, "ngrams", (low, high))
        if not 0 <= self.bits <= _MAX_BITS:
            remedy = f"tokens can be hashed into 2**1 to 2**{_MAX_BITS} buckets, or 0 for none"
            raise InputError(f"bits: {self.bits}", value=self.bits, remedy=remedy)
        if self.signed and not self.bits:
            raise InputError("signed counts need hashed tokens", remedy="pass bits=20, say, or signed=False")
        if self.max_token_length is not None and self.max_token_length < 1:
            what = f"max_token_length: {self.max_token_length}"
            raise InputError(what, value=self.max_token_length, remedy="pass 1 or more, or None")
        if self.pattern is not None:
            self._check_pattern(str(self.pattern))

    def _check_pattern(self, pattern: str) -> None:
        if self.analyzer != "word":
            raise InputError(f"pattern divides a document into words: it has no meaning with {self.analyzer!r}")
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise InputError(f"pattern {pattern!r} is not a valid regular expression: {error}", value=pattern) from None
        if groups > 1:
            what, remedy = f"pattern {pattern!r} has {groups} groups", "a word is one group, or the whole match"
            raise InputError(what, value=pattern, remedy=remedy)
        patterns.check_pattern(pattern)

    def _read(self, column: Any) -> Documents:
        return Documents.from_column(column)

    def to_export_dict(self) -> dict[str, Any]:
        names = ("analyzer", "lowercase", "ngrams", "stop_words", "max_token_length", "pattern", "bits", "signed")
        return {"read": "tokens", **{name: getattr(self, name) for name in names}}

    @property
    def count_mode(self) -> int:
        return SUBLINEAR if self.sublinear else PLAIN

    @property
    def is_word_based(self) -> bool:
        """Whether a token is words with spaces between them: neither characters nor the number of a bucket."""
        return self.analyzer == "word" and not self.bits

    def max_bytes(self, n_classes: int) -> int:
        """The size of the counts of hashed tokens if every bucket occurs in every class."""
        return (1 << self.bits) * (12 + 20 * n_classes) if self.bits else 0


def tokens_from_settings(settings: Any) -> Tokens:
    return Tokens(**{field.name: getattr(settings, field.name) for field in fields(Tokens)})


def format_key(key: bytes, tokens: Tokens) -> str:
    """A key as it is shown: a token as text, a hashed one as the number of its bucket."""
    return f"bucket {int.from_bytes(key[:4], 'little')}" if tokens.bits else key.decode("utf-8", "surrogatepass")


Span = tuple[int, int]


def tokenize(text: str | Sequence[Any], tokens: Any) -> list[str]:  # of Tokens: exported models copy the function
    """The tokens of one document, in Python: the definition that the compiled loops follow.

    A document given as a sequence of words, or of word numbers, is divided already. For "char_wb" a word is what stands
    between white space, with a blank at both ends; one shorter than the shortest n-gram is a token itself.
    """
    gap = " " if tokens.analyzer == "word" or (tokens.analyzer == "char" and not isinstance(text, str)) else ""
    document = text.lower() if isinstance(text, str) and tokens.lowercase else text
    runs = ([unit for unit, _ in run] for run in _find_runs(document, tokens))
    return [gap.join(run[part]) for run in runs for part in _ngram_slices(len(run), tokens)]


def locate_tokens(text: str, tokens: Tokens) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Every token of a document, as :func:`tokenize` gives them, and the spans of its words or characters."""
    gap = " " if tokens.analyzer == "word" else ""
    # A capital may have a small letter of two characters. In all there are as many as the letters have one by one.
    lengths = [len(letter.lower()) for letter in text] if tokens.lowercase else [1] * len(text)
    origin = [i for i, n in enumerate(lengths) for _ in range(n)]
    for run in _find_runs(text.lower() if tokens.lowercase else text, tokens):
        for part in _ngram_slices(len(run), tokens):
            units, spans = zip(*run[part], strict=True)
            yield gap.join(units), tuple((origin[a], origin[b - 1] + 1) if b > a else (0, 0) for a, b in spans)


def _ngram_slices(n_units: int, tokens: Any) -> list[slice]:
    """The n-grams of a run of words or characters; within words, a run that is shorter than all is one itself."""
    low, high = tokens.ngrams
    low = min(low, n_units) if tokens.analyzer == "char_wb" else low
    return [slice(i, i + n) for n in range(low, min(high, n_units) + 1) for i in range(n_units - n + 1)]


def _find_runs(text: str | Sequence[Any], tokens: Any) -> Iterator[list[tuple[str, Span]]]:
    """The runs of words or characters that n-grams are made of, with their spans; words of a sequence have none."""
    if not isinstance(text, str):
        words = [(str(word), (0, 0)) for word in text]
    elif tokens.analyzer == "char":
        runs = re.finditer(r"\s\s+|.", text, re.DOTALL)
        yield [(" " if len(run[0]) > 1 else run[0], run.span()) for run in runs]
        return
    else:
        pattern = _PADDED_WORD if tokens.analyzer == "char_wb" else re.compile(tokens.pattern or _WORD)
        words = [(match[pattern.groups] or "", match.span(pattern.groups)) for match in pattern.finditer(text)]
    if tokens.analyzer == "char_wb":
        for word, (start, _) in words:  # a blank stands where its neighbour does
            letters = [(letter, (i, i + 1)) for i, letter in enumerate(word, start)]
            yield [(" ", (start, start + 1)), *letters, (" ", (start + len(word) - 1, start + len(word)))]
        return
    stop, longest = set(tokens.stop_words), tokens.max_token_length or _NO_LENGTH_LIMIT
    yield [(word, span) for word, span in words if word not in stop and len(word) <= longest]


class CountedTokens(NamedTuple):
    """The tokens of documents, and class after class the cells (token, total, documents) that are not empty."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    classes: NDArray[np.int64]
    word: NDArray[np.int32]
    total: NDArray[np.float64]
    documents: NDArray[np.float64]
    length: NDArray[np.float64]

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)


@cache
def _compiled(tokens: Tokens, role: str, signs: bool) -> Any:
    assert kernel.compiled is not None
    stop = [word.encode("utf-8", "surrogatepass") for word in tokens.stop_words]
    starts = np.concatenate([[0], np.cumsum([len(word) for word in stop], dtype=np.int64)])
    return getattr(kernel.compiled, role)(
        kernel.ascii_fold_table(tokens.lowercase),
        kernel.character_table(tokens.lowercase),
        unit=ANALYZERS.index(tokens.analyzer),
        ngrams=tokens.ngrams,
        shortest=2,
        longest=min(tokens.max_token_length or _NO_LENGTH_LIMIT, _NO_LENGTH_LIMIT),
        stop=kernel.compiled.Words(np.frombuffer(b"".join(stop), np.uint8), starts) if stop else None,
        bits=tokens.bits,
        signs=signs,
    )


def _prepare_kernel(documents: Documents, tokens: Tokens, role: str, signs: bool = False) -> tuple[Any, tuple, Any]:
    """The "Counter" or "Scorer" (``role``) for documents, its arguments, and what must live meanwhile."""
    if kernel.compiled is not None and tokens.pattern is None and not documents.is_tokenized:
        *view, keep = documents.kernel_views(tokens.lowercase, tokens.errors)
        return _compiled(tokens, role, signs), tuple(view), keep
    texts = (documents.text(row, tokens.errors) for row in range(len(documents)))
    keys = [None if t is None else [w.encode("utf-8", "surrogatepass") for w in tokenize(t, tokens)] for t in texts]
    return TokenKernel(bits=tokens.bits, signs=signs), (keys,), None


def count_tokens(
    documents: Documents, y: NDArray, weight: NDArray | None, *, n_classes: int, tokens: Tokens
) -> CountedTokens:
    loops, read, _keep = _prepare_kernel(documents, tokens, "Counter")
    y = np.ascontiguousarray(y, np.int64)
    w = np.ones(len(y)) if weight is None else np.ascontiguousarray(weight, np.float64)
    order, options = np.argsort(y, kind="stable").astype(np.int64, copy=False), {"manner": tokens.count_mode}
    return CountedTokens(*loops.count(*read, order, y, w, n_classes=n_classes, signed=tokens.signed, **options))


def score_documents(
    token_table: Any, documents: Documents, tokens: Tokens, table: tuple, out: NDArray, count_mode: int
) -> NDArray:
    """Add the weights of each document's tokens to its row of ``out``; (rows, 2) sums of what is common to classes."""
    loops, read, _keep = _prepare_kernel(documents, tokens, "Scorer", tokens.signed)
    sums = np.zeros((len(documents), 2))
    loops.score(token_table, *read, *table, out, sums, manner=count_mode)
    return sums


def token_rows(token_table: Any, documents: Documents, tokens: Tokens) -> tuple[NDArray, NDArray, NDArray]:
    """Sparse rows (counts, positions, where rows start) of the known tokens of documents."""
    loops, read, _keep = _prepare_kernel(documents, tokens, "Scorer", tokens.signed)
    return loops.rows(token_table, *read)


def count_tokens_on_threads(
    documents: Documents, y: NDArray, weight: NDArray | None, *, n_classes: int, tokens: Tokens
) -> list[CountedTokens]:

    def work(part: slice) -> CountedTokens:
        w = None if weight is None else weight[part]
        return count_tokens(documents[part], y[part], w, n_classes=n_classes, tokens=tokens)

    return threads.map_rows(work, len(documents), cost=max(1, documents.width))
