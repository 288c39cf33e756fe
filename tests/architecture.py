"""The rooms of the source, from the ground up, and how the source is read to hold them.

``ROOMS`` is the one table of the architecture: ``tests/test_layers.py`` holds the source to it, and the drawing in
CONTRIBUTING.md is made from it by ``python -m tests.architecture``.

>>> above("tally", "rows"), above("rows", "tally"), above("explain", "store")
(True, False, False)
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import candide

ROOT = Path(candide.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
START, END = "<!-- rooms: made by python -m tests.architecture -->", "<!-- end of rooms -->"

# A room may import what lies in a row below it, and its own modules.
ROOMS = [
    {
        "errors": "errors that name the place, the value and the remedy, in words and as attributes",
        "wording": "how names, values and numbers are put into sentences",
        "tables": "classes by name, each imported when it is first asked for",
    },
    {
        "numerics": "functions of numbers, accurate far out",
        "files": "writing a file: whole or not at all, and never where something would be lost",
    },
    {"kernels": "compiled loops and their readable NumPy twins"},
    {"rows": "what came in: labels, kinds of columns, tables, documents, sparse blocks"},
    {"encode": "how a column becomes numbers or codes: identity, log, grid, levels, tokens. No label is looked at"},
    {"tally": "what was counted, one kind a file: they add", "priors": "what MAP and Bayes add to the counts"},
    {"distributions": "one fitted law a file: it scores, explains, samples and describes itself"},
    {"conjugate": "how a prior and a tally make a law"},
    {"events": "families, one a file, the same sections in the same order"},
    {"model": "plan (columns to blocks), census (counts), settings, and the model they make"},
    {"engines": "who counts and who scores: arrays, DuckDB, PostgreSQL, Spark"},
    {
        "explain": "what a model knows, why a row has its class, how two models differ",
        "export": "a model as data, and as one file of another language that scores rows without Candide",
    },
    {"store": "the model file"},
    {"tasks": "the jobs: learn, predict, validate, evaluate, update"},
    {
        "demo": "a table to try things on",
        "testing": "the laws, published: an own event model, tally or engine is checked in one line",
    },
    {"report": "summaries as plain records, and what renders them", "plot": "pictures"},
    {"estimators": "the scikit-learn face, the only room that imports sklearn"},
    {
        "evaluate": "the public names of evaluation",
        "mlflow": "models in MLflow: saved, logged, loaded, and asked as any other of its models",
        "serve": "a model behind HTTP: one endpoint a function, rows in and answers out in several formats",
    },
    {"cli": "the command line: every command calls one task"},
    {"__main__": "python -m candide"},
]
# Inside a package modules may import each other in any order without a circle, except where an order is written here.
INSIDE = {
    "engines": [{"base"}, {"sql"}, {"arrays"}, {"duckdb", "postgres", "spark"}],
    "report": [{"summary"}, {"terminal", "json", "html"}, {"make"}],
}
HEIGHT = {name: height for height, row in enumerate(ROOMS) for name in row}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")  # the surface points everywhere


def above(one: str, other: str) -> bool:
    """Whether a room may import another."""
    return HEIGHT[one] > HEIGHT[other]


@dataclass(frozen=True)
class Import:
    """One name that a file imports: where, and whether only when it is needed."""

    line: int
    name: str  # dotted, "candide.rows.labels.Labels"
    lazy: bool  # within a function, or for the type checker alone

    @property
    def room(self) -> str | None:
        """The room of the package that it comes from; None for what is from elsewhere."""
        package, _, rest = self.name.partition(".")
        return rest.partition(".")[0] if package == "candide" else None

    @property
    def module(self) -> str:
        """The module that it is, or lies in."""
        return self.name if is_module(self.name) else self.name.rpartition(".")[0]


def room(path: Path) -> str:
    """The module or package of candide that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    """The name by which a file is imported."""
    return ".".join(("candide", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Everything a file imports, wherever in it the import stands."""
    return tuple(_imports(tree(path), path, lazy=False))


def _imports(node: ast.AST, path: Path, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(child.lineno, alias.name, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, f"{path.name}:{child.lineno}: import by the full name"
            yield from (Import(child.lineno, f"{child.module}.{alias.name}", lazy) for alias in child.names)
        else:
            later = isinstance(child, ast.FunctionDef | ast.Lambda) or (
                isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            )
            yield from _imports(child, path, lazy or later)


def circle(package: str) -> list[str]:
    """Modules of a package that need each other as they are loaded; empty if there are none."""
    files = {dotted(path): path for path in FILES if room(path) == package and path.name != "__init__.py"}
    needs = {name: {i.module for i in imports(path) if not i.lazy} & files.keys() for name, path in files.items()}
    while needs:  # take away what needs nothing that is left: a circle, and what leads to it, stays
        rest = {name: found for name, found in needs.items() if found & needs.keys()}
        if len(rest) == len(needs):
            return sorted(rest)
        needs = rest
    return []


def inner_height(package: str, name: str) -> int | None:
    """How high a module stands inside its package, where an order is written."""
    part = name.split(".")[2] if name.count(".") > 1 else ""
    return next((height for height, row in enumerate(INSIDE[package]) if part in row), None)


def drawing() -> str:
    """The rooms as a table, the highest first."""
    rooms = [
        f"| {height if i == 0 else ''} | `{name}` | {what} |"
        for height, row in reversed(list(enumerate(ROOMS)))
        for i, (name, what) in enumerate(row.items())
    ]
    inside = [
        f"- `{package}/`: " + ", above ".join(" and ".join(f"`{n}`" for n in sorted(row)) for row in reversed(rows))
        for package, rows in INSIDE.items()
    ]
    lines = [
        "| floor | room | what it is |",
        "|---|---|---|",
        *rooms,
        "",
        "Inside packages an order holds too:",
        "",
        *inside,
    ]
    return "\n".join([START, *lines, END])


def redrawn(text: str) -> str:
    """A page with the drawing between its marks made anew."""
    before, _, rest = text.partition(START)
    return before + drawing() + rest.partition(END)[2]


if __name__ == "__main__":
    CONTRIBUTING.write_text(redrawn(CONTRIBUTING.read_text()))
    print(f"{CONTRIBUTING.name} shows the rooms as they are")
