"""A model as one SELECT: the label and the probability of every class, for each row of a table.

>>> from candide.demo import garden
>>> text = select(Fitted(garden()), dialect="sqlite", table="plants", keep=["bed"])
>>> text.splitlines()[0][:40], text.count("LEFT JOIN")
('-- A model exported by Candide. Made by ', 4)
"""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide import wording
from candide.errors import InputError
from candide.export.joined import MARK
from candide.export.parameters import parameters
from candide.export.sql.answer import decision, probabilities
from candide.export.sql.layers import Layers
from candide.export.sql.rules import RULES
from candide.export.sql.scoring import Scoring
from candide.export.sql.words import Words, number, words
from candide.model.fitted import Fitted
from candide.rows.remarks import Remark, warn

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")


def select(fitted: Fitted, *, dialect: str = "", table: str = "", keep: Sequence[str] = ()) -> str:
    """The text of a query; ``keep`` names columns of the table that stand before the prediction."""
    spelled = words(dialect)
    if not table:
        raise InputError("a query needs a table", value=table, remedy="name it: table=... (--table)")
    keep, found = [keep] if isinstance(keep, str) else keep, parameters(fitted)
    _check_columns([str(column["name"]) for column in found["columns"]], spelled)
    layers = Layers(spelled, _table(table, spelled))
    names = _names(keep, found["classes"], spelled)
    kept = [layers.read(layers.column(name)) for name in keep]
    scoring = Scoring(layers, found)
    for part in found["parts"]:
        RULES[part["rule"]](scoring, part)
    p, clear = probabilities(scoring)
    label = decision(scoring, p, clear, [_label(value, spelled) for value in found["classes"]])
    warn(_remarks(scoring))
    query = layers.sql(list(zip([*kept, label, *p], map(spelled.quoted, names), strict=True)))
    return f"-- {MARK}\n{query}\n"


def _names(keep: Sequence[str], classes: Sequence[Any], words: Words) -> list[str]:
    if "" in keep:
        raise InputError("a column to keep needs a name", value="", remedy="name it, or leave it out")
    names = [*keep, "prediction", *(f"p_{label}" for label in classes)]
    same = [words.folded(name) for name in names]
    for at, name in enumerate(names):
        if names.count(name) > 1 or (at < len(keep) and same.count(same[at]) > 1):
            what = f"the query would have two columns {name!r}"
            raise InputError(what, value=name, remedy="keep other columns, or rename it")
    return names


def _check_columns(names: Sequence[str], words: Words) -> None:
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(words.folded(name), name)
        if other != name:
            what = f"cannot be exported: {words.name} cannot tell it from {other!r}"
            raise InputError(what, column=name, value=other, remedy="rename one of them, and fit again")


def _table(name: str, words: Words) -> str:
    """A table as it was named, with a schema or without; its name is quoted, so that it is not read in another case."""
    if _TEMPLATE.fullmatch(name.strip()):
        return name  # dbt fills it in
    if "{{" in name:
        remedy = "name one table, or one template: {{ ref('people') }}"
        raise InputError("more than a template", value=name, remedy=remedy)
    try:
        found = exp.to_table(name, dialect=words.name)
    except (SqlglotError, ValueError):
        return words.quoted(name)
    for part in found.parts if not words.folds_table else ():
        if isinstance(part, exp.Identifier):
            part.set("quoted", True)
    return found.sql(words.name)


def _label(value: Any, words: Words) -> str:
    if isinstance(value, bool):
        return words.truths[value]
    if isinstance(value, float):
        return words.double(number(value))
    return words.string(value) if isinstance(value, str) else str(value)


def _remarks(scoring: Scoring) -> list[Remark]:
    said = "a row in which one of {} is missing has no prediction: {} columns are modelled together"
    return [
        Remark("missing-together", said.format(wording.listing(some), len(some)), remedy="export it to python or js")
        for some in scoring.whole
    ]
