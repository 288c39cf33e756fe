"""Conjugate updates: prior + tally -> distribution. Modules are imported at first use, so that models load quickly."""

from typing import TYPE_CHECKING, Any

from candide.registry import import_submodule

if TYPE_CHECKING:
    from candide.conjugate import dirichlet, normal

__all__ = ["dirichlet", "normal"]


def __getattr__(name: str) -> Any:
    return import_submodule("candide.conjugate", name, __all__)
