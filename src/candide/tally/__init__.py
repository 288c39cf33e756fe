"""Tallies: what the rows say before any prior is chosen. They add.

A kind is imported when it is first asked for: a program that loads a model pays for those in the model.

>>> sorted(KINDS)
['comoments', 'levels', 'moments', 'sums', 'terms']
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from candide.rows.blocks import Block, Csr
from candide.tally.base import Spec, Tally

if TYPE_CHECKING:
    from candide.tally.comoments import CoMoments
    from candide.tally.levels import Levels
    from candide.tally.moments import Moments
    from candide.tally.sums import Sums
    from candide.tally.terms import Terms

__all__ = ["KINDS", "Block", "CoMoments", "Csr", "Levels", "Moments", "Spec", "Sums", "Tally", "Terms"]
_KINDS = {name.lower(): name for name in ("CoMoments", "Levels", "Moments", "Sums", "Terms")}


class _Kinds(Mapping[str, type[Tally]]):
    """The kinds by name: a closed table."""

    def __getitem__(self, name: str) -> type[Tally]:
        return getattr(import_module(f"candide.tally.{name}"), _KINDS[name])

    def __contains__(self, name: object) -> bool:
        return name in _KINDS

    def __iter__(self) -> Iterator[str]:
        return iter(_KINDS)

    def __len__(self) -> int:
        return len(_KINDS)


KINDS: Mapping[str, type[Tally]] = _Kinds()


def __getattr__(name: str) -> Any:
    if _KINDS.get(name.lower()) != name:
        raise AttributeError(f"module 'candide.tally' has no attribute {name!r}")
    return KINDS[name.lower()]
