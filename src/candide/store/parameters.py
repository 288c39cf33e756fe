"""Fitted parameters in files: distributions, term weights and the calibrator.

A distribution is a name in a closed registry, and arrays that it returns and checks itself.

>>> from candide.distributions import LogScale, Normal
>>> from candide.distributions.arrays import DistributionShape
>>> arrays = {}
>>> packed = pack_distribution(LogScale(Normal(np.array([[0.0]]), np.array([[4.0]]))), arrays, "0")
>>> packed, sorted(arrays)
({'name': 'log_scale', 'base': {'name': 'normal'}}, ['0.base.mean', '0.base.variance'])
>>> unpack_distribution(packed, arrays, "0", DistributionShape(n_classes=1, n_features=1)).base.variance.item()
4.0
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, ModelFileError
from candide.model.plan import Plan, PlanPart
from candide.store import plans
from candide.store.container import check_fields, is_count
from candide.weighted.terms.base import TERMS

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.distributions.arrays import ArraySource, DistributionShape
    from candide.distributions.token_weights import TokenWeights
    from candide.model.calibration import IsotonicCalibrator
    from candide.model.term_weights import TermWeights

_MAX_DEPTH = 3  # distributions within distributions
_ROW_COUNTS = ("learned_rows", "counted_rows", "removed_rows", "uncounted_rows")  # fields of TermWeights without "n_"


def pack_distribution(distribution: "Distribution", arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Add the arrays of a distribution to ``arrays``, and return its entry in the header."""
    if _find_class(distribution.name) is not type(distribution):
        name = type(distribution).__name__
        raise InputError(f"a {name} needs its counts", value=name, remedy="save the model with detail='tally'")
    arrays |= {f"{prefix}.{name}": np.ascontiguousarray(array) for name, array in distribution.arrays().items()}
    inner = distribution.inner_distribution
    base = {} if inner is None else {"base": pack_distribution(inner, arrays, f"{prefix}.base")}
    return {"name": distribution.name, **base}


def unpack_distribution(
    packed: Any, arrays: "ArraySource", prefix: str, shape: "DistributionShape", depth: int = 0
) -> "Distribution":
    """Return the distribution of an entry in the header."""
    check_fields(packed, f"distribution {prefix!r}", {"name": str}, {"base": dict})
    name = packed["name"]
    cls = _find_class(name)
    if cls is None or depth > _MAX_DEPTH:
        raise ModelFileError(f"unknown distribution {name[:40]!r}", value=name[:40])
    has_base = "base" in packed
    base = unpack_distribution(packed["base"], arrays, f"{prefix}.base", shape, depth + 1) if has_base else None
    try:
        distribution = cls.from_arrays(PrefixedArrays(arrays, prefix), shape, base)
    except InputError as error:
        raise ModelFileError(f"distribution {prefix!r} ({name}): {error.problem}", value=error.value) from None
    if distribution.block_kind != shape.block_kind:
        what = f"is of {distribution.block_kind}, and its columns hold {shape.block_kind}"
        raise ModelFileError(f"distribution {prefix!r} ({name}) {what}")
    return distribution


def _find_class(name: str) -> "type[Distribution] | None":
    """Return a distribution class by name: one of the package, or that of a kind of term."""
    from candide.distributions import DISTRIBUTIONS

    return TERMS[name].distribution_class() if name in TERMS else DISTRIBUTIONS.get(name)


class PrefixedArrays:
    """The arrays whose names start with a prefix."""

    def __init__(self, arrays: "ArraySource", prefix: str) -> None:
        self._arrays, self._prefix = arrays, prefix

    def get(self, name: str, /) -> NDArray | None:
        return self._arrays.get(f"{self._prefix}.{name}")


def pack_term_weights(term_weights: "TermWeights", arrays: plans.Arrays) -> dict[str, Any]:
    arrays |= {"terms.weights": np.concatenate(term_weights.weight), "terms.bias": term_weights.bias}
    arrays["terms.strength"] = term_weights.strength
    if term_weights.copies is not None:
        arrays["terms.copies"] = term_weights.copies
    for i, tokens in enumerate(term_weights.token_weights):
        if tokens is not None:
            arrays |= {f"terms.tokens.{i}.{name}": array for name, array in tokens.arrays().items()}
    if (calibrator := term_weights.calibrator) is not None:
        arrays["calibrator.sizes"] = np.array([len(odds) for odds in calibrator.log_odds], np.int64)
        arrays["calibrator.log_odds"] = np.concatenate(calibrator.log_odds)
        arrays["calibrator.frequencies"] = np.concatenate(calibrator.observed_frequencies)
    return {name: getattr(term_weights, f"n_{name}") for name in _ROW_COUNTS}


def unpack_term_weights(
    header: dict[str, Any], arrays: plans.TrackedArrays, plan: Plan, n_classes: int
) -> "TermWeights":
    from candide.model.term_weights import TermWeights, term_groups

    row_counts = check_fields(header, "terms", dict.fromkeys(_ROW_COUNTS, int))
    if invalid := [number for number in row_counts.values() if not is_count(number)]:
        raise ModelFileError(f"terms learned from {invalid[0]!r} rows", value=invalid[0])
    sizes = [len(part.event.term_names(part.columns)) for part in plan.parts]
    weight = arrays.floats("terms.weights", (sum(sizes),))
    strength = arrays.floats("terms.strength", (1 + max(term_groups(plan), default=-1),))
    if not (strength > 0).all():
        raise ModelFileError("array 'terms.strength' holds a value that is not above 0")
    copies = arrays.floats("terms.copies", (n_classes,)) if arrays.has("terms.copies") else None
    if copies is not None and not (copies >= 1).all():
        raise ModelFileError("array 'terms.copies' holds a value below 1")
    tokens = tuple(_unpack_token_weights(arrays, f"terms.tokens.{i}", part) for i, part in enumerate(plan.parts))
    return TermWeights(
        tuple(np.split(weight, np.cumsum(sizes)[:-1])),
        arrays.floats("terms.bias", (n_classes,)),
        strength=strength,
        copies=copies,
        calibrator=unpack_calibrator(arrays, n_classes),
        token_weights=tokens if any(each is not None for each in tokens) else (),
        **{f"n_{name}": n for name, n in row_counts.items()},
    )


def _unpack_token_weights(arrays: plans.TrackedArrays, prefix: str, part: PlanPart) -> "TokenWeights | None":
    if not arrays.has(f"{prefix}.weight"):
        return None
    from candide.distributions.token_weights import TokenWeights

    if not part.event.weights_tokens:
        raise ModelFileError(f"array '{prefix}.weight' has token weights, and its part has no tokens")
    try:
        return TokenWeights.from_arrays(PrefixedArrays(arrays, prefix))
    except InputError as error:
        raise ModelFileError(f"{prefix}: {error.problem}", value=error.value) from None


def unpack_calibrator(arrays: plans.TrackedArrays, n_classes: int) -> "IsotonicCalibrator | None":
    from candide.model.calibration import IsotonicCalibrator

    if not arrays.has("calibrator.sizes"):
        return None
    sizes = np.array(arrays.integers("calibrator.sizes", n_classes if n_classes > 2 else 1))
    if not (sizes > 0).all():
        raise ModelFileError("array 'calibrator.sizes' holds a length that is not above 0")
    n, ends = (int(sizes.sum()),), np.cumsum(sizes)[:-1]
    names = ("calibrator.log_odds", "calibrator.frequencies")
    odds, frequencies = (tuple(np.split(arrays.floats(name, n), ends)) for name in names)
    is_rising = all((np.diff(curve) >= 0).all() for curve in (*odds, *frequencies))
    if not is_rising or not all(((p > 0) & (p < 1)).all() for p in frequencies):
        raise ModelFileError(f"the arrays {names[0]!r} and {names[1]!r} are not rising curves of probabilities")
    return IsotonicCalibrator(odds, frequencies)
