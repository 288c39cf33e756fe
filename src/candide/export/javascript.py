"""JavaScript: a model as one ES module without imports, its parameters and the scorer, for browsers and Node.

>>> from candide.demo import garden
>>> text = javascript(Fitted(garden()))
>>> text.splitlines()[0], "export default model;" in text
('// A model exported by Candide. Made by a program: export it again instead of changing it.', True)
"""

from typing import Any

from candide.errors import InputError
from candide.export.joined import MARK, source
from candide.export.packed import as_json
from candide.export.parameters import parameters
from candide.model.fitted import Fitted

_USE = """
/** The parameters of the model. */
export const parameters = {parameters};

/** @type {{Model}} */
const model = load(parameters);
export default model;
export const {{ columns, classes, voices, score }} = model;
"""


def javascript(fitted: Fitted) -> str:
    """The text of a module whose default export is the model: ``model.score(row)``."""
    found = parameters(fitted)
    check(found)
    return f"// {MARK}\n\n{scorer()}{_USE.format(parameters=as_json(found))}"


def scorer() -> str:
    """The scorer alone, as an ES module that exports ``load(parameters)``."""
    return source("js")


def check(found: dict[str, Any]) -> None:
    """Refuse parameters that mean something in Python alone: an own pattern of words."""
    for read in found["reads"]:
        if read.get("pattern") is not None:
            what = f"its words are found by the pattern {read['pattern']!r} of Python's regular expressions"
            column = found["columns"][read["column"]]["name"]
            remedy = "export it to python, or fit it without a pattern"
            raise InputError(f"cannot be exported to JavaScript: {what}", column=column, remedy=remedy)
