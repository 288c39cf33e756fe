"""Joined: the files of the scorer as one, of either language. They import each other; one file needs no imports.

>>> "import {" in join_scorer("js"), "from candide" in join_scorer("py")
(False, False)
>>> join_scorer("py", ("json",)).splitlines()[-1]
'    return None'
"""

import ast
import re
from collections.abc import Sequence
from importlib.resources import files

EXPORT_MARKER = "A model exported by Candide. Made by a program: export it again instead of changing it."
SCORER_MODULES = ("numbers", "values", "texts", "reads", "operations", "policy", "model")  # each needs those before it
_IMPORT = re.compile(r'^import \{.*?\} from "\./\w+\.js";\n', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!function load\b)", re.MULTILINE)


def join_scorer(language: str, extra_imports: Sequence[str] = ()) -> str:
    """The scorer in ``"js"`` or ``"py"``; ``also`` names other modules to import, of Python."""
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
