"""Rename members of classes and parameters of functions, by the types that mypy infers."""

import ast
import collections
import tempfile
from pathlib import Path
from typing import NamedTuple

from mypy.nodes import Expression, MypyFile, RefExpr, TypeInfo
from mypy.types import CallableType, Type, get_proper_type

from .source import (
    PACKAGE,
    Comprehension,
    FunctionNode,
    all_arguments,
    assignment_targets,
    char_column,
    default_values,
    stored_names,
)
from .typed import TypedTree, classes_of, expressions

# Members that objects of other libraries have too: of an object of unknown type they are left alone.
LIBRARY_MEMBERS = """
shape dtype size T sum mean max min all any columns index values names name schema types type rows text status headers
read write close execute query terms loss weight n of at rule left right part path kind line step state
"""
COMMON_MEMBERS = {*dir(str), *dir(list), *dir(dict), *dir(bytes), *LIBRARY_MEMBERS.split()}
# Members with more than one new name, one of which is by far the most frequent.
PREFERRED = {"census": "counts", "voices": "term_weights", "spelled": "formatted"}


class Bases(NamedTuple):
    """The bases of a class: what `super()` stands for."""

    mro: list[TypeInfo]


class Edit(NamedTuple):
    """A word to replace. Lines count from 1, columns are characters from 0."""

    line: int
    column: int
    old: str
    new: str


class Edits:
    """The edits of all files, those of extracts in the file that they come from."""

    def __init__(self, tree: TypedTree):
        self.tree = tree
        self.by_path: dict[str, set[Edit]] = collections.defaultdict(set)
        self.lines: dict[str, list[str]] = {}

    def lines_of(self, path: str) -> list[str]:
        """Return the lines of a file; it is read once."""
        if path not in self.lines:
            self.lines[path] = Path(path).read_text().split("\n")
        return self.lines[path]

    def add(self, path: str, line: int, byte_column: int, old: str, new: str | None) -> None:
        """Note that a word gets a new name, if there is one."""
        if new:
            self.by_path[path].add(Edit(line, char_column(self.lines_of(path)[line - 1], byte_column), old, new))

    def apply(self) -> int:
        """Write the files, and return how many words changed."""
        edits: dict[str, set[Edit]] = collections.defaultdict(set)
        for path, own in self.by_path.items():
            extract = self.tree.extracts.get(path)
            for edit in own:
                if extract is None:
                    edits[path].add(edit)
                elif edit.line in extract.shifts:
                    edits[str(extract.original)].add(edit._replace(column=edit.column + extract.shifts[edit.line]))
        return sum(self._apply(path, own) for path, own in edits.items())

    def _apply(self, path: str, edits: set[Edit]) -> int:
        lines, n_changed = Path(path).read_text().split("\n"), 0
        for line, column, old, new in sorted(edits, reverse=True):
            text = lines[line - 1]
            if text[column : column + len(old)] != old:
                print("not changed:", path, line, column, old)
                continue
            lines[line - 1] = text[:column] + new + text[column + len(old) :]
            n_changed += 1
        Path(path).write_text("\n".join(lines))
        return n_changed


class NewNames:
    """The new names of members, found by class, and of parameters, found by function."""

    def __init__(self, members: dict[str, str], params: dict[str, str], classes: dict[str, TypeInfo]):
        self.params, self.classes = params, classes
        self.members: dict[str, dict[str, str]] = collections.defaultdict(dict)
        for key, new in members.items():
            owner, _, name = key.rpartition(".")
            self.members[name][owner] = new
        self.owners: dict[str, list[TypeInfo]] = collections.defaultdict(list)
        for info in classes.values():
            for name in info.names:
                self.owners[name].append(info)
        self.undecided: collections.Counter[str] = collections.Counter()

    def member(self, info: TypeInfo | Bases, name: str) -> str | None:
        """Return the new name of a member of a class: that of the nearest base, else that of a derived class."""
        by_class = self.members.get(name)
        if not by_class or not any(name in base.names for base in info.mro):
            return None
        for base in info.mro:
            if base.fullname in by_class:
                return by_class[base.fullname]
        for derived, new in by_class.items():
            if derived in self.classes and info in self.classes[derived].mro:
                return new
        return None

    def member_of_unknown(self, name: str) -> str | None:
        """Return the new name of a member of an object of unknown type, if only one can be meant."""
        by_class = self.members.get(name)
        if not by_class:
            return None
        news = set(by_class.values())
        keeps = any(all(base.fullname not in by_class for base in info.mro) for info in self.owners[name])
        if len(news) == 1 and not keeps and name not in COMMON_MEMBERS:
            return news.pop()
        if name not in PREFERRED:
            self.undecided[name] += 1
        return PREFERRED.get(name)

    def member_of_any(self, infos: list[TypeInfo | Bases], name: str) -> str | None:
        """Return the new name of a member that has one of several classes, if they agree."""
        news = {self.member(info, name) for info in infos} - {None}
        if len(news) > 1:
            print("more than one new name:", name, *news)
        return news.pop() if len(news) == 1 else None

    def field(self, info: TypeInfo | Bases, name: str) -> str | None:
        """Return the new name of an argument of a class: a parameter of `__init__`, or a field of a dataclass."""
        for base in info.mro:
            if new := self.params.get(f"{base.fullname}.__init__.{name}"):
                return new
            written = base.names.get("__init__") if base.fullname != "builtins.object" else None
            if written and not written.plugin_generated:
                return None
        return self.member(info, name)

    def param(self, functions: list[str], name: str) -> str | None:
        """Return the new name of a parameter, by the first of the functions that has one."""
        return next((new for function in functions if (new := self.params.get(f"{function}.{name}"))), None)

    def param_of_unknown(self, method: str, name: str) -> str | None:
        """Return the new name of a parameter of a method of an unknown class, if all such methods agree."""
        news = {new for key, new in self.params.items() if key.endswith(f".{method}.{name}")}
        return news.pop() if len(news) == 1 else None


class Uses:
    """Finds the members and keyword arguments that a file uses."""

    def __init__(self, path: str, tree: TypedTree, names: NewNames, edits: Edits):
        self.path, self.names, self.edits = path, names, edits
        self.module = tree.module_of[path]
        self.class_of_call: dict[ast.Call, str] = {}
        self.expressions: dict[tuple, tuple[Expression, Type | None]] = {}

    def rename(self, typed: MypyFile, types: dict[Expression, Type]) -> None:
        """Note the edits of a file."""
        for one in expressions(typed):
            key = (one.line, one.column, one.end_line, one.end_column)
            if key not in self.expressions or isinstance(one, RefExpr):
                self.expressions[key] = one, types.get(one)
        tree = ast.parse(Path(self.path).read_text())
        for klass in ast.walk(tree):
            if isinstance(klass, ast.ClassDef):
                calls = [node for node in ast.walk(klass) if isinstance(node, ast.Call)]
                self.class_of_call.update(dict.fromkeys(calls, f"{self.module}.{klass.name}"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in self.names.members:
                self._rename_member(node)
            elif isinstance(node, ast.Call) and any(keyword.arg for keyword in node.keywords):
                self._rename_keywords(node)

    def _find(self, node: ast.expr) -> tuple[Expression | None, Type | None]:
        """Return what mypy made of an expression."""
        key = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return self.expressions.get(key, (None, None))

    def _classes(self, node: ast.expr) -> list[TypeInfo | Bases] | None:
        """Return the classes whose members an expression has; None if its type is unknown."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            info = self.names.classes.get(self.class_of_call.get(node, ""))
            return [Bases(info.mro[1:])] if info else None
        found, kind = self._find(node)
        if isinstance(found, RefExpr) and isinstance(found.node, TypeInfo):
            return [found.node]
        if isinstance(found, RefExpr) and isinstance(found.node, MypyFile):
            return []
        return classes_of(kind)

    def _rename_member(self, node: ast.Attribute) -> None:
        infos = self._classes(node.value)
        names, name = self.names, node.attr
        new = names.member_of_unknown(name) if infos is None else names.member_of_any(infos, name)
        column = (node.end_col_offset or 0) - len(name)
        self.edits.add(self.path, node.end_lineno or node.lineno, column, name, new)

    def _rename_keywords(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg:
                new = self._new_keyword(node, keyword.arg)
                self.edits.add(self.path, keyword.lineno, keyword.col_offset, keyword.arg, new)

    def _new_keyword(self, node: ast.Call, name: str) -> str | None:
        """Return the new name of a keyword argument: a field for a class or `replace`, else a parameter."""
        found, kind = self._find(node.func)
        full = found.fullname if isinstance(found, RefExpr) else ""
        infos: list[TypeInfo | Bases] | None = None
        if full in ("dataclasses.replace", "copy.replace") or getattr(node.func, "id", "") == "replace":
            infos = self._classes(node.args[0]) if node.args else None
            if infos is None:
                return self.names.member_of_unknown(name)
        elif isinstance(found, RefExpr) and isinstance(found.node, TypeInfo):
            infos = [found.node]
        else:
            proper = get_proper_type(kind) if kind is not None else None
            infos = classes_of(proper) if isinstance(proper, CallableType) and proper.is_type_obj() else None
        if infos:
            news = {self.names.field(info, name) for info in infos} - {None}
            return news.pop() if len(news) == 1 else None
        return self._new_param(node.func, full, name)

    def _new_param(self, function: ast.expr, full_name: str, name: str) -> str | None:
        """Return the new name of a parameter of a function, or of a method of any of the classes it may be of."""
        functions = [full_name] if full_name else []
        if not isinstance(function, ast.Attribute):
            return self.names.param(functions, name)
        infos = self._classes(function.value)
        functions += [f"{base.fullname}.{function.attr}" for info in infos or () for base in info.mro]
        new = self.names.param(functions, name)
        return self.names.param_of_unknown(function.attr, name) if new is None and infos is None else new


class Definitions:
    """Renames members and parameters where they are defined."""

    def __init__(self, path: str, names: NewNames, edits: Edits):
        self.path, self.names, self.edits = path, names, edits

    def _edit(self, node: ast.Name | ast.arg, old: str, new: str | None) -> None:
        self.edits.add(self.path, node.lineno, node.col_offset, old, new)

    def rename_class(self, node: ast.ClassDef, full_name: str, info: TypeInfo | None) -> None:
        """Rename the members of a class, and their uses in its body: defaults, decorators, aliases."""

        def new_name(name: str) -> str | None:
            return self.names.member(info, name) if info else self.names.members.get(name, {}).get(full_name)

        targets = [name for one in node.body for target in assignment_targets(one) for name in ast.walk(target)]
        functions = [one for one in node.body if isinstance(one, FunctionNode)]
        bound = {one.id for one in targets if isinstance(one, ast.Name)} | {one.name for one in functions}
        used: list[ast.expr] = [one.value for one in node.body if getattr(one, "value", None)]
        for function in functions:
            self._rename_method(function, new_name(function.name))
            self.rename_params(function, f"{full_name}.{function.name}", info)
            used += [*function.decorator_list, *default_values(function.args)]
        for name in [*targets, *(part for one in used for part in ast.walk(one))]:
            if isinstance(name, ast.Name) and name.id in bound:
                self._edit(name, name.id, new_name(name.id))

    def _rename_method(self, node: FunctionNode, new: str | None) -> None:
        line = self.edits.lines_of(self.path)[node.lineno - 1]
        column = line.index(node.name, line.index("def ", node.col_offset) + 4)
        self.edits.add(self.path, node.lineno, column, node.name, new)

    def rename_params(self, node: FunctionNode, full_name: str, info: TypeInfo | None = None) -> None:
        """Rename the parameters of a function, also where a base class has the new name, and their uses in it."""
        functions = [full_name, *(f"{base.fullname}.{node.name}" for base in (info.mro if info else ()))]
        renamed = {}
        for argument in all_arguments(node.args):
            if new := self.names.param(functions, argument.arg):
                renamed[argument.arg] = new
                self._edit(argument, argument.arg, new)
        taken = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        taken |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        for old, new in renamed.items():
            if new in taken:
                print("collision:", self.path, node.name, old, "->", new)
        for statement in node.body if renamed else ():
            self._rename_locals(statement, renamed)

    def _rename_locals(self, node: ast.AST, renamed: dict[str, str]) -> None:
        """Rename uses of parameters, except where an inner function or a comprehension has the name for its own."""
        hidden: set[str] = set()
        if isinstance(node, FunctionNode | ast.Lambda):
            hidden = {one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
        elif isinstance(node, Comprehension):
            hidden = {name for part in node.generators for name in stored_names(part.target)}
        elif isinstance(node, ast.Name):
            self._edit(node, node.id, renamed.get(node.id))
        renamed = {old: new for old, new in renamed.items() if old not in hidden}
        for child in ast.iter_child_nodes(node):
            self._rename_locals(child, renamed)


def rename_definitions(tree: TypedTree, names: NewNames, edits: Edits) -> None:
    """Rename the definitions of the package, and what classes of tests, benchmarks and examples override."""
    for module, path in tree.paths.items():
        definitions = Definitions(str(path), names, edits)
        for node in ast.parse(path.read_text()).body:
            full_name = f"{module}.{getattr(node, 'name', '')}"
            if isinstance(node, ast.ClassDef):
                definitions.rename_class(node, full_name, names.classes.get(full_name))
            elif isinstance(node, ast.FunctionDef):
                definitions.rename_params(node, full_name)
    for module, path in tree.other_files():
        symbols = tree.trees[module].names if module in tree.trees else {}
        for node in ast.walk(ast.parse(path.read_text())):
            symbol = symbols.get(node.name) if isinstance(node, ast.ClassDef) else None
            if symbol and isinstance(symbol.node, TypeInfo):
                Definitions(str(path), names, edits).rename_class(node, f"{module}.{node.name}", symbol.node)


def rename(root: Path, members: dict[str, str], params: dict[str, str]) -> None:
    """Type the tree, find all edits, and apply them at once."""
    with tempfile.TemporaryDirectory() as generated:
        tree = TypedTree(root, Path(generated).resolve())
        names, edits = NewNames(members, params, tree.classes(PACKAGE)), Edits(tree)
        for path, typed in tree.files():
            Uses(path, tree, names, edits).rename(typed, tree.types)
        rename_definitions(tree, names, edits)
        print("words changed:", edits.apply())
    print("left alone, of unknown type:", *(f"{name} ({n})" for name, n in names.undecided.most_common(80)))
