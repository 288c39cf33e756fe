"""Read and check the result of an offline counting query (:mod:`candide.engines.sql.offline_query`).

Clients write a table in many ways; the quotes in the plan, which begins every result, show how cells are quoted.
Ambiguous files are rejected: tables drawn for the eye, and commas of decimals or of thousands. So is a result that was
cut short, pasted twice or changed by hand: classes must have the rows of the table and a line of possible figures for
each numeric column, and the levels of a column must sum to the rows of the class.
"""

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import chain, islice
from operator import add
from typing import Any

from candide import formatting
from candide.data.labels import is_missing_label, parse_levels
from candide.data.text_formats import parse_value, to_plain_value
from candide.engines.base import CountResult, LabelledSource, PreparedSource
from candide.engines.sql.dialect import SourceColumn
from candide.engines.sql.offline_query import CLASS, FIGURES, HEADER, LEVEL, MISSING, NUMBERS, PLAN, UNLABELLED
from candide.engines.sql.source import PartColumns, check_weights, make_fold_counts, query_columns
from candide.engines.sql.statistics import get_statistic, levels_key
from candide.errors import InputError

_RERUN_REMEDY = "run the query of candide sql count again, and keep its whole result"
_CSV_REMEDY = "write it as a CSV with a header, such as psql --csv -f count.sql -o counts.csv or sqlite3 -header -csv"
_MAX_LINES_BEFORE_HEADER = 10  # messages of a client, an empty line
_RULE_LINE = re.compile(r"[-+|:=\s]*--[-+|:=\s]*")  # a line under a header, for the eye
_CLIENT_MESSAGE = re.compile(r"\(?(?P<rows>\d+) rows?\b.*|Time: .*|Timing is o.*", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_NUMBER_WITH_THOUSANDS = {  # by the decimal mark
    mark: re.compile(rf"[-+]?(\d{{1,3}}({other}\d{{3}})+({point}\d*)?|\d*({point}\d*)?([eE][-+]?\d+)?)")
    for mark, point, other in ((".", "[.]", ","), (",", ",", "[.]"))
}
_ESCAPED_PLAN = re.compile(r'^[^{]*{.*\\\\[u"]')  # tabs and line ends in cells with backslashes, as COPY writes them
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_LINE_KINDS = (PLAN, CLASS, UNLABELLED, NUMBERS, LEVEL, MISSING)
_KINDS_WITH_CLASS = (CLASS, NUMBERS, LEVEL, MISSING)
_NULLS = ("", "null", "none", "\\n", "(null)", "<null>")  # as programs write a null into a file
_NEVER_NEGATIVE = ("n", "rows", "table_rows", "square", "above", "absent")
_TYPED = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC|DATE|TIME|INTERVAL")
_WEIGHT_TOLERANCE = 1e-6  # relative difference of sums of weights in another order, for 1e9 rows
_SMALLEST_SCALE = 1e-300  # the square of a smaller number has few digits

FileRow = tuple[int, list[str]]  # the line of the file that it ends in, and its cells


@dataclass(slots=True)
class ResultLine:
    """A line of a result: its kind, column, class, level and cells; ``row`` is its line in the file."""

    row: int
    what: str
    place: int
    label: str
    level: str
    cells: Sequence[str]
    names: Mapping[str, int]  # of the cells, the same for all lines

    def figure(self, name: str) -> float | None:
        """A number of the line, or None where the cell is null."""
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
        """A number of the line that cannot be missing."""
        value = self.figure(name)
        if value is None:
            raise self.error(f"{name} is missing", None)
        return value

    def weight(self, weighted: bool) -> float:
        """The weight of the line; without weights, a number of rows."""
        n = self.number("n")
        if not weighted and n % 1:
            raise self.error(f"n is {n!r}, which is not a number of rows", n)
        if not weighted and self.what == CLASS and n != self.number("rows"):
            raise self.error(f"n is {n:g} in a class of {self.number('rows'):g} rows", n)
        return n

    def error(self, what: str, value: Any) -> InputError:
        return InputError(what, row=self.row, value=value, remedy=_RERUN_REMEDY)


def parse_result(text: str, delimiter: str | None = None, decimal: str | None = None) -> list[ResultLine]:
    """The lines of a result, with its columns in any order and case."""
    csv.field_size_limit(1 << 30)  # a plan may be long
    text = text.lstrip("\ufeff")
    lines = io.StringIO(text, newline="")
    start, names, separator = _find_header(lines, delimiter)
    if '{"candide"' in text:
        quoting: dict[str, Any] = {"quoting": csv.QUOTE_NONE}
    else:
        quoting = {"doublequote": False, "escapechar": "\\"} if '{\\"candide' in text else {}
    rows = list(_read_rows(csv.reader(lines, delimiter=separator, **quoting), start, separator))
    if separator == "\t" and "quoting" in quoting and ("\t\\N" in text or _ESCAPED_PLAN.search(text)):
        rows = [(row, [_unescape(cell) for cell in cells]) for row, cells in rows]
    rows = _normalise_decimals(text, names, rows, separator, decimal)
    places = {name: i for i, name in enumerate(names)}
    out = []
    for row, cells in rows:
        if len(cells) != len(names):
            n = formatting.format_count(len(cells), "cell")
            cut = f"{n} of {len(names)}: it is cut short, or text in it is not quoted"
            raise InputError(cut, row=row, value=len(cells), remedy=_CSV_REMEDY)
        what, place, label, level = (cells[places[name]] for name in HEADER[:4])
        if (what := what.strip()) not in _LINE_KINDS:
            raise InputError(f"{what!r} is none of {', '.join(_LINE_KINDS)}", row=row, value=what, remedy=_RERUN_REMEDY)
        try:
            out.append(ResultLine(row, what, int(float(place)), label, level, cells, places))
        except (ValueError, OverflowError):
            raise InputError(f"place is {place!r}", row=row, value=place, remedy=_RERUN_REMEDY) from None
    return out


def _find_header(lines: Any, delimiter: str | None) -> tuple[int, list[str], str]:
    lacking = list(HEADER)
    for at, line in enumerate(islice(iter(lines.readline, ""), _MAX_LINES_BEFORE_HEADER), 1):
        separator = delimiter or max(",;\t|", key=line.count)
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=separator), [])]
        absent = [name for name in HEADER if name not in names]
        if not absent:
            return at, names, separator
        if at == 1 and line.lstrip('"').startswith(PLAN):
            raise InputError("it has no header: its first line is the plan", row=at, remedy=_CSV_REMEDY)
        lacking = min(lacking, absent, key=len)
    what = f"no column {lacking[0]!r}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
    raise InputError(f"it has {what}, and is not a result of candide sql count", value=lacking, remedy=_CSV_REMEDY)


def _read_rows(reader: Any, start: int, separator: str) -> Iterator[FileRow]:
    """The rows that are not empty, without messages of a client."""
    n = 0
    for cells in reader:
        row, line = start + reader.line_num, separator.join(cells).strip()
        if not line.strip(separator):
            continue
        if not n and _RULE_LINE.fullmatch(line):
            raise InputError("it is a table drawn for the eye, not a CSV", row=row, value=line[:40], remedy=_CSV_REMEDY)
        if len(cells) < len(HEADER) and (message := _CLIENT_MESSAGE.fullmatch(line)):
            if message["rows"] and int(message["rows"]) != n:
                what = f"it ends with {line} and has {n} rows: it is cut short, or text in it is not quoted"
                raise InputError(what, row=row, value=n, remedy=_CSV_REMEDY)
            continue
        n += 1
        yield row, cells


def _unescape(cell: str) -> str:
    return cell if cell == "\\N" else re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), cell)


def _normalise_decimals(
    text: str, names: Sequence[str], rows: list[FileRow], separator: str, decimal: str | None
) -> list[FileRow]:
    """Rows whose numbers have decimal points, and no marks of thousands."""
    comma = r'"[-+]?\d*,\d' if separator == "," else rf"[{separator}\"][-+]?\d*,\d"
    if decimal is None and not re.search(comma, text):  # as in nearly all
        return rows
    places = [names.index(name) for name in FIGURES]
    cells_at = [(row, cells, i) for row, cells in rows for i in places if i < len(cells)]
    decimal = decimal or _detect_decimal([(row, cells[i].strip()) for row, cells, i in cells_at])
    other = "." if decimal == "," else ","
    for row, cells, i in cells_at:
        if other in cells[i] and not _NUMBER_WITH_THOUSANDS[decimal].fullmatch(cells[i].strip()):
            what = f"{cells[i]!r} is not a number with the decimal mark {decimal!r}"
            remedy = "pass its decimal mark (--decimal), or leave the option out"
            raise InputError(what, row=row, value=cells[i], remedy=remedy)
        cells[i] = cells[i].replace(other, "").replace(decimal, ".")
    return rows


def _detect_decimal(cells: Sequence[tuple[int, str]]) -> str:
    """The decimal mark; an error where a comma may be a mark of decimals or of thousands."""
    with_comma = [(row, cell) for row, cell in cells if "," in cell]
    if not with_comma:
        return "."
    has_points, is_grouped = any("." in cell for _, cell in cells), all(_THOUSANDS.fullmatch(c) for _, c in with_comma)
    if not has_points and not is_grouped and all(_DECIMAL.fullmatch(cell) for _, cell in with_comma):
        return ","
    row, cell = next(((row, cell) for row, cell in with_comma if _THOUSANDS.match(cell)), with_comma[0])
    remedy = "write numbers plain, 1234.5, or pass the decimal mark: --decimal . or --decimal ,"
    raise InputError(f"{cell!r} has a comma, of thousands or before decimals", row=row, value=cell, remedy=remedy)


def plan_lines(lines: Sequence[ResultLine]) -> list[str]:
    """The lines of text that describe the plan, in order."""
    by_place = _index_lines(lines, [PLAN], lambda line: line.place)
    if sorted(by_place) != list(range(len(by_place))) or not by_place:
        raise InputError("lines of the plan are missing", value=sorted(by_place), remedy=_RERUN_REMEDY)
    return [by_place[i].level for i in range(len(by_place))]


def build_counts(lines: Sequence[ResultLine], rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """The counts of a plan from the result of its query; ``prepared`` is that of the query."""
    unlabelled = sum(line.number("rows") for line in lines if line.what == UNLABELLED)
    blank = [line for line in lines if line.what in _KINDS_WITH_CLASS and is_missing_label(line.label)]
    if blank:  # the database keeps empty text as a value; it is a missing label
        unlabelled += sum(line.number("rows") for line in blank if line.what == CLASS)
        lines = [line for line in lines if line.what not in _KINDS_WITH_CLASS or not is_missing_label(line.label)]
    classes = _index_lines(lines, [CLASS], lambda line: line.label)
    part_columns = list(query_columns(rows.source, prepared, rows.weight))  # type: ignore[arg-type]
    _check_rows(classes, unlabelled)
    _check_places(lines, part_columns, classes)
    answers: dict[str, list[Any]] = {"rows": [line.number("rows") for line in classes.values()]}
    if rows.weight is not None:
        answers["least weight"] = [line.figure("low") for line in classes.values()]
        answers["weights missing"] = [line.number("absent") for line in classes.values()]
    check_weights(answers, rows.weight)
    answers["weight"] = [line.weight(rows.weight is not None) for line in classes.values()]
    answers |= _number_answers(lines, part_columns, classes)
    level_lines = defaultdict[int, list[ResultLine]](list)
    for line in (line for line in lines if line.what in (LEVEL, MISSING)):
        level_lines[line.place].append(line)
    for column in (column for _, columns in part_columns for column in columns if column.is_counted_by_level):
        is_text = column.name in prepared.text_level_columns
        answers[levels_key(column)] = _level_weights(level_lines[column.place], column, classes, is_text)
    labels = parse_level_texts(classes, rows.source.columns[rows.target], rows.target in prepared.text_level_columns)
    keys, times = {}, Counter[Any]()
    for group, text in enumerate(classes):  # texts of one class are counted as folds, and added
        keys[labels[text], times[labels[text]]] = group
        times[labels[text]] += 1
    folds = make_fold_counts(prepared.plan, part_columns, keys, answers, max(times.values()))
    return CountResult([reduce(add, folds)], int(unlabelled))


def _number_answers(
    lines: Sequence[ResultLine], part_columns: Sequence[PartColumns], classes: Mapping[str, ResultLine]
) -> dict[str, list[Any]]:
    by_class = _index_lines(lines, [NUMBERS], lambda line: (line.place, line.label))
    out: dict[str, list[Any]] = {}
    for part, columns in part_columns:
        for column in (column for column in columns if not column.is_counted_by_level):
            keys = list(get_statistic(part).select_expressions(part, [column], column.dialect))
            names = [key.removeprefix(f"{column.alias}_") for key in keys]
            out |= {key: [] for key in keys}
            for label, of_class in classes.items():
                line = by_class.get((column.place, label))
                if line is None:
                    what = f"no line of the numbers of class {label!r}: the result is cut short"
                    raise InputError(what, column=column.name, value=label, remedy=_RERUN_REMEDY)
                figures = _check_figures(line, names, of_class, column)
                for key, name in zip(keys, names, strict=True):
                    out[key].append(figures[name])
    return out


def _check_figures(
    line: ResultLine, names: Sequence[str], of_class: ResultLine, column: SourceColumn
) -> dict[str, float | None]:
    """The numbers of a line for a column, if rows of its class can have them."""
    weighted = column.weight is not None
    n, limit, slack = line.weight(weighted), of_class.number("n"), 1 + _WEIGHT_TOLERANCE * weighted
    out = {name: line.figure(name) for name in names}
    if n > limit * slack:
        raise line.error(f"n is {n:g}, more than the {limit:g} of class {line.label!r}", n)
    for name, value in out.items():
        if value is None and n > 0:
            raise line.error(f"{name} is missing", None)
    if "middle" in out:  # that of the plan has all its digits
        middle: float = column.middle_value  # type: ignore[assignment]  # one for all labels
        if not math.isclose(written := line.number("middle"), middle, rel_tol=1e-3):
            raise line.error(f"middle is {written:g}, and {middle:g} in the plan: it was changed", middle)
        out["middle"] = middle
    if (above := out.get("above") or 0.0) > n * slack or (not weighted and above % 1):
        raise line.error(f"above is {above:g}, which {n:g} cannot be", above)
    gap, square = out.get("gap") or 0.0, out.get("square")
    # the Cauchy-Schwarz inequality
    if square is not None and gap * gap > n * square * (1 + _WEIGHT_TOLERANCE) + _SMALLEST_SCALE:
        raise line.error(f"square is {square:g}, less than {n:g} numbers with a gap of {gap:g} can have", square)
    return out


def written_digits(lines: Sequence[ResultLine], near: Mapping[int, float]) -> int | None:
    """To how many digits numbers were rounded in the file, None if they were not; ``near`` has the exact middles."""
    with_middle = [line for line in lines if line.what == NUMBERS and line.figure("middle") is not None]
    lost = [line.cells[line.names["middle"]] for line in with_middle if line.figure("middle") != near.get(line.place)]
    return max((len(re.sub(r"[eE].*|\D", "", text).strip("0")) for text in lost), default=None)


def _level_weights(
    lines: Sequence[ResultLine], column: SourceColumn, classes: Mapping[str, ResultLine], is_text: bool
) -> list[dict[Any, float]]:
    _index_lines(lines, (LEVEL, MISSING), lambda line: (line.what, line.label, line.what == LEVEL and line.level))
    weights: dict[str, dict[str, float]] = {label: {} for label in classes}
    total, weighted = dict.fromkeys(classes, 0.0), column.weight is not None
    for line in lines:
        n = line.weight(weighted)
        total[line.label] += n
        if line.what == LEVEL:
            weights[line.label][line.level] = n
    relative, absolute = _WEIGHT_TOLERANCE * weighted, 1e-9 * weighted
    for label, line in classes.items():
        if not math.isclose(total[label], line.number("n"), rel_tol=relative, abs_tol=absolute):
            what = f"levels of {total[label]:g} rows in class {label!r}, which has {line.number('n'):g}"
            raise InputError(f"{what}: the result is cut short", column=column.name, value=label, remedy=_RERUN_REMEDY)
    texts = set(chain.from_iterable(weights.values()))
    if column.grid is not None:
        values: dict[str, Any] = {text: int(float(text)) for text in texts}
    else:
        values = parse_level_texts(texts, column.type, is_text)
    out: list[dict[Any, float]] = [{} for _ in classes]
    for sums, levels in zip(out, weights.values(), strict=True):
        for text, n in levels.items():
            sums[values[text]] = sums.get(values[text], 0.0) + n
    return out


def parse_level_texts(texts: Collection[str], kind: str, is_text: bool) -> dict[str, Any]:
    """The values that labels or levels were before they became text: by their type, or by what all of them are.

    >>> parse_level_texts(["1", "0"], "BOOLEAN", False), parse_level_texts(["1", "2"], "VARCHAR", False)
    ({'1': True, '0': False}, {'1': '1', '2': '2'})
    >>> parse_level_texts(["1", "2"], "VARCHAR", True)
    {'1': 1, '2': 2}
    """
    kind = kind.upper()
    if is_text:
        return parse_levels(list(texts))
    if kind == "BOOLEAN":
        bits = {"1": True, "0": False}  # as SQL Server and MySQL write them
        return {text: bits.get(text, parse_value(text)) for text in texts}
    if _TYPED.match(kind) is None:
        return dict(zip(texts, texts, strict=True))
    out: dict[str, Any] = {}
    for text in texts:
        value = parse_value(text)
        if type(value) in (int, float):  # whatever its digits: 1 for a decimal 1.00, 0.0 for -0.0
            is_float = kind.startswith(("DOUBLE", "FLOAT", "REAL"))
            value = float(value) + 0.0 if is_float else to_plain_value(Decimal(text))
        out[text] = text if value is None else value
    return out


def _check_rows(classes: Mapping[str, ResultLine], unlabelled: float) -> None:
    """Reject a result without classes, or whose classes do not have the rows of the table."""
    if not classes:
        raise InputError("no line of a class: the result is cut short, or no row has a label", remedy=_RERUN_REMEDY)
    n = sum(line.number("rows") for line in classes.values()) + unlabelled
    for line in classes.values():
        table_rows = line.number("table_rows")
        if table_rows % 1:
            text = line.cells[line.names["table_rows"]]
            raise line.error(f"table_rows is {text}, not a whole number: with marks of thousands, or rounded", text)
        if n != table_rows:
            raise line.error(f"classes of {n:g} rows in a table of {table_rows:g}: the result is cut short", n)


def _check_places(lines: Iterable[ResultLine], part_columns: Sequence[PartColumns], classes: Collection[str]) -> None:
    """Reject lines of columns that are not in the plan, or of classes without a line of a class."""
    columns = [column for _, group in part_columns for column in group]
    places = {(column.place, column.is_counted_by_level) for column in columns}
    for line in (line for line in lines if line.what in (NUMBERS, LEVEL, MISSING)):
        if (line.place, line.what != NUMBERS) not in places:
            raise line.error(f"place is {line.place}, and the plan has no such column", line.place)
        if line.label not in classes:
            raise line.error(f"class {line.label!r} has no line of its own", line.label)


def _index_lines(
    lines: Iterable[ResultLine], kinds: Sequence[str], key: Callable[[ResultLine], Any]
) -> dict[Any, ResultLine]:
    """The lines of kinds by their key; a key that occurs twice is an error."""
    out: dict[Any, ResultLine] = {}
    for line in (line for line in lines if line.what in kinds):
        first = out.setdefault(key(line), line)
        if first is not line:
            raise line.error(f"it repeats line {first.row}: a result was pasted twice", key(line))
    return out
