"""Count a table that Candide cannot reach: a query to run by hand, and the model of its result.

The plan of the columns comes from a sample, any source with the same columns. The query counts as the engines do, and
its result repeats the plan, so that the result alone, as a CSV, is enough for the model. The model is naive Bayes,
because weights are learned from rows.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from candide import formatting
from candide.data.notes import Note
from candide.engines.base import LabelledSource, PreparedSource, open_source
from candide.engines.counting import check_classes, reading_record, unlabelled_notes
from candide.engines.draw_sample import learn_grids
from candide.engines.duckdb.character_encodings import read_whole_text
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.sql import offline_query, offline_result
from candide.engines.sql.dialect import ANY_NUMBER
from candide.engines.sql.dialects.registry import get_dialect
from candide.engines.sql.statistics import SQL_TALLY_KINDS, get_statistic
from candide.errors import CandideError, InputError, SourceError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings, default_settings
from candide.store import values
from candide.store.file import refuse_plan_options, resolve_plan

_DOUBLE_DIGITS = 15  # decimal digits of a double that count
_SAMPLE_ROWS = 1 << 11  # rows from which the middle of a column is estimated
_OTHER_EVENT_REMEDY = "leave it out (--drop, drop=[...]), or count it as another (--event COL=categorical)"
_NAIVE_MODEL_REMEDY = "name a model of naive Bayes (candide fit --model naive)"
RESULT_FORMAT = 1  # of the plan in a result
_NAIVE_REASON = "the model is naive Bayes: weights of columns are learned from rows, not from counts"
NAIVE_NOTE = Note("naive-of-counts", _NAIVE_REASON)


def make_counting_query(
    data: Any,
    target: str,
    *,
    table: str,
    dialect: str,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    like: Any = None,
    reading: ReadOptions | None = None,
) -> str:
    """Return a query that counts a table, with the plan of a sample of it, ``data``, or of a model or plan, ``like``.

    Columns that a query cannot count, text and columns modelled together, are an error.
    """
    from candide.engines.counting import counting_hints, prepare_source

    sql = get_dialect(dialect)
    if like is not None:
        refuse_plan_options(events, drop)
        known_model = resolve_plan(like)[1]
        reading = reading if known_model is None else make_read_options(known_model, reading)
    with open_source(data, reading) as source:
        sampled = LabelledSource(source, target, weight)
        if like is None:
            prepared = learn_grids(sampled, prepare_source(source, target, events, drop, weight))
        else:
            prepared = _prepare_like(sampled, like)
        _check_countable(prepared.plan, _OTHER_EVENT_REMEDY if like is None else _NAIVE_MODEL_REMEDY)
        prepared = replace(prepared, middle_values=counting_hints(prepared.plan, prepared.head, True)[1], has_nan=True)
        types, known = dict(source.columns), reading_record(source, prepared, reading)
        text_columns = [*prepared.text_level_columns, *([target] if source.is_untyped else [])]
    for part in prepared.plan.parts:
        for name, encoding in zip(map(str, part.columns), part.encodings, strict=True):
            if not encoding.is_read_as_text and not sql.is_time(types[name].upper()):
                types[name] = ANY_NUMBER  # of any width
    used = {name: types[name] for name in [*map(str, prepared.plan.columns), target]}
    head = {
        "candide": RESULT_FORMAT, "dialect": dialect, "table": table, "target": target, "weight": weight,
        "columns": list(map(str, prepared.plan.columns)), "types": used, "text_formats": text_columns,
        "dates": sorted(known["dates"]), "times": sorted(known["times"]), "na": known["na"],
        "near": prepared.middle_values, "parts": len(prepared.plan.parts),
    }  # fmt: skip
    records = [head, *(_pack_part(part) for part in prepared.plan.parts)]
    read = used if weight is None else used | {weight: ANY_NUMBER}
    for name in read:
        sql.check_name(name)
    offline: Any = offline_query.OfflineTable(sql, table, read, known["na"], text_columns)
    texts = [json.dumps(record).replace("${", r"\u0024{") for record in records]  # Spark would substitute ${...}
    return offline_query.make_query(LabelledSource(offline, target, weight), prepared, texts)


def _prepare_like(rows: LabelledSource, like: Any) -> PreparedSource:
    """Return the plan of a model for the columns of a sample."""
    from candide.engines.counting import prepare_like

    plan, known = resolve_plan(like)
    formats = () if known is None else (known.text_formats, known.temporal)
    prepared = prepare_like(rows.source, plan, rows.target, rows.weight, *formats)
    pairs = [pair for part in plan.parts for pair in zip(part.columns, part.encodings, strict=True)]
    text_columns = [str(name) for name, encoding in pairs if encoding.is_read_as_text and rows.source.is_untyped]
    return replace(prepared, text_level_columns=text_columns, head=rows.source.head(_SAMPLE_ROWS))


def read_counts(
    counts: str | os.PathLike | Iterable[str],
    target: str | None = None,
    settings: Settings | None = None,
    reading: ReadOptions | None = None,
) -> tuple[FittedModel, list[Note]]:
    """Return the naive Bayes model of the result of a counting query, a CSV file or its lines, and notes.

    An incomplete or modified result is an error. ``reading`` has the encoding, delimiter and decimal separator.
    """
    reading = reading or ReadOptions()
    with _name_in_errors(counts) as name:
        text, notes = read_whole_text(name, reading) if name is not None else ("".join(counts), [])  # type: ignore[arg-type]
        lines = offline_result.parse_result(text, reading.delimiter, reading.decimal)
        plan, head = _parse_plan(offline_result.plan_lines(lines))
        if target is not None and target != head["target"]:
            what = f"these counts are of the target {head['target']!r}, not {target!r}"
            raise InputError(what, value=target, remedy="leave the target out, or count again")
        offline: Any = offline_query.OfflineTable(get_dialect(head["dialect"]), head["table"], head["types"])
        prepared = PreparedSource(plan, middle_values=head["near"], text_level_columns=head["text_formats"])
        counted = offline_result.build_counts(lines, LabelledSource(offline, head["target"], head["weight"]), prepared)
        model_counts = check_classes(counted.fold_counts[0].limit_levels(), head["target"])
    known: dict[str, Any] = {name: frozenset(head[name]) for name in ("dates", "times")} | {"na": tuple(head["na"])}
    fitted = FittedModel(model_counts, settings or default_settings("naive"), head["target"], **known)
    fitted.model  # noqa: B018  an estimate that cannot be computed is an error now, not at the first prediction
    notes += _result_notes(lines, model_counts, head)
    return fitted, [*unlabelled_notes(head["target"], counted), *notes]


@contextmanager
def _name_in_errors(counts: str | os.PathLike | Iterable[str]) -> Iterator[str | None]:
    """Add the name of a file of counts to every error about it; yield the name, or None if it is not a file."""
    name = os.fspath(counts) if isinstance(counts, str | os.PathLike) else None
    try:
        yield name
    except InputError as error:
        if name is None or isinstance(error, SourceError):
            raise
        where, place = "standard input" if name == "-" else name, {"column": error.column, "value": error.value}
        raise SourceError(error.problem, source=where, line=error.row, remedy=error.remedy or "", **place) from None


def _result_notes(
    lines: Sequence[offline_result.ResultLine], counts: ModelCounts, head: Mapping[str, Any]
) -> list[Note]:
    """Return notes on lost digits, and on a target that is text in the sample and boolean in the table."""
    plan, near, target, notes = counts.plan, head["near"], head["target"], []
    names = [str(name) for part in plan.parts for name in part.columns]
    digits = offline_result.written_digits(lines, {place: near.get(name, 0.0) for place, name in enumerate(names)})
    if digits is not None and digits < _DOUBLE_DIGITS:
        text = f"its numbers were rounded to {digits} digits, as spreadsheets do; means and variances have no more"
        notes.append(Note("rounded", text, remedy="keep the result as the database writes it"))
    far: dict[str, None] = {}  # a column may be in several parts
    for part, tally in zip(plan.parts, counts.tallies, strict=True):
        for j, name in enumerate(map(str, part.columns)):
            if name in near and get_statistic(part).distant_means(tally, j, near[name]) is not None:
                far[name] = None
    if far:
        what = f"numbers of {formatting.format_list([*far], 3)} are so far from the sample's"
        remedy = "make the query of a sample that is more like the table"
        notes.append(Note("sample-unlike", f"{what} that digits of their variance are lost", next(iter(far)), remedy))
    if target in head["text_formats"] and all(isinstance(label, bool) for label in counts.labels.values):
        text = "is boolean in the table: the classes are False and True, even if the sample has no and yes"
        remedy = "to keep the words, store the column as text in the table"
        notes.append(Note("boolean-target", f"target {target!r} {text}", target, remedy))
    return notes


def _check_countable(plan: Plan, remedy: str = _OTHER_EVENT_REMEDY) -> None:
    for part in plan.parts:
        if part.spec.kind not in SQL_TALLY_KINDS or any(encoding.is_python_only for encoding in part.encodings):
            what = f"a query cannot count it as {part.event.name}, which needs the rows"
            raise InputError(what, column=part.columns[0], value=part.event.name, remedy=remedy)


def _pack_part(part: PlanPart) -> dict[str, Any]:
    """Return a part of a plan, without the levels, which are to be counted."""
    arrays: dict[str, Any] = {}
    packed = {
        "columns": list(map(str, part.columns)),
        "event": values.pack_value(part.event, arrays),
        "encodings": [None if e.is_read_as_text else values.pack_value(e, arrays) for e in part.encodings],
    }
    return packed | ({"arrays": {name: array.tolist() for name, array in arrays.items()}} if arrays else {})


_HEADER_FIELDS = {
    "dialect": str, "table": str, "target": str, "columns": list, "types": dict, "text_formats": list, "dates": list,
    "near": dict, "parts": int,
}  # fmt: skip


def _parse_plan(texts: Sequence[str]) -> tuple[Plan, dict[str, Any]]:
    """Return the plan in a result, and the rest of how it was counted."""
    try:
        head, *parts = map(json.loads, texts)
        if head["candide"] != RESULT_FORMAT:
            what = f"its plan is in format {head['candide']!r}; this version reads {RESULT_FORMAT}"
            raise InputError(what, value=head["candide"], remedy="count again with a query of this version")
        is_typed = all(isinstance(head[name], kind) for name, kind in _HEADER_FIELDS.items())
        if not is_typed or head["parts"] != len(parts):
            raise ValueError("the first line and the others do not agree")
        plan = Plan(tuple(head["columns"]), tuple(map(_unpack_part, parts)))
        if {str(name) for part in plan.parts for name in part.columns} != set(head["columns"]):
            raise ValueError("its parts have other columns")
        head["near"] = {name: float(middle) for name, middle in head["near"].items()}
        if not {*head["columns"], head["target"]} <= head["types"].keys():
            raise ValueError("a column has no type")
        _check_countable(plan)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, CandideError) as error:
        remedy = "run the query of candide sql count again, and keep its result as it is"
        raise InputError(f"the lines of the plan cannot be read ({error})", remedy=remedy) from None
    return plan, {"weight": None, "na": [], "times": []} | head


def _unpack_part(packed: dict[str, Any]) -> PlanPart:
    import numpy as np

    arrays = {name: np.array(array) for name, array in packed.get("arrays", {}).items()}
    part = PlanPart(values.unpack_event(packed["event"], arrays), tuple(packed["columns"]))
    pairs = zip(packed["encodings"], part.encodings, strict=True)
    encodings = [e if packed is None else values.unpack_encoding(packed, arrays) for packed, e in pairs]
    return replace(part, encodings=tuple(encodings))


def is_counting_query(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(13) == b"SELECT 'plan'"
