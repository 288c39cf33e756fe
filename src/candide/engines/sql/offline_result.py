"""Results of offline queries (:mod:`candide.engines.sql.offline_query`): a file is checked, and its counts are read.

Nothing is taken on trust. The rows of the classes must be those of the table, every class must have its line of every
column of numbers, whose figures could be those of its rows, and the levels of a column with what is missing must be as
many as the class has rows: a result that was cut short, pasted twice or changed by hand is refused, with the line where
that shows. Texts that mean one value, 1 and 1.0, are one class or level.

>>> lines = parse_result("what;place;" + ";".join(HEADER[2:]) + "\\nplan;0;;some text" + ";" * 11)
>>> lines[0].what, lines[0].level, lines[0].figure("n")
('plan', 'some text', None)
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

from candide import formatting
from candide.data.labels import is_missing_label
from candide.data.value_identity import parse_value, to_plain_value
from candide.data.value_matching import parse_levels
from candide.engines.base import CountResult, LabelledSource, PreparedSource
from candide.engines.sql.count import PartColumns, check_weights, make_fold_counts, query_columns
from candide.engines.sql.offline_cells import CSV_REMEDY, RERUN_REMEDY, read_cells
from candide.engines.sql.offline_query import CLASS, HEADER, LEVEL, MISSING, NUMBERS, PLAN, UNLABELLED
from candide.engines.sql.source import SourceColumn
from candide.engines.sql.statistics import get_statistic, levels_key
from candide.errors import InputError

_LINE_KINDS = (PLAN, CLASS, UNLABELLED, NUMBERS, LEVEL, MISSING)
_OF_CLASSES = (CLASS, NUMBERS, LEVEL, MISSING)
_NULLS = ("", "null", "none", "\\n", "(null)", "<null>")  # as programs write a null into a file
_NEVER_NEGATIVE = ("n", "rows", "table_rows", "square", "above", "absent")
_TYPED = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC|DATE|TIME|INTERVAL")
_BOOLEANS = {"1": True, "0": False}  # as SQL Server and MySQL have them
_WEIGHT_TOLERANCE = 1e-6  # by which sums of weights in another order, of a thousand million rows, may differ
_SMALLEST_SCALE = 1e-300  # the square of what is smaller has few digits


@dataclass(slots=True)
class ResultLine:
    """A line of a result: what it is, of which column, and its cells; ``row`` is where it stands in the file."""

    row: int
    what: str
    place: int
    label: str
    level: str
    cells: Sequence[str]
    names: Mapping[str, int]  # of the cells, the same for all lines

    def figure(self, name: str) -> float | None:
        """One of its numbers; None where it has none."""
        text = self.cells[self.names[name]]
        try:
            value = float(text)
        except ValueError:
            if (text := text.strip()).lower() in _NULLS:
                return None
            raise self.error(f"{name} is {text!r}, which is not a number", text) from None
        if not math.isfinite(value) or (value < 0 and name in _NEVER_NEGATIVE):
            what = "negative" if value < 0 else "not finite"
            raise self.error(f"{name} is {text}; it cannot be {what}", value)
        return value

    def number(self, name: str) -> float:
        """One of its numbers that cannot be missing."""
        value = self.figure(name)
        if value is None:
            raise self.error(f"{name} is missing", None)
        return value

    def error(self, what: str, value: Any) -> InputError:
        return InputError(what, row=self.row, value=value, remedy=RERUN_REMEDY)


def parse_result(text: str, delimiter: str | None = None, decimal: str | None = None) -> list[ResultLine]:
    """The lines of a result, however it was written, and whatever the order and case of its columns."""
    names, rows = read_cells(text, delimiter, decimal)
    places = {name: i for i, name in enumerate(names)}
    return [_parse_line(row, len(names), places, cells) for row, cells in rows]


def _parse_line(row: int, width: int, names: Mapping[str, int], cells: Sequence[str]) -> ResultLine:
    if len(cells) != width:
        what = f"{formatting.format_count(len(cells), 'cell')} of {width}: it is cut short, or text in it is not quoted"
        raise InputError(what, row=row, value=len(cells), remedy=CSV_REMEDY)
    what, place, label, level = (cells[names[name]] for name in HEADER[:4])
    if (what := what.strip()) not in _LINE_KINDS:
        raise InputError(f"{what!r} is none of {', '.join(_LINE_KINDS)}", row=row, value=what, remedy=RERUN_REMEDY)
    try:
        return ResultLine(row, what, int(float(place)), label, level, cells, names)
    except (ValueError, OverflowError):
        raise InputError(f"place is {place!r}", row=row, value=place, remedy=RERUN_REMEDY) from None


def plan_lines(lines: Sequence[ResultLine]) -> list[str]:
    """The lines of text that stand before the counts, in their order."""
    some = _index_lines((line for line in lines if line.what == PLAN), lambda line: line.place)
    if sorted(some) != list(range(len(some))) or not some:
        raise InputError("lines of the plan are missing", value=sorted(some), remedy=RERUN_REMEDY)
    return [some[i].level for i in range(len(some))]


def build_counts(lines: Sequence[ResultLine], rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """The counts of a plan from the result of its query; ``prepared`` is that of the query."""
    unlabelled = sum(line.number("rows") for line in lines if line.what == UNLABELLED)
    blank = [line for line in lines if line.what in _OF_CLASSES and is_missing_label(line.label)]
    if blank:  # the database keeps empty text as a value; it is a missing label
        unlabelled += sum(line.number("rows") for line in blank if line.what == CLASS)
        lines = [line for line in lines if line.what not in _OF_CLASSES or not is_missing_label(line.label)]
    classes = _index_lines((line for line in lines if line.what == CLASS), lambda line: line.label)
    asked = list(query_columns(rows.source, prepared, rows.weight))  # type: ignore[arg-type]
    _check_rows(classes, unlabelled)
    _check_places(lines, asked, classes)
    answers: dict[str, list[Any]] = {"rows": [line.number("rows") for line in classes.values()]}
    if rows.weight is not None:
        answers["least weight"] = [line.figure("low") for line in classes.values()]
        answers["weights missing"] = [line.number("absent") for line in classes.values()]
    check_weights(answers, rows.weight)
    answers["weight"] = [_line_weight(line, rows.weight is not None) for line in classes.values()]
    answers |= _number_answers(lines, asked, classes)
    of_place: dict[int, list[ResultLine]] = defaultdict(list)
    for line in (line for line in lines if line.what in (LEVEL, MISSING)):
        of_place[line.place].append(line)
    for column in (column for _, columns in asked for column in columns if column.is_counted_by_level):
        mine, text_levels = of_place[_column_place(column)], column.name in prepared.text_level_columns
        answers[levels_key(column)] = _level_weights(mine, column, classes, text_levels)
    labels = parse_level_texts(classes, rows.source.columns[rows.target], rows.target in prepared.text_level_columns)
    keys, times = {}, Counter[Any]()
    for g, label in enumerate(classes):  # what means an earlier class is counted separately, and added
        keys[labels[label], times[labels[label]]] = g
        times[labels[label]] += 1
    whole = reduce(add, make_fold_counts(prepared.plan, asked, keys, answers, max(times.values())))
    return CountResult([whole], int(unlabelled))


def _number_answers(
    lines: Sequence[ResultLine], asked: Sequence[PartColumns], classes: Mapping[str, ResultLine]
) -> dict[str, list[Any]]:
    """What was asked of columns of numbers, in every class."""
    found = _index_lines((line for line in lines if line.what == NUMBERS), lambda line: (line.place, line.label))
    out: dict[str, list[Any]] = {}
    for part, columns in asked:
        for column in (column for column in columns if not column.is_counted_by_level):
            mine = [found.get((_column_place(column), label)) for label in classes]
            if any(line is None for line in mine):
                label = list(classes)[mine.index(None)]
                what = f"no line of the numbers of class {label!r}: the result is cut short"
                raise InputError(what, column=column.name, value=label, remedy=RERUN_REMEDY)
            keys = list(get_statistic(part).select_expressions(part, [column], column.dialect))
            names = [key.removeprefix(f"{column.alias}_") for key in keys]
            some = [_check_figures(line, names, classes[line.label], column) for line in mine if line is not None]
            out |= {key: [figures[name] for figures in some] for key, name in zip(keys, names, strict=True)}
    return out


def _check_figures(
    line: ResultLine, names: Sequence[str], of: ResultLine, column: SourceColumn
) -> dict[str, float | None]:
    """The numbers of a line for a column, if rows of its class can have them."""
    n, most = _line_weight(line, weighted := column.weight is not None), of.number("n")
    out = {name: line.figure(name) for name in names}
    if n > most * (1 + _WEIGHT_TOLERANCE * weighted):
        raise line.error(f"n is {n:g}, more than the {most:g} of class {line.label!r}", n)
    for name, value in out.items():
        if value is None and n > 0:
            raise line.error(f"{name} is missing", None)
    if "middle" in out:
        out["middle"] = _line_middle(line, column)
    if (above := out.get("above") or 0.0) > n * (1 + _WEIGHT_TOLERANCE * weighted) or (not weighted and above % 1):
        raise line.error(f"above is {above:g}, which {n:g} cannot be", above)
    gap, square = out.get("gap") or 0.0, out.get("square")
    if (
        square is not None and gap * gap > n * square * (1 + _WEIGHT_TOLERANCE) + _SMALLEST_SCALE
    ):  # by Cauchy and Schwarz
        raise line.error(f"square is {square:g}, less than {n:g} numbers with a gap of {gap:g} can have", square)
    return out


def _line_middle(line: ResultLine, column: SourceColumn) -> float:
    """The middle that a column was summed around: that of the plan, which has all its digits."""
    near: float = column.middle_value  # type: ignore[assignment]  # one for all labels
    if not math.isclose(line.number("middle"), near, rel_tol=1e-3):
        raise line.error(f"middle is {line.number('middle'):g}, and {near:g} in the plan: it was changed", near)
    return near


def written_digits(lines: Sequence[ResultLine], near: Mapping[int, float]) -> int | None:
    """In how many digits numbers were written, where these are not all that they had; ``near`` is of each place."""
    of_middle = [line for line in lines if line.what == NUMBERS and line.figure("middle") is not None]
    lost = [line.cells[line.names["middle"]] for line in of_middle if line.figure("middle") != near.get(line.place)]
    return max((len(re.sub(r"[eE].*|\D", "", text).strip("0")) for text in lost), default=None)


def _line_weight(line: ResultLine, weighted: bool) -> float:
    """The weight of a line: of rows without weights a whole number, and of a class that of its rows."""
    n = line.number("n")
    if not weighted and n % 1:
        raise line.error(f"n is {n!r}, which is not a number of rows", n)
    if not weighted and line.what == CLASS and n != line.number("rows"):
        raise line.error(f"n is {n:g} in a class of {line.number('rows'):g} rows", n)
    return n


def _level_weights(
    lines: Sequence[ResultLine], column: SourceColumn, classes: Mapping[str, ResultLine], text_levels: bool
) -> list[dict[Any, float]]:
    """The weight of each level of a column in every class, from its lines."""
    _index_lines(lines, lambda line: (line.what, line.label, line.level if line.what == LEVEL else None))
    counted: dict[str, dict[str, float]] = {label: {} for label in classes}
    total, weighted = dict.fromkeys(classes, 0.0), column.weight is not None
    for line in lines:
        n = _line_weight(line, weighted)
        total[line.label] += n
        if line.what == LEVEL:
            counted[line.label][line.level] = n
    for label, line in classes.items():
        if not math.isclose(
            total[label], line.number("n"), rel_tol=_WEIGHT_TOLERANCE * weighted, abs_tol=1e-9 * weighted
        ):
            what = f"levels of {total[label]:g} rows in class {label!r}, which has {line.number('n'):g}"
            raise InputError(f"{what}: the result is cut short", column=column.name, value=label, remedy=RERUN_REMEDY)
    texts = {level for some in counted.values() for level in some}
    if column.grid is not None:
        values: dict[str, Any] = {text: int(float(text)) for text in texts}
    else:
        values = parse_level_texts(texts, column.type, text_levels)
    out = [defaultdict[Any, float](float) for _ in classes]
    for sums, label in zip(out, classes, strict=True):
        for text, n in counted[label].items():
            sums[values[text]] += n
    return [dict(sums) for sums in out]


def parse_level_texts(texts: Collection[str], kind: str, text_formats: bool) -> dict[str, Any]:
    """What labels or levels were before they became text: by the type of their column, or by what all of them are.

    >>> (
    ...     parse_level_texts(["1", "0"], "BOOLEAN", False),
    ...     parse_level_texts(["1", "2"], "VARCHAR", False),
    ...     parse_level_texts(["1", "2"], "VARCHAR", True),
    ... )
    ({'1': True, '0': False}, {'1': '1', '2': '2'}, {'1': 1, '2': 2})
    """
    if text_formats:
        return parse_levels(list(texts))
    if kind.upper() == "BOOLEAN":
        return {text: _BOOLEANS.get(text, parse_value(text)) for text in texts}
    if _TYPED.match(kind.upper()) is None:
        return dict(zip(texts, texts, strict=True))
    return {
        text: text if (value := parse_value(text)) is None else _convert_to_type(text, value, kind.upper())
        for text in texts
    }


def _convert_to_type(text: str, value: Any, kind: str) -> Any:
    """A text as a value of its column's type, however many digits it has: 1 of a decimal 1.00."""
    if type(value) not in (int, float):
        return value
    return (
        float(value) + 0.0 if kind.startswith(("DOUBLE", "FLOAT", "REAL")) else to_plain_value(Decimal(text))
    )  # -0.0 is 0.0


def _check_rows(classes: Mapping[str, ResultLine], unlabelled: float) -> None:
    """Refuse a result without classes, or in which they have other than the rows of the table."""
    if not classes:
        raise InputError("no line of a class: the result is cut short, or no row has a label", remedy=RERUN_REMEDY)
    found = sum(line.number("rows") for line in classes.values()) + unlabelled
    for line in classes.values():
        if line.number("table_rows") % 1:
            text = line.cells[line.names["table_rows"]]
            raise line.error(f"table_rows is {text}, no whole number: it has marks of thousands, or was rounded", text)
        if found != line.number("table_rows"):
            what = f"classes of {found:g} rows in a table of {line.number('table_rows'):g}: the result is cut short"
            raise InputError(what, row=line.row, value=found, remedy=RERUN_REMEDY)


def _check_places(lines: Iterable[ResultLine], asked: Sequence[PartColumns], classes: Collection[str]) -> None:
    """Refuse lines of columns that were not asked of, or of classes that have no line of their own."""
    known: dict[bool, set[int]] = {True: set(), False: set()}
    for column in (column for _, columns in asked for column in columns):
        known[column.is_counted_by_level].add(_column_place(column))
    for line in (line for line in lines if line.what in (NUMBERS, LEVEL, MISSING)):
        if line.place not in known[line.what != NUMBERS]:
            raise line.error(f"place is {line.place}, and the plan has no such column", line.place)
        if line.label not in classes:
            raise line.error(f"class {line.label!r} has no line of its own", line.label)


def _index_lines(lines: Iterable[ResultLine], key: Any) -> dict[Any, ResultLine]:
    """Lines by their key, each once."""
    out: dict[Any, ResultLine] = {}
    for line in lines:
        before = out.setdefault(key(line), line)
        if before is not line:
            raise line.error(f"it repeats line {before.row}: a result was pasted twice", key(line))
    return out


def _column_place(column: SourceColumn) -> int:
    return int(column.alias.removeprefix("f"))
