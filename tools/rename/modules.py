"""Move modules and rename module-level symbols, by the scope of each name; doctests and annotations in strings too."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .names import new_module
from .source import (
    CODE_FOLDERS,
    PACKAGE,
    Comprehension,
    FunctionNode,
    all_arguments,
    assignment_targets,
    char_column,
    default_values,
    defined_names,
    docstrings,
    example_lines,
    imported_names,
    module_name,
    module_paths,
    module_statements,
    stored_names,
)

DOTTED_NAME = re.compile(rf"\b{PACKAGE}(?:\.[A-Za-z_]\w*)+")
TEXT_FILES = ("docs/**/*.md", "*.md", "mkdocs.yml", "pyproject.toml", "setup.py", "src/**/*.pxi", "src/**/*.pyx")

NEW_PACKAGES = {
    "monitoring": "Monitoring: data checks, drift, and differences between models.",
    "metrics": "Metrics: scores, ranks, curves, calibration and their intervals.",
    "weighted": "The weighted model: sample, term selection, weights and fit.",
    "decisions": "Decisions: thresholds, costs and class priors that shift.",
    "validation": "Validation: folds, cross-validation, held-out estimates and comparisons.",
}


class ModuleRef(NamedTuple):
    """A module that a name stands for."""

    module: str


class SymbolRef(NamedTuple):
    """A function, class or constant that a name stands for, in the module that defines it."""

    module: str
    name: str


Reference = ModuleRef | SymbolRef


class Scope(dict[str, Reference | None]):
    """What names stand for; None is a local variable. Functions do not see the scope of a class around them."""

    def __init__(self, names: dict[str, Reference | None], is_class: bool = False):
        super().__init__(names)
        self.is_class = is_class


class Package:
    """The modules of the package as they stand, and what becomes of their names."""

    def __init__(self, root: Path, moves: dict[str, str], symbols: dict[str, str]):
        self.root, self.source = root, root / "src"
        self.moves, self.symbols = moves, symbols
        self.paths = module_paths(self.source)
        self.imported: dict[tuple[str, str], tuple[str, str]] = {}
        for module, path in self.paths.items():
            self._add_imports(module, path)

    def _add_imports(self, module: str, path: Path) -> None:
        """Note where names come from that a module imports: others may import them from here."""
        for node in module_statements(ast.parse(path.read_text())):
            base = absolute_module(node, module, path) if isinstance(node, ast.ImportFrom) else None
            if base and base.startswith(PACKAGE):
                for alias in node.names:
                    if not (base == module and f"{base}.{alias.name}" in self.paths):
                        self.imported[module, alias.asname or alias.name] = base, alias.name

    def new_module(self, module: str) -> str:
        """Return the path of a module after the move."""
        return new_module(module, self.moves)

    def resolve(self, module: str, name: str, depth: int = 0) -> Reference:
        """Follow imports to what a name of a module stands for. The depth ends circles."""
        if (module, name) in self.imported:
            return self.resolve(*self.imported[module, name], depth + 1) if depth < 8 else SymbolRef(module, name)
        full = f"{module}.{name}"
        return ModuleRef(full) if full in self.paths else SymbolRef(module, name)

    def new_name(self, reference: Reference, name: str) -> str:
        """Return the new name of what a name stands for; an alias of it stays."""
        if isinstance(reference, ModuleRef):
            own = reference.module.rpartition(".")[2]
            return self.new_module(reference.module).rpartition(".")[2] if own == name else name
        return self.symbols.get(f"{reference.module}.{name}", name) if reference.name == name else name

    def new_dotted(self, match: re.Match[str]) -> str:
        """Return a dotted name, found anywhere in text, with the module and the symbol that follows renamed."""
        parts = match[0].split(".")
        for end in range(len(parts), 1, -1):
            module, rest = ".".join(parts[:end]), parts[end:]
            if module in self.paths:
                if rest:
                    rest[0] = self.symbols.get(f"{module}.{rest[0]}") or rest[0]
                return ".".join([self.new_module(module), *rest])
        return match[0]


def absolute_module(node: ast.ImportFrom, module: str | None, path: Path) -> str | None:
    """Return the module that a statement imports from, without leading dots."""
    if node.level == 0:
        return node.module
    parts = (module or "").split(".")
    levels = node.level - (path.name == "__init__.py")
    return ".".join([*parts[: len(parts) - levels], *([node.module] if node.module else [])])


def local_names(function: FunctionNode | ast.Lambda | ast.Module) -> set[str]:
    """Return the names that a function binds: within it they hide those of the module."""
    names = set() if isinstance(function, ast.Module) else {one.arg for one in all_arguments(function.args)}
    global_names: set[str] = set()
    stack: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
    while stack:
        node = stack.pop()
        stack.extend(_nodes_of_scope(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Global():
                global_names.update(node.names)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(node.id)
            case ast.Import() | ast.ImportFrom():
                names |= imported_names(node)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
    return names - global_names


def _nodes_of_scope(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node without those that have a scope of their own."""
    if isinstance(node, FunctionNode | ast.ClassDef):
        return [*node.decorator_list]
    if isinstance(node, ast.Lambda):
        return []
    if isinstance(node, Comprehension):
        conditions = [one for part in node.generators for one in (part.iter, *part.ifs)]
        return [*conditions, *_results(node)]
    return [*ast.iter_child_nodes(node)]


def _results(node: Comprehension) -> list[ast.expr]:
    return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]


def bound_anywhere(tree: ast.AST) -> set[str]:
    """Return the names that are bound in any scope of a tree: an import must not get one of them as new name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


class SourceFile:
    """A Python file, and the edits that are due in it."""

    def __init__(self, path: Path, package: Package):
        self.path, self.package, self.text = path, package, path.read_text()
        self.name = path.relative_to(package.root)
        self.module = module_name(path, package.source) if path.is_relative_to(package.source) else None
        self.lines = self.text.split("\n")
        self.line_starts = [0]
        for line in self.lines:
            self.line_starts.append(self.line_starts[-1] + len(line) + 1)
        self.edits: set[tuple[int, int, str]] = set()
        self.kept_aliases: set[str] = set()
        self.bound: set[str] = set()

    def rewrite(self) -> None:
        """Rename all that the file mentions, and write it if anything changed."""
        tree = ast.parse(self.text)
        names: dict[str, Reference | None] = {}
        if self.module is not None:
            names = {name: SymbolRef(self.module, name) for name in defined_names(tree)}
        self.bound = bound_anywhere(tree)
        scope = Scope(names)
        Rewriter(self, [(number, 0) for number in range(1, len(self.lines) + 1)], scope).rewrite(tree)
        for docstring in docstrings(tree):
            self._rewrite_examples(docstring, scope)
        self._rewrite_dotted_names()
        text = self._edited()
        if text != self.text:
            self.path.write_text(text)

    def _rewrite_examples(self, docstring: ast.Constant, scope: Scope) -> None:
        """Rename within a doctest. It sees the names of its module, except those that it binds itself."""
        numbered = example_lines(self.lines, docstring)
        try:
            tree = ast.parse("\n".join(self.lines[number - 1][lead:] for number, lead in numbered))
        except SyntaxError:
            print("doctest not parsed:", self.name, docstring.lineno)
            return
        own = local_names(tree) - imported_names(tree)
        Rewriter(self, numbered, Scope({k: v for k, v in scope.items() if k not in own})).rewrite(tree)

    def _rewrite_dotted_names(self) -> None:
        """Rename dotted names in strings, comments and prose, which the syntax tree does not show."""
        spans = [(start, start + length) for start, length, _ in self.edits]
        for match in DOTTED_NAME.finditer(self.text):
            new = self.package.new_dotted(match)
            if new != match[0] and not any(start < match.end() and match.start() < end for start, end in spans):
                self.edits.add((match.start(), len(match[0]), new))

    def _edited(self) -> str:
        text, last = self.text, len(self.text)
        for start, length, new in sorted(self.edits, reverse=True):
            if start + length > last:
                print("edits overlap:", self.name, start)
                continue
            text, last = text[:start] + new + text[start + length :], start
        return text


class Rewriter(ast.NodeVisitor):
    """Finds what to rename in a syntax tree: that of a file, or of the examples of one docstring."""

    def __init__(self, file: SourceFile, numbered: list[tuple[int, int]], scope: Scope):
        self.file, self.package, self.numbered = file, file.package, numbered
        self.lines = [file.lines[number - 1][lead:] for number, lead in numbered]
        self.scopes = [scope]
        self.taken: set[str] = set()

    def rewrite(self, tree: ast.Module) -> None:
        """Note the edits of a tree."""
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        self.taken = bound_anywhere(tree) | self.file.bound
        self.taken |= {alias.asname or alias.name for node in imports for alias in node.names}
        self._bind_imports(tree.body, self.scopes[0])
        for node in tree.body:
            if isinstance(node, ast.Assign) and "__all__" in [getattr(one, "id", "") for one in node.targets]:
                self._rename_in_strings(node.value)
        self.generic_visit(tree)

    def _offset(self, line: int, byte_column: int) -> int:
        number, lead = self.numbered[line - 1]
        return self.file.line_starts[number - 1] + lead + char_column(self.lines[line - 1], byte_column)

    def _edit(self, start: int, old: str, new: str) -> None:
        if new != old:
            self.file.edits.add((start, len(old), new))

    def _edit_word(self, node: ast.stmt, old: str, new: str) -> None:
        """Rename a word of a statement that has no node of its own, as the name after `def`."""
        line = self.lines[node.lineno - 1]
        found = re.compile(rf"\b{re.escape(old)}\b").search(line, char_column(line, node.col_offset) + 3)
        if found is None:
            raise ValueError(f"{self.file.name}, line {node.lineno}: no {old}")
        self._edit(self._offset(node.lineno, len(line[: found.start()].encode())), old, new)

    def _look_up(self, name: str) -> Reference | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def _new_name(self, reference: Reference | None, name: str) -> str:
        if reference is None or name in self.file.kept_aliases:
            return name
        return self.package.new_name(reference, name)

    @contextmanager
    def _within(self, scopes: list[Scope]) -> Iterator[None]:
        outer, self.scopes = self.scopes, scopes
        try:
            yield
        finally:
            self.scopes = outer

    def _visit_all(self, nodes: list) -> None:
        for node in nodes:
            self.visit(node)

    # Imports

    def _bind_imports(self, body: list[ast.stmt], scope: Scope) -> None:
        """Note what the imports of one scope bind, and rewrite them."""
        stack: list[ast.AST] = list(body)
        while stack:
            node = stack.pop()
            if isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
                continue
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        scope[alias.asname or PACKAGE] = ModuleRef(alias.name if alias.asname else PACKAGE)
            elif isinstance(node, ast.ImportFrom):
                base = absolute_module(node, self.file.module, self.file.path)
                if base and base.startswith(PACKAGE):
                    self._rewrite_import(node, base, scope)
            stack.extend(ast.iter_child_nodes(node))

    def _rewrite_import(self, node: ast.ImportFrom, base: str, scope: Scope) -> None:
        """Write one import statement for each module that the names of this one are in after the move."""
        groups: dict[str, list[str]] = {}
        changed = False
        for alias in node.names:
            new_base, new, local = self.package.new_module(base), alias.name, alias.asname
            if alias.name != "*":
                reference = self.package.resolve(base, alias.name)
                scope[alias.asname or alias.name] = reference
                if reference == ModuleRef(f"{base}.{alias.name}"):
                    new_base, _, new = self.package.new_module(reference.module).rpartition(".")
                else:
                    new = self.package.new_name(reference, alias.name)
                local = self._local_name(node, alias, new)
                changed |= (new_base, new) != (base, alias.name)
            groups.setdefault(new_base, []).append(f"{new} as {local}" if local else new)
        if not changed:
            return
        start = self._offset(node.lineno, node.col_offset)
        old = self.file.text[start : self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)]
        number, lead = self.numbered[node.lineno - 1]
        indent = self.file.lines[number - 1][: lead + node.col_offset]
        statements = [f"from {module} import {', '.join(names)}" for module, names in groups.items()]
        self._edit(start, old, f"\n{indent}".join(statements))

    def _local_name(self, node: ast.ImportFrom, alias: ast.alias, new: str) -> str | None:
        """Return the name after `as`. A name keeps its old one where the new one is taken."""
        if alias.asname:
            return alias.asname if alias.asname != new else None
        if new != alias.name and new in self.taken:
            print("collision:", self.file.name, node.lineno, alias.name, "->", new)
            self.file.kept_aliases.add(alias.name)
            return alias.name
        return None

    def visit_Import(self, node: ast.Import) -> None:
        """Skip what was rewritten when its scope was entered."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Skip what was rewritten when its scope was entered."""

    # Names

    def visit_Name(self, node: ast.Name) -> None:
        """Rename a plain name."""
        new = self._new_name(self._look_up(node.id), node.id)
        self._edit(self._offset(node.lineno, node.col_offset), node.id, new)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Rename what follows the name of a module."""
        chain: list[ast.Attribute] = []
        start: ast.expr = node
        while isinstance(start, ast.Attribute):
            chain.insert(0, start)
            start = start.value
        reference = self._look_up(start.id) if isinstance(start, ast.Name) else None
        for attribute in chain:
            if not isinstance(reference, ModuleRef):
                break
            reference = self.package.resolve(reference.module, attribute.attr)
            column = (attribute.end_col_offset or 0) - len(attribute.attr.encode())
            at = self._offset(attribute.end_lineno or attribute.lineno, column)
            self._edit(at, attribute.attr, self.package.new_name(reference, attribute.attr))
        self.visit(node.value)

    def visit_Global(self, node: ast.Global) -> None:
        """Rename the names of a `global` statement."""
        for name in node.names:
            self._edit_word(node, name, self._new_name(self.scopes[0].get(name), name))

    # Strings that hold names

    def _rename_in_strings(self, node: ast.expr) -> None:
        """Rename names in strings on one line: annotations of what is defined later, and `__all__`."""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            return
        for string in ast.walk(node):
            if not (isinstance(string, ast.Constant) and isinstance(string.value, str)):
                continue
            line = self.lines[string.lineno - 1].encode()
            if line[string.col_offset + 1 : (string.end_col_offset or 0) - 1].decode() != string.value:
                continue
            try:
                names = [one for one in ast.walk(ast.parse(string.value, mode="eval")) if isinstance(one, ast.Name)]
            except SyntaxError:
                continue
            for name in names:
                at = self._offset(string.lineno, string.col_offset + 1 + name.col_offset)
                self._edit(at, name.id, self._new_name(self._look_up(name.id), name.id))

    def _visit_annotation(self, node: ast.expr) -> None:
        self.visit(node)
        self._rename_in_strings(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Rename within an annotated assignment."""
        self._visit_annotation(node.annotation)
        self._visit_all([node.target, *([node.value] if node.value else [])])

    def visit_Call(self, node: ast.Call) -> None:
        """Read the arguments of `cast` and `TypeVar` as annotations."""
        if not (isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar")):
            self.generic_visit(node)
            return
        for argument in [*node.args, *(one.value for one in node.keywords if one.arg == "bound")]:
            self._visit_annotation(argument)
        self.visit(node.func)

    # Scopes

    def _rename_definition(self, node: FunctionNode | ast.ClassDef) -> None:
        """Rename a function or class of the module itself."""
        reference = self._look_up(node.name) if len(self.scopes) == 1 else None
        if isinstance(reference, SymbolRef) and reference.module == self.file.module:
            self._edit_word(node, node.name, self._new_name(reference, node.name))

    def visit_FunctionDef(self, node: FunctionNode) -> None:
        """Rename a function, and what it mentions."""
        self._rename_definition(node)
        self._visit_all([*node.decorator_list, *default_values(node.args)])
        annotations = [argument.annotation for argument in all_arguments(node.args)]
        for annotation in [*annotations, node.returns]:
            if annotation:
                self._visit_annotation(annotation)
        inner = Scope(dict.fromkeys(local_names(node)))
        self._bind_imports(node.body, inner)
        with self._within([*(scope for scope in self.scopes if not scope.is_class), inner]):
            self._visit_all(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Rename within a lambda."""
        self._visit_all(default_values(node.args))
        with self._within([*self.scopes, Scope(dict.fromkeys(local_names(node)))]):
            self.visit(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Rename a class, and what it mentions. An annotation means the outer name, not the member of that name."""
        self._rename_definition(node)
        self._visit_all([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
        members = [one.name for one in node.body if isinstance(one, FunctionNode | ast.ClassDef)]
        targets = [target for one in node.body for target in assignment_targets(one)]
        members += [name for target in targets for name in stored_names(target)]
        inner = [*self.scopes, Scope(dict.fromkeys(members), is_class=True)]
        for statement in node.body:
            annotated = isinstance(statement, ast.AnnAssign)
            if annotated:
                self._visit_annotation(statement.annotation)
            with self._within(inner):
                self._visit_all(
                    [statement.value] if annotated and statement.value else [] if annotated else [statement]
                )

    def _visit_comprehension(self, node: Comprehension) -> None:
        """Rename within a comprehension; its first iterable belongs to the scope around it."""
        names = [name for part in node.generators for name in stored_names(part.target)]
        self.visit(node.generators[0].iter)
        with self._within([*self.scopes, Scope(dict.fromkeys(names))]):
            for part in node.generators:
                self._visit_all([*([part.iter] if part is not node.generators[0] else []), *part.ifs])
            self._visit_all(_results(node))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension  # noqa: N815


def rename(root: Path, moves: dict[str, str], symbols: dict[str, str]) -> None:
    """Rewrite every file that mentions a name, move the modules, and add the result to the index of git."""
    package = Package(root, moves, symbols)
    for folder in ("src", *CODE_FOLDERS):
        for path in sorted((root / folder).rglob("*.py")):
            SourceFile(path, package).rewrite()
    for path in (path for pattern in TEXT_FILES for path in root.glob(pattern)):
        text = path.read_text()
        new = DOTTED_NAME.sub(package.new_dotted, text)
        if new != text:
            path.write_text(new)
    move_files(package)
    rename_registry_entries(package)
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True, capture_output=True)


def file_moves(package: Package) -> list[tuple[Path, Path]]:
    """Return the old and the new place of each file, also of those beside the modules of a package that moves."""
    moves = []
    for module, path in package.paths.items():
        new = package.source.joinpath(*package.new_module(module).split("."))
        if new == package.source.joinpath(*module.split(".")):
            continue
        if path.name != "__init__.py":
            moves.append((path, new.with_suffix(".py")))
            continue
        moves.append((path, new / "__init__.py"))
        others = [one for one in path.parent.iterdir() if one.is_file() and one.suffix != ".py"]
        moves.extend((one, new / one.name) for one in others)
    return moves


def move_files(package: Package) -> None:
    """Move the files by way of temporary names, so that two modules can change places."""
    moves = []
    for i, (old, new) in enumerate(file_moves(package)):
        new.parent.mkdir(parents=True, exist_ok=True)
        moves.append((old.rename(old.with_name(f"tmpmove{i}{old.suffix}")), new))
    for temporary, new in moves:
        if new.exists():
            raise FileExistsError(new)
        temporary.rename(new)
    for name, docstring in NEW_PACKAGES.items():
        folder = package.source / PACKAGE / name
        if folder.is_dir() and not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text(f'"""{docstring}"""\n')
    for folder in sorted((path for path in package.source.rglob("*") if path.is_dir()), reverse=True):
        if folder.name != "__pycache__" and all(one.name == "__pycache__" for one in folder.iterdir()):
            shutil.rmtree(folder)


def rename_registry_entries(package: Package) -> None:
    """Rename the entries `"module": "Class"` of registries, which import a class when it is first asked for."""
    for path in (package.source / PACKAGE).rglob("registry.py"):
        folder = module_name(path.parent, package.source)

        def new_module(match: re.Match[str], folder: str = folder) -> str:
            return package.new_module(f"{folder}.{match[1]}").rpartition(".")[2]

        def new_entry(match: re.Match[str], folder: str = folder) -> str:
            symbol = package.symbols.get(f"{folder}.{match[1]}.{match[2]}", match[2])
            return f'"{new_module(match)}": "{symbol}"'

        path.write_text(re.sub(r'"(\w+)": "(\w+)"', new_entry, path.read_text()))
        listed = path.with_name("__init__.py")  # a doctest there prints the entries
        listed.write_text(re.sub(r"(?<=')(\w+)(?=')", new_module, listed.read_text()))
