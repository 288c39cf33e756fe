"""Scored files: whether a file is a table that Candide has scored, and so may be replaced by another.

The names of the columns do not suffice: a table of your own may have the same. So the first rows must hold what a
scored table holds: probabilities of the classes that add up to 1, and a prediction that is one of the classes.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

_LONGEST = 1 << 24  # characters of a line of a table
_ROWS = 1000  # that are looked at
_OFF = 1e-6  # by how much the probabilities of a row may miss 1
_ENDS = ("_low", "_high")  # of intervals of probabilities


def is_scored(path: str) -> bool:
    """Whether a file is a scored table: its last columns are ``prediction``, ``p_<class>`` and ``log_density``."""
    try:
        with _opened(path) as (names, rows):
            return _are_scored(names) and all(_is_scored_row(names, row) for row in islice(rows, _ROWS))
    except (OSError, ValueError, TypeError, csv.Error):
        return False


def _are_scored(names: list[str]) -> bool:
    if "prediction" not in names or names[-1] != "log_density":
        return False
    return all(name.startswith("p_") for name in names[_last(names) + 1 : -1])


def _last(names: list[str]) -> int:
    """The place of the prediction: a column that is kept may have the same name."""
    return len(names) - 1 - names[::-1].index("prediction")


def _is_scored_row(names: list[str], row: Sequence[Any]) -> bool:
    if len(row) != len(names):
        return False
    at = _last(names)
    p = {name: float(value) for name, value in zip(names[at + 1 : -1], row[at + 1 : -1], strict=True)}
    classes = [name for name in p if not any(name.endswith(end) and name.removesuffix(end) in p for end in _ENDS)]
    float(row[-1] or "nan")  # a log-density is a number, or is not there
    in_range = all(-_OFF <= value <= 1 + _OFF for value in p.values())
    return in_range and abs(sum(p[name] for name in classes) - 1) <= _OFF and _is_class(row[at], classes)


def _is_class(prediction: Any, classes: list[str]) -> bool:
    """Whether a prediction is one of the classes, however a format writes it, or left open."""
    if prediction is None or prediction == "":
        return True
    text, names = str(prediction).casefold(), [name.removeprefix("p_").casefold() for name in classes]
    return any(name.startswith(text) or text.startswith(name) for name in names)


@contextmanager
def _opened(path: str) -> Iterator[tuple[list[str], Iterable[Sequence[Any]]]]:
    """The names of the columns of a table, and its first rows."""
    ending = Path(path).suffix
    if ending in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as parquet:
            names = parquet.schema_arrow.names
            batch = next(parquet.iter_batches(_ROWS), None)
            yield names, [] if batch is None else zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        lines = iter(lambda: file.readline(_LONGEST), "")
        if ending in (".jsonl", ".ndjson"):
            records: Iterator[dict[str, Any]] = map(json.loads, lines)
            first = next(records, {})
            yield list(first), (tuple(one.values()) for one in (first, *islice(records, _ROWS)))
        else:
            table = csv.reader(lines, delimiter="\t" if ending == ".tsv" else ",")
            yield next(table, []), table
