"""JavaScript: a model as one ES module without imports, its parameters and the scorer, for browsers and Node.

>>> from candide.demo import garden
>>> text = to_javascript(FittedModel(garden()))
>>> text.splitlines()[0], "export default model;" in text
('// A model exported by Candide. Made by a program: export it again instead of changing it.', True)
"""

from typing import Any

from candide.errors import InputError
from candide.export.joined import EXPORT_MARKER, join_scorer
from candide.export.packed import pack_json
from candide.export.parameters import export_parameters
from candide.model.fitted import FittedModel

_MAX_SAFE_INTEGER = (1 << 53) - 1  # the largest whole number beside which a double has no other
_FOOTER = """
/** The parameters of the model. */
export const parameters = {parameters};

/** @type {{Model}} */
const model = load(parameters);
export default model;
export const {{ columns, classes, voices, score }} = model;
"""


def to_javascript(fitted: FittedModel) -> str:
    """The text of a module whose default export is the model: ``model.score(row)``."""
    found = export_parameters(fitted)
    check_javascript(found)
    return f"// {EXPORT_MARKER}\n\n{scorer_source()}{_FOOTER.format(parameters=pack_json(quote_wide_integers(found)))}"


def scorer_source() -> str:
    """The scorer alone, as an ES module that exports ``load(parameters)``."""
    return join_scorer("js")


def quote_wide_integers(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters whose wide whole numbers, of which JavaScript's numbers have not all figures, are text.

    >>> found = quote_wide_integers({"classes": [1, 2**53 + 1], "columns": [{"name": "id", "levels": [2**60 + 1]}]})
    >>> found["classes"], found["columns"][0]["levels"]
    ([1, '9007199254740993'], [{'text': '1152921504606846977', 'type': 'integer'}])
    """
    classes = [str(label) if _is_wide(label) else label for label in parameters["classes"]]
    columns = [
        {**column, "levels": [{"text": str(one), "type": "integer"} if _is_wide(one) else one for one in levels]}
        if (levels := column.get("levels"))
        else column
        for column in parameters["columns"]
    ]
    return {**parameters, "classes": classes, "columns": columns}


def _is_wide(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER


def check_javascript(parameters: dict[str, Any]) -> None:
    """Refuse parameters that mean something in Python alone: an own pattern of words."""
    for read in parameters["reads"]:
        if read.get("pattern") is not None:
            what = f"its words are found by the pattern {read['pattern']!r} of Python's regular expressions"
            column = parameters["columns"][read["column"]]["name"]
            remedy = "export it to python, or fit it without a pattern"
            raise InputError(f"cannot be exported to JavaScript: {what}", column=column, remedy=remedy)
