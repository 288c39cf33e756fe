"""The operations of score expressions as SQL: values are (feature, class) lists of expressions and numbers."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from candide.errors import InputError
from candide.export.python_js.numbers import decode_numbers, split_rows
from candide.export.python_js.operations import ELEMENTWISE, read_cells, read_tables
from candide.export.sql.joint import conditional, distance
from candide.export.sql.layers import (
    MAX_FINITE_SQUARE,
    Layers,
    Square,
    clip,
    format_number,
    guarded_exp,
    largest_of,
    log1p,
    log_rising,
    square_of,
    sum_of,
    summands_of_items,
)
from candide.export.sql.lookups import ScoringQuery

N_CELLS, TABLES_PER_NUMBER = 256, 6  # a cell is a byte, and a double has 53 bits
MAX_CELL_SCORES = 2_000_000  # in one query
Part = dict[str, Any]
Cell = Any  # SQL, or a number
Value = list[list[Cell]]  # (feature, class); of one feature where it holds for all


def add_score(scoring: ScoringQuery, part: Part) -> None:
    """Add the contributions of a part, weighted, to the classes."""
    k, values = scoring.n_classes, {}
    uses = Counter(name for _, *names in part["score"] for name in names)
    if uses["x"]:
        values["x"] = [[scoring.number(read)] * k for read in part["reads"]]
    for i, (operation, *names) in enumerate(part["score"]):
        if operation in TABLES:
            return TABLES[operation](scoring, part)
        if operation in JOINT:
            out = JOINT[operation](scoring, part, *(values.get(name, name) for name in names))
        elif operation in REDUCTIONS:
            out = REDUCTIONS[operation](scoring, *(values[name] for name in names))
        else:
            out = _elementwise(scoring, operation, [_value(scoring, part, values, name) for name in names])
        if uses[f"#{i}"] > 1 and operation not in CONDITIONS:
            out = [[scoring.layers.add_value(cell) if type(cell) is str else cell for cell in row] for row in out]
        values[f"#{i}"] = out
    for weight, row in zip(_feature_weights(part), out, strict=True):
        if weight:
            scoring.has_impossible |= -math.inf in row
            factor = "" if weight == 1 else f"{format_number(weight)} * "
            scoring.add_terms([f"{factor}({_text(cell)})" if factor else _text(cell) for cell in row])
    return None


def _value(scoring: ScoringQuery, part: Part, values: dict[str, Value], name: Any) -> Value:
    if name in values:
        return values[name]
    return split_rows(decode_numbers(part[name]), scoring.n_classes) if name in part else [[float(name)]]


def _elementwise(scoring: ScoringQuery, operation: str, values: list[Value]) -> Value:
    k, print_sql = scoring.n_classes, OPERATIONS[operation]

    def apply(*cells: Cell) -> Cell:
        if not any(isinstance(cell, str) for cell in cells):
            return ELEMENTWISE[operation](*cells)
        scoring.has_impossible |= operation == "square" or any(cell in (math.inf, -math.inf) for cell in cells)
        return print_sql(scoring.layers, *cells)

    out = []
    for j in range(max(map(len, values))):
        rows = [value[min(j, len(value) - 1)] for value in values]
        out.append([apply(*cells) for cells in zip(*(row if len(row) == k else row * k for row in rows), strict=True)])
    return out


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else format_number(cell)


def _infix(sign: str) -> Callable[[Layers, Cell, Cell], str]:
    return lambda layers, a, b: f"({_text(a)} {sign} {_text(b)})"


def _divide(layers: Layers, a: Cell, b: Cell) -> str:
    text = f"({_text(a)} / {_text(b)})"
    return Square(text, a.difference, a.factor, b) if isinstance(a, Square) else text


def _log1p(layers: Layers, factor: float, x: str) -> str:
    """factor log(1 + x), -inf where x is a square that is too large."""
    if not isinstance(x, Square):
        return f"({format_number(factor)} * {log1p(layers, x, factor)})"
    difference, far = layers.add_value(x.difference), MAX_FINITE_SQUARE * math.sqrt(min(x.divisor, 1.0))
    size = f"{square_of(layers, difference, x.factor, far)} / {format_number(x.divisor)}"
    limit = format_number(min(far / x.factor, 1e300))
    score = f"{format_number(factor)} * {log1p(layers, size, factor)}"
    return f"CASE WHEN ABS({difference}) > {limit} THEN {format_number(-math.inf)} ELSE {score} END"


def _where(layers: Layers, condition: Cell, yes: Cell, no: Cell) -> str:
    if isinstance(condition, bool):
        return yes if condition else no
    return f"CASE WHEN {condition} THEN {_text(yes)} ELSE {_text(no)} END"


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _infix("+"),
    "subtract": _infix("-"),
    "multiply": _infix("*"),
    "divide": _divide,
    "clip": clip,
    "square": lambda layers, x, factor: Square(square_of(layers, x, factor), x, factor, 1.0),
    "log": lambda layers, x: f"{layers.dialect.log_function}({x})",
    "log1p": _log1p,
    "exp": lambda layers, x: guarded_exp(layers.add_value(x)),
    "log_rising": lambda layers, a, x: log_rising(layers, a, layers.add_value(x)),
    "less": lambda layers, a, b: f"{_text(a)} < {_text(b)}",
    "less_equal": lambda layers, a, b: f"{_text(a)} <= {_text(b)}",
    "equal": lambda layers, a, b: f"{_text(a)} = {_text(b)}",
    "is_missing": lambda layers, x: f"{x} IS NULL",
    "where": _where,
}
CONDITIONS = ("less", "less_equal", "equal", "is_missing")
REDUCTIONS: dict[str, Callable[..., Value]] = {
    "sum": lambda scoring, x: [[scoring.layers.add_value(sum_of(cells)) for cells in zip(*x, strict=True)]],
    "class_sum": lambda scoring, x: [[scoring.layers.add_value(sum_of(row))] * len(row) for row in x],
    "class_max": lambda scoring, x: [[largest_of(scoring.layers, row)] * len(row) for row in x],
    "stack": lambda scoring, *values: [row for value in values for row in value],
}


def _feature_weights(part: Part) -> list[float]:
    return decode_numbers(part.get("weight", [])) or [1.0] * part["features"]


def lookup(scoring: ScoringQuery, part: Part) -> None:
    table, start = split_rows(decode_numbers(part["table"]), scoring.n_classes), 0
    scoring.has_impossible |= any(math.isinf(value) for row in table for value in row)
    for read, size, weight in zip(part["reads"], part["sizes"], _feature_weights(part), strict=True):
        rows, start = table[start : start + size + 1], start + size + 1
        if weight:
            lookup = scoring.find_lookup(read)
            codes = lookup.codes(scoring.reads[read])
            by_class = zip(*([0.0] * scoring.n_classes if code < 0 else rows[code] for code in codes), strict=True)
            scoring.add_terms([lookup.column_of([weight * x if x else 0.0 for x in values]) for values in by_class])


def cells(scoring: ScoringQuery, part: Part) -> None:
    """A table of constants by the codes of the columns of each set."""
    sizes, reads = part["sizes"], part["reads"]
    sets = zip(read_cells(part, scoring.n_classes), _feature_weights(part), strict=True)
    for (columns, usual, table), weight in sets:
        if not weight:
            continue
        index = ""  # of a cell, NULL where a code is missing or unseen
        for j in columns:
            lookup = scoring.find_lookup(reads[j])
            code = lookup.codes_of(lookup.codes(scoring.reads[reads[j]]), sizes[j])
            index = f"({index}) * {sizes[j]} + {code}" if index else code
        index, default = scoring.layers.add_value(index), [weight * value for value in usual]
        rows = {at: [weight * value for value in row] for at, row in enumerate(table) if row != usual}
        scoring.has_impossible |= any(math.isinf(value) for row in [*rows.values(), default] for value in row)
        terms = [f"CASE WHEN {index} IS NULL THEN 0e0 ELSE {format_number(value)} END" for value in default]
        if rows:
            constants = scoring.layers.join_by_code(index, list(rows), scoring.n_classes)
            names = [constants.numbers(values) for values in zip(*rows.values(), strict=True)]
            terms = [f"COALESCE({name}, {term})" for name, term in zip(names, terms, strict=True)]
        scoring.add_terms(terms)


def tables(scoring: ScoringQuery, part: Part) -> None:
    """Decision tables: the sum of one number for each column has the cells of six tables.

    The first class has no scores: those of the others are relative to it.
    """
    layers, weights = scoring.layers, _feature_weights(part)
    bits, scores = read_tables(part, scoring.n_classes)
    bounds = zip(pairwise([0, *part["stops"]]), weights, strict=True)
    used = [(t, weight) for (start, stop), weight in bounds for t in range(start, stop) if weight]
    if (n := sum(len(scores[0][t]) for t, _ in used) * (scoring.n_classes - 1)) > MAX_CELL_SCORES:
        what = f"cannot be exported to SQL: its decision tables have {n} numbers, more than {MAX_CELL_SCORES}"
        remedy = "export it to python, js or onnx, or fit it with terms='interactions'"
        raise InputError(what, value=n, remedy=remedy)
    columns = []
    for read, column in zip(part["reads"], bits, strict=True):
        if any(map(any, column)):
            lookup = scoring.find_lookup(read)
            codes = lookup.codes(scoring.reads[read])
            columns.append((lookup.place, [column[code + 1 if 0 <= code < len(column) - 1 else 0] for code in codes]))
    cells = []
    for start in range(0, len(used), TABLES_PER_NUMBER):
        some = [t for t, _ in used[start : start + TABLES_PER_NUMBER]]
        items = [
            (place, [float(sum(row[t] * N_CELLS**i for i, t in enumerate(some))) for row in rows])
            for place, rows in columns
        ]
        items = [(place, numbers) for place, numbers in items if any(numbers)]
        total = layers.add_value(sum_of(summands_of_items(layers.dialect, items)))
        for i in range(len(some)):
            above = f" - {N_CELLS}e0 * FLOOR({total} / {N_CELLS ** (i + 1)}e0)" if i + 1 < len(some) else ""
            cell = layers.dialect.integer_template.format(f"FLOOR({total} / {N_CELLS**i}e0){above}")
            cells.append(layers.add_value(cell) if scoring.n_classes > 2 else cell)
    for c in range(1, scoring.n_classes):
        items = [
            (cell, [weight * (a - b) for a, b in zip(scores[c][t], scores[0][t], strict=True)])
            for cell, (t, weight) in zip(cells, used, strict=True)
        ]
        scoring.class_terms[c] += summands_of_items(layers.dialect, items)


def reject_text(scoring: ScoringQuery, part: Part) -> None:
    column = scoring.columns[scoring.reads[part["reads"][0]]["column"]].name
    remedy = "export it to python or js, or fit it without this column"
    raise InputError("cannot be exported to SQL: it is a text, scored word by word", column=column, remedy=remedy)


JOINT: dict[str, Callable[..., Value]] = {"distance": distance, "conditional": conditional}
TABLES: dict[str, Callable[[ScoringQuery, Part], None]] = {  # a whole score, with its weights in the tables
    "lookup": lookup,
    "cells": cells,
    "tables": tables,
    "tokens": reject_text,
    "polya": reject_text,
}
