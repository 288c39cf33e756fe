"""Values: settings, event models and priors as JSON. By name, looked up in closed tables: a file names no code.

>>> import json
>>> from candide.priors import NormalInverseGamma
>>> arrays = {}
>>> packed = pack_value({"gaussian": NormalInverseGamma(kappa=0.1)}, arrays)
>>> unpack_value(json.loads(json.dumps(packed)), arrays)
{'gaussian': NormalInverseGamma(mean=None, kappa=0.1, a=1.5, b=None)}
>>> unpack_value({"prior": "os.system", "settings": {}}, arrays)
Traceback (most recent call last):
    ...
candide.errors.ModelFileError: unknown prior 'os.system'
"""

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field
from dataclasses import fields as fields_of
from typing import Any, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels
from candide.data.text_formats import TextFormat
from candide.encoding import Encoding
from candide.errors import CandideError, InputError, ModelFileError
from candide.events import ESTIMATES, EVENTS, EventModel
from candide.model.fitted import EstimatorRecord
from candide.model.policy import Policy, parse_class_proportions
from candide.model.settings import Settings
from candide.priors import PRIORS, Prior
from candide.registry import Registry
from candide.store.container import check_fields, is_count
from candide.store.strings import pack_time, unpack_time
from candide.weighted.terms.registry import TERMS

# The classes that a file may name.
ESTIMATORS = (
    "BayesClassifier", "NaiveBayes", "GaussianBayes", "TextNB",
    "GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB",
)  # fmt: skip
_ENCODINGS: Registry[Encoding] = Registry(
    "candide.encoding",
    {
        "grid": "Grid",
        "identity": "Identity",
        "indicators": "Indicators",
        "prototypes": "Prototypes",
        "log": "Log",
        "normal_score": "NormalScore",
    },
)
_REGISTRIES: tuple[tuple[str, Mapping[str, type]], ...] = (
    ("event", EVENTS),
    ("term", TERMS),
    ("prior", PRIORS),
    ("encoding", _ENCODINGS),
)
_TIMES = dt.date | dt.time | dt.timedelta
_MIN_ARRAY_LENGTH = 32  # numbers in a sequence from which it is kept as an array
_MAX_DEPTH = 6
_SEQUENCES = (np.float64, np.int64)


def pack_value(value: Any, arrays: dict[str, NDArray]) -> Any:
    """Plain values as they are; events and priors by name and settings; long sequences among the arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, EventModel | Prior | Encoding):
        return _pack_named(value, arrays)
    if isinstance(value, _TIMES):
        return {"time": pack_time(value)}
    if isinstance(value, Mapping):
        return {"pairs": [[pack_value(k, arrays), pack_value(v, arrays)] for k, v in value.items()]}
    try:
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    except TypeError:
        raise InputError(f"{value!r} is a {type(value).__name__}, which cannot be kept in a model file") from None
    if len(values) < _MIN_ARRAY_LENGTH or not all(isinstance(v, int | float) for v in values):
        return {"sequence": [pack_value(v, arrays) for v in values]}
    name = f"sequence.{len(arrays)}"
    whole = all(type(v) is int and abs(v) < 1 << 62 for v in values)
    arrays[name] = np.asarray(values, np.int64 if whole else np.float64)
    return {"array": name}


def _pack_named(value: EventModel | Prior | Encoding, arrays: dict[str, NDArray]) -> dict[str, Any]:
    if isinstance(value, Prior):
        kind, name = "prior", next((n for n, c in PRIORS.items() if c is type(value)), None)
    else:
        some = ("event", "term") if isinstance(value, EventModel) else ("encoding",)
        found = ((kind, dict(_REGISTRIES)[kind].name_of(type(value))) for kind in some)  # type: ignore[attr-defined]
        kind, name = next(((kind, name) for kind, name in found if name), (some[0], None))
    if name is None:
        raise InputError(
            f"{value!r} is not one of the package's own; such a model cannot be kept in a model file (pickle keeps it)"
        )
    settings = {f.name: pack_value(getattr(value, f.name), arrays) for f in fields_of(value)}  # type: ignore[arg-type]
    return {kind: name, "settings": settings}


def unpack_value(packed: Any, arrays: Any, depth: int = 0) -> Any:
    """What :func:`pack` was given."""
    if depth > _MAX_DEPTH:
        raise ModelFileError("settings nested too deep")
    if packed is None or isinstance(packed, str | int | float | bool):
        return packed
    if not isinstance(packed, dict):
        raise ModelFileError(f"a setting is a {type(packed).__name__}; expected a plain value or an object")
    for kind, table in _REGISTRIES:
        if kind in packed:
            return _build_named(kind, table, check_fields(packed, kind, {kind: str, "settings": dict}), arrays, depth)
    if "pairs" in packed:
        pairs = check_fields(packed, "pairs", {"pairs": list})["pairs"]
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError("settings by name: a list of pairs [name, value] is expected")
        keys = [unpack_value(k, arrays, _MAX_DEPTH - 1) for k, _ in pairs]  # plain values, or a few of them
        parts = [v for k in keys for v in (k if isinstance(k, tuple) else (k,))]
        if not all(isinstance(v, str | int | float | None) for v in parts):
            raise ModelFileError("a setting by name has a name that is neither text nor a number, nor several of them")
        return dict(zip(keys, (unpack_value(v, arrays, depth + 1) for _, v in pairs), strict=True))
    if "time" in packed:
        return unpack_time(check_fields(packed, "time", {"time": list})["time"])
    if "array" in packed:
        name = check_fields(packed, "array", {"array": str})["array"]
        array = arrays.get(name)
        if array is None or not name.startswith("sequence.") or array.ndim != 1 or array.dtype not in _SEQUENCES:
            raise ModelFileError(f"there is no sequence {name!r}")
        return tuple(array.tolist())
    values = check_fields(packed, "sequence", {"sequence": list})["sequence"]
    return tuple(unpack_value(v, arrays, depth + 1) for v in values)


def _build_named(kind: str, table: Mapping[str, Any], packed: dict[str, Any], arrays: Any, depth: int) -> Any:
    name = packed[kind]
    if name not in table:
        raise ModelFileError(f"unknown {kind} {name!r}")
    known = {f.name: f for f in fields_of(table[name])}
    # A setting that was not there yet when the file was written has its default.
    asked = [key for key, one in known.items() if key in packed["settings"] or one.default is MISSING]
    settings = check_fields(packed["settings"], f"{kind} {name!r}", dict.fromkeys(asked, object))
    values = {key: unpack_value(value, arrays, depth + 1) for key, value in settings.items()}
    if not all(_is_of_declared_type(known[key], value) for key, value in values.items()):
        raise ModelFileError(f"{kind} {name!r}: a setting is of the wrong type")
    try:
        built = table[name](**values)
        if isinstance(built, EventModel):
            built._resolve(None)  # its own prior must be one it takes
    except (CandideError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{kind} {name!r}: {error}") from None
    return built


def _is_of_declared_type(known: Field, value: Any) -> bool:
    """Whether a value is of the type that a setting is declared with."""
    if known.name == "prior":
        return value is None or isinstance(value, Prior) or (isinstance(value, str) and value in PRIORS)
    types = _declared_types(known.type)
    if isinstance(value, tuple):
        plain = [v for one in value for v in (one if isinstance(one, tuple) else (one,))]
        return bool(types & {tuple, Sequence}) and all(_is_of_type(v, types - {type(None)}) for v in plain)
    return _is_of_type(value, types)


def _declared_types(declared: Any) -> set[Any]:
    """The types named in a declaration: of ``float | Sequence[float]``, float and Sequence."""
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
    "costs": dict, "threshold": float, "positive": int, "abstain_below": float, "referral": float, "class_prior": dict,
    "log_odds": float,
}  # fmt: skip


def pack_policy(policy: Policy, labels: Labels, arrays: dict[str, NDArray]) -> dict[str, Any]:
    """A policy: costs as true class, class given, cost, one after another; shares in the order of the classes."""
    known: dict[str, Any] = {name: getattr(policy, name) for name in ("threshold", "abstain_below", "referral")}
    known["log_odds"] = policy.log_odds if policy.log_odds is not None and np.isfinite(policy.log_odds) else None
    rule = policy.make_rule(labels)
    if policy.costs is not None:
        assert rule.costs is not None
        known["costs"] = tuple(map(float, rule.costs.ravel()))
    known["positive"] = rule.positive
    if policy.class_prior is not None and policy.has_shifted_prior:
        known["class_prior"] = tuple(parse_class_proportions(policy.class_prior, labels).tolist())
    numbers = {
        name: value if isinstance(value, tuple | int) else float(value)
        for name, value in known.items()
        if value is not None
    }
    return {name: pack_value(value, arrays) for name, value in numbers.items()}


def unpack_policy(packed: Any, arrays: Any, labels: Labels) -> Policy:
    """A policy that suits the classes of the file."""
    known = check_fields(packed, "policy", {name: kind for name, kind in _POLICY.items() if name in packed})
    found, k = {name: unpack_value(value, arrays) for name, value in known.items()}, len(labels)
    shapes = {"costs": k * k, "class_prior": k}
    for name, size in shapes.items():
        values = found.get(name, (0.0,) * size)
        if not (isinstance(values, tuple) and len(values) == size and all(map(_is_number, values))):
            raise ModelFileError(f"policy: {name} does not hold {size} numbers")
    if not 0 <= found.get("positive", 0) < k:
        raise ModelFileError(f"policy: there is no class {found['positive']}", value=found["positive"])
    try:
        if "costs" in found:
            pairs = ((true, given) for true in labels.values for given in labels.values)
            found["costs"] = dict(zip(pairs, found["costs"], strict=True))
        if "positive" in found:
            found["positive"] = labels.values[found["positive"]]
        if "class_prior" in found:
            found["class_prior"] = dict(zip(labels.values, found["class_prior"], strict=True))
            parse_class_proportions(found["class_prior"], labels)
        return Policy(**found)
    except CandideError as error:
        raise ModelFileError(f"policy: {error}") from None


def pack_settings(settings: Settings, arrays: dict[str, NDArray]) -> dict[str, Any]:
    return {one.name: pack_value(getattr(settings, one.name), arrays) for one in fields_of(settings)}


def unpack_settings(packed: Any, arrays: Any) -> Settings:
    """Settings of the right types; whether they suit the counts is found out when they are used."""
    known = [one.name for one in fields_of(Settings)]
    if not isinstance(packed, dict) or not packed.keys() <= set(known):
        raise ModelFileError(f"settings: an object with the fields {known} is expected")
    found = Settings(**{name: unpack_value(value, arrays) for name, value in packed.items()})
    if found.select is not None and not (
        found.select == "evidence" or (type(found.select) is int and found.select >= 1)
    ):
        raise ModelFileError(
            f"the setting 'select' is {found.select!r}; expected a whole number >= 1 or 'evidence'", value=found.select
        )
    for how in found.estimate.values() if isinstance(found.estimate, dict) else (found.estimate,):
        if not isinstance(how, str) or how not in ESTIMATES:
            raise ModelFileError(f"unknown estimate {how!r}")
    for prior in found.param_priors.values() if isinstance(found.param_priors, dict) else (found.param_priors,):
        if not (prior is None or isinstance(prior, Prior) or (isinstance(prior, str) and prior in PRIORS)):
            raise ModelFileError(f"unknown prior {prior!r}")
    shares = found.class_prior
    if isinstance(shares, dict | tuple):
        numbers = shares.values() if isinstance(shares, dict) else shares
        good = all(_is_number(v) for v in numbers)
    else:
        good = (
            shares is None
            or isinstance(shares, Prior)
            or (isinstance(shares, str) and shares in ("empirical", "uniform", *PRIORS))
        )
    if not good:
        raise ModelFileError("unknown class prior")
    return found


def pack_estimator(record: EstimatorRecord, arrays: dict[str, NDArray]) -> dict[str, Any]:
    params = {name: pack_value(value, arrays) for name, value in record.params.items()}
    return {"name": record.name, "params": params, "n_features": record.n_features}


def unpack_estimator(packed: Any, arrays: Any) -> EstimatorRecord:
    """The estimator that a file names; whether the parameters are its own is found out when it is made."""
    packed = check_fields(packed, "estimator", {"name": str, "params": dict, "n_features": int})
    if packed["name"] not in ESTIMATORS:
        raise ModelFileError(f"unknown estimator {packed['name'][:20]!r}")
    if not is_count(packed["n_features"]):
        raise ModelFileError(
            f"estimator: n_features is {packed['n_features']}; expected a whole number >= 0", value=packed["n_features"]
        )
    params = {name: unpack_value(value, arrays) for name, value in packed["params"].items()}
    return EstimatorRecord(packed["name"], params, packed["n_features"])


def unpack_text_formats(packed: dict[str, Any]) -> dict[str, TextFormat]:
    """How the columns that a file names are spelled."""
    known, out = {one.name for one in fields_of(TextFormat)}, {}
    for name, held in packed.items():
        if not isinstance(held, dict) or not held.keys() <= known:
            raise ModelFileError(f"column {name[:40]!r}: a spelling with the fields {sorted(known)} is expected")
        words = held.get("missing", [])
        if not (
            isinstance(words, list) and all(isinstance(v, str) for v in [*words, *({**held, "missing": ""}.values())])
        ):
            raise ModelFileError(f"column {name[:40]!r}: a spelling holds what is not text")
        try:
            out[name] = TextFormat(**{**held, "missing": tuple(words)})
        except ValueError as error:
            raise ModelFileError(f"column {name[:40]!r}: {error}") from None
    return out


def unpack_encoding(packed: Any, arrays: Any) -> Encoding:
    encoding = unpack_value(packed, arrays)
    if not isinstance(encoding, Encoding):
        raise ModelFileError(f"an encoding is a {type(encoding).__name__}; expected one of {', '.join(_ENCODINGS)}")
    return encoding


def unpack_event(packed: Any, arrays: Any) -> EventModel:
    event = unpack_value(packed, arrays)
    if not isinstance(event, EventModel):
        raise ModelFileError("a part of the plan without an event model")
    return event
