"""Findings: what the counts say of a table that a person should mend, or know, before a model is trusted.

>>> from candide.tasks.learn import learn
>>> rows = {"unit": ["kg"] * 60, "size": [float(i % 7) for i in range(60)], "kind": ["a", "b", "b"] * 20}
>>> [(one.code, one.column) for one in from_counts(learn(rows, "kind").fitted.census)]
[('constant', 'unit')]
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from candide import wording
from candide.errors import InputError
from candide.model.census import Census
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.kinds import decided_early
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.repeats import DistinctRows, distinct_rows, repeated_rows
from candide.rows.spelling import NAS, plain_number
from candide.rows.table import Name, Table
from candide.rows.targets import has_label
from candide.tasks.looks import FEWEST, LEAK, Sample, drop_it, folded, from_rows, groups_of, leak, mixed_dates, sentinel

_ABSENT = frozenset(("", "?", "na", "n/a", "nan", "null", "nil", "#n/a", "-", "."))  # levels that may mean "missing"
_NO_LABEL = _ABSENT - {"-", ".", ""}  # beside + and the like these are classes; empty text is missing anyway
_SAME = 2 * np.finfo(float).eps  # by which the sd of one value, of which parts were merged, may differ from nought
_MENDED = 100_000  # levels of which nobody mends the spelling
_MANY, _EACH = 50, 5  # levels that are many, and rows a level that are few
_RARE = 10  # rows of a class from which little can be learned
_MOST = 0.9  # share of a class beside which accuracy says little
_CHANCE = 1e-6  # below which nothing happens by chance, in any of the columns
_SHOWN = 3  # findings of a sort in a report that is about something else


def findings(census: Census, sample: Sample, head: Any) -> list[Remark]:
    """All that is found in the counts of a table, in some of its rows and in the first of all columns (``head``).

    The gravest come first.
    """
    rows = _distinct(head, sample)
    copies = 1.0 if rows is None else float(rows.copies_by_class(int(rows.y.max(initial=0)) + 1).max())
    found = list(from_counts(census, sample.target, copies))
    known = {(one.code, one.column) for one in found}  # of all rows, and so not told again of some
    found += [one for one in from_rows(sample) if (one.code, one.column) not in known]
    found += mixed_dates(head, sample.target)
    found += [] if rows is None else repeated_rows(rows)
    return sorted(found, key=lambda one: _GRAVITY.index(one.code))


def _distinct(head: Any, sample: Sample) -> DistinctRows | None:
    """The distinct ones of the first rows, by all columns; None where they are too few."""
    if sample.target is None or head.num_rows < FEWEST:
        return None
    labelled = head.filter(has_label(head.column(sample.target)))
    if not labelled.num_rows:
        return None
    column = labelled.column(sample.target)
    try:
        return distinct_rows(Table.of(labelled.drop_columns([sample.target])), Labels.of(column).encode(column))
    except InputError:  # of an infinity, which is told where rows are counted
        return None


def contradictions(census: Census, head: Any, declared: Collection[str] = ()) -> list[Remark]:
    """A note on every column that is a category as its first rows hold 0 and 1 alone, though later rows do not.

    ``head`` is the table of the rows that were looked at, of Arrow or of any type that has columns by name.
    """
    table, found = Table.of(head), list[Remark]()
    for part in census.plan.parts:
        if part.holds != "codes" or part.event.joint or part.event.most is not None:
            continue
        for name, encoding in zip(part.columns, part.encodings, strict=True):
            others = [v for v in getattr(encoding, "labels", Labels(())).values if _number(v) not in (None, 0.0, 1.0)]
            if others and str(name) not in declared and _is_binary(table, name):
                found.append(decided_early(name, table.n_rows, others))
    return found


def _is_binary(table: Table, name: Name) -> bool:
    """Whether a column of the rows looked at holds 0 and 1 alone."""
    if str(name) not in map(str, table.names):
        return False
    column = table.column(name if name in table.names else str(name))
    return {_number(value) for value in Labels.of(column).values} <= {0.0, 1.0}


def _number(value: Any) -> float | None:
    """The number that a level is or spells; None where it is none."""
    try:
        return plain_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def from_counts(census: Census, target: str | None = None, copies: float = 1.0) -> Iterator[Remark]:
    """What the counts tell of classes and columns, where each row is there so many times."""
    yield from _repeated_header(census, target)
    yield from _spellings(census.labels, "label", None)
    yield from _no_labels(census)
    yield from _sizes(census)
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        yield from _of(part, tally, census, copies)


_GRAVITY = (
    *("repeated-header", "label-spelling", "leak", "missing-by-class", "few-rows", "imbalance"),
    *("mixed-dates", "repeated-rows"),
    *("identifier", "missing-words", "sentinel", "level-spelling", "copy", "constant", "many-levels"),
)


def _of(part: Part, tally: Any, census: Census, copies: float) -> Iterator[Remark]:
    if part.event.joint or part.holds == "documents":
        return
    pooled = tally.pool()
    for j, name in enumerate(part.columns):
        if pooled.n[0, j] > 0:
            yield from _missing(name, tally.n[:, j], census)
            yield from _constant(name, pooled.seen(j), census.n_rows)
        if part.holds == "codes":
            counts = tally.only(np.array([j])).counts
            yield from _of_levels(name, part.encodings[j], counts, census, copies)


def _of_levels(name: Name, encoding: Any, counts: Floats, census: Census, copies: float) -> Iterator[Remark]:
    if not encoding.as_written:  # what numbers give away is seen in the rows
        return
    one = copies * float(census.class_weight.sum()) / max(census.n_rows, 1)  # the weight of a row with its copies
    alike, weight = _by_meaning(census.labels, counts), _by_meaning(census.labels, census.class_weight)
    given_away, others = _given_away(alike, one), float(weight.sum() - weight.max())
    total, levels = float(census.class_weight.sum()), int((counts.sum(axis=0) > 0).sum())
    if others >= one * FEWEST / 2 and total - given_away <= (1 - LEAK) * others:
        yield leak(name, given_away / total)
    yield from _spellings(encoding.labels, "level", name)
    yield from _missing_words(name, encoding.labels)
    if odd := [v for v in encoding.labels.values if isinstance(v, str) and v.strip().lower() in _ABSENT]:
        n = float(counts[:, encoding.labels.encode(np.array(odd[:1], object))].sum())
        yield sentinel(name, repr(odd[0]), n / total)
    if levels >= _MANY and counts.sum() < _EACH * one * levels:
        rows = wording.plural(float(counts.sum()))
        text = f"column {name!r} has {levels:,} levels in {rows}: too few rows a level to learn from"
        yield Remark("many-levels", text, name, f"group its levels, or {drop_it(name)}")


def _by_meaning(labels: Labels, counts: Floats) -> Floats:
    """Counts by class, those of classes that differ in case or spaces only as one: such labels hide no leak."""
    group = groups_of(labels)
    if len(group) == group.max(initial=-1) + 1:
        return counts
    out = np.zeros((group.max() + 1, *counts.shape[1:]))
    np.add.at(out, group, counts)
    return out


def _repeated_header(census: Census, target: str | None) -> Iterator[Remark]:
    """Columns that have their own name for a value: the header stands among the rows, as in files that were joined."""
    own = [target] if target is not None and target in census.labels.index else []
    rows = float(census.class_weight[census.labels.index[target]]) if own else np.inf
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        for name, n in _rows_of_own_name(part, tally):
            if name != target:
                own.append(name)
                rows = min(rows, n)
    if len(own) > 1:
        values = wording.listing(own, 4)
        text = f"the header is repeated among the rows: {wording.plural(rows)} with the names {values} for values"
        yield Remark("repeated-header", text, None, "delete these lines", tuple(own))


def _rows_of_own_name(part: Part, tally: Any) -> Iterator[tuple[str, float]]:
    """The columns that have their own name for a level, and the weight of its rows."""
    if part.holds != "codes" or part.event.joint:
        return
    for j, name in enumerate(part.columns):
        encoding: Any = part.encodings[j]
        if encoding.as_written and isinstance(name, str) and name in encoding.labels.index:
            yield name, float(tally.only(np.array([j])).counts[:, encoding.labels.index[name]].sum())


def _missing_words(name: Name, levels: Labels) -> Iterator[Remark]:
    """Several words for a missing value among the levels of a column."""
    words = [v for v in levels.values if isinstance(v, str) and v.strip().lower() in (*_ABSENT, *NAS)]
    if len(words) > 1 and any(word.strip().lower() in _ABSENT for word in words):
        text = f"column {name!r}: levels {wording.listing(words, 4)} may all stand for a missing value"
        na = " ".join(f"--na {word!r}" for word in words[:4])
        yield Remark("missing-words", text, name, f"if so, make them missing: {na} (na=[...])")


def _given_away(counts: Floats, one: float) -> float:
    """The weight of the rows whose class is that of most other rows of their level."""
    if len(counts) < 2 or not counts.shape[1]:
        return 0.0
    second, first = np.partition(counts, -2, axis=0)[-2:]
    return float(first[first - one > second].sum())


def _missing(name: Name, n: Floats, census: Census) -> Iterator[Remark]:
    """Values that are missing in rows of one class only, or in all rows but those of one class."""
    group = groups_of(census.labels)
    n, weight = _by_meaning(census.labels, n), _by_meaning(census.labels, census.class_weight)
    gone, total = np.maximum(weight - n, 0.0), float(weight.sum())
    for some, text in ((gone, "is missing"), (n, "has a value")):
        c = int(some.argmax())
        rest = gone if some is n else n
        one_only = some[c] > 0 and some[c] >= some.sum() * (1 - 1e-12) and rest.sum() > 0
        chance = (weight[c] / total) ** (some[c] * census.n_rows / total) * len(census.plan.columns)
        if one_only and chance < _CHANCE:
            same = np.flatnonzero(group == c)  # spellings of one label
            label = census.labels.values[same[census.class_weight[same].argmax()]]
            what = f"column {name!r} {text} in rows of class {label!r} only ({wording.plural(float(some[c]))})"
            remedy = f"find out why; where it is not so in rows to come, {drop_it(name)}"
            yield Remark("missing-by-class", what, name, remedy)
            return


def _constant(name: Name, seen: dict[str, float], rows: int) -> Iterator[Remark]:
    flat = "sd" in seen and seen["sd"] <= _SAME * abs(seen["mean"])
    if rows >= FEWEST and (seen.get("level") == 1 or flat):
        yield Remark("constant", f"column {name!r} has one value only, and tells nothing", name, drop_it(name))


def _spellings(labels: Labels, what: str, column: Name | None) -> Iterator[Remark]:
    """Labels or levels that differ in case or spaces only, unless there are very many."""
    if len(labels) > _MENDED:
        return
    alike: dict[str, list[str]] = {}
    for value in labels.values:
        if isinstance(value, str):
            alike.setdefault(folded(value), []).append(value)
    for same in alike.values():
        if len(same) > 1:
            where = "labels" if column is None else f"column {column!r}: levels"
            text = f"{where} {wording.listing(same, 4)} differ in case or spaces only, and count as different"
            yield Remark(f"{what}-spelling", text, column, "if they mean the same, write them alike")


def _no_labels(census: Census) -> Iterator[Remark]:
    """Classes whose name may stand for a missing label."""
    for label, w in zip(census.labels.values, census.class_weight.tolist(), strict=True):
        if isinstance(label, str) and label.strip().lower() in _NO_LABEL and w > 0:
            share = wording.percent(w / float(census.class_weight.sum()))
            text = f"class {label!r}, of {share} of the rows, may stand for a missing label"
            yield Remark("sentinel", text, None, f"if so, make it missing: --na {label!r} (na=[...])")


def _sizes(census: Census) -> Iterator[Remark]:
    """Classes of very few rows, and one that outweighs all others."""
    total, weight = float(census.class_weight.sum()), census.class_weight
    if census.n_rows < FEWEST or total <= 0:
        return
    one = total / census.n_rows
    for label, w in zip(census.labels.values, weight.tolist(), strict=True):
        if 0 < w < _RARE * one:
            text = f"class {label!r} has {wording.plural(w)}: too few to learn from, and to be judged by"
            yield Remark("few-rows", text, None, "gather more, unite it with another class, or leave its rows out")
    c = int(weight.argmax())
    if weight[c] > _MOST * total:
        label, share = census.labels.values[c], wording.percent(weight[c] / total)
        text = f"class {label!r} has {share} of the rows: to say it always would be right as often"
        remedy = "judge by AUC and log loss, not by accuracy; the rows need no rebalancing"
        yield Remark("imbalance", text, None, remedy)


def shortened(found: Sequence[Remark]) -> list[Remark]:
    """The first few findings of each sort, the last of them with a word on how many more there are."""
    out: list[Remark] = []
    for code in dict.fromkeys(one.code for one in found):
        same = [one for one in found if one.code == code]
        out += same[:_SHOWN]
        if len(same) > _SHOWN:
            more = f"{len(same) - _SHOWN:,} more like this: candide check tells them all"
            out[-1] = replace(out[-1], remedy=f"{out[-1].remedy}; {more}")
    return out
