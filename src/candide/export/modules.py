"""Modules: a model as one file of Python or JavaScript: its parameters, and the scorer without its imports.

>>> "import {" in join_scorer("js"), "from candide" in join_scorer("py")
(False, False)
>>> from candide.demo import garden
>>> to_python(FittedModel(garden())).splitlines()[0]
'# A model exported by Candide. Made by a program: export it again instead of changing it.'
"""

import ast
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from candide.errors import InputError
from candide.export.parameters import export_parameters, pack_json
from candide.model.fitted import FittedModel

_PYTHON_FOOTER = """

PARAMETERS = json.loads({parameters!r})
model = load(PARAMETERS)
columns, classes, terms, score = model.columns, model.classes, model.terms, model.score

if __name__ == "__main__":  # python FILE ROWS.csv > SCORED.csv
    sys.exit(main(model, sys.argv))
"""
_MAX_SAFE_INTEGER = (1 << 53) - 1  # integers up to here are exact as doubles
_JAVASCRIPT_FOOTER = """
/** The parameters of the model. */
export const parameters = {parameters};

/** @type {{Model}} */
const model = load(parameters);
export default model;
export const {{ columns, classes, terms, score }} = model;
"""

EXPORT_MARKER = "A model exported by Candide. Made by a program: export it again instead of changing it."
SCORER_MODULES = ("numbers", "values", "texts", "reads", "operations", "model")  # each needs those before it
_IMPORT = re.compile(r'^import \{.*?\} from "\./\w+\.js";\n', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!function load\b)", re.MULTILINE)


def join_scorer(language: str, extra_imports: Sequence[str] = ()) -> str:
    """The scorer in ``"js"`` or ``"py"``, with extra imports of Python."""
    texts = [
        files("candide.export.scorer").joinpath(f"{name}.{language}").read_text("utf-8") for name in SCORER_MODULES
    ]
    return _python(texts, extra_imports) if language == "py" else _javascript(texts)


def _javascript(texts: list[str]) -> str:
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _python(texts: list[str], also: Sequence[str]) -> str:
    """The docstring of the last file, the imports of all, then what they define."""
    imports, bodies = {f"import {name}" for name in also}, []
    for text in texts:
        tree, lines = ast.parse(text), text.splitlines()
        heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports |= {ast.unparse(node) for node in heads if not _is_candide_import(node)}
        bodies.append("\n".join(lines[max(node.end_lineno or 0 for node in (tree.body[0], *heads)) :]).strip())
    about = ast.get_docstring(ast.parse(texts[-1]), clean=False) or ""
    return (
        f'"""{about.partition(">>>")[0].strip()}\n"""\n\n' + "\n\n\n".join(["\n".join(sorted(imports)), *bodies]) + "\n"
    )


def _is_candide_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("candide")


def to_python(fitted: FittedModel) -> str:
    """The text of a module with ``score(row)``; run by itself it scores a CSV file."""
    footer = _PYTHON_FOOTER.format(parameters=pack_json(export_parameters(fitted)))
    return f"# {EXPORT_MARKER}\n\n{join_scorer('py', ('json',))}{footer}"


def to_javascript(fitted: FittedModel) -> str:
    """The text of a module whose default export is the model: ``model.score(row)``."""
    found = export_parameters(fitted)
    check_javascript(found)
    footer = _JAVASCRIPT_FOOTER.format(parameters=pack_json(quote_wide_integers(found)))
    return f"// {EXPORT_MARKER}\n\n{scorer_source()}{footer}"


def scorer_source() -> str:
    """The scorer alone, as an ES module that exports ``load(parameters)``."""
    return join_scorer("js")


def quote_wide_integers(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters with integers that JavaScript's numbers cannot represent as text.

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
    """Refuse parameters that only Python can evaluate: a user's token pattern."""
    for read in parameters["reads"]:
        if read.get("pattern") is not None:
            what = f"its words are found by the pattern {read['pattern']!r} of Python's regular expressions"
            column = parameters["columns"][read["column"]]["name"]
            remedy = "export it to python, or fit it without a pattern"
            raise InputError(f"cannot be exported to JavaScript: {what}", column=column, remedy=remedy)
