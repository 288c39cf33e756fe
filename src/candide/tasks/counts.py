"""Counting where nobody can connect: a query to be pasted, and the model of what it returned.

What is made of each column is found from a sample, any source of the same columns. The query counts as the engines do,
and its result says how it was counted; so the result alone, in a CSV, makes the model: naive Bayes, for weights are
learned from rows.

>>> import csv, io
>>> import duckdb
>>> rows = {"size": [1.0, 1.5, 3.0, 3.5] * 5, "colour": ["red", "red", "blue", None] * 5, "fruit": [*"aabb"] * 5}
>>> con = duckdb.connect()
>>> each = ", ".join(f"unnest(?) AS {name}" for name in rows)
>>> _ = con.execute(f"CREATE TABLE far AS SELECT {each}", [*rows.values()])
>>> found = con.execute(counting_query(rows, "fruit", table="far", dialect="duckdb"))
>>> returned = io.StringIO()
>>> csv.writer(returned).writerows([[column[0] for column in found.description], *found.fetchall()])
>>> learned = learn_counts(returned.getvalue().splitlines(keepends=True))
>>> learned.fitted.census.labels.values, learned.fitted.census.tallies[0].mean.tolist()
(('a', 'b'), [[1.25], [3.25]])
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from candide import wording
from candide.engines.base import Prepared, Rows, open_source
from candide.engines.duckdb.encodings import whole_text
from candide.engines.reading import Reading
from candide.engines.sql import long, returned
from candide.engines.sql.dialect import ANY_NUMBER
from candide.engines.sql.dialects.table import dialect as dialect_of
from candide.engines.sql.statistics import KINDS, statistic
from candide.errors import CandideError, InputError, SourceError
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import Settings, usual
from candide.rows.remarks import Remark
from candide.store import values
from candide.tasks.alike import refuse_plans
from candide.tasks.findings import from_counts, shortened
from candide.tasks.learn import Learned, as_read, checked, unlabelled
from candide.tasks.look import with_grids
from candide.tasks.models import plan_like, reading_of

_DIGITS = 15  # of a double: what is rounded to so many has lost nothing that counts
_SAMPLE = 1 << 11  # rows by which the middle of a number is known
_ANOTHER = "leave it out (--drop, drop=[...]), or count it as another (--event COL=categorical)"
_NAIVE_ONE = "name a model of naive Bayes (candide fit --model naive)"
FORMAT = 1  # of the lines in which a result tells its plan
_NAIVE = Remark(
    "naive-of-counts", "the model is naive Bayes: how much each column weighs would be learned from rows, not counts"
)


def counting_query(
    data: Any,
    target: str,
    *,
    table: str,
    dialect: str,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    like: Any = None,
    reading: Reading | None = None,
) -> str:
    """A query that counts a table of a database as a sample of it, ``data``, is counted; :func:`learn_counts` reads on.

    ``table`` is named as after FROM, or a query; ``dialect`` is that of the database. What a query cannot count, words
    of text and columns modelled together, is refused by the names of its columns. ``like`` is a model, or a plan:
    columns are counted as it counts them, so that what comes of both adds.
    """
    from candide.engines.prepare import hints, prepare

    spoken = dialect_of(dialect)
    if like is not None:
        refuse_plans(events, drop)
        known_model = plan_like(like)[1]
        reading = reading if known_model is None else reading_of(known_model, reading)
    with open_source(data, reading) as source:
        sampled = Rows(source, target, weight)
        if like is None:
            prepared = with_grids(sampled, prepare(source, target, events, drop, weight))
        else:
            prepared = _prepared_like(sampled, like)
        _refuse(prepared.plan, _ANOTHER if like is None else _NAIVE_ONE)
        prepared = replace(prepared, near=hints(prepared.plan, prepared.head, True)[1], nan=True)
        types, known = dict(source.columns), as_read(source, prepared, reading)
        spelled = [*prepared.spelled, *([target] if source.untyped else [])]
    for part in prepared.plan.parts:
        for name, encoding in zip(map(str, part.columns), part.encodings, strict=True):
            if not encoding.as_written and not spoken.is_time(types[name].upper()):
                types[name] = ANY_NUMBER  # whatever it is there
    used = {name: types[name] for name in [*map(str, prepared.plan.columns), target]}
    head = {
        "candide": FORMAT, "dialect": dialect, "table": table, "target": target, "weight": weight,
        "columns": list(map(str, prepared.plan.columns)), "types": used, "spelled": spelled,
        "dates": sorted(known["dates"]), "times": sorted(known["times"]), "na": known["na"], "near": prepared.near,
        "parts": len(prepared.plan.parts),
    }  # fmt: skip
    told = [head, *(_packed(part) for part in prepared.plan.parts)]
    read = used if weight is None else used | {weight: ANY_NUMBER}
    for name in read:
        spoken.check_name(name)
    away: Any = long.Elsewhere(spoken, table, read, known["na"], spelled)
    texts = [json.dumps(one).replace("${", r"\u0024{") for one in told]  # the same to JSON, and no setting to Spark
    return long.query(Rows(away, target, weight), prepared, texts)


def _prepared_like(rows: Rows, like: Any) -> Prepared:
    """The plan of a model for the columns of a sample."""
    from candide.engines.prepare import prepare_like

    plan, known = plan_like(like)
    formats = () if known is None else (known.spelled, known.temporal)
    prepared = prepare_like(rows.source, plan, rows.target, rows.weight, *formats)
    every = [(str(name), one) for part in plan.parts for name, one in zip(part.columns, part.encodings, strict=True)]
    spelled = [name for name, encoding in every if encoding.as_written and rows.source.untyped]
    return replace(prepared, spelled=spelled, head=rows.source.head(_SAMPLE))


def learn_counts(
    counts: str | os.PathLike | Iterable[str],
    *,
    target: str | None = None,
    settings: Settings | None = None,
    reading: Reading | None = None,
) -> Learned:
    """The naive Bayes model of what a query of :func:`counting_query` returned: a CSV file, or its lines.

    A result that is not whole, or was changed, is refused. ``target`` may say again which column was learned,
    ``reading`` the encoding of the file, its delimiter, and what stands before decimals.
    """
    reading = reading or Reading()
    with _named(counts) as name:
        text, told = whole_text(name, reading) if name is not None else ("".join(counts), [])  # type: ignore[arg-type]
        lines = returned.parse(text, reading.delimiter, reading.decimal)
        plan, head = _plan(returned.told(lines))
        if target is not None and target != head["target"]:
            what = f"these counts are of the target {head['target']!r}, not {target!r}"
            raise InputError(what, value=target, remedy="leave the target out, or count again")
        away: Any = long.Elsewhere(dialect_of(head["dialect"]), head["table"], head["types"])
        prepared = Prepared(plan, near=head["near"], spelled=head["spelled"])
        counted = returned.census(lines, Rows(away, head["target"], head["weight"]), prepared)
        census = checked(counted.censuses[0].bounded(), head["target"])
    known: dict[str, Any] = {
        "na": tuple(head["na"]),
        "dates": frozenset(head["dates"]),
        "times": frozenset(head["times"]),
    }
    fitted = Fitted(census, settings or usual("naive"), head["target"], **known)
    fitted.model  # noqa: B018  an estimate that cannot be had is an error now, not at the first prediction
    told += [*_rounded(lines, plan, head["near"]), *_far(census, head["near"])]
    told += shortened(list(from_counts(census)))
    return Learned(fitted, [], [*unlabelled(head["target"], counted), *told, _NAIVE])


@contextmanager
def _named(counts: str | os.PathLike | Iterable[str]) -> Iterator[str | None]:
    """The name of a file of counts, if it is one, which every error about it then tells."""
    if not isinstance(counts, str | os.PathLike):
        yield None
        return
    name = os.fspath(counts)
    try:
        yield name
    except SourceError:
        raise
    except InputError as error:
        where, place = "standard input" if name == "-" else name, {"column": error.column, "value": error.value}
        raise SourceError(error.what, where=where, line=error.row, remedy=error.remedy or "", **place) from None


def _rounded(lines: Sequence[returned.Line], plan: Plan, near: Mapping[str, float]) -> list[Remark]:
    """A remark on numbers that lost digits on their way into the file."""
    names = [str(name) for part in plan.parts for name in part.columns]
    digits = returned.digits(lines, {place: near.get(name, 0.0) for place, name in enumerate(names)})
    if digits is None or digits >= _DIGITS:
        return []
    text = f"its numbers were rounded to {digits} digits, as spreadsheets do: so are means and spreads"
    return [Remark("rounded", text, remedy="keep the result as the database writes it")]


def _far(census: Census, near: Mapping[str, float]) -> list[Remark]:
    """A remark on columns of which the sample was so unlike the table that digits were lost."""
    far = [
        str(name)
        for part, tally in zip(census.plan.parts, census.tallies, strict=True)
        for j, name in enumerate(part.columns)
        if str(name) in near and statistic(part).far(tally, j, near[str(name)]) is not None
    ]
    if not far:
        return []
    far = list(dict.fromkeys(far))  # a column may be in several parts
    what = f"numbers of {wording.listing(far, 3)} are so far from the sample's that digits of their spread are lost"
    return [Remark("sample-unlike", what, far[0], "make the query of a sample that is more like the table")]


def _refuse(plan: Plan, remedy: str = _ANOTHER) -> None:
    """Refuse a plan of which a query cannot count all."""
    for part in plan.parts:
        if part.spec.kind in KINDS and not any(encoding.python_only for encoding in part.encodings):
            continue
        what = f"a query cannot count it as {part.event.name}, which takes rows"
        raise InputError(what, column=part.columns[0], value=part.event.name, remedy=remedy)


def _packed(part: Part) -> dict[str, Any]:
    """A part of a plan, without the levels, which are to be counted."""
    arrays: dict[str, Any] = {}
    packed = {
        "columns": list(map(str, part.columns)),
        "event": values.pack(part.event, arrays),
        "encodings": [None if one.as_written else values.pack(one, arrays) for one in part.encodings],
    }
    return packed | ({"arrays": {name: array.tolist() for name, array in arrays.items()}} if arrays else {})


_HEAD = {
    "dialect": str, "table": str, "target": str, "columns": list, "types": dict, "spelled": list, "dates": list,
    "near": dict, "parts": int,
}  # fmt: skip


def _plan(told: Sequence[str]) -> tuple[Plan, dict[str, Any]]:
    """The plan that a result tells, and what else it says of how it was counted."""
    try:
        head, *parts = map(json.loads, told)
        if head["candide"] != FORMAT:
            what = f"it tells its plan in format {head['candide']!r}; this version knows {FORMAT}"
            raise InputError(what, value=head["candide"], remedy="count again with a query of this version")
        if not all(isinstance(head[name], kind) for name, kind in _HEAD.items()) or head["parts"] != len(parts):
            raise ValueError("the first line and the others do not agree")
        plan = Plan(tuple(head["columns"]), tuple(map(_unpacked, parts)))
        if {str(name) for part in plan.parts for name in part.columns} != set(head["columns"]):
            raise ValueError("its parts have other columns")
        head["near"] = {name: float(middle) for name, middle in head["near"].items()}
        if not {*head["columns"], head["target"]} <= head["types"].keys():
            raise ValueError("a column has no type")
        _refuse(plan)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, CandideError) as error:
        remedy = "run the query of candide sql count again, and keep its result as it is"
        raise InputError(f"the lines that tell the plan cannot be read ({error})", remedy=remedy) from None
    return plan, {"weight": None, "na": [], "times": []} | head


def _unpacked(packed: dict[str, Any]) -> Part:
    import numpy as np

    arrays = {name: np.array(some) for name, some in packed.get("arrays", {}).items()}
    part = Part(values.unpack_event(packed["event"], arrays), tuple(packed["columns"]))
    pairs = zip(packed["encodings"], part.encodings, strict=True)
    return replace(
        part, encodings=tuple(own if one is None else values.unpack_encoding(one, arrays) for one, own in pairs)
    )
