"""Conjugate: how a prior and a tally make a law. A model that is loaded need not know before it is estimated."""

from typing import TYPE_CHECKING, Any

from candide.registry import import_submodule

if TYPE_CHECKING:
    from candide.conjugate import bins, dirichlet, leave_one_out, normal, pooled, shrinkage

__all__ = ["bins", "dirichlet", "leave_one_out", "normal", "pooled", "shrinkage"]


def __getattr__(name: str) -> Any:
    return import_submodule("candide.conjugate", name, __all__)
