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

_MAX_LINE_LENGTH = 1 << 24  # characters of a line of a table
_MAX_ROWS_CHECKED = 1000  # that are looked at
_SUM_TOLERANCE = 1e-6  # by how much the probabilities of a row may miss 1
_INTERVAL_SUFFIXES = ("_low", "_high")  # of intervals of probabilities


def is_scored_file(path: str) -> bool:
    """Whether a file is a scored table: its last columns are ``prediction``, ``p_<class>`` and ``log_density``."""
    try:
        with _open_table(path) as (names, rows):
            return _has_scored_columns(names) and all(
                _is_scored_row(names, row) for row in islice(rows, _MAX_ROWS_CHECKED)
            )
    except (OSError, ValueError, TypeError, csv.Error):
        return False


def _has_scored_columns(names: list[str]) -> bool:
    if "prediction" not in names or names[-1] != "log_density":
        return False
    return all(name.startswith("p_") for name in names[_prediction_index(names) + 1 : -1])


def _prediction_index(names: list[str]) -> int:
    """The place of the prediction: a column that is kept may have the same name."""
    return len(names) - 1 - names[::-1].index("prediction")


def _is_scored_row(names: list[str], row: Sequence[Any]) -> bool:
    if len(row) != len(names):
        return False
    at = _prediction_index(names)
    p = {name: float(value) for name, value in zip(names[at + 1 : -1], row[at + 1 : -1], strict=True)}
    classes = [
        name for name in p if not any(name.endswith(end) and name.removesuffix(end) in p for end in _INTERVAL_SUFFIXES)
    ]
    float(row[-1] or "nan")  # a log-density is a number, or is not there
    in_range = all(-_SUM_TOLERANCE <= value <= 1 + _SUM_TOLERANCE for value in p.values())
    return in_range and abs(sum(p[name] for name in classes) - 1) <= _SUM_TOLERANCE and _is_class(row[at], classes)


def _is_class(prediction: Any, classes: list[str]) -> bool:
    """Whether a prediction is one of the classes, however a format writes it, or left open."""
    if prediction is None or prediction == "":
        return True
    text, names = str(prediction).casefold(), [name.removeprefix("p_").casefold() for name in classes]
    return any(name.startswith(text) or text.startswith(name) for name in names)


@contextmanager
def _open_table(path: str) -> Iterator[tuple[list[str], Iterable[Sequence[Any]]]]:
    """The names of the columns of a table, and its first rows."""
    ending = Path(path).suffix
    if ending in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as parquet:
            names = parquet.schema_arrow.names
            batch = next(parquet.iter_batches(_MAX_ROWS_CHECKED), None)
            yield names, [] if batch is None else zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        lines = iter(lambda: file.readline(_MAX_LINE_LENGTH), "")
        if ending in (".jsonl", ".ndjson"):
            records: Iterator[dict[str, Any]] = map(json.loads, lines)
            first = next(records, {})
            yield list(first), (tuple(one.values()) for one in (first, *islice(records, _MAX_ROWS_CHECKED)))
        else:
            table = csv.reader(lines, delimiter="\t" if ending == ".tsv" else ",")
            yield next(table, []), table
