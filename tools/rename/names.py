"""Translate the names of `names.json`, keyed by the module paths before any move, to those of the tree at hand."""

import ast
import json
from pathlib import Path

from .source import defined_names, module_paths

HERE = Path(__file__).parent

# Symbols that were taken out of their module by hand after the moves, to keep the layers of the packages apart.
SPLIT_MODULES = {
    "candide.operations.fit": ["candide.monitoring.fit_notes", "candide.validation.fit_result"],
    "candide.weighted.fit": ["candide.operations.fit_table"],
}


def load_moves() -> dict[str, str]:
    """Return the new path of each module that moves."""
    return json.loads((HERE / "moves.json").read_text())["modules"]


def load_names() -> dict[str, dict[str, str]]:
    """Return the new names: symbols, members, params and cli."""
    return json.loads((HERE / "names.json").read_text())


def new_module(module: str, moves: dict[str, str]) -> str:
    """Return where a module goes; what a moved package contains goes with it."""
    if module in moves:
        return moves[module]
    for old in sorted(moves, key=len, reverse=True):
        if module.startswith(old + "."):
            return moves[old] + module[len(old) :]
    return module


class Names:
    """The new names, with keys that exist in the tree at hand."""

    def __init__(self, root: Path):
        self.moves = load_moves()
        self.names = load_names()
        paths = module_paths(root / "src")
        self.defined = {module: defined_names(ast.parse(path.read_text())) for module, path in paths.items()}
        self.missing: list[str] = []

    def symbols(self) -> dict[str, str]:
        """Return the new name of each symbol. The modules have moved, the symbols have their old names."""
        found = {}
        for key, new in self.names["symbols"].items():
            module, _, name = key.rpartition(".")
            if where := self._locate(module, name):
                found[f"{where}.{name}"] = new
            else:
                self.missing.append(key)
        return found

    def members(self) -> dict[str, str]:
        """Return the new name of each member. The symbols have their new names."""
        found = {}
        for key, new in self.names["members"].items():
            owner, _, member = key.rpartition(".")
            if where := self._renamed_symbol(owner):
                found[f"{where}.{member}"] = new
            else:
                self.missing.append(key)
        return found

    def params(self) -> dict[str, str]:
        """Return the new name of each parameter, of a function or of a method."""
        found = {}
        for key, new in self.names["params"].items():
            owner, _, parameter = key.rpartition(".")
            klass, _, method = owner.rpartition(".")
            if where := self._renamed_symbol(owner):
                found[f"{where}.{parameter}"] = new
            elif where := self._renamed_symbol(klass):
                found[f"{where}.{method}.{parameter}"] = new
            else:
                self.missing.append(key)
        return found

    def _renamed_symbol(self, key: str) -> str | None:
        module, _, name = key.rpartition(".")
        name = self.names["symbols"].get(key, name)
        where = self._locate(module, name)
        return where and f"{where}.{name}"

    def _locate(self, old_module: str, name: str) -> str | None:
        """Return the module that defines a name now."""
        module = new_module(old_module, self.moves)
        candidates = [module, *SPLIT_MODULES.get(module, [])]
        return next((one for one in candidates if name in self.defined.get(one, ())), None)
