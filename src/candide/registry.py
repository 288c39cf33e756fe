"""Registries: classes by name, each imported at its first use.

They are closed: names given by a user or a file are looked up here, and nothing else is ever imported. Loading a model
imports only the classes in the model.

>>> kinds = Registry("candide.tally", {"moments": "Moments", "cells": "levels.CellTally"})
>>> kinds["cells"].__name__, "os" in kinds, list(kinds), kinds.name_of(kinds.get_class("Moments"))
('CellTally', False, ['moments', 'cells'], 'moments')
"""

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, type[T]]):
    """Classes of a package by name: ``"module.Class"``, or ``"Class"`` where the module has the name."""

    def __init__(self, package: str, classes: Mapping[str, str]) -> None:
        self._package, self.class_names = package, classes

    def _locate(self, name: str) -> tuple[str, str]:
        module, _, title = self.class_names[name].rpartition(".")
        return f"{self._package}.{module or name}", title

    def __getitem__(self, name: str) -> type[T]:
        module, title = self._locate(name)  # a name that is not in the table is never imported
        return getattr(import_module(module), title)

    def __contains__(self, name: object) -> bool:
        return name in self.class_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.class_names)

    def __len__(self) -> int:
        return len(self.class_names)

    def name_of(self, cls: type) -> str | None:
        """The name of a class; None where it is not in the table. Nothing is imported for it."""
        return next((name for name in self if self._locate(name) == (cls.__module__, cls.__name__)), None)

    def get_class(self, name: str) -> Any:
        """A class by its own name: the ``__getattr__`` of the package."""
        for key in self:
            if self._locate(key)[1] == name:
                return self[key]
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")


def import_submodule(package: str, name: str, allowed: Collection[str]) -> Any:
    """A module of a package, if it is among those known: for the ``__getattr__`` of the package."""
    if name not in allowed:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(f"{package}.{name}")
