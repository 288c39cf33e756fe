"""Laws in files: a name from a closed table, and the arrays that the law gives and checks itself.

>>> from candide.distributions import LogScale, Normal
>>> arrays = {}
>>> packed = pack_distribution(LogScale(Normal(np.array([[0.0]]), np.array([[4.0]]))), arrays, "0")
>>> packed, sorted(arrays)
({'name': 'log_scale', 'base': {'name': 'normal'}}, ['0.base.mean', '0.base.variance'])
>>> unpack_distribution(packed, arrays, "0", DistributionShape(n_classes=1, n_features=1)).base.variance.item()
4.0
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import DISTRIBUTIONS, Distribution
from candide.distributions.arrays import ArraySource, DistributionShape
from candide.errors import InputError, ModelFileError
from candide.store.container import check_fields
from candide.weighted.terms.registry import TERMS

_MAX_DEPTH = 3  # laws within laws


def pack_distribution(distribution: Distribution, arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Put the arrays of a law among the others; what the header says of it."""
    if _find_class(distribution.name) is not type(distribution):
        raise InputError(
            f"a {type(distribution).__name__} cannot be kept without its counts",
            value=type(distribution).__name__,
            remedy="save the model with detail='tally'",
        )
    arrays |= {f"{prefix}.{name}": np.ascontiguousarray(array) for name, array in distribution.arrays().items()}
    packed: dict[str, Any] = {"name": distribution.name}
    return (
        packed
        if distribution.inner_distribution is None
        else packed | {"base": pack_distribution(distribution.inner_distribution, arrays, f"{prefix}.base")}
    )


def unpack_distribution(
    packed: Any, arrays: ArraySource, prefix: str, shape: DistributionShape, depth: int = 0
) -> Distribution:
    """The law that the header names."""
    nested = isinstance(packed, dict) and "base" in packed
    check_fields(packed, f"distribution {prefix!r}", {"name": str, "base": dict} if nested else {"name": str})
    name = packed["name"]
    found = _find_class(name)
    if found is None or depth > _MAX_DEPTH:
        raise ModelFileError(f"unknown distribution {name[:40]!r}", value=name[:40])
    base = unpack_distribution(packed["base"], arrays, f"{prefix}.base", shape, depth + 1) if nested else None
    try:
        made = found.from_arrays(PrefixedArrays(arrays, prefix), shape, base)
    except InputError as error:
        raise ModelFileError(f"distribution {prefix!r} ({name}): {error.problem}", value=error.value) from None
    if made.block_kind != shape.block_kind:
        raise ModelFileError(
            f"distribution {prefix!r} ({name}) is of {made.block_kind}, and its columns hold {shape.block_kind}"
        )
    return made


def _find_class(name: str) -> type[Distribution] | None:
    """A distribution by its name: one of the package, or that of a kind of term."""
    return TERMS[name].distribution_class() if name in TERMS else DISTRIBUTIONS.get(name)


class PrefixedArrays:
    """The arrays whose names begin with a prefix."""

    def __init__(self, arrays: ArraySource, prefix: str) -> None:
        self._arrays, self._prefix = arrays, prefix

    def get(self, name: str, /) -> NDArray | None:
        return self._arrays.get(f"{self._prefix}.{name}")
