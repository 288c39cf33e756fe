"""Findings: what the counts say of a table that a person should mend, or know, before a model is trusted.

>>> import candide as cd
>>> rows = {"unit": ["kg"] * 60, "size": [float(i % 7) for i in range(60)], "kind": ["a", "b", "b"] * 20}
>>> [(one.code, one.column) for one in check_counts(cd.fit(rows, "kind").counts_)]
[('constant', 'unit')]
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.column_types import early_decision_note
from candide.data.labels import Labels, has_label
from candide.data.notes import Note
from candide.data.repeated_rows import DistinctRows, find_distinct_rows, repeated_row_notes
from candide.data.table import Name, Table
from candide.data.text_formats import MISSING_MARKERS, parse_plain_number
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.plan import PlanPart
from candide.monitoring.row_checks import (
    LEAK_SHARE,
    MIN_ROWS,
    RowSample,
    check_rows,
    drop_remedy,
    find_mixed_dates,
    group_equal_labels,
    leak_note,
    normalise_label,
    sentinel_note,
)

_MISSING_MARKERS = frozenset(
    ("", "?", "na", "n/a", "nan", "null", "nil", "#n/a", "-", ".")
)  # levels that may mean "missing"
_MISSING_LABELS = _MISSING_MARKERS - {
    "-",
    ".",
    "",
}  # beside + and the like these are classes; empty text is missing anyway
_CONSTANT_TOLERANCE = (
    2 * np.finfo(float).eps
)  # by which the sd of one value, of which parts were merged, may differ from nought
_MAX_COMPARED_LEVELS = 100_000  # levels of which nobody mends the spelling
_MANY_LEVELS, _FEW_ROWS_PER_LEVEL = 50, 5  # levels that are many, and rows a level that are few
_RARE_CLASS_ROWS = 10  # rows of a class from which little can be learned
_DOMINANT_SHARE = 0.9  # share of a class beside which accuracy says little
_MAX_CHANCE = 1e-6  # below which nothing happens by chance, in any of the columns
_MAX_SHOWN = 3  # findings of a sort in a report that is about something else


def find_problems(counts: ModelCounts, sample: RowSample, head: Any) -> list[Note]:
    """All that is found in the counts of a table, in some of its rows and in the first of all columns (``head``).

    The gravest come first.
    """
    rows = _distinct(head, sample)
    copies = 1.0 if rows is None else float(rows.weight_per_draw_by_class(int(rows.y.max(initial=0)) + 1).max())
    found = list(check_counts(counts, sample.target, copies))
    known = {(one.code, one.column) for one in found}  # of all rows, and so not told again of some
    found += [one for one in check_rows(sample) if (one.code, one.column) not in known]
    found += find_mixed_dates(head, sample.target)
    found += [] if rows is None else repeated_row_notes(rows)
    return sorted(found, key=lambda one: _SEVERITY_ORDER.index(one.code))


def _distinct(head: Any, sample: RowSample) -> DistinctRows | None:
    """The distinct ones of the first rows, by all columns; None where they are too few."""
    if sample.target is None or head.num_rows < MIN_ROWS:
        return None
    labelled = head.filter(has_label(head.column(sample.target)))
    if not labelled.num_rows:
        return None
    column = labelled.column(sample.target)
    try:
        return find_distinct_rows(
            Table.from_data(labelled.drop_columns([sample.target])), Labels.from_values(column).encode(column)
        )
    except InputError:  # of an infinity, which is told where rows are counted
        return None


def find_contradictions(counts: ModelCounts, head: Any, declared: Collection[str] = ()) -> list[Note]:
    """A note on every column that is a category as its first rows hold 0 and 1 alone, though later rows do not.

    ``head`` is the table of the rows that were looked at, of Arrow or of any type that has columns by name.
    """
    table, found = Table.from_data(head), list[Note]()
    for part in counts.plan.parts:
        if part.block_kind != "codes" or part.event.is_joint or part.event.max_levels is not None:
            continue
        for name, encoding in zip(part.columns, part.encodings, strict=True):
            others = [
                v for v in getattr(encoding, "labels", Labels(())).values if _parse_number(v) not in (None, 0.0, 1.0)
            ]
            if others and str(name) not in declared and _is_binary(table, name):
                found.append(early_decision_note(name, table.n_rows, others))
    return found


def _is_binary(table: Table, name: Name) -> bool:
    """Whether a column of the rows looked at holds 0 and 1 alone."""
    if str(name) not in map(str, table.names):
        return False
    column = table.column(name if name in table.names else str(name))
    return {_parse_number(value) for value in Labels.from_values(column).values} <= {0.0, 1.0}


def _parse_number(value: Any) -> float | None:
    """The number that a level is or spells; None where it is none."""
    try:
        return parse_plain_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def check_counts(counts: ModelCounts, target: str | None = None, copies: float = 1.0) -> Iterator[Note]:
    """What the counts tell of classes and columns, where each row is there so many times."""
    yield from _repeated_header(counts, target)
    yield from _near_duplicate_notes(counts.labels, "label", None)
    yield from _missing_label_notes(counts)
    yield from _class_size_notes(counts)
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        yield from _check_part(part, tally, counts, copies)


_SEVERITY_ORDER = (
    *("repeated-header", "label-spelling", "leak", "missing-by-class", "few-rows", "imbalance"),
    *("mixed-dates", "repeated-rows"),
    *("identifier", "missing-words", "sentinel", "level-spelling", "copy", "constant", "many-levels"),
)


def _check_part(part: PlanPart, tally: Any, model_counts: ModelCounts, copies: float) -> Iterator[Note]:
    if part.event.is_joint or part.block_kind == "documents":
        return
    pooled = tally.pool()
    for j, name in enumerate(part.columns):
        if pooled.n[0, j] > 0:
            yield from _missing_by_class(name, tally.n[:, j], model_counts)
            yield from _constant_note(name, pooled.summarize_feature(j), model_counts.n_rows)
        if part.block_kind == "codes":
            counts = tally.select_features(np.array([j])).counts
            yield from _check_levels(name, part.encodings[j], counts, model_counts, copies)


def _check_levels(
    name: Name, encoding: Any, counts: Floats, model_counts: ModelCounts, copies: float
) -> Iterator[Note]:
    if not encoding.is_read_as_text:  # what numbers give away is seen in the rows
        return
    one = (
        copies * float(model_counts.class_weight.sum()) / max(model_counts.n_rows, 1)
    )  # the weight of a row with its copies
    alike, weight = (
        _merge_equal_labels(model_counts.labels, counts),
        _merge_equal_labels(model_counts.labels, model_counts.class_weight),
    )
    given_away, others = _leaked_weight(alike, one), float(weight.sum() - weight.max())
    total, levels = float(model_counts.class_weight.sum()), int((counts.sum(axis=0) > 0).sum())
    if others >= one * MIN_ROWS / 2 and total - given_away <= (1 - LEAK_SHARE) * others:
        yield leak_note(name, given_away / total)
    yield from _near_duplicate_notes(encoding.labels, "level", name)
    yield from _missing_marker_notes(name, encoding.labels)
    if odd := [v for v in encoding.labels.values if isinstance(v, str) and v.strip().lower() in _MISSING_MARKERS]:
        n = float(counts[:, encoding.labels.encode(np.array(odd[:1], object))].sum())
        yield sentinel_note(name, repr(odd[0]), n / total)
    if levels >= _MANY_LEVELS and counts.sum() < _FEW_ROWS_PER_LEVEL * one * levels:
        rows = formatting.format_count(float(counts.sum()))
        text = f"column {name!r} has {levels:,} levels in {rows}: too few rows a level to learn from"
        yield Note("many-levels", text, name, f"group its levels, or {drop_remedy(name)}")


def _merge_equal_labels(labels: Labels, counts: Floats) -> Floats:
    """Counts by class, those of classes that differ in case or spaces only as one: such labels hide no leak."""
    group = group_equal_labels(labels)
    if len(group) == group.max(initial=-1) + 1:
        return counts
    out = np.zeros((group.max() + 1, *counts.shape[1:]))
    np.add.at(out, group, counts)
    return out


def _repeated_header(counts: ModelCounts, target: str | None) -> Iterator[Note]:
    """Columns that have their own name for a value: the header stands among the rows, as in files that were joined."""
    own = [target] if target is not None and target in counts.labels.index else []
    rows = float(counts.class_weight[counts.labels.index[target]]) if own else np.inf
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        for name, n in _header_rows(part, tally):
            if name != target:
                own.append(name)
                rows = min(rows, n)
    if len(own) > 1:
        values = formatting.format_list(own, 4)
        text = (
            f"the header is repeated among the rows: {formatting.format_count(rows)} with the names {values} for values"
        )
        yield Note("repeated-header", text, None, "delete these lines", tuple(own))


def _header_rows(part: PlanPart, tally: Any) -> Iterator[tuple[str, float]]:
    """The columns that have their own name for a level, and the weight of its rows."""
    if part.block_kind != "codes" or part.event.is_joint:
        return
    for j, name in enumerate(part.columns):
        encoding: Any = part.encodings[j]
        if encoding.is_read_as_text and isinstance(name, str) and name in encoding.labels.index:
            yield name, float(tally.select_features(np.array([j])).counts[:, encoding.labels.index[name]].sum())


def _missing_marker_notes(name: Name, levels: Labels) -> Iterator[Note]:
    """Several words for a missing value among the levels of a column."""
    words = [
        v for v in levels.values if isinstance(v, str) and v.strip().lower() in (*_MISSING_MARKERS, *MISSING_MARKERS)
    ]
    if len(words) > 1 and any(word.strip().lower() in _MISSING_MARKERS for word in words):
        text = f"column {name!r}: levels {formatting.format_list(words, 4)} may all stand for a missing value"
        na = " ".join(f"--na {word!r}" for word in words[:4])
        yield Note("missing-words", text, name, f"if so, make them missing: {na} (na=[...])")


def _leaked_weight(counts: Floats, one: float) -> float:
    """The weight of the rows whose class is that of most other rows of their level."""
    if len(counts) < 2 or not counts.shape[1]:
        return 0.0
    second, first = np.partition(counts, -2, axis=0)[-2:]
    return float(first[first - one > second].sum())


def _missing_by_class(name: Name, n: Floats, counts: ModelCounts) -> Iterator[Note]:
    """Values that are missing in rows of one class only, or in all rows but those of one class."""
    group = group_equal_labels(counts.labels)
    n, weight = _merge_equal_labels(counts.labels, n), _merge_equal_labels(counts.labels, counts.class_weight)
    gone, total = np.maximum(weight - n, 0.0), float(weight.sum())
    for some, text in ((gone, "is missing"), (n, "has a value")):
        c = int(some.argmax())
        rest = gone if some is n else n
        one_only = some[c] > 0 and some[c] >= some.sum() * (1 - 1e-12) and rest.sum() > 0
        chance = (weight[c] / total) ** (some[c] * counts.n_rows / total) * len(counts.plan.columns)
        if one_only and chance < _MAX_CHANCE:
            same = np.flatnonzero(group == c)  # spellings of one label
            label = counts.labels.values[same[counts.class_weight[same].argmax()]]
            what = f"column {name!r} {text} in rows of class {label!r} only ({formatting.format_count(float(some[c]))})"
            remedy = f"find out why; where it is not so in rows to come, {drop_remedy(name)}"
            yield Note("missing-by-class", what, name, remedy)
            return


def _constant_note(name: Name, seen: dict[str, float], rows: int) -> Iterator[Note]:
    flat = "sd" in seen and seen["sd"] <= _CONSTANT_TOLERANCE * abs(seen["mean"])
    if rows >= MIN_ROWS and (seen.get("level") == 1 or flat):
        yield Note("constant", f"column {name!r} has one value only, and tells nothing", name, drop_remedy(name))


def _near_duplicate_notes(labels: Labels, what: str, column: Name | None) -> Iterator[Note]:
    """Labels or levels that differ in case or spaces only, unless there are very many."""
    if len(labels) > _MAX_COMPARED_LEVELS:
        return
    alike: dict[str, list[str]] = {}
    for value in labels.values:
        if isinstance(value, str):
            alike.setdefault(normalise_label(value), []).append(value)
    for same in alike.values():
        if len(same) > 1:
            where = "labels" if column is None else f"column {column!r}: levels"
            text = f"{where} {formatting.format_list(same, 4)} differ in case or spaces only, and count as different"
            yield Note(f"{what}-spelling", text, column, "if they mean the same, write them alike")


def _missing_label_notes(counts: ModelCounts) -> Iterator[Note]:
    """Classes whose name may stand for a missing label."""
    for label, w in zip(counts.labels.values, counts.class_weight.tolist(), strict=True):
        if isinstance(label, str) and label.strip().lower() in _MISSING_LABELS and w > 0:
            share = formatting.format_percent(w / float(counts.class_weight.sum()))
            text = f"class {label!r}, of {share} of the rows, may stand for a missing label"
            yield Note("sentinel", text, None, f"if so, make it missing: --na {label!r} (na=[...])")


def _class_size_notes(counts: ModelCounts) -> Iterator[Note]:
    """Classes of very few rows, and one that outweighs all others."""
    total, weight = float(counts.class_weight.sum()), counts.class_weight
    if counts.n_rows < MIN_ROWS or total <= 0:
        return
    one = total / counts.n_rows
    for label, w in zip(counts.labels.values, weight.tolist(), strict=True):
        if 0 < w < _RARE_CLASS_ROWS * one:
            text = f"class {label!r} has {formatting.format_count(w)}: too few to learn from, and to be judged by"
            yield Note("few-rows", text, None, "gather more, unite it with another class, or leave its rows out")
    c = int(weight.argmax())
    if weight[c] > _DOMINANT_SHARE * total:
        label, share = counts.labels.values[c], formatting.format_percent(weight[c] / total)
        text = f"class {label!r} has {share} of the rows: to say it always would be right as often"
        remedy = "judge by AUC and log loss, not by accuracy; the rows need no rebalancing"
        yield Note("imbalance", text, None, remedy)


def shorten_notes(notes: Sequence[Note]) -> list[Note]:
    """The first few findings of each sort, the last of them with a word on how many more there are."""
    out: list[Note] = []
    for code in dict.fromkeys(one.code for one in notes):
        same = [one for one in notes if one.code == code]
        out += same[:_MAX_SHOWN]
        if len(same) > _MAX_SHOWN:
            more = f"{len(same) - _MAX_SHOWN:,} more like this: candide check tells them all"
            out[-1] = replace(out[-1], remedy=f"{out[-1].remedy}; {more}")
    return out
