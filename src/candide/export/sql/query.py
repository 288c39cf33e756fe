"""A model as one SELECT: the label and the probability of every class, for each row of a table.

>>> from candide.demo import garden
>>> text = write_select(FittedModel(garden()), dialect="sqlite", table="plants", kept_columns=["bed"])
>>> text.splitlines()[0][:40], text.count("LEFT JOIN")
('-- A model exported by Candide. Made by ', 4)
"""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide import formatting
from candide.data.notes import Note, issue_warnings
from candide.engines.sql.dialect import Dialect
from candide.engines.sql.dialects.registry import DIALECTS, get_dialect
from candide.errors import InputError
from candide.export.joined import EXPORT_MARKER
from candide.export.parameters import export_parameters
from candide.export.sql.answer import add_decision, add_probabilities
from candide.export.sql.layers import Layers, format_number
from candide.export.sql.operations import add_score
from candide.export.sql.scoring import ScoringQuery
from candide.model.fitted import FittedModel

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")


def write_select(fitted: FittedModel, *, dialect: str = "", table: str = "", kept_columns: Sequence[str] = ()) -> str:
    """The text of a query; ``keep`` names columns of the table that stand before the prediction."""
    if not dialect:
        remedy = f"pass --dialect (dialect=...), one of {', '.join(DIALECTS)}"
        raise InputError("a query is in a dialect of SQL, and none is named", remedy=remedy)
    target = get_dialect(dialect)
    if not table:
        raise InputError("a query needs a table", value=table, remedy="name it: table=... (--table)")
    kept_columns, found = [kept_columns] if isinstance(kept_columns, str) else kept_columns, export_parameters(fitted)
    _check_columns([str(column["name"]) for column in found["columns"]], target)
    layers = Layers(target, _table(table, target))
    names = _names(kept_columns, found["classes"], target)
    kept = [layers.add_read(layers.column(name)) for name in kept_columns]
    scoring = ScoringQuery(layers, found)
    for part in found["parts"]:
        add_score(scoring, part)
    p, clear = add_probabilities(scoring)
    label = add_decision(scoring, p, clear, [_label(value, target) for value in found["classes"]])
    issue_warnings(_notes(scoring))
    query = layers.sql(list(zip([*kept, label, *p], map(target.quote, names), strict=True)))
    return f"-- {EXPORT_MARKER}\n{query}\n"


def _names(keep: Sequence[str], classes: Sequence[Any], dialect: Dialect) -> list[str]:
    if "" in keep:
        raise InputError("a column to keep needs a name", value="", remedy="name it, or leave it out")
    names = [*keep, "prediction", *(f"p_{label}" for label in classes)]
    same = [dialect.fold_case(name) for name in names]
    for at, name in enumerate(names):
        if names.count(name) > 1 or (at < len(keep) and same.count(same[at]) > 1):
            what = f"the query would have two columns {name!r}"
            raise InputError(what, value=name, remedy="keep other columns, or rename it")
    return names


def _check_columns(names: Sequence[str], dialect: Dialect) -> None:
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(dialect.fold_case(name), name)
        if other != name:
            what = f"cannot be exported: {dialect.name} cannot tell it from {other!r}"
            raise InputError(what, column=name, value=other, remedy="rename one of them, and fit again")


def _table(name: str, dialect: Dialect) -> str:
    """A table as it was named, with a schema or without; its name is quoted, so that it is not read in another case."""
    if _TEMPLATE.fullmatch(name.strip()):
        return name  # dbt fills it in
    if "{{" in name:
        remedy = "name one table, or one template: {{ ref('people') }}"
        raise InputError("more than a template", value=name, remedy=remedy)
    try:
        found = exp.to_table(name, dialect=dialect.name)
    except (SqlglotError, ValueError):
        return dialect.quote(name)
    for part in found.parts if not dialect.folds_table else ():
        if isinstance(part, exp.Identifier):
            part.set("quoted", True)
    return found.sql(dialect.name)


def _label(value: Any, dialect: Dialect) -> str:
    if isinstance(value, bool):
        return dialect.booleans[value]
    if isinstance(value, float):
        return dialect.cast_double(format_number(value))
    return dialect.quote_string(value) if isinstance(value, str) else str(value)


def _notes(scoring: ScoringQuery) -> list[Note]:
    said = "a row in which one of {} is missing has no prediction: {} columns are modelled together"
    return [
        Note(
            "missing-together", said.format(formatting.format_list(some), len(some)), remedy="export it to python or js"
        )
        for some in scoring.complete_groups
    ]
