"""Registries: classes and modules by name, each imported at its first use.

They are closed: names given by a user or a file are looked up here, and nothing else is ever imported. Loading a model
imports only the classes in the model; importing all distributions, event models and tally kinds takes as long as
loading a small model.

>>> kinds = Registry("candide.tally", {"moments": "Moments", "levels": "LevelTally"})
>>> kinds["levels"].__name__, "os" in kinds, list(kinds), kinds.name_of(kinds.get_class("Moments"))
('LevelTally', False, ['moments', 'levels'], 'moments')
"""

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, type[T]]):
    """Classes of a package by the names of their modules, which are the names that users and files write."""

    def __init__(self, package: str, classes: Mapping[str, str]) -> None:
        self._package, self.class_names = package, classes

    def __getitem__(self, name: str) -> type[T]:
        title = self.class_names[name]  # first: a name that is not in the table is never imported
        return getattr(import_module(f"{self._package}.{name}"), title)

    def __contains__(self, name: object) -> bool:
        return name in self.class_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.class_names)

    def __len__(self) -> int:
        return len(self.class_names)

    def name_of(self, cls: type) -> str | None:
        """The name of a class; None where it is not in the table. Nothing is imported for it."""
        names = (name for name, title in self.class_names.items() if title == cls.__name__)
        return next((name for name in names if cls.__module__ == f"{self._package}.{name}"), None)

    def get_class(self, name: str) -> Any:
        """A class by its own name: the ``__getattr__`` of the package."""
        for module, title in self.class_names.items():
            if title == name:
                return self[module]
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")


def import_submodule(package: str, name: str, allowed: Collection[str]) -> Any:
    """A module of a package, if it is among those known: for the ``__getattr__`` of the package.

    >>> import_submodule("candide", "formatting", {"errors", "formatting"}).__name__
    'candide.formatting'
    """
    if name not in allowed:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(f"{package}.{name}")
