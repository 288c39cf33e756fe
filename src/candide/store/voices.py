"""Voices in files: the weights of a model, of its words too, and the curve that bends its probabilities."""

from typing import TYPE_CHECKING, Any

import numpy as np

from candide.errors import InputError, ModelFileError
from candide.model.plan import Part, Plan
from candide.store import plans
from candide.store.container import fields, is_count

if TYPE_CHECKING:
    from candide.distributions.word_weights import WordWeights
    from candide.model.calibration import Isotonic
    from candide.model.voices import Voices

_VOICES = ("rows", "counted", "gone", "fresh")  # numbers of rows that weights are known by


def pack_voices(voices: "Voices", arrays: plans.Arrays) -> dict[str, Any]:
    arrays |= {"voices.weights": np.concatenate(voices.weight), "voices.bias": voices.bias}
    arrays["voices.strength"] = voices.strength
    if voices.copies is not None:
        arrays["voices.copies"] = voices.copies
    _pack_curve(voices.curve, arrays)
    for i, words in enumerate(voices.words):
        if words is not None:
            arrays |= {f"voices.words.{i}.{name}": array for name, array in words.arrays().items()}
    return {name: getattr(voices, name) for name in _VOICES}


def unpack_voices(header: dict[str, Any], arrays: plans.Taken, plan: Plan, n_classes: int) -> "Voices":
    from candide.model.voices import Voices, groups_of

    known = fields(header, "voices", dict.fromkeys(_VOICES, int))
    if odd := [number for number in known.values() if not is_count(number)]:
        raise ModelFileError(f"voices learned from {odd[0]!r} rows", value=odd[0])
    sizes = [len(part.event.voices(part.columns)) for part in plan.parts]
    weight = arrays.floats("voices.weights", (sum(sizes),))
    strength = arrays.floats("voices.strength", (1 + max(groups_of(plan), default=-1),))
    if not (strength > 0).all():
        raise ModelFileError("array 'voices.strength' holds what is not above 0")
    copies = arrays.floats("voices.copies", (n_classes,)) if arrays.has("voices.copies") else None
    if copies is not None and not (copies >= 1).all():
        raise ModelFileError("array 'voices.copies' holds what is below 1")
    known["copies"] = copies
    each = tuple(np.split(weight, np.cumsum(sizes)[:-1]))
    curve = unpack_curve(arrays, n_classes)
    words = tuple(_unpack_words(arrays, f"voices.words.{i}", part) for i, part in enumerate(plan.parts))
    known |= {"curve": curve, "words": words if any(one is not None for one in words) else ()}
    return Voices(each, arrays.floats("voices.bias", (n_classes,)), strength=strength, **known)


def _unpack_words(arrays: plans.Taken, prefix: str, part: Part) -> "WordWeights | None":
    """The weights of the words of a part, where it has any."""
    if not arrays.has(f"{prefix}.weight"):
        return None
    from candide.distributions.word_weights import WordWeights
    from candide.store.laws import Prefixed

    if not part.event.hears_words:
        raise ModelFileError(f"array '{prefix}.weight' has weights of words, and its part has no words")
    try:
        return WordWeights.from_arrays(Prefixed(arrays, prefix))
    except InputError as error:
        raise ModelFileError(f"{prefix}: {error.what}", value=error.value) from None


def _pack_curve(curve: "Isotonic | None", arrays: plans.Arrays) -> None:
    """What bends the probabilities of a model, one curve after another."""
    if curve is not None:
        arrays["curve.sizes"] = np.array([len(odds) for odds in curve.odds], np.int64)
        arrays |= {"curve.odds": np.concatenate(curve.odds), "curve.shares": np.concatenate(curve.shares)}


def unpack_curve(arrays: plans.Taken, n_classes: int) -> "Isotonic | None":
    from candide.model.calibration import Isotonic

    if not arrays.has("curve.sizes"):
        return None
    sizes = np.array(arrays.whole("curve.sizes", n_classes if n_classes > 2 else 1))
    if not (sizes > 0).all():
        raise ModelFileError("array 'curve.sizes' holds what is no length of a curve")
    n, ends = (int(sizes.sum()),), np.cumsum(sizes)[:-1]
    odds, shares = (tuple(np.split(arrays.floats(f"curve.{name}", n), ends)) for name in ("odds", "shares"))
    rise = all((np.diff(curve) >= 0).all() for curve in (*odds, *shares))
    if not rise or not all(((p > 0) & (p < 1)).all() for p in shares):
        raise ModelFileError("the arrays 'curve.odds' and 'curve.shares' are no curves of probabilities that rise")
    return Isotonic(odds, shares)
