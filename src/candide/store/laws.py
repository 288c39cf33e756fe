"""Laws in files: a name from a closed table, and the arrays that the law gives and checks itself.

>>> from candide.distributions import LogScale, Normal
>>> arrays = {}
>>> packed = pack(LogScale(Normal(np.array([[0.0]]), np.array([[4.0]]))), arrays, "0")
>>> packed, sorted(arrays)
({'name': 'log_scale', 'base': {'name': 'normal'}}, ['0.base.mean', '0.base.variance'])
>>> unpack(packed, arrays, "0", Shape(n_classes=1, n_features=1)).base.variance.item()
4.0
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import LAWS, Distribution
from candide.distributions.arrays import Found, Shape
from candide.errors import InputError, ModelFileError
from candide.store.container import fields

_DEEPEST = 3  # laws within laws


def pack(law: Distribution, arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Put the arrays of a law among the others; what the header says of it."""
    if LAWS.get(law.name) is not type(law):
        raise InputError(
            f"a {type(law).__name__} cannot be kept without its counts",
            value=type(law).__name__,
            remedy="save the model with detail='tally'",
        )
    arrays |= {f"{prefix}.{name}": np.ascontiguousarray(array) for name, array in law.arrays().items()}
    packed: dict[str, Any] = {"name": law.name}
    return packed if law.inner is None else packed | {"base": pack(law.inner, arrays, f"{prefix}.base")}


def unpack(packed: Any, arrays: Found, prefix: str, shape: Shape, depth: int = 0) -> Distribution:
    """The law that the header names."""
    nested = isinstance(packed, dict) and "base" in packed
    fields(packed, f"distribution {prefix!r}", {"name": str, "base": dict} if nested else {"name": str})
    name = packed["name"]
    if name not in LAWS or depth > _DEEPEST:
        raise ModelFileError(f"unknown distribution {name[:40]!r}", value=name[:40])
    base = unpack(packed["base"], arrays, f"{prefix}.base", shape, depth + 1) if nested else None
    try:
        made = LAWS[name].from_arrays(Prefixed(arrays, prefix), shape, base)
    except InputError as error:
        raise ModelFileError(f"distribution {prefix!r} ({name}): {error.what}", value=error.value) from None
    if made.reads != shape.holds:
        raise ModelFileError(f"distribution {prefix!r} ({name}) is of {made.reads}, and its columns hold {shape.holds}")
    return made


class Prefixed:
    """The arrays whose names begin with a prefix."""

    def __init__(self, arrays: Found, prefix: str) -> None:
        self._arrays, self._prefix = arrays, prefix

    def get(self, name: str, /) -> NDArray | None:
        return self._arrays.get(f"{self._prefix}.{name}")
