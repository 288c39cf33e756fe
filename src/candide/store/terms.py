"""Terms in files: the counts of an open vocabulary, or the weights that scoring documents needs.

Offsets and places go to compiled loops, so all of them are checked before they are used. The counts of a file that is
mapped are checked when the first of them is used, so that loading reads none of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions.terms import Cells, OfDocuments, PolyaDocuments, TermScores
from candide.errors import InputError, ModelFileError
from candide.rows.documents import MANNERS, Tokens
from candide.store.container import fields, is_count
from candide.store.plans import LARGEST, Taken
from candide.tally import keys
from candide.tally.terms import STATE, Terms, rising

_CELLS = {"letters": "u1", "starts": "i8", "ends": "i8", "column": "i4", "value": "f8"}
_BY_TERM = ("unit", "base")
_BY_CLASS = ("scale", "constant", "only_known")


def unpack_counts(arrays: Taken, prefix: str, n_classes: int) -> Terms:
    """A tally with an open vocabulary."""
    state = {name: array for name in STATE if (array := arrays.get(prefix + name)) is not None}
    if len(state) < len(STATE):
        raise ModelFileError("an array of its terms is missing")
    if state["n"].shape != (n_classes, 1) or state["length"].shape != (n_classes, 1):
        raise ModelFileError("its terms were counted for another number of classes")
    return checked_counts(state) if arrays.checked else Terms.later(state, checked_counts)


def checked_counts(state: dict[str, NDArray]) -> Terms:
    """The tally of some arrays, if they are one."""
    try:
        tally = Terms.from_arrays(state)
    except (InputError, ValueError, IndexError) as error:
        raise ModelFileError(str(error)) from None
    weights = (tally.n, tally.length, tally.total, tally.documents)
    if any(a.size and (a.min() < -LARGEST or a.max() > LARGEST) for a in weights):
        raise ModelFileError("a weight of its terms is too large to be added")
    if not keys.ascending(tally.letters, tally.starts) or not rising(tally.classes, tally.word):
        raise ModelFileError("its terms are not in ascending order, each once")
    return tally


def pack_weights(law: OfDocuments, arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Put the weights of terms among the arrays, the terms in ascending order; what the header says of them."""
    cells, order = law.cells.in_order()
    held: dict[str, Any] = {name: getattr(cells, name) for name in _CELLS}
    if isinstance(law, PolyaDocuments):
        held |= {"alpha": law.alpha, "concentration": law.concentration}
        told: dict[str, Any] = {"name": "term_bursts"}
    elif isinstance(law, TermScores):
        held |= {"shared": law.shared}
        held |= {name: a[order] for name in _BY_TERM if (a := getattr(law, name)) is not None}
        held |= {name: a for name in _BY_CLASS if (a := getattr(law, name)) is not None}
        told = {"name": "term_scores", "manner": law.manner, "mean_length": law.mean_length}
    else:
        raise InputError(f"a {type(law).__name__} cannot be kept without its counts; save it with detail='tally'")
    for name, array in held.items():
        dtype = _CELLS.get(name, "u1" if name == "only_known" else "f8")
        arrays[f"{prefix}.{name}"] = np.ascontiguousarray(array, dtype)
    return told


def unpack_weights(told: Any, arrays: Taken, prefix: str, *, tokens: Tokens, n_classes: int) -> OfDocuments:
    """The weights of terms that the header tells of."""
    bursts = isinstance(told, dict) and told.get("name") == "term_bursts"
    told = fields(told, "a distribution", {"name": str} if bursts else {"name": str, "manner": int, "mean_length": int})
    cells = _cells(arrays, prefix, n_classes)
    n_terms = len(cells.starts) - 1
    if bursts:
        alpha, mass = (_floats(arrays, prefix, name, n_classes, needed=True) for name in ("alpha", "concentration"))
        if not all((a > 0).all() for a in (alpha, mass, cells.value)):
            raise ModelFileError("its terms have a weight that is not positive")
        return PolyaDocuments(tokens, cells, alpha, mass)
    if told["name"] != "term_scores" or told["manner"] not in MANNERS.values() or not is_count(told["mean_length"]):
        raise ModelFileError(f"unknown distribution {told['name']!r} of terms")
    shared = _floats(arrays, prefix, "shared", n_classes, needed=True)
    unit, base = (_floats(arrays, prefix, name, n_terms) for name in _BY_TERM)
    scale, constant = (_floats(arrays, prefix, name, n_classes) for name in ("scale", "constant"))
    if (base is None) != (scale is None):
        raise ModelFileError("what its terms add to every class lacks a scale")
    known = arrays.get(f"{prefix}.only_known")
    if known is not None and (known.shape != (n_classes,) or known.dtype != np.uint8 or known.max() > 1):
        raise ModelFileError("array 'only_known' does not say yes or no of every class")
    only = None if known is None else known.astype(bool)
    told_length = min(told["mean_length"], 1 << 31)
    return TermScores(tokens, cells, shared, told["manner"], unit, base, scale, constant, only, told_length)


def _cells(arrays: Taken, prefix: str, n_classes: int) -> Cells:
    found = {name: arrays.get(f"{prefix}.{name}") for name in _CELLS}
    if any(a is None or a.ndim != 1 or a.dtype != np.dtype(_CELLS[name]) for name, a in found.items()):
        raise ModelFileError("an array of the weights of its terms is missing")
    cells = Cells(**found)  # type: ignore[arg-type]
    good = len(cells.starts) == len(cells.ends) and len(cells.column) == len(cells.value)
    for ends, size in ((cells.starts, len(cells.letters)), (cells.ends, len(cells.column))):
        good = good and len(ends) > 0 and ends[0] == 0 and ends[-1] == size and not (ends[1:] < ends[:-1]).any()
    if good and len(cells.column):
        good = cells.column.min() >= 0 and cells.column.max() < n_classes and rising(cells.ends, cells.column)
    if not good or not np.isfinite(cells.value).all() or not keys.ascending(cells.letters, cells.starts):
        raise ModelFileError("the weights of its terms are in no order")
    return cells


def _floats(arrays: Taken, prefix: str, name: str, n: int, *, needed: bool = False) -> Any:
    """An array of numbers, one a term or one a class; None where there is none and none is needed."""
    array = arrays.get(f"{prefix}.{name}")
    if array is None and not needed:
        return None
    if array is None or array.shape != (n,) or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ModelFileError(f"array {name!r} of its terms does not hold {n} finite numbers")
    return array
