"""What all stages need to know of Python source: module names, definitions, docstrings and columns."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "candide"
CODE_FOLDERS = ("tests", "benchmarks", "examples")
EXAMPLE = re.compile(r"(\s*)(>>>|\.\.\.)( ?)(.*)$")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def module_name(path: Path, base: Path) -> str:
    """Return the dotted name of a file; a package goes by the name of its folder."""
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def module_paths(source: Path) -> dict[str, Path]:
    """Return the file of each module of the package."""
    return {module_name(path, source): path for path in sorted(source.rglob("*.py"))}


def char_column(line: str, byte_column: int) -> int:
    """Convert a column of `ast`, which counts bytes of UTF-8, to an index of the line."""
    return len(line.encode()[:byte_column].decode())


def stored_names(target: ast.AST) -> list[str]:
    """Return the names within an assignment target."""
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def assignment_targets(node: ast.AST) -> list[ast.expr]:
    """Return the targets of an assignment; of any other statement, none."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def module_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements of a module, also those under a condition: they define names of the module too."""
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop(0)
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            stack = [*ast.iter_child_nodes(node), *stack]


def defined_names(tree: ast.Module) -> set[str]:
    """Return what a module defines itself, without its imports."""
    names: set[str] = set()
    for node in module_statements(tree):
        if isinstance(node, FunctionNode | ast.ClassDef):
            names.add(node.name)
        for target in assignment_targets(node):
            names.update(stored_names(target) if isinstance(node, ast.Assign) or isinstance(target, ast.Name) else [])
    return names


def imported_names(tree: ast.AST) -> set[str]:
    """Return the local names that the import statements of a tree bind."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for node in statements for alias in node.names}


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Return every parameter of a function, `*args` and `**kwargs` included."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [extra for extra in (arguments.vararg, arguments.kwarg) if extra]


def default_values(arguments: ast.arguments) -> list[ast.expr]:
    """Return the default values of parameters: they belong to the scope around the function."""
    return [*arguments.defaults, *(value for value in arguments.kw_defaults if value)]


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstring of the module and of each class and function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | FunctionNode) and node.body:
            first = node.body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def example_lines(lines: list[str], docstring: ast.Constant) -> list[tuple[int, int]]:
    """Return the line number and the width of the prompt of each line of a doctest."""
    found = []
    for number in range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1):
        if match := EXAMPLE.match(lines[number - 1]):
            found.append((number, match.start(4)))
    return found
