"""Values: settings, event models and priors as JSON, by names in closed registries: a file cannot name code."""

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from itertools import product
from typing import Any, get_args, get_origin

import numpy as np

from candide.data.blocks import ArrayValue
from candide.data.labels import Labels
from candide.data.text_formats import TextFormat
from candide.encoding import Encoding, Grid, Identity, Log
from candide.encoding.scores import Indicators, NormalScore, Prototypes
from candide.errors import CandideError, InputError, ModelFileError
from candide.events import EVENTS, EventModel
from candide.model.fitted import EstimatorRecord
from candide.model.policy import Policy, parse_class_proportions
from candide.model.settings import Settings, find_invalid_setting
from candide.priors import PRIORS, Prior
from candide.registry import Registry
from candide.store.container import Arrays, check_fields, is_count, pack_time, unpack_time
from candide.weighted.terms.base import TERMS

# The classes that a file may name.
ESTIMATORS = (
    "BayesClassifier", "NaiveBayes", "GaussianBayes", "TextNB",
    "GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB",
)  # fmt: skip
_ENCODINGS: dict[str, type[Encoding]] = {
    "grid": Grid, "identity": Identity, "indicators": Indicators, "prototypes": Prototypes, "log": Log,
    "normal_score": NormalScore,
}  # fmt: skip
_REGISTRIES: dict[str, Mapping[str, type]] = {"event": EVENTS, "term": TERMS, "prior": PRIORS, "encoding": _ENCODINGS}
_TIMES = dt.date | dt.time | dt.timedelta
_MIN_ARRAY_LENGTH = 32  # numbers; a shorter sequence is stored in the header
_MAX_DEPTH = 6


def pack_value(value: Any, arrays: Arrays) -> Any:
    """Return a value as JSON: events and priors by name and settings; long sequences go to the arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, EventModel | Prior | Encoding):
        for kind, registry in _REGISTRIES.items():
            names = [registry.name_of(type(value))] if isinstance(registry, Registry) else list(registry)
            name = next((n for n in names if n is not None and registry[n] is type(value)), None)
            if name is not None:
                settings = {f.name: pack_value(getattr(value, f.name), arrays) for f in fields(value)}  # type: ignore[arg-type]
                return {kind: name, "settings": settings}
        what = f"{value!r} is not one of the package's own, and a model file cannot hold it"
        raise InputError(what, value=value, remedy="pickle the model")
    if isinstance(value, _TIMES):
        return {"time": pack_time(value)}
    if isinstance(value, ArrayValue):
        array_name = f"values.{len(arrays)}"
        arrays[array_name] = value.array
        return {"array_value": array_name}
    if isinstance(value, Mapping):
        return {"pairs": [[pack_value(k, arrays), pack_value(v, arrays)] for k, v in value.items()]}
    try:
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    except TypeError:
        what = f"{value!r} is a {type(value).__name__}, which a model file cannot hold"
        raise InputError(what, value=value) from None
    if len(values) < _MIN_ARRAY_LENGTH or not all(isinstance(v, int | float) for v in values):
        return {"sequence": [pack_value(v, arrays) for v in values]}
    array_name = f"sequence.{len(arrays)}"
    is_whole = all(type(v) is int and abs(v) < 1 << 62 for v in values)
    arrays[array_name] = np.asarray(values, np.int64 if is_whole else np.float64)
    return {"array": array_name}


def unpack_value(packed: Any, arrays: Any, depth: int = 0) -> Any:
    """Return what :func:`pack_value` was given."""
    if depth > _MAX_DEPTH:
        raise ModelFileError("settings are nested too deeply")
    if packed is None or isinstance(packed, str | int | float | bool):
        return packed
    if not isinstance(packed, dict):
        raise ModelFileError(f"a setting is a {type(packed).__name__}; expected a plain value or an object")
    for kind, registry in _REGISTRIES.items():
        if kind in packed:
            check_fields(packed, kind, {kind: str, "settings": dict})
            return _unpack_named(kind, registry, packed, arrays, depth)
    if "pairs" in packed:
        pairs = check_fields(packed, "pairs", {"pairs": list})["pairs"]
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError("expected settings by name as a list of pairs [name, value]")
        keys = [unpack_value(k, arrays, _MAX_DEPTH - 1) for k, _ in pairs]  # plain values, or short tuples
        parts = [v for k in keys for v in (k if isinstance(k, tuple) else (k,))]
        if not all(isinstance(v, str | int | float | None) for v in parts):
            raise ModelFileError("a setting by name has a name that is neither text nor a number, nor a tuple of these")
        return dict(zip(keys, (unpack_value(v, arrays, depth + 1) for _, v in pairs), strict=True))
    if "time" in packed:
        return unpack_time(check_fields(packed, "time", {"time": list})["time"])
    if "array_value" in packed:
        name = check_fields(packed, "array_value", {"array_value": str})["array_value"]
        if (array := arrays.get(name)) is None or not name.startswith("values."):
            raise ModelFileError(f"there is no array {name!r}")
        return ArrayValue(array)
    if "array" in packed:
        name = check_fields(packed, "array", {"array": str})["array"]
        array = arrays.get(name)
        if array is None or not name.startswith("sequence.") or array.ndim != 1 or array.dtype not in (float, np.int64):
            raise ModelFileError(f"there is no sequence {name!r}")
        return tuple(array.tolist())
    values = check_fields(packed, "sequence", {"sequence": list})["sequence"]
    return tuple(unpack_value(v, arrays, depth + 1) for v in values)


def _unpack_named(kind: str, registry: Mapping[str, Any], packed: dict[str, Any], arrays: Any, depth: int) -> Any:
    name = packed[kind]
    if name not in registry:
        raise ModelFileError(f"unknown {kind} {name!r}")
    declared = {field.name: field for field in fields(registry[name])}
    # A setting that is newer than the file has its default.
    required = [key for key, field in declared.items() if key in packed["settings"] or field.default is MISSING]
    settings = check_fields(packed["settings"], f"{kind} {name!r}", dict.fromkeys(required, object))
    values = {key: unpack_value(value, arrays, depth + 1) for key, value in settings.items()}
    if not all(_has_declared_type(declared[key], value) for key, value in values.items()):
        raise ModelFileError(f"{kind} {name!r}: a setting has the wrong type")
    try:
        value = registry[name](**values)
        if isinstance(value, EventModel):
            value._resolve(None)  # raises an error if it does not accept its own prior
    except (CandideError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{kind} {name!r}: {error}") from None
    return value


def _has_declared_type(field: Field, value: Any) -> bool:
    if field.name == "prior":
        return value is None or isinstance(value, Prior) or (isinstance(value, str) and value in PRIORS)
    types = _declared_types(field.type)
    if isinstance(value, ArrayValue):
        return ArrayValue in types
    if isinstance(value, tuple):
        plain = [v for item in value for v in (item if isinstance(item, tuple) else (item,))]
        return bool(types & {tuple, Sequence}) and all(_is_of_type(v, types - {type(None)}) for v in plain)
    return _is_of_type(value, types)


def _declared_types(declared: Any) -> set[Any]:
    """Return the types named in a declaration: for ``float | Sequence[float]``, float and Sequence."""
    return {get_origin(declared) or declared}.union(*map(_declared_types, get_args(declared)))


def _is_of_type(value: Any, types: set[Any]) -> bool:
    if Any in types:
        return value is None or isinstance(value, str | int | float | bool | _TIMES)
    if value is None or isinstance(value, str | bool):
        return type(value) in types
    return _is_number(value) and (float in types or (int in types and type(value) is int))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


_POLICY = {  # classes are codes
    "costs": dict, "threshold": float, "positive": int, "abstain_below": float, "abstain_cost": float,
    "class_prior": dict, "log_odds": float,
}  # fmt: skip


def pack_policy(policy: Policy, labels: Labels, arrays: Arrays) -> dict[str, Any]:
    """Return a policy as JSON: costs by true and predicted class in one sequence; proportions in class order."""
    rule = policy.make_rule(labels)
    numbers = {name: getattr(policy, name) for name in ("threshold", "abstain_below", "abstain_cost", "log_odds")}
    values: dict[str, Any] = {name: float(value) for name, value in numbers.items() if value is not None}
    if not np.isfinite(values.get("log_odds", 0.0)):
        del values["log_odds"]
    if rule.costs is not None:
        values["costs"] = tuple(map(float, rule.costs.ravel()))
    values["positive"] = rule.positive
    if policy.class_prior is not None and policy.has_shifted_prior:
        values["class_prior"] = tuple(parse_class_proportions(policy.class_prior, labels).tolist())
    return {name: pack_value(value, arrays) for name, value in values.items() if value is not None}


def unpack_policy(packed: Any, arrays: Any, labels: Labels) -> Policy:
    """Return a policy, checked against the classes of the file."""
    values = {k: unpack_value(v, arrays) for k, v in check_fields(packed, "policy", {}, _POLICY).items()}
    k = len(labels)
    for name, size in {"costs": k * k, "class_prior": k}.items():
        numbers = values.get(name, (0.0,) * size)
        if not (isinstance(numbers, tuple) and len(numbers) == size and all(map(_is_number, numbers))):
            raise ModelFileError(f"policy: {name} does not hold {size} numbers")
    if not 0 <= values.get("positive", 0) < k:
        raise ModelFileError(f"policy: there is no class {values['positive']}", value=values["positive"])
    try:
        if "costs" in values:
            values["costs"] = dict(zip(product(labels.values, labels.values), values["costs"], strict=True))
        if "positive" in values:
            values["positive"] = labels.values[values["positive"]]
        if "class_prior" in values:
            values["class_prior"] = dict(zip(labels.values, values["class_prior"], strict=True))
            parse_class_proportions(values["class_prior"], labels)
        return Policy(**values)
    except CandideError as error:
        raise ModelFileError(f"policy: {error}") from None


def pack_settings(settings: Settings, arrays: Arrays) -> dict[str, Any]:
    return {field.name: pack_value(getattr(settings, field.name), arrays) for field in fields(settings)}


def unpack_settings(packed: Any, arrays: Any, record: type[Settings] = Settings) -> Settings:
    """Return settings that pass the checks of their fields; whether they fit the counts shows when they are used."""
    names = [field.name for field in fields(record)]
    if not isinstance(packed, dict) or not packed.keys() <= set(names):
        raise ModelFileError(f"settings: expected an object with the fields {names}")
    settings = record(**{name: unpack_value(value, arrays) for name, value in packed.items()})
    if (invalid := find_invalid_setting(settings)) is not None:
        name, value = invalid
        raise ModelFileError(f"the setting {name!r} is not valid: {value!r}", value=value)
    return settings


def unpack_estimator(packed: Any, arrays: Any) -> EstimatorRecord:
    """Return the estimator that a file names; its parameters are checked when it is made."""
    packed = check_fields(packed, "estimator", {"name": str, "params": dict, "n_features": int})
    if packed["name"] not in ESTIMATORS:
        raise ModelFileError(f"unknown estimator {packed['name'][:20]!r}")
    if not is_count(n := packed["n_features"]):
        raise ModelFileError(f"estimator: n_features is {n}; expected a whole number >= 0", value=n)
    params = {name: unpack_value(value, arrays) for name, value in packed["params"].items()}
    return EstimatorRecord(packed["name"], params, n)


def unpack_text_formats(packed: dict[str, Any]) -> dict[str, TextFormat]:
    known, formats = {field.name for field in fields(TextFormat)}, {}
    for name, settings in packed.items():
        where = f"column {name[:40]!r}"
        if not isinstance(settings, dict) or not settings.keys() <= known:
            raise ModelFileError(f"{where}: expected a text format with the fields {sorted(known)}")
        markers = settings.get("missing", [])
        texts = [*markers, *({**settings, "missing": ""}.values())] if isinstance(markers, list) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise ModelFileError(f"{where}: a field of its text format is not text")
        try:
            formats[name] = TextFormat(**{**settings, "missing": tuple(markers)})
        except ValueError as error:
            raise ModelFileError(f"{where}: {error}") from None
    return formats


def unpack_encoding(packed: Any, arrays: Any) -> Encoding:
    if not isinstance(encoding := unpack_value(packed, arrays), Encoding):
        raise ModelFileError(f"an encoding is a {type(encoding).__name__}; expected one of {', '.join(_ENCODINGS)}")
    return encoding


def unpack_event(packed: Any, arrays: Any) -> EventModel:
    if not isinstance(event := unpack_value(packed, arrays), EventModel):
        raise ModelFileError("a part of the plan has no event model")
    return event
