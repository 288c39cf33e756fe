"""What every engine is: who opens a source, counts it, and reads its rows to be scored.

An engine says some tally kinds itself; what it cannot say is counted from its batches by the array engine
(:mod:`candide.engines.counting`). It knows how parts of a plan are encoded, never which event model they serve.

>>> with open_source({"age": [30, 41], "job": ["cook", None]}) as source:
...     source.engine.name, list(source.columns), source.head(1).to_pylist()
('duckdb', ['age', 'job'], [{'age': 30, 'job': 'cook'}])
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from candide.data.column_types import ColumnSchema
from candide.data.notes import Note
from candide.data.table import Table
from candide.data.temporal import temporal_kind_of
from candide.data.text_formats import TextFormat
from candide.engines.addresses import find_engine_name
from candide.engines.batches import Scan, read_batches
from candide.engines.reading import ReadOptions
from candide.errors import MemoryLimitError, unknown_name_error
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart

Watch = Callable[[Any, str], AbstractContextManager]


def no_progress(source: Any, what: str) -> AbstractContextManager:
    """Show nothing."""
    return nullcontext()


class FoldsOfRows:
    """The fold of each row of a source, in their order."""

    def __init__(self, fold: "np.ndarray[Any, Any]"):
        self.fold = fold.astype(np.int16 if fold.max(initial=0) < 1 << 15 else np.int32)


class Folds(NamedTuple):
    """A division of rows into so many folds, drawn by a seed: rows of each value of ``by`` are dealt out in turn.

    So each fold has as many rows of a class as every other, or one more or less, and as many rows in all. With
    a ``key`` the value of that column says the fold of a row instead
    (:func:`candide.data.sampling.assign_folds_by_key`), the same whoever counts, and in whatever order rows come: rows
    that share a key share a fold.
    """

    n: int
    seed: int = 0
    label_column: str | None = None  # a column, that of the labels; None for rows of one kind
    key_column: str | None = None  # a column of whole numbers or text
    rows: FoldsOfRows | None = None  # the fold of each row, where that is known already


class Source(Protocol):
    """An open source of rows, which may be read again and again. An own one gives ``head`` and ``batches``."""

    engine: "Engine"
    name: str  # what to call it in messages
    columns: Mapping[str, str]  # the type of each, in the engine's words
    documents: tuple[str, ...] = ()  # columns known to be free text, however short
    categories: tuple[str, ...] = ()  # columns of numbers that are declared to be categories
    is_untyped: bool = False  # whether categories are read as text, and what it spells is found out after
    has_order: bool = True  # whether rows come in the same order each time, at least once they are materialised
    takes_folds: bool = False  # whether the fold of each row can be given
    needs_middle: bool = False  # whether moments come from sums around a value near the middle
    rows_read: int = 0  # so far, of the work that is looked on at
    passes: int = 1  # over the rows that this work makes
    n_rows: int | None = None  # there are about so many rows, where that is known without reading them
    notes: Sequence[Note] = ()  # on how it is read
    encoding: str | None = None  # of its text, where that is not UTF-8
    text_formats: Mapping[str, TextFormat] = MappingProxyType({})  # how numbers and dates are, where that is not plain

    spread_values: Mapping[str, Any] = MappingProxyType(
        {}
    )  # values from all over, where the first rows do not show them

    def head(self, n: int) -> Any:
        """The first rows, as an Arrow table."""

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Any:
        """Columns in Arrow record batches of about ``size`` rows; with folds, that of each row comes last."""

    def read_head(
        self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()
    ) -> tuple[Any, list[Note]]:
        """The first rows in the types in which all are read from now on, and remarks on these."""
        return self.head(n), []

    def read_numbers(
        self,
        names: Sequence[str],
        text_formats: Mapping[str, TextFormat] | None = None,
        temporal: Mapping[Any, str] = MappingProxyType({}),
    ) -> list[Note]:
        """Have columns read as numbers from now on, if they are not, as they were spelled before; remarks on these.

        ``temporal`` are those that are read as dates, or as times of day and durations.
        """
        return []

    def temporal_kind(self, name: str) -> str:
        """ "date" if a column has a type of dates, "time" if it has one of times of day or durations, else ""."""
        return temporal_kind_of(self.columns[name])

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Of columns to pass through, the names under which they come word for word, whatever is read as a number.

        With the Arrow type that each has by itself; None where it is the one in which it comes.
        """
        return [(name, None) for name in names]

    def materialise(self) -> None:
        """Have rows come in the same order each time."""
        return

    def draw_subset(self, n: int) -> "tuple[Source, float]":
        """About so many rows, drawn from all and again the same, where whoever holds them can draw; and their share."""
        return self, 1.0

    def with_span(self, span: tuple[int, int] | None) -> "tuple[Source, tuple[int, int] | None]":
        """The source of rows to be scored, of all or of a span; and the span, unless it has no other rows."""
        return self, span

    def start_progress(self) -> None:
        """Count the rows from now on, for one who looks on."""
        self.rows_read, self.passes = 0, 1

    def progress(self) -> float:
        """How far the work is, from 0 to 1; negative where that is not known."""
        return min(1.0, self.rows_read / (self.n_rows * self.passes)) if self.n_rows else -1.0

    def close(self) -> None:
        """Let go of whatever is held."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class LabelledSource:
    """The rows to count: a source, and which of its columns are label and weight; a fold for each if they are apart."""

    source: Source
    target: str
    weight: str | None = None
    folds: Folds | None = None

    @property
    def n_folds(self) -> int:
        return self.folds.n if self.folds else 1

    @property
    def extra_columns(self) -> list[str]:
        """What is read beside the columns of a plan."""
        return [self.target, *([self.weight] if self.weight else [])]


T = TypeVar("T")


class Work(Protocol[T]):
    """What is made of rows where they lie, piece by piece: it goes to them, and what it makes of the pieces adds up.

    An engine whose rows lie in several places sends it there by pickle, and its results come back so.
    """

    def __call__(self, batches: Iterable[Any], first: int) -> T:
        """What a piece makes, read once in batches; its rows are numbered from ``first``, and each has its own number.

        Between the numbers of two pieces there may be a gap.
        """
        ...

    def combine(self, parts: Sequence[T]) -> T:
        """What pieces make together that follow each other."""
        ...


class BatchScorer(Protocol):
    """What makes of a batch of rows one of a table, whose Arrow schema is known before."""

    @property
    def schema(self) -> Any: ...

    def __call__(self, batch: Any) -> Any: ...


@dataclass(frozen=True)
class PreparedSource:
    """A source that has been looked at: the plan, and what the engine should know before it counts."""

    plan: Plan
    columns: list[ColumnSchema] = field(default_factory=list)
    many_level_columns: list[str] = field(default_factory=list)  # columns with very many levels
    middle_values: dict[str, Any] = field(default_factory=dict)  # a value near the middle of each number
    text_level_columns: list[str] = field(
        default_factory=list
    )  # columns whose levels are counted as text, and read after
    notes: list[Note] = field(default_factory=list)
    has_nan: bool = True  # whether numbers are likely to be NaN
    head: Any = None  # the rows that were looked at, as an Arrow table
    declared_columns: frozenset[str] = frozenset()  # columns whose event models were asked for


@dataclass(frozen=True)
class CountResult:
    """The censuses of the folds, and how many rows had no label and were passed over."""

    fold_counts: list[ModelCounts]
    n_unlabelled: int = 0


class Engine(Protocol):
    """Who counts and who reads. ``counts`` are the tally kinds it says itself."""

    name: str
    tally_kinds: frozenset[str]
    max_columns: int = 400  # of a query: to plan a longer one takes more time than to count its rows
    max_levels: int = 40  # and columns whose levels it counts
    max_cells: int = 16  # of a number: a query that looks for one among more is slower than to read the column

    def open(self, data: Any, reading: ReadOptions | None = None) -> Source:
        """Open whatever holds rows."""
        ...

    def can_count(self, part: PlanPart) -> bool:
        """Whether it counts this part itself; else, and where only Python can encode a column, rows come in batches."""
        if part.spec.kind not in self.tally_kinds or any(encoding.is_python_only for encoding in part.encodings):
            return False
        return all(one.is_read_as_text or (one.n_levels or 0) <= self.max_cells for one in part.encodings)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """The parts of a plan that it counts itself; none of a plan too wide for one query, which is read once."""
        levels = sum(len(part.columns) for part in plan.parts if part.block_kind == "codes")
        wide = len(plan.columns) > self.max_columns or levels > self.max_levels
        return [] if wide else [part for part in plan.parts if self.can_count(part)]

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        """One census a fold (one in all without folds) of a plan whose parts it says."""
        raise NotImplementedError

    def gather(self, rows: LabelledSource, plan: Plan, work: Work[T], *, codes: bool = False) -> T:
        """What work makes of a plan's columns, the labels ``k0``, the weights ``k1`` and the folds of all rows.

        With ``codes`` the engine may look up the codes of levels itself, as it does of rows to be scored.
        """
        return work(self.score(rows.source, plan, rows.extra_columns, folds=rows.folds, codes=codes).batches, 0)

    def scored_table(
        self, source: Source, plan: Plan, keep: Sequence[str], scoring: Callable[[Sequence[Any]], "BatchScorer"]
    ) -> Any:
        """The scored rows as this engine has tables, where they stay with it; None where they come in batches.

        ``scoring`` makes, of the Arrow types of the columns to keep, what scores a batch.
        """
        return None

    def score(
        self,
        source: Source,
        plan: Plan,
        keep: Sequence[str] = (),
        *,
        folds: Folds | None = None,
        codes: bool = True,
        span: tuple[int, int] | None = None,
    ) -> Scan:
        """Read rows to be scored: the plan's columns and those to keep, of all rows or of a span of them.

        With ``codes`` the engine may look up the codes of levels, and read numbers from text, itself; else text comes
        as it is, and an error can name its row.
        """
        source, span = source.with_span(span)
        return read_batches(source, plan, keep, folds=folds, span=span)


def check_columns(
    source: Source, *, target: str | None = None, weight: str | None = None, drop: Sequence[str] = ()
) -> None:
    """Refuse columns that are named, and that the source does not have."""
    wanted = [("target", target), *(("column to drop", name) for name in drop), ("weight", weight)]
    for what, name in wanted:
        if name is not None and name not in source.columns:
            raise unknown_name_error(
                what, name, [column for column in source.columns if name == target or column != target]
            )


_ENGINES = {  # name -> module and class, imported at first use
    "arrays": ("candide.engines.arrays", "Arrays"),
    "duckdb": ("candide.engines.duckdb.engine", "DuckDB"),
    "postgres": ("candide.engines.postgres.source", "Postgres"),
    "spark": ("candide.engines.spark.source", "Spark"),
}


def get_engine(name: str) -> Engine:
    """An engine by its name."""
    module, kind = _ENGINES[name]
    return getattr(import_module(module), kind)()


def find_engine(data: Any) -> Engine:
    """Who opens some data: a table in memory the array engine; an address the engine that it names; a data frame of
    Spark Spark; files, queries, other frames and relations DuckDB.

    >>> find_engine("rows.csv").name, find_engine(Table.from_data({"x": [1.0]})).name
    ('duckdb', 'arrays')
    >>> find_engine("postgresql://host/shop").name, find_engine("spark://host:7077::orders").name
    ('postgres', 'spark')
    """
    if isinstance(data, Table):
        return get_engine("arrays")
    return get_engine("spark" if hasattr(data, "mapInArrow") else find_engine_name(data) or "duckdb")


def open_source(data: Any, reading: ReadOptions | None = None) -> AbstractContextManager[Source]:
    """Open some data by the engine that knows it; a source that is open already is used, and left open."""
    check_address_space()
    is_open = hasattr(data, "engine") and hasattr(data, "batches")
    return nullcontext(data) if is_open else find_engine(data).open(data, reading)


_BASE_BYTES = 1_500 << 20  # bytes that the libraries reserve on one core: DuckDB, Arrow, NumPy, SciPy
_BYTES_PER_CORE = 64 << 20  # more for each further core: stacks, arenas and buffers of BLAS threads
_MAX_CORES = 64  # for which OpenBLAS is built
_MIB = 1 << 20


@cache
def check_address_space() -> None:
    """Raise an error where the address space of this process is too small; otherwise reserve what is needed."""
    limit, used = _limit_bytes(), _used_bytes()
    if limit is None:
        return
    least = _BASE_BYTES + _BYTES_PER_CORE * (min(os.cpu_count() or 1, _MAX_CORES) - 1)
    if limit - used < least:
        what = f"virtual memory is limited to {limit // _MIB:,} MiB (ulimit -v)"
        remedy = f"allow at least {(used + least) // _MIB + 1:,} MiB"
        raise MemoryLimitError(what, value=limit, remedy=remedy)
    import scipy.special  # noqa: F401


def _limit_bytes() -> int | None:
    """Return the limit of the address space in bytes; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _used_bytes() -> int:
    """Return the size of the address space in use, 0 where it is not known."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
