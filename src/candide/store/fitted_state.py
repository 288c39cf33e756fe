"""The fitted state of a model in a file: plan and counts, or distributions, and term weights.

Every size and value is checked before it is used. Sizes follow from the names and levels in the file, and every array
must have the shape that follows from them. An array that is constant along an axis is stored once.
"""

from collections.abc import Mapping
from functools import partial
from operator import lt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels, sort_key
from candide.encoding import Encoding, LevelEncoding
from candide.encoding.scores import Prototypes
from candide.errors import InputError, ModelFileError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel, Parameters
from candide.model.model import Model
from candide.model.plan import Plan, PlanPart
from candide.store import container
from candide.store.container import Arrays, PrefixedArrays, StringReader, TrackedArrays, check_fields, is_count
from candide.store.values import pack_value, unpack_encoding, unpack_event
from candide.tally import TALLIES, Tally
from candide.weighted.terms.base import TERMS

if TYPE_CHECKING:  # counts are loaded without distributions
    from candide.distributions import Distribution
    from candide.distributions.arrays import ArraySource, DistributionShape
    from candide.distributions.token_weights import TokenWeights
    from candide.model.calibration import IsotonicCalibrator
    from candide.model.model import TermWeights

_ENCODING_IN_HEADER = -1  # in the place of a number of levels
_MAX_DEPTH = 3  # distributions within distributions
_ROW_COUNTS = ("learned_rows", "counted_rows", "removed_rows", "uncounted_rows")  # fields of TermWeights without "n_"


def pack_plan(plan: Plan, labels: Labels, arrays: Arrays) -> dict[str, Any]:
    """Return the header's fields on columns, classes and parts; names, labels and levels go to the arrays."""
    pool, n = container.StringPool(), len(plan.columns)
    numbered = plan.columns == tuple(range(n)) and not any(isinstance(name, bool) for name in plan.columns[:2])
    if not numbered:
        pool.add(plan.columns)
    pool.add(_check_ascending(labels, InputError).values)
    if labels.declared:
        arrays["declared"] = _declared_indices(labels)
    parts = []
    index = {} if len(plan.parts) == 1 else {name: i for i, name in enumerate(plan.columns)}
    for i, part in enumerate(plan.parts):
        if index:
            arrays[f"{i}.columns"] = np.array([index[name] for name in part.columns], np.int64)
        packed = {"event": pack_value(part.event, arrays)}
        if encodings := _pack_encodings(i, part, pool, arrays):
            packed["encodings"] = encodings
        if part.prototypes is not None:
            packed["prototypes"] = pack_value(part.prototypes, arrays)
        parts.append(packed)
    arrays |= pool.arrays()
    return {"columns": n, "numbered": numbered, "classes": len(labels), "parts": parts}


def _pack_encodings(i: int, part: PlanPart, pool: container.StringPool, arrays: Arrays) -> list[Any]:
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
    fixed = [j for j, encoding in enumerate(part.encodings) if getattr(encoding, "fixed", False)]
    optional = {"declared": np.concatenate(declared), "gapless": np.array(gapless, np.int64)}
    optional["fixed"] = np.array(fixed, np.int64)
    arrays |= {f"{i}.{name}": indices for name, indices in optional.items() if len(indices)}
    return others


def _declared_indices(labels: Labels) -> NDArray[np.int64]:
    return np.flatnonzero(labels.retained_mask(np.zeros(len(labels), bool))).astype(np.int64)


def unpack_plan(header: Mapping[str, Any], arrays: TrackedArrays, size: int) -> tuple[Plan, Labels]:
    """Return the plan and the labels of a file of ``size`` bytes."""
    n, k, n_parts = header["columns"], header["classes"], len(header["parts"])
    if not (is_count(n) and is_count(k) and 0 < n <= size and k <= size):
        raise ModelFileError("it has no columns, or more columns or classes than fit into it")
    reader = StringReader(arrays)
    columns = tuple(range(n)) if header["numbered"] else reader.take(n)
    types = set(map(type, columns))
    is_sorted = types == {str} and all(map(lt, columns, columns[1:]))  # a vocabulary, for example: no need to hash it
    is_valid = header["numbered"] or is_sorted or (types <= {str, int} and len(set(columns)) == n)
    if not is_valid:
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
    """Return a part of the plan; its encodings must be of the kind that its event model takes."""
    check_fields(packed, f"part {i}", {"event": dict}, {"encodings": list, "prototypes": dict})
    event = unpack_event(packed["event"], arrays)
    kind, prototypes = event.encoding.block_kind, None
    encodings = tuple(unpack_encoding(encoding, arrays) for encoding in packed.get("encodings", ()))
    if kind == "codes" and columns:
        encodings = _unpack_levels(i, len(columns), encodings, arrays, reader)
    else:
        if len(encodings) not in (0, len(columns)):
            raise ModelFileError(f"part {i}: {len(encodings)} encodings for {len(columns)} columns")
        encodings = encodings or PlanPart(event, columns).encodings
        prototypes = unpack_encoding(packed["prototypes"], arrays) if "prototypes" in packed else None
    if any(encoding.block_kind != kind for encoding in encodings):
        raise ModelFileError(f"part {i}: an encoding does not hold {kind}, which {event.name} takes")
    width = sum(encoding.width for encoding in encodings)
    if prototypes is not None and not (isinstance(prototypes, Prototypes) and prototypes.prototypes.shape[1] == width):
        raise ModelFileError(f"part {i}: prototypes that do not have {width} scores, as its columns have")
    try:
        part = PlanPart(event, columns, encodings, prototypes)
        part.spec.sizes, part.spec.threshold  # noqa: B018  raises an error if the encodings do not fit the event model
    except InputError as error:
        raise ModelFileError(f"part {i}: {error}") from None
    return part


def _unpack_levels(
    i: int, n_columns: int, others: tuple[Encoding, ...], arrays: TrackedArrays, reader: StringReader
) -> tuple[Encoding, ...]:
    """Return the encodings of columns of codes: levels, and ``others`` from the header."""
    sizes = arrays.integers(f"{i}.sizes", n_columns)
    if min(sizes) < _ENCODING_IN_HEADER or sizes.count(_ENCODING_IN_HEADER) != len(others):
        raise ModelFileError(f"part {i}: the numbers of levels do not match the encodings in the header")
    rest = iter(others)
    starts = np.cumsum([0, *(max(n, 0) for n in sizes)]).tolist()
    declared = np.array(arrays.indices(f"{i}.declared", starts[-1]), np.int64)
    gapless, fixed = (set(arrays.indices(f"{i}.{name}", n_columns)) for name in ("gapless", "fixed"))
    encodings: list[Encoding] = []
    for j, n in enumerate(sizes):
        if n == _ENCODING_IN_HEADER:
            encodings.append(next(rest))
            continue
        labels = _check_ascending(Labels(reader.take(n)), ModelFileError)
        of_column = declared[(declared >= starts[j]) & (declared < starts[j] + n)] - starts[j] if len(declared) else ()
        if j in gapless and labels.values != tuple(range(n)):
            raise ModelFileError(f"part {i}: levels that are not the whole numbers from 0")
        labels = labels.declare(labels.values[at] for at in of_column)
        encodings.append(LevelEncoding(labels, j in gapless, j in fixed))
    return tuple(encodings)


def _check_ascending(labels: Labels, error: type[InputError]) -> Labels:
    """Return labels that are in ascending order, numbers before text, and so distinct."""
    values = labels.values
    types = set(map(type, values))
    keys: Any = values if types <= {str} or types <= {bool, int, float} else [sort_key(value) for value in values]
    if not all(map(lt, keys, keys[1:])):
        raise error("labels or levels are not distinct and in ascending order")
    return labels


def pack_counts(counts: ModelCounts, arrays: Arrays) -> dict[str, Any]:
    """Add the counts to the arrays; offsets follow from the levels."""
    arrays["class_weight"] = counts.class_weight
    for i, tally in enumerate(counts.tallies):
        pack = np.ascontiguousarray if tally.has_open_vocabulary else container.drop_repeats
        arrays |= {f"{i}.{name}": pack(a) for name, a in (tally.arrays() | tally.rounding_residuals()).items()}
    return {"rows": counts.n_rows, "distributions": None, "evidence": False}


def unpack_counts(plan: Plan, labels: Labels, rows: Any, arrays: TrackedArrays) -> ModelCounts:
    _check_rows(rows)
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


def _check_rows(rows: Any) -> None:
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)


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


# Distributions, which a file without counts holds: a name in a closed registry, and arrays that the class checks


def pack_parameters(fitted: FittedModel, detail: str, arrays: Arrays) -> dict[str, Any]:
    """Add what is known without the counts to the arrays; return its entries in the header."""
    distributions = fitted.unadjusted_model.distributions
    packed = [pack_distribution(distribution, arrays, str(i)) for i, distribution in enumerate(distributions)]
    arrays["log_prior"] = fitted.unadjusted_model.log_prior
    if detail == "score":
        return {"rows": None, "distributions": packed, "evidence": False}
    evidence = fitted.column_evidence or {}
    arrays["evidence"] = np.array([evidence.get(name, np.nan) for name in fitted.plan.columns])
    return {"rows": fitted.n_rows, "distributions": packed, "evidence": True}


def unpack_parameters(header: dict[str, Any], arrays: TrackedArrays, plan: Plan, labels: Labels) -> Parameters:
    from candide.distributions.arrays import DistributionShape

    packed, log_prior, rows, k = header["distributions"], arrays.get("log_prior"), header["rows"], len(labels)
    if not isinstance(packed, list) or len(packed) != len(plan.parts):
        raise ModelFileError(f"its header has no distribution for each of the {len(plan.parts)} parts of its plan")
    is_vector = log_prior is not None and log_prior.dtype == np.float64 and log_prior.shape == (k,)
    if log_prior is None or not is_vector or not (log_prior <= 1e-9).all() or np.isneginf(log_prior).all():
        raise ModelFileError(f"array 'log_prior' does not hold the log-probabilities of {k} classes")
    distributions = []
    for i, part in enumerate(plan.parts):
        sizes = part.spec.sizes if part.block_kind == "codes" else ()
        tokens = part.encodings[0] if part.block_kind == "documents" else None
        event = part.event.match_classes(labels)
        shape = DistributionShape(k, part.spec.n_features, part.block_kind, sizes, tokens, part.spec.sets, event)
        distributions.append(unpack_distribution(packed[i], arrays, str(i), shape))
    model = Model(log_prior, tuple(distributions), calibrator=_unpack_calibrator(arrays, k))
    if not header["evidence"]:
        return Parameters(plan, labels, model, rows, None)
    _check_rows(rows)
    evidence = arrays.get("evidence")
    if evidence is None or evidence.shape != (len(plan.columns),):
        raise ModelFileError(f"array 'evidence' does not hold a number for each of {len(plan.columns)} columns")
    pairs = [(name, value) for name, value in zip(plan.columns, evidence.tolist(), strict=True) if value == value]
    return Parameters(plan, labels, model, rows, tuple(sorted(pairs, key=lambda pair: -pair[1])))


def pack_distribution(distribution: "Distribution", arrays: Arrays, prefix: str) -> dict[str, Any]:
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


# Term weights and the calibrator


def pack_term_weights(term_weights: "TermWeights", arrays: Arrays) -> dict[str, Any]:
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
    n_models = term_weights.n_averaged_models
    row_counts = {name: getattr(term_weights, f"n_{name}") for name in _ROW_COUNTS}
    return {**row_counts, "averaged_models": n_models} if n_models > 1 else row_counts


def unpack_term_weights(header: dict[str, Any], arrays: TrackedArrays, plan: Plan, n_classes: int) -> "TermWeights":
    from candide.model.model import TermWeights
    from candide.model.plan import term_groups

    row_counts = check_fields(header, "terms", dict.fromkeys(_ROW_COUNTS, int), {"averaged_models": int})
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
        calibrator=_unpack_calibrator(arrays, n_classes),
        token_weights=tokens if any(each is not None for each in tokens) else (),
        **{f"n_{name}": n for name, n in row_counts.items()},
    )


def _unpack_token_weights(arrays: TrackedArrays, prefix: str, part: PlanPart) -> "TokenWeights | None":
    if not arrays.has(f"{prefix}.weight"):
        return None
    from candide.distributions.token_weights import TokenWeights

    if not part.event.weights_tokens:
        raise ModelFileError(f"array '{prefix}.weight' has token weights, and its part has no tokens")
    try:
        return TokenWeights.from_arrays(PrefixedArrays(arrays, prefix))
    except InputError as error:
        raise ModelFileError(f"{prefix}: {error.problem}", value=error.value) from None


def _unpack_calibrator(arrays: TrackedArrays, n_classes: int) -> "IsotonicCalibrator | None":
    if not arrays.has("calibrator.sizes"):
        return None
    from candide.model.calibration import IsotonicCalibrator

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
