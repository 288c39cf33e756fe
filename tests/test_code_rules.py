"""Source rules: no checks of concrete types or names, no logic in packages, small modules, unique class names."""

import ast
import textwrap

from tests.architecture import FILES, ROOT, imports, package_of, tree

from candide.events import EVENTS
from candide.tally import TALLIES

LONGEST = 400  # lines of a module
MOST_MODULES = 9  # beside the packages, without __init__ and __main__
OWNED = ("distributions", "events", "tally")  # whose concrete classes only these packages distinguish


def last(node):
    """The last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def strings(node):
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def name_comparisons(source):
    """(line, code) of comparisons of the name of an event model or tally kind with a registered one."""
    for node in ast.walk(source):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        for side in sides:
            known = {"kind": set(TALLIES), "name": {*EVENTS, *TALLIES}, "event": {*EVENTS}}.get(last(side), set())
            if any(strings(other) & known for other in sides if other is not side):
                yield node.lineno, ast.unparse(node)
        named = isinstance(node, ast.Match) and last(node.subject) in ("kind", "name", "event")
        if named and strings(node) & {*EVENTS, *TALLIES}:
            yield node.lineno, f"match {ast.unparse(node.subject)}"


def type_checks(source, classes):
    """(line, code) of checks whether a value is of one of these classes."""
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and last(node.func) in ("isinstance", "issubclass") and len(node.args) > 1:
            checked = node.args[1:]
        elif isinstance(node, ast.Compare) and any(
            isinstance(side, ast.Call) and last(side.func) == "type" for side in (node.left, *node.comparators)
        ):
            checked = [node.left, *node.comparators]
        else:
            continue
        if any(last(part) in classes for node_checked in checked for part in alternatives(node_checked)):
            yield node.lineno, ast.unparse(node)


def alternatives(node):
    """The parts of ``(A, B)`` and of ``A | B``."""
    if isinstance(node, ast.Tuple):
        return [part for element in node.elts for part in alternatives(element)]
    return [*alternatives(node.left), *alternatives(node.right)] if isinstance(node, ast.BinOp) else [node]


def imported_classes(path):
    """Names in a file that are concrete classes of these packages."""
    defined = {
        n.name for file in FILES if package_of(file) in OWNED for n in tree(file).body if isinstance(n, ast.ClassDef)
    }
    general = {"Distribution", "EventModel", "Tally", "TallySpec"}  # checks of an argument's type are fine
    imported = {i.name.rpartition(".")[2] for i in imports(path) if i.package in OWNED}
    return (imported & defined) - general


def violations(path):
    found = [] if package_of(path) in OWNED else list(type_checks(tree(path), imported_classes(path)))
    return sorted({*found, *(f for f in name_comparisons(tree(path)) if not _is_own_name(path, f[1]))})


def _is_own_name(path, code):
    """Whether a file compares its own name."""
    return package_of(path) in OWNED and path.stem in code


def test_concrete_types_and_names_are_not_checked():
    assert {str(path.relative_to(ROOT)): violations(path) for path in FILES if violations(path)} == {}


def test_checks_of_types_and_names_are_found():
    source = ast.parse(
        textwrap.dedent(
            """
            if part.event.name == "poisson" or part.spec.kind in ("levels", "sums"): pass
            if isinstance(x, (Normal, int)) or type(x) is Normal: pass
            if column.kind == "text" or name == "age" or isinstance(x, int): pass
            match event.kind:
                case "moments": pass
            """
        )
    )
    assert [code for _, code in sorted(name_comparisons(source))] == [
        "part.event.name == 'poisson'",
        "part.spec.kind in ('levels', 'sums')",
        "match event.kind",
    ]
    assert [code for _, code in sorted(type_checks(source, {"Normal"}))] == [
        "isinstance(x, (Normal, int))",
        "type(x) is Normal",
    ]


def is_wiring(node):
    """Whether a statement of an ``__init__.py`` only names what is where."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
        return not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    try:
        return ast.literal_eval(node.value) is not None  # a table
    except ValueError:
        return False


def test_a_package_holds_no_logic():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:60]}"
        for path in sorted(ROOT.rglob("__init__.py"))
        for node in tree(path).body
        if not is_wiring(node)
    ]
    assert found == []


def test_modules_stay_small():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def test_class_names_are_unique():
    homes = {}
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    families = {
        name for name, paths in homes.items() if {p.partition("/")[0] for p in paths} == {"distributions", "events"}
    }
    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in families} == {}


def test_few_modules_stand_beside_the_packages():
    found = [path.name for path in ROOT.glob("*.py") if not path.name.startswith("__")]
    assert len(found) <= MOST_MODULES, sorted(found)


def test_dataclasses_are_pythons_own():
    assert not (ROOT / "frozen.py").exists()
