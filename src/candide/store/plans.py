"""Plans and counts as a header and arrays, and back, with every size and value checked before it is used.

Sizes follow from the names and levels in the file, and every array must have the shape that follows from them. An array
that is constant along an axis is stored once.
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
from candide.store.container import check_fields, is_count
from candide.store.strings import StringPool, StringReader
from candide.store.values import pack_value, unpack_encoding, unpack_event
from candide.tally import TALLIES, Tally
from candide.tally.base import is_too_large

if TYPE_CHECKING:
    from candide.distributions.arrays import DistributionShape

_NONNEGATIVE_ARRAYS = ("n", "m2", "weight", "counts", "class_weight", "noise")
_ENCODING_IN_HEADER = -1  # in the place of a number of levels

Arrays = dict[str, NDArray]


class TrackedArrays:
    """The arrays of a file, and which of them have been used."""

    def __init__(self, arrays: Arrays, is_verified: bool) -> None:
        self._arrays, self._unused, self.is_verified = arrays, set(arrays), is_verified

    def get(self, name: str) -> NDArray | None:
        self._unused.discard(name)
        return self._arrays.get(name)

    def has(self, name: str) -> bool:
        return name in self._arrays

    def integers(self, name: str, length: int | None = None) -> list[int]:
        array = self.get(name)
        if array is None or array.ndim != 1 or array.dtype != np.int64 or length not in (None, len(array)):
            raise ModelFileError(f"array {name!r} is not a list of whole numbers of the right length")
        return array.tolist()

    def indices(self, name: str, n: int) -> list[int]:
        """Return ascending indices below n; none if the array is absent."""
        found = self.integers(name) if name in self._arrays else []
        if any(a >= b for a, b in pairwise(found)) or (found and not 0 <= found[0] <= found[-1] < n):
            raise ModelFileError(f"array {name!r} is not a list of ascending indices below {n}")
        return found

    def floats(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """Return finite numbers of a shape, broadcast along axes on which they are stored once."""
        array = self.get(name)
        if array is None or array.dtype != np.float64 or array.ndim != len(shape):
            raise ModelFileError(f"array {name!r} of {len(shape)} axes is missing")
        if any(have != want and (have != 1 or len(shape) == 1) for have, want in zip(array.shape, shape, strict=True)):
            raise ModelFileError(f"array {name!r} has the shape {array.shape}, not {shape}")
        if self.is_verified and is_too_large(array):
            raise ModelFileError(f"array {name!r} holds a number that is not finite, or too large to be added")
        if self.is_verified and name.rpartition(".")[2] in _NONNEGATIVE_ARRAYS and array.min(initial=0.0) < 0:
            raise ModelFileError(f"array {name!r} holds a negative weight")
        return array if array.shape == shape else np.broadcast_to(array, shape)

    def check_all_used(self) -> None:
        if self._unused:
            raise ModelFileError(f"unexpected array {min(self._unused)!r}")


def pack_plan(plan: Plan, labels: Labels, arrays: Arrays) -> dict[str, Any]:
    """Return the header's fields on columns, classes and parts; names, labels and levels go to the arrays."""
    pool, n = StringPool(), len(plan.columns)
    numbered = plan.columns == tuple(range(n)) and not any(isinstance(name, bool) for name in plan.columns[:2])
    if not numbered:
        pool.add(plan.columns)
    pool.add(_check_ascending(labels, InputError).values)
    if labels.declared:
        arrays["declared"] = _declared_indices(labels)
    parts = []
    index = {} if len(plan.parts) == 1 else {name: i for i, name in enumerate(plan.columns)}
    for i, part in enumerate(plan.parts):
        if len(plan.parts) > 1:
            arrays[f"{i}.columns"] = np.array([index[name] for name in part.columns], np.int64)
        packed = {"event": pack_value(part.event, arrays)}
        if encodings := _pack_encodings(i, part, pool, arrays):
            packed["encodings"] = encodings
        if part.prototypes is not None:
            packed["prototypes"] = pack_value(part.prototypes, arrays)
        parts.append(packed)
    arrays |= pool.arrays()
    return {"columns": n, "numbered": numbered, "classes": len(labels), "parts": parts}


def _pack_encodings(i: int, part: PlanPart, pool: StringPool, arrays: Arrays) -> list[Any]:
    """Add the levels of a part to the arrays; return other encodings, unless they are those of the event model."""
    if part.block_kind != "codes":
        is_default = all(encoding == part.event.encoding for encoding in part.encodings)
        return [] if is_default else [pack_value(encoding, arrays) for encoding in part.encodings]
    sizes, others, declared, start = [], [], [np.empty(0, np.int64)], 0
    for encoding in part.encodings:
        if type(encoding) is LevelEncoding:
            sizes.append(pool.add(_check_ascending(encoding.labels, InputError).values))
            if encoding.labels.declared:
                declared.append(start + _declared_indices(encoding.labels))
            start += sizes[-1]
        else:
            sizes.append(_ENCODING_IN_HEADER)
            others.append(pack_value(encoding, arrays))
    arrays[f"{i}.sizes"] = np.array(sizes, np.int64)
    gapless = [j for j, encoding in enumerate(part.encodings) if getattr(encoding, "gapless", False)]
    optional = {"declared": np.concatenate(declared), "gapless": np.array(gapless, np.int64)}
    arrays |= {f"{i}.{name}": indices for name, indices in optional.items() if len(indices)}
    return others


def _declared_indices(labels: Labels) -> NDArray[np.int64]:
    return np.flatnonzero(labels.retained_mask(np.zeros(len(labels), bool))).astype(np.int64)


def unpack_plan(header: Mapping[str, Any], arrays: TrackedArrays, size: int) -> tuple[Plan, Labels]:
    """Return the plan and the labels of a file of ``size`` bytes."""
    n, k, n_parts = header["columns"], header["classes"], len(header["parts"])
    if not (is_count(n) and is_count(k) and 0 < n <= size and k <= size):
        raise ModelFileError("it has no columns, or more columns or classes than fit into it")
    texts = {name: array for name in ("text", "text.ends", "text.kinds") if (array := arrays.get(name)) is not None}
    reader = StringReader(texts)
    columns = tuple(range(n)) if header["numbered"] else reader.take(n)
    if not header["numbered"] and not _has_valid_names(columns):
        raise ModelFileError("a column has no valid name, or the name of another")
    labels = _check_ascending(Labels(reader.take(k)), ModelFileError)
    labels = labels.declare(labels.values[j] for j in arrays.indices("declared", k))
    if not 0 < n_parts <= size:
        raise ModelFileError("its plan has no parts")
    indices = [arrays.integers(f"{i}.columns") for i in range(n_parts)] if n_parts > 1 else [list(range(n))]
    if {j for part in indices for j in part} != set(range(n)):
        raise ModelFileError("the parts of its plan leave a column out, or name an unknown one")
    if any(len(set(part)) < len(part) for part in indices):
        raise ModelFileError("a part of its plan names a column twice")
    parts = tuple(
        _unpack_part(i, packed, columns if n_parts == 1 else tuple(columns[j] for j in part), arrays, reader)
        for i, (packed, part) in enumerate(zip(header["parts"], indices, strict=True))
    )
    reader.check_all_used()
    return Plan(columns, parts), labels


def _unpack_part(i: int, packed: Any, columns: tuple, arrays: TrackedArrays, reader: StringReader) -> PlanPart:
    check_fields(packed, f"part {i}", {"event": dict}, {"encodings": list, "prototypes": dict})
    part = PlanPart(unpack_event(packed["event"], arrays), columns)
    others = [unpack_encoding(encoding, arrays) for encoding in packed.get("encodings", ())]
    if part.event.encoding.block_kind == "codes" and columns:
        return _with_encodings(i, part, _unpack_levels(i, len(columns), others, arrays, reader))
    if len(others) not in (0, len(columns)):
        raise ModelFileError(f"part {i}: {len(others)} encodings for {len(columns)} columns")
    prototypes = unpack_encoding(packed["prototypes"], arrays) if "prototypes" in packed else None
    return _with_encodings(i, part, tuple(others) or part.encodings, prototypes)


def _unpack_levels(
    i: int, n_columns: int, others: list[Encoding], arrays: TrackedArrays, reader: StringReader
) -> tuple[Encoding, ...]:
    """Return the encodings of columns of codes: levels, and ``others`` from the header."""
    sizes = arrays.integers(f"{i}.sizes", n_columns)
    if min(sizes) < _ENCODING_IN_HEADER or sizes.count(_ENCODING_IN_HEADER) != len(others):
        raise ModelFileError(f"part {i}: the numbers of levels do not match the encodings in the header")
    rest = iter(others)
    starts = np.cumsum([0, *(max(n, 0) for n in sizes)]).tolist()
    declared = np.array(arrays.indices(f"{i}.declared", starts[-1]), np.int64)
    gapless = set(arrays.indices(f"{i}.gapless", n_columns))
    encodings: list[Encoding] = []
    for j, n in enumerate(sizes):
        if n == _ENCODING_IN_HEADER:
            encodings.append(next(rest))
            continue
        labels = _check_ascending(Labels(reader.take(n)), ModelFileError)
        own = declared[(declared >= starts[j]) & (declared < starts[j] + n)] - starts[j] if len(declared) else ()
        if j in gapless and labels.values != tuple(range(n)):
            raise ModelFileError(f"part {i}: levels that are not the whole numbers from 0")
        encodings.append(LevelEncoding(labels.declare(labels.values[at] for at in own), j in gapless))
    return tuple(encodings)


def _with_encodings(
    i: int, part: PlanPart, encodings: tuple[Encoding, ...], prototypes: Encoding | None = None
) -> PlanPart:
    """Return a part with its encodings, which must be of the kind that its event model takes."""
    kind = part.event.encoding.block_kind
    if any(encoding.block_kind != kind for encoding in encodings):
        raise ModelFileError(f"part {i}: an encoding does not hold {kind}, which {part.event.name} takes")
    width = sum(encoding.width for encoding in encodings)
    if prototypes is not None and not (isinstance(prototypes, Prototypes) and prototypes.prototypes.shape[1] == width):
        raise ModelFileError(f"part {i}: prototypes that do not have {width} scores, as its columns have")
    try:
        part = PlanPart(part.event, part.columns, encodings, prototypes)
        part.spec.sizes, part.spec.threshold  # noqa: B018  raises an error if the encodings do not fit the event model
    except InputError as error:
        raise ModelFileError(f"part {i}: {error}") from None
    return part


def part_shape(part: PlanPart, n_classes: int) -> "DistributionShape":
    """Return the shape of a part's distribution."""
    from candide.distributions.arrays import DistributionShape  # here: counts are loaded without distributions

    sizes = part.spec.sizes if part.block_kind == "codes" else ()
    tokens = part.encodings[0] if part.block_kind == "documents" else None
    return DistributionShape(n_classes, part.spec.n_features, part.block_kind, sizes, tokens, part.spec.sets)


def _has_valid_names(columns: tuple) -> bool:
    types = set(map(type, columns))
    if types == {str} and all(map(lt, columns, columns[1:])):  # a vocabulary, for example: no need to hash it
        return True
    return types <= {str, int} and len(set(columns)) == len(columns)


def _check_ascending(labels: Labels, error: type[InputError]) -> Labels:
    """Return labels that are in ascending order, numbers before text, and so distinct."""
    values = labels.values
    types = set(map(type, values))
    keys: Any = values if types <= {str} or types <= {bool, int, float} else [sort_key(value) for value in values]
    if not all(map(lt, keys, keys[1:])):
        raise error("labels or levels are not distinct and in ascending order")
    return labels


def pack_counts(counts: ModelCounts, arrays: Arrays) -> None:
    """Add the counts to the arrays; offsets follow from the levels."""
    arrays["class_weight"] = counts.class_weight
    for i, tally in enumerate(counts.tallies):
        pack = np.ascontiguousarray if tally.has_open_vocabulary else _drop_repeats
        arrays |= {f"{i}.{name}": pack(a) for name, a in (tally.arrays() | tally.rounding_residuals()).items()}


def unpack_counts(plan: Plan, labels: Labels, rows: Any, arrays: TrackedArrays) -> ModelCounts:
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    tallies: list[Any] = []
    for i, part in enumerate(plan.parts):
        spec, kind = part.spec, TALLIES[part.spec.kind]
        if kind.has_open_vocabulary:
            tallies.append(_unpack_tokens(kind, arrays, f"{i}.", len(labels)))
            continue
        empty = kind.empty(0, spec).arrays()  # for the shapes
        shapes = {name: (len(labels), *array.shape[1:]) for name, array in empty.items()}
        shapes |= {name: s for name, s in kind.residual_shapes(len(labels), spec).items() if arrays.has(f"{i}.{name}")}
        state = {name: arrays.floats(f"{i}.{name}", shape) for name, shape in shapes.items()}
        tallies.append(kind.from_arrays(state, spec))
        if arrays.is_verified and tallies[-1].find_too_large() is not None:
            raise ModelFileError(f"arrays '{i}...': sums of values are too large to be added")
    return ModelCounts(plan, labels, arrays.floats("class_weight", (len(labels),)), tuple(tallies), rows)


def _unpack_tokens(kind: Any, arrays: TrackedArrays, prefix: str, n_classes: int) -> Tally:
    """Return a tally with an open vocabulary. The arrays of a mapped file are checked at their first use."""
    state = {name: array for name in kind.state if (array := arrays.get(prefix + name)) is not None}
    if missing := [prefix + name for name in kind.state if name not in state]:
        raise ModelFileError(f"array {missing[0]!r} is missing", value=missing[0])
    if state["n"].shape != (n_classes, 1):
        raise ModelFileError(f"array '{prefix}n' has the shape {state['n'].shape}, not {(n_classes, 1)}")
    check = partial(_check_tally, kind, prefix)  # can be pickled with the tally
    return check(state) if arrays.is_verified else kind.from_lazy_arrays(state, check)


def _check_tally(kind: Any, prefix: str, state: Arrays) -> Tally:
    try:
        tally = kind.from_arrays(state)
    except (InputError, ValueError, IndexError) as error:
        raise ModelFileError(f"arrays '{prefix}...': {error}") from None
    if tally.find_too_large() is not None:
        raise ModelFileError(f"arrays '{prefix}...': a weight is too large to be added")
    return tally


def _drop_repeats(array: NDArray) -> NDArray:
    """Return an array without repetitions along an axis, compared bit by bit."""
    bits = array.view(np.int64)
    for axis in (0, 1):
        if array.shape[axis] < 2:
            continue
        first, second = (bits[:, :1], bits[:, 1:2]) if axis else (bits[:1], bits[1:2])
        if bits.strides[axis] == 0 or ((first == second).all() and (bits == first).all()):
            bits = first
    return np.ascontiguousarray(bits).view(np.float64)
