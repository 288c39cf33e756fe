"""The targets that a model can be exported to, and the writers of Python and JavaScript modules.

A module is one file: the parameters of the model, and the scorer of :mod:`candide.export.python_js`. A scorer in Python
may use functions of other packages that need only the standard library: the module has a copy of them.
"""

import ast
import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files as package_files
from typing import Any

from candide import files
from candide.errors import InputError, unknown_name_error
from candide.export.onnx import to_onnx_bytes
from candide.export.parameters import EXPORT_MARKER, MAX_EXACT_INTEGER, export_parameters, pack_json
from candide.model.fitted import FittedModel

_PYTHON_FOOTER = """

PARAMETERS = json.loads({parameters!r})
model = load(PARAMETERS)
columns, classes, terms, score = model.columns, model.classes, model.terms, model.score

if __name__ == "__main__":  # python FILE ROWS.csv > SCORED.csv
    sys.exit(main(model, sys.argv))
"""
_JAVASCRIPT_FOOTER = """
/** The parameters of the model. */
export const parameters = {parameters};

/** @type {{Model}} */
const model = load(parameters);
export default model;
export const {{ columns, classes, terms, score }} = model;
"""
_SCORER = "candide.export.python_js"
_SCORER_MODULES = ("numbers", "values", "reads", "operations", "model")  # each needs those before it
_JAVASCRIPT_IMPORT = re.compile(r'^import \{.*?\} from "\./\w+\.js";\n', re.MULTILINE | re.DOTALL)
_JAVASCRIPT_EXPORT = re.compile(r"^export (?!function load\b)", re.MULTILINE)


def _read_scorer(language: str) -> list[str]:
    folder = package_files(_SCORER)
    return [folder.joinpath(f"{name}.{language}").read_text("utf-8") for name in _SCORER_MODULES]


def javascript_scorer() -> str:
    """The scorer alone, as an ES module that exports ``load(parameters)``."""
    texts = [_JAVASCRIPT_IMPORT.sub("", text) for text in _read_scorer("js")]
    return "\n".join(_JAVASCRIPT_EXPORT.sub("", text) for text in texts)


def to_javascript(fitted: FittedModel) -> str:
    """The text of a module whose default export is the model: ``model.score(row)``."""
    parameters = export_parameters(fitted)
    check_javascript(parameters)
    footer = _JAVASCRIPT_FOOTER.format(parameters=pack_json(quote_wide_integers(parameters)))
    return f"// {EXPORT_MARKER}\n\n{javascript_scorer()}{footer}"


def to_python(fitted: FittedModel) -> str:
    """The text of a module with ``score(row)``; run by itself it scores a CSV file."""
    imports, shared, bodies = {"import json"}, dict[str, None](), list[str]()
    for text in _read_scorer("py"):
        tree = ast.parse(text)
        heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in heads:
            module = str(getattr(node, "module", ""))
            if not module.startswith("candide"):
                imports.update(_import_lines(node).values())
            elif not module.startswith(_SCORER):
                shared |= _copy_definitions(module, [alias.name for alias in node.names], imports)
        body_start = max(node.end_lineno or 0 for node in (tree.body[0], *heads))
        bodies.append("\n".join(text.splitlines()[body_start:]).strip())
    about = (ast.get_docstring(tree, clean=False) or "").partition(">>>")[0].strip()
    scorer = "\n\n\n".join(["\n".join(sorted(imports)), *shared, *bodies])
    footer = _PYTHON_FOOTER.format(parameters=pack_json(export_parameters(fitted)))
    return f'# {EXPORT_MARKER}\n\n"""{about}\n"""\n\n{scorer}\n{footer}'


def _import_lines(node: ast.stmt) -> dict[str, str]:
    """An import as one line per name, so that no name is imported twice; nothing for another statement."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return {}
    source = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
    return {alias.asname or alias.name: f"{source}import {ast.unparse(alias)}" for alias in node.names}


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef) else []


def _copy_definitions(module: str, names: Sequence[str], imports: set[str]) -> dict[str, None]:
    """The source of names of a module, and of all in it that they use; its imports are added to ``imports``."""
    source = inspect.getsource(import_module(module))
    body, lines = ast.parse(source).body, source.splitlines()
    definitions = {name: node for node in body for name in _defined_names(node)}
    pending, used = list(names), set[str]()
    while pending:
        used.add(name := pending.pop())
        nodes = ast.walk(definitions[name]) if name in definitions else ()
        pending += [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in used]
    imports |= {line for node in body for name, line in _import_lines(node).items() if name in used}
    needed = [node for node in body if not used.isdisjoint(_defined_names(node))]
    return dict.fromkeys("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in needed)


def quote_wide_integers(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters with integers that JavaScript's numbers cannot represent as text.

    >>> quoted = quote_wide_integers({"classes": [1, 2**53 + 1], "columns": [{"name": "id", "levels": [2**60 + 1]}]})
    >>> quoted["classes"], quoted["columns"][0]["levels"]
    ([1, '9007199254740993'], [{'text': '1152921504606846977', 'type': 'integer'}])
    """

    def is_wide(value: Any) -> bool:
        return isinstance(value, int) and abs(value) >= MAX_EXACT_INTEGER

    columns = [dict(column) for column in parameters["columns"]]
    for column in columns:
        if levels := column.get("levels"):
            column["levels"] = [{"text": str(x), "type": "integer"} if is_wide(x) else x for x in levels]
    classes = [str(label) if is_wide(label) else label for label in parameters["classes"]]
    return {**parameters, "classes": classes, "columns": columns}


def check_javascript(parameters: dict[str, Any]) -> None:
    """Reject parameters that only Python can evaluate: a user's token pattern."""
    for read in parameters["reads"]:
        if read.get("pattern") is not None:
            what = f"its words are found by the pattern {read['pattern']!r} of Python's regular expressions"
            column = parameters["columns"][read["column"]]["name"]
            remedy = "export it to python, or fit it without a pattern"
            raise InputError(f"cannot be exported to JavaScript: {what}", column=column, remedy=remedy)


def _to_sql(fitted: FittedModel, *, keep: Sequence[str] = (), **options: Any) -> str:
    from candide.export.sql.query import write_select  # imports sqlglot, which is slow

    return write_select(fitted, kept_columns=keep, **options)


@dataclass(frozen=True)
class Target:
    """A function that writes a model, and its description."""

    write: Callable[..., str | bytes]
    description: str
    is_binary: bool = False  # not text: cannot be printed
    options: tuple[str, ...] = ()  # beside the model


TARGETS = {
    "js": Target(to_javascript, "a JavaScript module"),
    "onnx": Target(to_onnx_bytes, "an ONNX graph", is_binary=True),
    "python": Target(to_python, "a Python module"),
    "sql": Target(_to_sql, "a query", options=("dialect", "table", "keep")),
}


def find_target(name: str) -> Target:
    """The target of a name; the error lists all."""
    if name not in TARGETS:
        raise unknown_name_error("target of an export", name, TARGETS)
    return TARGETS[name]


def is_exported_file(path: str) -> bool:
    """Whether a file is a model that Candide exported, by how it begins."""
    with open(path, "rb") as file:
        return EXPORT_MARKER.encode() in file.read(200)


def export_model(
    fitted: FittedModel,
    target: str,
    out: str | os.PathLike | None = None,
    *,
    force: bool = False,
    dialect: str | None = None,
    table: str | None = None,
    keep: str | Sequence[str] = (),
) -> str | bytes:
    """Return a model as a program of a target, text or bytes, and write it into ``out`` if given.

    An existing file is replaced only if it was exported before, unless ``force`` is set. ``dialect``, ``table`` and
    ``keep`` are options of "sql". A model that cannot be exported is an error that names the column.
    """
    chosen = find_target(target)
    files.check_output(out, is_own_file=is_exported_file, force=force)
    options = {"dialect": dialect, "table": table, "keep": [keep] if isinstance(keep, str) else list(keep)}
    options = {name: value for name, value in options.items() if value}
    for name, value in options.items():
        if name not in chosen.options:
            what = f"{name} is an option of sql, and not of {target}"
            raise InputError(what, value=value, remedy="leave it out")
    program = chosen.write(fitted, **options)
    if out is not None:
        files.write_atomically(out, [program.encode("utf-8") if isinstance(program, str) else program])
    return program
