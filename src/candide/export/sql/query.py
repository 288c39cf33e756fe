"""A model as one SELECT: the label and the probability of every class, for each row of a table.

>>> from candide.demo import garden
>>> text = select(Fitted(garden()), dialect="sqlite", table="plants", keep=["bed"])
>>> text.splitlines()[0][:40], text.count("LEFT JOIN")
('-- A model exported by Candide. Made by ', 4)
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide import wording
from candide.errors import InputError
from candide.export.joined import MARK
from candide.export.parameters import parameters
from candide.export.sql.answer import decision, probabilities
from candide.export.sql.expressions import number
from candide.export.sql.layers import Layers
from candide.export.sql.rules import RULES
from candide.export.sql.scoring import Scoring
from candide.export.sql.words import Words, words
from candide.model.fitted import Fitted
from candide.rows.remarks import Remark, warn


def select(fitted: Fitted, *, dialect: str = "", table: str = "", keep: Sequence[str] = ()) -> str:
    """The text of a query; ``keep`` names columns of the table that stand before the prediction."""
    spelled = words(dialect)
    if not table:
        raise InputError("a query needs a table", value=table, remedy="name it: table=... (--table)")
    found = parameters(fitted)
    layers = Layers(spelled, _table(table, spelled))
    names = _names(keep, found["classes"])
    kept = [layers.read(spelled.quoted(name)) for name in keep]
    scoring = Scoring(layers, found)
    for part in found["parts"]:
        RULES[part["rule"]](scoring, part)
    p, clear = probabilities(scoring)
    label = decision(scoring, p, clear, [_label(value, spelled) for value in found["classes"]])
    warn(_remarks(scoring))
    query = layers.sql(list(zip([*kept, label, *p], map(spelled.quoted, names), strict=True)))
    return f"-- {MARK}\n{query}\n"


def _names(keep: Sequence[str], classes: Sequence[Any]) -> list[str]:
    names = [*keep, "prediction", *(f"p_{label}" for label in classes)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        what = f"the query would have two columns {twice!r}"
        raise InputError(what, value=twice, remedy="keep other columns, or rename it")
    return names


def _table(name: str, words: Words) -> str:
    """A table as it was named, with a schema or without; a name that SQL would not read is quoted."""
    if name.lstrip().startswith("{{"):
        return name  # of a template: dbt fills it in
    try:
        return exp.to_table(name, dialect=words.name).sql(words.name)
    except (SqlglotError, ValueError):
        return words.quoted(name)


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
