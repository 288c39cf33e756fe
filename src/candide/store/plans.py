"""Plans and counts as a header and arrays, and back. Whatever is wrong with them is said before it is used.

Sizes are never believed: labels and levels are read from the file's text, and every array must have the shape that
follows from how many there are. An array that is the same all along an axis is kept once.
"""

from collections.abc import Mapping
from operator import lt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, ModelFileError
from candide.model.census import Census
from candide.model.plan import Part, Plan
from candide.rows.labels import Labels, order
from candide.store import values
from candide.store.container import fields, is_count
from candide.store.texts import Pool, Reader
from candide.tally import KINDS

if TYPE_CHECKING:
    from candide.distributions.arrays import Shape

_WEIGHTS = ("n", "m2", "weight", "counts", "class_weight")  # arrays that are never negative

LARGEST = 1e300  # sums of numbers up to here are finite

Arrays = dict[str, NDArray]


class Taken:
    """The arrays of a file, and which of them have been asked for."""

    def __init__(self, arrays: Arrays, checked: bool) -> None:
        self._arrays, self._left, self.checked = arrays, set(arrays), checked

    def get(self, name: str) -> NDArray | None:
        self._left.discard(name)
        return self._arrays.get(name)

    def whole(self, name: str, length: int | None = None) -> list[int]:
        """Whole numbers."""
        array = self.get(name)
        if array is None or array.ndim != 1 or array.dtype != np.int64 or length not in (None, len(array)):
            raise ModelFileError(f"array {name!r} is not a list of whole numbers of the right length")
        return array.tolist()

    def floats(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """Finite numbers of a shape, spread along the axes on which they were kept once."""
        array = self.get(name)
        if array is None or array.dtype != np.float64 or array.ndim != len(shape):
            raise ModelFileError(f"array {name!r} of {len(shape)} axes is missing")
        if any(have != want and (have != 1 or len(shape) == 1) for have, want in zip(array.shape, shape, strict=True)):
            raise ModelFileError(f"array {name!r} has the shape {array.shape}, not {shape}")
        if self.checked and array.size:
            low, high = array.min(), array.max()
            if not (low >= -LARGEST and high <= LARGEST):  # nor NaN, which is neither
                raise ModelFileError(f"array {name!r} holds a number that is not finite, or too large to be added")
            if name.rpartition(".")[2] in _WEIGHTS and low < 0:
                raise ModelFileError(f"array {name!r} holds a negative weight")
        return array if array.shape == shape else np.broadcast_to(array, shape)

    def finish(self) -> None:
        if self._left:
            raise ModelFileError(f"array {min(self._left)!r} belongs to nothing")


def pack_plan(plan: Plan, labels: Labels, arrays: Arrays) -> dict[str, Any]:
    """What the header says of columns, classes and parts; names, labels and levels go among the arrays."""
    pool, n = Pool(), len(plan.columns)
    numbered = plan.columns == tuple(range(n)) and not any(isinstance(name, bool) for name in plan.columns[:2])
    if not numbered:
        pool.add(plan.columns)
    pool.add(_ascending(labels, InputError).values)
    parts = []
    place = {} if len(plan.parts) == 1 else {name: i for i, name in enumerate(plan.columns)}
    for i, part in enumerate(plan.parts):
        parts.append({"event": values.pack(part.event, arrays)})
        if len(plan.parts) > 1:
            arrays[f"{i}.columns"] = np.array([place[name] for name in part.columns], np.int64)
        if part.holds == "codes":
            sizes = [pool.add(_ascending(levels, InputError).values) for levels in part.levels]
            arrays[f"{i}.sizes"] = np.array(sizes, np.int64)
    arrays |= pool.arrays()
    return {"columns": n, "numbered": numbered, "classes": len(labels), "parts": parts}


def unpack_plan(header: Mapping[str, Any], arrays: Taken, size: int) -> tuple[Plan, Labels]:
    """Plan and labels of a file of ``size`` bytes."""
    n, k = header["columns"], header["classes"]
    if not (is_count(n) and is_count(k) and 0 < n <= size and 0 < k <= size):
        raise ModelFileError("it has no columns, no classes, or more than there is room for")
    texts = {name: array for name in ("text", "text.ends", "text.kinds") if (array := arrays.get(name)) is not None}
    reader = Reader(texts)
    columns = tuple(range(n)) if header["numbered"] else reader.take(n)
    if not header["numbered"] and not _are_names(columns):
        raise ModelFileError("a column has no name, or the name of another")
    labels = _ascending(Labels(reader.take(k)), ModelFileError)
    if not 0 < len(header["parts"]) <= size:
        raise ModelFileError("its plan has no parts")
    places = [arrays.whole(f"{i}.columns") for i in range(len(header["parts"]))] if len(header["parts"]) > 1 else []
    if places and {j for mine in places for j in mine} != set(range(n)):
        raise ModelFileError("the parts of its plan leave a column out, or name one that there is not")
    if any(len(set(mine)) < len(mine) for mine in places):
        raise ModelFileError("a part of its plan names a column twice")
    chosen = [tuple(columns[j] for j in mine) for mine in places] or [columns]
    parts = tuple(
        _unpack_part(i, packed, mine, arrays, reader)
        for i, (packed, mine) in enumerate(zip(header["parts"], chosen, strict=True))
    )
    reader.finish()
    return Plan(columns, parts), labels


def _unpack_part(i: int, packed: Any, columns: tuple, arrays: Taken, reader: Reader) -> Part:
    part = Part(values.unpack_event(fields(packed, "a part", {"event": dict})["event"], arrays), columns)
    if not columns or part.holds != "codes":
        return part
    sizes = arrays.whole(f"{i}.sizes", len(columns))
    if min(sizes) < 0:
        raise ModelFileError("a column has fewer than no levels")
    return part.with_labels(_ascending(Labels(reader.take(n)), ModelFileError) for n in sizes)


def shape_of(part: Part, n_classes: int) -> "Shape":
    """What the plan says of a part's law."""
    from candide.distributions.arrays import Shape  # here: counts are loaded without laws

    sizes = tuple(len(levels) for levels in part.levels)
    return Shape(n_classes, len(part.columns), part.holds, sizes, getattr(part.event, "tokens", None))


def _are_names(columns: tuple) -> bool:
    kinds = set(map(type, columns))
    if kinds == {str} and all(map(lt, columns, columns[1:])):  # a vocabulary, say: no need to hash it
        return True
    return kinds <= {str, int} and len(set(columns)) == len(columns)


def _ascending(labels: Labels, error: type[InputError]) -> Labels:
    """Labels in their order, numbers before text: what they are looked up by, and what makes them distinct."""
    found = labels.values
    kinds = set(map(type, found))
    keys: Any = found if kinds <= {str} or kinds <= {bool, int, float} else [order(v) for v in found]
    if not all(map(lt, keys, keys[1:])):
        raise error("labels or levels that are not in ascending order, each once")
    return labels


def pack_counts(census: Census, arrays: Arrays) -> None:
    """Put the counts among the arrays; offsets follow from the levels, and are not kept."""
    arrays["class_weight"] = census.class_weight
    for i, tally in enumerate(census.tallies):
        keep = _once if census.plan.parts[i].spec.kind != "terms" else np.ascontiguousarray
        arrays |= {f"{i}.{name}": keep(a) for name, a in tally.arrays().items()}


def unpack_counts(plan: Plan, labels: Labels, rows: Any, arrays: Taken) -> Census:
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    tallies: list[Any] = []
    for i, part in enumerate(plan.parts):
        spec = part.spec
        if spec.kind == "terms":
            from candide.store import terms

            tallies.append(terms.unpack_counts(arrays, f"{i}.", len(labels)))
            continue
        kind = KINDS[spec.kind]
        empty = kind.empty(0, spec).arrays()  # shapes, and no room taken
        shapes = {name: (len(labels), *like.shape[1:]) for name, like in empty.items()}
        state = {name: arrays.floats(f"{i}.{name}", shape) for name, shape in shapes.items()}
        tallies.append(kind.from_arrays(state, spec))
    return Census(plan, labels, arrays.floats("class_weight", (len(labels),)), tuple(tallies), rows)


def _once(array: NDArray) -> NDArray:
    """An array without the repetitions along an axis, bit for bit."""
    bits = array.view(np.int64)
    for axis in (0, 1):
        if array.shape[axis] < 2:
            continue
        first, second = (bits[:, :1], bits[:, 1:2]) if axis else (bits[:1], bits[1:2])
        if bits.strides[axis] == 0 or ((first == second).all() and (bits == first).all()):
            bits = first
    return np.ascontiguousarray(bits).view(np.float64)
