"""Plans and counts as a header and arrays, and back. Whatever is wrong with them is said before it is used.

Sizes are never believed: labels and levels are read from the file's text, and every array must have the shape that
follows from how many there are. An array that is the same all along an axis is kept once.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from operator import lt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels, sort_key
from candide.encoding import Encoding, LevelEncoding
from candide.encoding.prototypes import Prototypes
from candide.errors import InputError, ModelFileError
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart
from candide.store import values
from candide.store.container import check_fields, is_count
from candide.store.strings import StringPool, StringReader
from candide.tally import TALLIES, Tally
from candide.tally.base import is_too_large

if TYPE_CHECKING:
    from candide.distributions.arrays import DistributionShape

_NONNEGATIVE_ARRAYS = ("n", "m2", "weight", "counts", "class_weight", "noise")  # arrays that are never negative

_ENCODING_IN_HEADER = -1  # instead of how many levels a column has: its encoding is in the header

Arrays = dict[str, NDArray]


class TrackedArrays:
    """The arrays of a file, and which of them have been asked for."""

    def __init__(self, arrays: Arrays, checked: bool) -> None:
        self._arrays, self._unused, self.checked = arrays, set(arrays), checked

    def get(self, name: str) -> NDArray | None:
        self._unused.discard(name)
        return self._arrays.get(name)

    def has(self, name: str) -> bool:
        return name in self._arrays

    def integers(self, name: str, length: int | None = None) -> list[int]:
        """Whole numbers."""
        array = self.get(name)
        if array is None or array.ndim != 1 or array.dtype != np.int64 or length not in (None, len(array)):
            raise ModelFileError(f"array {name!r} is not a list of whole numbers of the right length")
        return array.tolist()

    def indices(self, name: str, n: int) -> list[int]:
        """Some of n places, in ascending order; none where the file does not say."""
        found = self.integers(name) if name in self._arrays else []
        if any(a >= b for a, b in pairwise(found)) or (found and not 0 <= found[0] <= found[-1] < n):
            raise ModelFileError(f"array {name!r} is no list of some of {n} places")
        return found

    def floats(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """Finite numbers of a shape, spread along the axes on which they were kept once."""
        array = self.get(name)
        if array is None or array.dtype != np.float64 or array.ndim != len(shape):
            raise ModelFileError(f"array {name!r} of {len(shape)} axes is missing")
        if any(have != want and (have != 1 or len(shape) == 1) for have, want in zip(array.shape, shape, strict=True)):
            raise ModelFileError(f"array {name!r} has the shape {array.shape}, not {shape}")
        if self.checked and is_too_large(array):
            raise ModelFileError(f"array {name!r} holds a number that is not finite, or too large to be added")
        if self.checked and name.rpartition(".")[2] in _NONNEGATIVE_ARRAYS and array.min(initial=0.0) < 0:
            raise ModelFileError(f"array {name!r} holds a negative weight")
        return array if array.shape == shape else np.broadcast_to(array, shape)

    def check_all_used(self) -> None:
        if self._unused:
            raise ModelFileError(f"array {min(self._unused)!r} belongs to nothing")


def pack_plan(plan: Plan, labels: Labels, arrays: Arrays) -> dict[str, Any]:
    """What the header says of columns, classes and parts; names, labels and levels go among the arrays."""
    pool, n = StringPool(), len(plan.columns)
    numbered = plan.columns == tuple(range(n)) and not any(isinstance(name, bool) for name in plan.columns[:2])
    if not numbered:
        pool.add(plan.columns)
    pool.add(_check_ascending(labels, InputError).values)
    if labels.declared:
        arrays["declared"] = _declared_places(labels)
    parts = []
    place = {} if len(plan.parts) == 1 else {name: i for i, name in enumerate(plan.columns)}
    for i, part in enumerate(plan.parts):
        if len(plan.parts) > 1:
            arrays[f"{i}.columns"] = np.array([place[name] for name in part.columns], np.int64)
        own = _pack_encodings(i, part, pool, arrays)
        packed = {"event": values.pack_value(part.event, arrays), **({"encodings": own} if own else {})}
        if part.prototypes is not None:
            packed["prototypes"] = values.pack_value(part.prototypes, arrays)
        parts.append(packed)
    arrays |= pool.arrays()
    return {"columns": n, "numbered": numbered, "classes": len(labels), "parts": parts}


def unpack_plan(header: Mapping[str, Any], arrays: TrackedArrays, size: int) -> tuple[Plan, Labels]:
    """Plan and labels of a file of ``size`` bytes."""
    n, k = header["columns"], header["classes"]
    if not (is_count(n) and is_count(k) and 0 < n <= size and k <= size):
        raise ModelFileError("it has no columns, or columns or classes that are more than there is room for")
    texts = {name: array for name in ("text", "text.ends", "text.kinds") if (array := arrays.get(name)) is not None}
    reader = StringReader(texts)
    columns = tuple(range(n)) if header["numbered"] else reader.take(n)
    if not header["numbered"] and not _has_valid_names(columns):
        raise ModelFileError("a column has no name, or the name of another")
    labels = _check_ascending(Labels(reader.take(k)), ModelFileError)
    labels = labels.declare(labels.values[j] for j in arrays.indices("declared", k))
    if not 0 < len(header["parts"]) <= size:
        raise ModelFileError("its plan has no parts")
    places = [arrays.integers(f"{i}.columns") for i in range(len(header["parts"]))] if len(header["parts"]) > 1 else []
    if places and {j for mine in places for j in mine} != set(range(n)):
        raise ModelFileError("the parts of its plan leave a column out, or name one that there is not")
    if any(len(set(mine)) < len(mine) for mine in places):
        raise ModelFileError("a part of its plan names a column twice")
    chosen = [tuple(columns[j] for j in mine) for mine in places] or [columns]
    parts = tuple(
        _unpack_part(i, packed, mine, arrays, reader)
        for i, (packed, mine) in enumerate(zip(header["parts"], chosen, strict=True))
    )
    reader.check_all_used()
    return Plan(columns, parts), labels


def _unpack_part(i: int, packed: Any, columns: tuple, arrays: TrackedArrays, reader: StringReader) -> PlanPart:
    kinds = {"event": dict, "encodings": list, "prototypes": dict}
    there = {"event", *(packed if isinstance(packed, dict) else ())}
    check_fields(packed, f"part {i}", {name: kind for name, kind in kinds.items() if name in there})
    part = PlanPart(values.unpack_event(packed["event"], arrays), columns)
    named = [values.unpack_encoding(one, arrays) for one in packed.get("encodings", ())]
    if part.event.encoding.block_kind != "codes" or not columns:
        if len(named) not in (0, len(columns)):
            raise ModelFileError(f"part {i}: {len(named)} encodings for {len(columns)} columns")
        together = values.unpack_encoding(packed["prototypes"], arrays) if "prototypes" in packed else None
        return _with_encodings(i, part, tuple(named) or part.encodings, together)
    sizes = arrays.integers(f"{i}.sizes", len(columns))
    if min(sizes) < _ENCODING_IN_HEADER or sizes.count(_ENCODING_IN_HEADER) != len(named):
        raise ModelFileError(f"part {i}: a column has fewer than no levels, or an encoding that is not there")
    rest = iter(named)
    starts = np.cumsum([0, *(max(n, 0) for n in sizes)]).tolist()
    declared = np.array(arrays.indices(f"{i}.declared", starts[-1]), np.int64)
    gapless = set(arrays.indices(f"{i}.gapless", len(columns)))
    encodings: list[Encoding] = []
    for j, n in enumerate(sizes):
        if n == _ENCODING_IN_HEADER:
            encodings.append(next(rest))
            continue
        labels = _check_ascending(Labels(reader.take(n)), ModelFileError)
        mine = declared[(declared >= starts[j]) & (declared < starts[j] + n)] - starts[j] if len(declared) else ()
        if j in gapless and labels.values != tuple(range(n)):
            raise ModelFileError(f"part {i}: levels that are not the whole numbers from 0")
        encodings.append(LevelEncoding(labels.declare(labels.values[at] for at in mine), j in gapless))
    return _with_encodings(i, part, tuple(encodings))


def _with_encodings(
    i: int, part: PlanPart, encodings: tuple[Encoding, ...], together: Encoding | None = None
) -> PlanPart:
    """A part whose encodings all hold what its event model takes, and say how its columns are counted."""
    holds = part.event.encoding.block_kind
    if any(encoding.block_kind != holds for encoding in encodings):
        raise ModelFileError(f"part {i}: an encoding does not hold {holds}, which {part.event.name} takes")
    if together is not None and not (
        isinstance(together, Prototypes)
        and together.prototypes.shape[1] == sum(encoding.width for encoding in encodings)
    ):
        raise ModelFileError(f"part {i}: typical rows that are not of as many scores as its columns have")
    try:
        made = PlanPart(part.event, part.columns, encodings, together)
        made.spec.sizes, made.spec.threshold  # noqa: B018
    except InputError as error:
        raise ModelFileError(f"part {i}: {error}") from None
    return made


def _pack_encodings(i: int, part: PlanPart, pool: StringPool, arrays: Arrays) -> list[Any]:
    """Put the levels of a part among the arrays; what the header says of other encodings, where they are not usual."""
    if part.block_kind != "codes":
        usual = all(encoding == part.event.encoding for encoding in part.encodings)
        return [] if usual else [values.pack_value(encoding, arrays) for encoding in part.encodings]
    sizes, named, declared, start = [], [], [np.empty(0, np.int64)], 0
    for encoding in part.encodings:
        if type(encoding) is LevelEncoding:
            sizes.append(pool.add(_check_ascending(encoding.labels, InputError).values))
            if encoding.labels.declared:
                declared.append(start + _declared_places(encoding.labels))
            start += sizes[-1]
        else:
            sizes.append(_ENCODING_IN_HEADER)
            named.append(values.pack_value(encoding, arrays))
    arrays[f"{i}.sizes"] = np.array(sizes, np.int64)
    gapless = [j for j, encoding in enumerate(part.encodings) if getattr(encoding, "gapless", False)]
    kept = {"declared": np.concatenate(declared), "gapless": np.array(gapless, np.int64)}
    arrays |= {f"{i}.{name}": places for name, places in kept.items() if len(places)}
    return named


def _declared_places(labels: Labels) -> NDArray[np.int64]:
    """The places of the labels that were declared."""
    return np.flatnonzero(labels.retained_mask(np.zeros(len(labels), bool))).astype(np.int64)


def part_shape(part: PlanPart, n_classes: int) -> "DistributionShape":
    """What the plan says of a part's law."""
    from candide.distributions.arrays import DistributionShape  # here: counts are loaded without laws

    sizes = part.spec.sizes if part.block_kind == "codes" else ()
    tokens = part.encodings[0] if part.block_kind == "documents" else None
    return DistributionShape(n_classes, part.spec.n_features, part.block_kind, sizes, tokens, part.spec.sets)


def _has_valid_names(columns: tuple) -> bool:
    kinds = set(map(type, columns))
    if kinds == {str} and all(map(lt, columns, columns[1:])):  # a vocabulary, say: no need to hash it
        return True
    return kinds <= {str, int} and len(set(columns)) == len(columns)


def _check_ascending(labels: Labels, error: type[InputError]) -> Labels:
    """Labels in their order, numbers before text: what they are looked up by, and what makes them distinct."""
    found = labels.values
    kinds = set(map(type, found))
    keys: Any = found if kinds <= {str} or kinds <= {bool, int, float} else [sort_key(v) for v in found]
    if not all(map(lt, keys, keys[1:])):
        raise error("labels or levels that are not in ascending order, each once")
    return labels


def pack_counts(counts: ModelCounts, arrays: Arrays) -> None:
    """Put the counts among the arrays; offsets follow from the levels, and are not kept."""
    arrays["class_weight"] = counts.class_weight
    for i, tally in enumerate(counts.tallies):
        keep = np.ascontiguousarray if tally.has_open_vocabulary else _drop_repeats
        arrays |= {f"{i}.{name}": keep(a) for name, a in (tally.arrays() | tally.rounding_residuals()).items()}


def unpack_counts(plan: Plan, labels: Labels, rows: Any, arrays: TrackedArrays) -> ModelCounts:
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    tallies: list[Any] = []
    for i, part in enumerate(plan.parts):
        spec, kind = part.spec, TALLIES[part.spec.kind]
        if kind.has_open_vocabulary:
            tallies.append(_unpack_unbounded(kind, arrays, f"{i}.", len(labels)))
            continue
        empty = kind.empty(0, spec).arrays()  # shapes, and no room taken
        shapes = {name: (len(labels), *like.shape[1:]) for name, like in empty.items()}
        shapes |= {name: s for name, s in kind.residual_shapes(len(labels), spec).items() if arrays.has(f"{i}.{name}")}
        state = {name: arrays.floats(f"{i}.{name}", shape) for name, shape in shapes.items()}
        tallies.append(kind.from_arrays(state, spec))
        if arrays.checked and tallies[-1].find_too_large() is not None:
            raise ModelFileError(f"arrays '{i}...': sums of values are too large to be added")
    return ModelCounts(plan, labels, arrays.floats("class_weight", (len(labels),)), tuple(tallies), rows)


def _unpack_unbounded(kind: Any, arrays: TrackedArrays, prefix: str, n_classes: int) -> Tally:
    """A tally whose arrays are as long as what was met. Of a mapped file they are checked when the first is used."""
    state = {name: array for name in kind.state if (array := arrays.get(prefix + name)) is not None}
    missing = [prefix + name for name in kind.state if name not in state]
    if missing:
        raise ModelFileError(f"array {missing[0]!r} is missing", value=missing[0])
    if state["n"].shape != (n_classes, 1):
        raise ModelFileError(f"array '{prefix}n' has the shape {state['n'].shape}, not {(n_classes, 1)}")
    check = partial(_check_tally, kind, prefix)  # which can be pickled, with the tally
    return check(state) if arrays.checked else kind.from_lazy_arrays(state, check)


def _check_tally(kind: Any, prefix: str, state: Arrays) -> Tally:
    try:
        tally = kind.from_arrays(state)
    except (InputError, ValueError, IndexError) as error:
        raise ModelFileError(f"arrays '{prefix}...': {error}") from None
    if tally.find_too_large() is not None:
        raise ModelFileError(f"arrays '{prefix}...': a weight is too large to be added")
    return tally


def _drop_repeats(array: NDArray) -> NDArray:
    """An array without the repetitions along an axis, bit for bit."""
    bits = array.view(np.int64)
    for axis in (0, 1):
        if array.shape[axis] < 2:
            continue
        first, second = (bits[:, :1], bits[:, 1:2]) if axis else (bits[:1], bits[1:2])
        if bits.strides[axis] == 0 or ((first == second).all() and (bits == first).all()):
            bits = first
    return np.ascontiguousarray(bits).view(np.float64)
