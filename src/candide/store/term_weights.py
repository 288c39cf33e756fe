"""Voices in files: the weights of a model, of its words too, and the curve that bends its probabilities."""

from typing import TYPE_CHECKING, Any

import numpy as np

from candide.errors import InputError, ModelFileError
from candide.model.plan import Plan, PlanPart
from candide.store import plans
from candide.store.container import check_fields, is_count

if TYPE_CHECKING:
    from candide.distributions.token_weights import TokenWeights
    from candide.model.calibration import IsotonicCalibrator
    from candide.model.term_weights import TermWeights

_ROW_COUNT_FIELDS = {  # numbers of rows that weights are known by: the key in a file, and the field
    "learned_rows": "n_learned_rows",
    "counted_rows": "n_counted_rows",
    "removed_rows": "n_removed_rows",
    "uncounted_rows": "n_uncounted_rows",
}


def pack_term_weights(term_weights: "TermWeights", arrays: plans.Arrays) -> dict[str, Any]:
    arrays |= {"terms.weights": np.concatenate(term_weights.weight), "terms.bias": term_weights.bias}
    arrays["terms.strength"] = term_weights.strength
    if term_weights.copies is not None:
        arrays["terms.copies"] = term_weights.copies
    _pack_calibrator(term_weights.calibrator, arrays)
    for i, words in enumerate(term_weights.token_weights):
        if words is not None:
            arrays |= {f"terms.tokens.{i}.{name}": array for name, array in words.arrays().items()}
    return {key: getattr(term_weights, name) for key, name in _ROW_COUNT_FIELDS.items()}


def unpack_term_weights(
    header: dict[str, Any], arrays: plans.TrackedArrays, plan: Plan, n_classes: int
) -> "TermWeights":
    from candide.model.term_weights import TermWeights, term_groups

    known = check_fields(header, "terms", dict.fromkeys(_ROW_COUNT_FIELDS, int))
    if odd := [number for number in known.values() if not is_count(number)]:
        raise ModelFileError(f"terms learned from {odd[0]!r} rows", value=odd[0])
    sizes = [len(part.event.term_names(part.columns)) for part in plan.parts]
    weight = arrays.floats("terms.weights", (sum(sizes),))
    strength = arrays.floats("terms.strength", (1 + max(term_groups(plan), default=-1),))
    if not (strength > 0).all():
        raise ModelFileError("array 'terms.strength' holds what is not above 0")
    copies = arrays.floats("terms.copies", (n_classes,)) if arrays.has("terms.copies") else None
    if copies is not None and not (copies >= 1).all():
        raise ModelFileError("array 'terms.copies' holds what is below 1")
    known = {name: known[key] for key, name in _ROW_COUNT_FIELDS.items()} | {"copies": copies}
    each = tuple(np.split(weight, np.cumsum(sizes)[:-1]))
    curve = unpack_calibrator(arrays, n_classes)
    words = tuple(_unpack_token_weights(arrays, f"terms.tokens.{i}", part) for i, part in enumerate(plan.parts))
    known |= {"calibrator": curve, "token_weights": words if any(one is not None for one in words) else ()}
    return TermWeights(each, arrays.floats("terms.bias", (n_classes,)), strength=strength, **known)


def _unpack_token_weights(arrays: plans.TrackedArrays, prefix: str, part: PlanPart) -> "TokenWeights | None":
    """The weights of the words of a part, where it has any."""
    if not arrays.has(f"{prefix}.weight"):
        return None
    from candide.distributions.token_weights import TokenWeights
    from candide.store.distributions import PrefixedArrays

    if not part.event.weights_tokens:
        raise ModelFileError(f"array '{prefix}.weight' has weights of words, and its part has no words")
    try:
        return TokenWeights.from_arrays(PrefixedArrays(arrays, prefix))
    except InputError as error:
        raise ModelFileError(f"{prefix}: {error.problem}", value=error.value) from None


def _pack_calibrator(curve: "IsotonicCalibrator | None", arrays: plans.Arrays) -> None:
    """What bends the probabilities of a model, one curve after another."""
    if curve is not None:
        arrays["calibrator.sizes"] = np.array([len(odds) for odds in curve.log_odds], np.int64)
        arrays |= {
            "calibrator.log_odds": np.concatenate(curve.log_odds),
            "calibrator.frequencies": np.concatenate(curve.observed_frequencies),
        }


def unpack_calibrator(arrays: plans.TrackedArrays, n_classes: int) -> "IsotonicCalibrator | None":
    from candide.model.calibration import IsotonicCalibrator

    if not arrays.has("calibrator.sizes"):
        return None
    sizes = np.array(arrays.integers("calibrator.sizes", n_classes if n_classes > 2 else 1))
    if not (sizes > 0).all():
        raise ModelFileError("array 'calibrator.sizes' holds what is no length of a curve")
    n, ends = (int(sizes.sum()),), np.cumsum(sizes)[:-1]
    odds, shares = (
        tuple(np.split(arrays.floats(f"calibrator.{name}", n), ends)) for name in ("log_odds", "frequencies")
    )
    rise = all((np.diff(curve) >= 0).all() for curve in (*odds, *shares))
    if not rise or not all(((p > 0) & (p < 1)).all() for p in shares):
        raise ModelFileError(
            "the arrays 'calibrator.log_odds' and 'calibrator.frequencies' are no curves of probabilities that rise"
        )
    return IsotonicCalibrator(odds, shares)
