"""The layers of the package, lowest first, and how the source is read to check them.

``LAYERS`` is the one table of the architecture: ``tests/test_layers.py`` checks the source against it, and the table in
CONTRIBUTING.md is made from it by ``python -m tests.architecture``.

>>> above("tally", "data"), above("data", "tally"), above("explain", "store")
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
START, END = "<!-- layers: made by python -m tests.architecture -->", "<!-- end of layers -->"

# A package may import what lies in a layer below it, and its own modules.
LAYERS = [
    {
        "errors": "errors with column, row, value and remedy as attributes",
        "formatting": "how names, values and numbers are written in sentences",
        "registry": "classes by name, each imported when it is first needed",
    },
    {
        "numerics": "functions of numbers, accurate in the tails",
        "files": "atomic file writes that never destroy what a user has",
    },
    {"kernels": "compiled loops and their NumPy reference implementations"},
    {"data": "tables, labels, column types, documents, number and date formats, notes"},
    {"encoding": "how a column becomes numbers or codes; labels are never used"},
    {"tally": "sufficient statistics that add and subtract", "priors": "priors of parameters and classes"},
    {"distributions": "fitted distributions: score, explain, sample, describe themselves"},
    {"conjugate": "prior + tally -> distribution"},
    {"events": "event models: class-conditional families and their encodings"},
    {"model": "plan (columns to blocks), counts, settings, and the fitted model"},
    {"engines": "systems that count and score: arrays, DuckDB, PostgreSQL, Spark"},
    {
        "weighted": "the default model: sample, term selection, weights and fit",
        "explain": "contributions of terms and columns, effects, decisions",
        "export": "a model as data, and as one file of another language that scores rows without Candide",
    },
    {"store": "the model file"},
    {
        "metrics": "scores, ranks, curves, calibration, bootstrap",
        "monitoring": "data checks, drift, differences between models",
    },
    {"decisions": "thresholds and class priors that shift"},
    {"validation": "folds, cross-validation, held-out scores, comparison"},
    {"fit_source": "fit a model to any source: naive Bayes or the weighted model"},
    {"demo": "a table to try things on", "testing": "published checks of event models, tallies and engines"},
    {"report": "summaries as plain records, and their renderers", "plot": "pictures"},
    {"estimators": "the scikit-learn interface, the only package that imports sklearn"},
    {"api": "the public functions: one for each thing that a command does with data and models"},
    {"mlflow": "models in MLflow", "serve": "a model behind HTTP"},
    {"cli": "the command line"},
    {"__main__": "python -m candide"},
]
# Inside a package modules may import each other in any order without a circle, except where an order is written here.
INSIDE = {
    "engines": [{"base"}, {"sql"}, {"arrays"}, {"duckdb", "postgres", "spark"}],
    "report": [{"records", "terminal"}, {"summary"}, {"html"}, {"build"}],
}
HEIGHT = {name: height for height, row in enumerate(LAYERS) for name in row}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")  # the surface points everywhere


def above(one: str, other: str) -> bool:
    """Whether a package may import another."""
    return HEIGHT[one] > HEIGHT[other]


@dataclass(frozen=True)
class Import:
    """One name that a file imports: where, and whether only when it is needed."""

    line: int
    name: str  # dotted, "candide.data.labels.Labels"
    lazy: bool  # within a function, or for the type checker alone

    @property
    def package(self) -> str | None:
        """The package of candide that it comes from; None for what is from elsewhere."""
        package, _, rest = self.name.partition(".")
        return rest.partition(".")[0] if package == "candide" else None

    @property
    def module(self) -> str:
        """The module that it is, or lies in."""
        return self.name if is_module(self.name) else self.name.rpartition(".")[0]


def package_of(path: Path) -> str:
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
    files = {dotted(path): path for path in FILES if package_of(path) == package and path.name != "__init__.py"}
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
    """The layers as a table, the highest first."""
    packages = [
        f"| {height if i == 0 else ''} | `{name}` | {what} |"
        for height, row in reversed(list(enumerate(LAYERS)))
        for i, (name, what) in enumerate(row.items())
    ]
    inside = [
        f"- `{package}/`: " + ", above ".join(" and ".join(f"`{n}`" for n in sorted(row)) for row in reversed(rows))
        for package, rows in INSIDE.items()
    ]
    lines = [
        "| layer | package | what it is |",
        "|---|---|---|",
        *packages,
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
    print(f"{CONTRIBUTING.name} shows the layers as they are")
