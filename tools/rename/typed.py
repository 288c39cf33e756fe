"""Have mypy infer the types of the whole repository: source, tests, doctests and the Python of pages."""

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from mypy import build
from mypy.modulefinder import BuildSource
from mypy.nodes import Argument, Expression, MypyFile, Node, TypeInfo, Var
from mypy.options import Options
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    TupleType,
    Type,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from .source import (
    CODE_FOLDERS,
    defined_names,
    docstrings,
    example_lines,
    imported_names,
    module_name,
    module_paths,
    module_statements,
)

# The attributes of mypy's nodes that hold nodes.
CHILDREN = """
defs body expr exprs args callee left right operand operands base index items key value generator sequences condlists
indices left_expr lvalues rvalue lvalue target else_body finally_body handlers types vars subject patterns guards bodies
func decorators original_decorators arguments initializer base_type_exprs begin_index end_index stride cond if_expr
else_expr call from_expr msg method dictionary elements impl
"""


class Extract:
    """A module made of the code within another file. It has the same line numbers; columns differ by `shifts`."""

    def __init__(self, original: Path, n_lines: int):
        self.original = original
        self.lines = [""] * (n_lines + 1)
        self.shifts: dict[int, int] = {}

    def add(self, number: int, code: str, shift: int) -> None:
        """Put code on a line; one space makes it the body of the function before it."""
        self.lines[number - 1] = " " + code if code.strip() else ""
        self.shifts[number] = shift - 1

    def write(self, path: Path) -> BuildSource | None:
        """Write the module, unless it is not valid Python."""
        text = "\n".join(self.lines)
        try:
            ast.parse(text)
        except SyntaxError as error:
            print("not typed:", self.original, error)
            return None
        path.write_text(text)
        return BuildSource(str(path), path.stem, None)


def extract_doctests(path: Path, module: str) -> Extract:
    """Return the doctests of a module, each docstring as a function, with the names of the module imported."""
    text = path.read_text()
    tree, lines = ast.parse(text), text.split("\n")
    extract = Extract(path, len(lines))
    for docstring in docstrings(tree):
        numbered = example_lines(lines, docstring)
        if numbered:
            extract.lines[numbered[0][0] - 2] = f"def f{numbered[0][0]}():"
        for number, lead in numbered:
            extract.add(number, lines[number - 1][lead:], lead)
    imports = [node for node in module_statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = defined_names(tree).union(*(imported_names(node) for node in imports)) - {"__all__", "__getattr__"}
    if extract.shifts and not extract.lines[0]:
        extract.lines[0] = f"from {module} import {', '.join(sorted(names))}"
    return extract


def extract_page(path: Path) -> Extract:
    """Return the Python of a Markdown page as one function, with or without prompts."""
    lines = path.read_text().split("\n")
    extract, inside = Extract(path, len(lines)), False
    for number, line in enumerate(lines, 1):
        if fence := re.match(r"\s*```(\w*)", line):
            inside = fence[1] == "python" and not inside
            if inside and not extract.shifts:
                extract.lines[number - 1] = "def page():"
        elif inside:
            prompt = re.match(r"(>>>|\.\.\.) ?", line)
            lead = prompt.end() if prompt else 0
            extract.add(number, line[lead:], lead)
    return extract


class TypedTree:
    """The repository as mypy sees it."""

    def __init__(self, root: Path, generated: Path):
        self.root, self.generated = root, generated
        self.paths = module_paths(root / "src")
        self.extracts: dict[str, Extract] = {}
        with contextlib.chdir(root):  # mypy looks for modules in the current folder
            result = build.build(self._sources(), mypy_options(root))
        self.types = result.types
        self.trees: dict[str, MypyFile] = {}
        self.module_of: dict[str, str] = {}
        for module, state in result.graph.items():
            if state.tree and state.path:
                self.trees[module] = state.tree
                self.module_of[str(Path(state.path).resolve())] = module

    def _sources(self) -> list[BuildSource]:
        sources = []
        for module, path in self.paths.items():
            sources.append(BuildSource(str(path), module, None))
            sources += self._extracted("doctest_" + module, extract_doctests(path, module))
        for path in [*self.root.glob("docs/**/*.md"), self.root / "README.md"]:
            sources += self._extracted(f"page_{path.relative_to(self.root)}", extract_page(path))
        sources += [BuildSource(str(path), module, None) for module, path in self.other_files()]
        return sources

    def _extracted(self, name: str, extract: Extract) -> list[BuildSource]:
        path = self.generated / (re.sub(r"\W", "_", name) + ".py")
        source = extract.write(path) if extract.shifts else None
        if source is None:
            return []
        self.extracts[str(path)] = extract
        return [source]

    def other_files(self) -> Iterator[tuple[str, Path]]:
        """Yield the modules outside the package: tests, benchmarks and examples."""
        for folder in CODE_FOLDERS:
            for path in sorted((self.root / folder).rglob("*.py")):
                yield module_name(path, self.root), path

    def files(self) -> Iterator[tuple[str, MypyFile]]:
        """Yield the files of the repository and the extracts, without libraries."""
        for path, module in self.module_of.items():
            if path in self.extracts or (path.endswith(".py") and Path(path).is_relative_to(self.root)):
                yield path, self.trees[module]

    def classes(self, package: str) -> dict[str, TypeInfo]:
        """Return the classes of the package by full name."""
        found = {}
        for module, tree in self.trees.items():
            for symbol in tree.names.values() if module.startswith(package) else ():
                if isinstance(symbol.node, TypeInfo) and symbol.node.module_name.startswith(package):
                    found[symbol.node.fullname] = symbol.node
        return found


def mypy_options(root: Path) -> Options:
    """Return options under which mypy keeps the type of every expression, and follows every import it can."""
    options = Options()
    options.export_types = options.preserve_asts = True
    options.incremental = False
    options.check_untyped_defs = options.allow_redefinition = True
    options.ignore_missing_imports = True
    options.python_version = (3, 11)
    options.mypy_path = [str(root / "src"), str(root)]
    options.namespace_packages = options.explicit_package_bases = True
    return options


def expressions(tree: MypyFile) -> Iterator[Expression]:
    """Yield every expression of a file."""
    stack: list[object] = [tree]
    seen, children = set(), CHILDREN.split()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, Node | Argument) and id(node) not in seen:
            if isinstance(node, TypeInfo | Var) or (isinstance(node, MypyFile) and node is not tree):
                continue
            seen.add(id(node))
            if isinstance(node, Expression):
                yield node
            stack.extend(getattr(node, name, None) for name in children)


def classes_of(given: Type | None, depth: int = 0) -> list[TypeInfo] | None:
    """Return the classes that a value of a type may have; None if nothing is known of the type."""
    kind = get_proper_type(given) if given is not None else None
    if kind is None or isinstance(kind, AnyType) or depth > 5:
        return None
    if isinstance(kind, Instance):
        return [kind.type]
    if isinstance(kind, TupleType):
        return [kind.partial_fallback.type]
    if isinstance(kind, UnionType):
        parts = [classes_of(item, depth + 1) for item in kind.items if not isinstance(get_proper_type(item), NoneType)]
        return None if None in parts else [info for part in parts for info in part or ()]
    inner = _inner_type(kind)
    return classes_of(inner, depth + 1) if inner is not None else []


def _inner_type(kind: Type) -> Type | None:
    """Return the type whose members a class, a type variable or an overloaded class has."""
    if isinstance(kind, CallableType) and kind.is_type_obj():
        return kind.ret_type
    if isinstance(kind, TypeType):
        return kind.item
    if isinstance(kind, Overloaded) and kind.items[0].is_type_obj():
        return kind.items[0]
    return kind.upper_bound if isinstance(kind, TypeVarType) else None
