"""The protocol of engines: open a source, count it, and read its rows to be scored.

An engine counts some tally kinds by itself; the others are counted from its batches by the array engine
(:mod:`candide.engines.counting`). It knows how parts of a plan are encoded, never which event model they serve.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from candide.data.column_types import ColumnSchema
from candide.data.notes import Note
from candide.data.table import Table
from candide.data.text_columns import temporal_kind_of
from candide.data.text_formats import TextFormat
from candide.engines.batches import Scan, read_batches
from candide.engines.reading import ReadOptions, find_engine_name
from candide.errors import MemoryLimitError, unknown_name_error
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart

Watch = Callable[[Any, str], AbstractContextManager]
HeadAndNotes = tuple[Any, list[Note]]  # the first rows as an Arrow table, and notes on how they are read


def no_progress(source: Any, what: str) -> AbstractContextManager:
    return nullcontext()


class FoldsOfRows:
    """The fold of each row of a source."""

    def __init__(self, fold: "np.ndarray[Any, Any]"):
        self.fold = fold.astype(np.int16 if fold.max(initial=0) < 1 << 15 else np.int32)


class Folds(NamedTuple):
    """A division of rows into ``n`` folds, drawn by a seed: rows of each label are assigned to folds in turn.

    With a ``key_column`` a hash of its value determines the fold of a row instead, the same on every engine and in any
    order of the rows (:func:`candide.data.sample.assign_folds_by_key`): rows of the same key are in the same fold.
    """

    n: int
    seed: int = 0
    label_column: str | None = None  # None: rows are not stratified
    key_column: str | None = None  # a column of whole numbers or text
    rows: FoldsOfRows | None = None  # the fold of each row, where already assigned


class Source(Protocol):
    """An open source of rows, which can be read repeatedly. A source must define ``head`` and ``batches``."""

    engine: "Engine"
    name: str  # what to call it in messages
    columns: Mapping[str, str]  # the type of each, by its name in the engine
    documents: tuple[str, ...] = ()  # columns known to be free text, however short
    categories: tuple[str, ...] = ()  # columns of numbers declared to be categories
    is_untyped: bool = False  # whether categories are read as text and parsed afterwards
    has_order: bool = True  # whether rows come in the same order each time, at least once they are materialised
    takes_folds: bool = False  # whether the fold of each row can be given
    needs_middle: bool = False  # whether moments come from sums around a value near the middle
    rows_read: int = 0  # so far, for progress
    passes: int = 1  # over the rows that the work makes
    n_rows: int | None = None  # about, where known without reading them
    notes: Sequence[Note] = ()  # on how it is read
    encoding: str | None = None  # of its text, where that is not UTF-8
    text_formats: Mapping[str, TextFormat] = {}  # where not plain
    spread_values: Mapping[str, Any] = {}  # values from all over, where the first rows hold only 0, 1

    def head(self, n: int) -> Any:
        """The first rows, as an Arrow table."""

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Any:
        """Columns in Arrow record batches of about ``size`` rows; with folds, that of each row comes last."""

    def read_head(self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()) -> HeadAndNotes:
        """The first rows in the types in which all rows are read from now on, and notes on these."""
        return self.head(n), []

    def read_numbers(
        self,
        names: Sequence[str],
        text_formats: Mapping[str, TextFormat] | None = None,
        temporal: Mapping[Any, str] = {},
    ) -> list[Note]:
        """Read columns as numbers from now on, in known formats, or as dates or times; return notes on these."""
        return []

    def temporal_kind(self, name: str) -> str:
        return temporal_kind_of(self.columns[name])

    def original_columns(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Names under which columns come as they are written, and their Arrow types; None where these do not change."""
        return [(name, None) for name in names]

    def materialise(self) -> None:
        """Make rows come in the same order each time."""
        return

    def draw_subset(self, n: int) -> "tuple[Source, float]":
        """About ``n`` rows drawn from all, the same each time, where the server can draw; and their fraction."""
        return self, 1.0

    def with_span(self, span: tuple[int, int] | None) -> "tuple[Source, tuple[int, int] | None]":
        """The source of the rows to be scored, and the span of them to read; None where it has no other rows."""
        return self, span

    def start_progress(self) -> None:
        self.rows_read, self.passes = 0, 1

    def progress(self) -> float:
        """How far the work is, from 0 to 1; negative where unknown."""
        return min(1.0, self.rows_read / (self.n_rows * self.passes)) if self.n_rows else -1.0

    def close(self) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class LabelledSource:
    """The rows to count: a source, its label and weight columns, and folds."""

    source: Source
    target: str
    weight: str | None = None
    folds: Folds | None = None

    @property
    def n_folds(self) -> int:
        return self.folds.n if self.folds else 1

    @property
    def extra_columns(self) -> list[str]:
        return [self.target, *([self.weight] if self.weight else [])]


T = TypeVar("T")


class Work(Protocol[T]):
    """A computation over pieces of the rows, whose results combine. A cluster pickles it to where the rows are.

    A piece is read once in batches; its rows are numbered from ``first``, with gaps between pieces.
    """

    def __call__(self, batches: Iterable[Any], first: int) -> T: ...
    def combine(self, parts: Sequence[T]) -> T: ...


class BatchScorer(Protocol):
    """Turns a batch of rows into a batch of scores with a known Arrow schema."""

    @property
    def schema(self) -> Any: ...
    def __call__(self, batch: Any) -> Any: ...


MakeScorer = Callable[[Sequence[Any]], BatchScorer]  # from the Arrow types of the columns to keep


@dataclass(frozen=True)
class PreparedSource:
    """A plan for a source, and what the engine should know before it counts."""

    plan: Plan
    columns: list[ColumnSchema] = field(default_factory=list)
    many_level_columns: list[str] = field(default_factory=list)  # columns with very many levels
    middle_values: dict[str, Any] = field(default_factory=dict)  # a value near the middle of numeric columns
    text_level_columns: list[str] = field(default_factory=list)  # whose levels are counted as text, parsed afterwards
    notes: list[Note] = field(default_factory=list)
    has_nan: bool = True  # whether numbers are likely to be NaN
    head: Any = None  # the first rows, as an Arrow table
    declared_columns: frozenset[str] = frozenset()  # columns whose event models the user named


@dataclass(frozen=True)
class CountResult:
    """The counts of the folds, and how many rows had no label and were skipped."""

    fold_counts: list[ModelCounts]
    n_unlabelled: int = 0


class Engine(Protocol):
    """Counts and reads sources; ``tally_kinds`` are those it counts by itself."""

    name: str
    tally_kinds: frozenset[str]
    max_columns: int = 400  # of a query: planning a longer one takes more time than counting
    max_levels: int = 40  # columns whose levels a query counts
    max_cells: int = 16  # of a binned number: a query with more is slower than reading the column

    def open(self, data: Any, reading: ReadOptions | None = None) -> Source: ...

    def can_count(self, part: PlanPart) -> bool:
        """Whether the engine counts this part by itself; if not, its rows are read in batches."""
        if part.spec.kind not in self.tally_kinds or any(encoding.is_python_only for encoding in part.encodings):
            return False
        return all(e.is_read_as_text or (e.n_levels or 0) <= self.max_cells for e in part.encodings)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """The parts of a plan that the engine counts by itself; none of a plan too wide for one query."""
        levels = sum(len(part.columns) for part in plan.parts if part.block_kind == "codes")
        is_wide = len(plan.columns) > self.max_columns or levels > self.max_levels
        return [] if is_wide else [part for part in plan.parts if self.can_count(part)]

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        """The counts of each fold (of all rows without folds), of a plan whose parts it can count."""
        raise NotImplementedError

    def gather(self, rows: LabelledSource, plan: Plan, work: Work[T], *, codes: bool = False) -> T:
        """The result of work on a plan's columns, the labels ``k0``, the weights ``k1`` and the folds of all rows."""
        return work(self.score(rows.source, plan, rows.extra_columns, folds=rows.folds, codes=codes).batches, 0)

    def scored_table(self, source: Source, plan: Plan, keep: Sequence[str], scoring: MakeScorer) -> Any:
        """The scored rows as a table of the engine; None where they come in batches."""
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

        With ``codes`` the engine may look up the codes of levels and parse numbers itself; otherwise text comes as it
        is, and an error can name its row.
        """
        source, span = source.with_span(span)
        return read_batches(source, plan, keep, folds=folds, span=span)


def check_columns(
    source: Source, *, target: str | None = None, weight: str | None = None, drop: Sequence[str] = ()
) -> None:
    for what, name in [("target", target), *(("column to drop", name) for name in drop), ("weight", weight)]:
        if name is not None and name not in source.columns:
            others = [column for column in source.columns if name == target or column != target]
            raise unknown_name_error(what, name, others)


_ENGINES = {  # name -> module and class, imported at first use
    "arrays": ("candide.engines.arrays", "Arrays"),
    "duckdb": ("candide.engines.duckdb.source", "DuckDB"),
    "postgres": ("candide.engines.postgres.source", "Postgres"),
    "spark": ("candide.engines.spark.source", "Spark"),
}


def get_engine(name: str) -> Engine:
    module, kind = _ENGINES[name]
    return getattr(import_module(module), kind)()


def find_engine(data: Any) -> Engine:
    """The engine for data: arrays for a table in memory, that of an address, Spark for its frames, else DuckDB."""
    if isinstance(data, Table):
        return get_engine("arrays")
    return get_engine("spark" if hasattr(data, "mapInArrow") else find_engine_name(data) or "duckdb")


def open_source(data: Any, reading: ReadOptions | None = None) -> AbstractContextManager[Source]:
    """Open data by its engine; a source that is open already is used, and left open."""
    check_address_space()
    is_open = hasattr(data, "engine") and hasattr(data, "batches")
    return nullcontext(data) if is_open else find_engine(data).open(data, reading)


_BASE_BYTES = 1_500 << 20  # bytes that the libraries reserve on one core: DuckDB, Arrow, NumPy, SciPy
_BYTES_PER_CORE = 64 << 20  # more for each further core: stacks, arenas and buffers of BLAS threads
_MAX_CORES = 64  # for which OpenBLAS is built


@cache
def check_address_space() -> None:
    """Raise an error where the address space of this process is too small; otherwise reserve what is needed."""
    limit, used = _address_space()
    if limit is None:
        return
    least = _BASE_BYTES + _BYTES_PER_CORE * (min(os.cpu_count() or 1, _MAX_CORES) - 1)
    if limit - used < least:
        what = f"virtual memory is limited to {limit >> 20:,} MiB (ulimit -v)"
        remedy = f"allow at least {(used + least >> 20) + 1:,} MiB"
        raise MemoryLimitError(what, value=limit, remedy=remedy)
    import scipy.special  # noqa: F401


def _address_space() -> tuple[int | None, int]:
    """The limit of the address space in bytes, None where there is none, and its use, 0 where that is unknown."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except ImportError:  # Windows
        return None, 0
    except OSError:
        used = 0
    return None if limit == resource.RLIM_INFINITY else limit, used
