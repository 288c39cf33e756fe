"""Model files: the arrays of the counts, and a JSON header that describes them.

No pickle and no class path: events, priors and distributions are looked up by name in closed registries. A file stores
what was counted; distributions are estimated again after loading. The format: docs/reference/model-file.md.
"""

import hashlib
import mmap
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from candide import __version__
from candide.errors import InputError, InputTypeError, ModelFileError, unknown_name_error
from candide.files import check_output, lock_file, write_atomically
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.store import fitted_state, values
from candide.store.container import Arrays, TrackedArrays, check_fields, is_model_file, pack_container, unpack_container

FORMAT = 1
DETAILS = ("tally", "explain", "score")
_UNHASHED_FIELDS = {"format", "version", "provenance", "estimator"}  # that do not change what a model predicts
MAX_READ_BYTES = 1 << 26  # a longer file is mapped, and its arrays are read when they are used
_HEADER = {
    "format": int, "version": str, "detail": str, "target": (str, type(None)), "provenance": dict, "columns": int,
    "numbered": bool, "classes": int, "parts": list, "settings": (dict, type(None)), "rows": (int, type(None)),
    "distributions": (list, type(None)), "evidence": bool,
}  # fmt: skip
_OPTIONAL = {"estimator": dict, "text_formats": dict, "na": list, "dates": list, "times": list, "terms": dict,
             "policy": dict}  # fmt: skip
ModelLike = Any  # a FittedModel, an estimator of Candide, or the path of a model file


def load_fitted(model: ModelLike) -> FittedModel:
    """Return the fitted model of an estimator or a model file."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    fitted = getattr(model, "fitted_", model)
    if isinstance(fitted, FittedModel):
        return fitted
    if hasattr(model, "fit"):
        raise InputError(f"this {type(model).__name__} is not fitted yet", remedy="call fit(X, y)")
    remedy = "pass a fitted estimator, or the path of a model file"
    raise InputTypeError(f"expected a model, got {type(model).__name__}", remedy=remedy)


def resolve_plan(like: Any) -> tuple[Plan, FittedModel | None]:
    """Return the plan that ``like`` is or has, and its model if it is one."""
    fitted = None if isinstance(like, Plan) else load_fitted(like)
    return (like, None) if fitted is None else (fitted.counts.plan, fitted)


def refuse_plan_options(events: Any, drop: Sequence[str]) -> None:
    """Refuse options on how columns are counted together with ``like``, which determines it."""
    if events != "auto" or drop:
        what = "like determines the columns and how they are counted"
        raise InputError(what, value=list(drop) or events, remedy="leave events and drop out, or like")


def resolve_target(fitted: FittedModel, target: str | None) -> str:
    """Return the label column: the given one, or else the model's."""
    name = target or fitted.target
    if name is None:
        raise InputError("the model does not name its label column", remedy="name it with --target (target=...)")
    return name


def make_provenance(source: str, rows: int, options: Sequence[str] = (), *, now: float | None = None) -> dict[str, str]:
    """Return where a model came from: source, rows, date, version, and the command-line options.

    The password of a database address is left out. The date is that of ``SOURCE_DATE_EPOCH`` if it is set, so that a
    build can be repeated.
    """
    from candide.engines.reading import redact_address

    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = now if now is not None else float(epoch) if epoch.isdecimal() else time.time()
    return {
        "source": "standard input" if source == "-" else redact_address(source),
        "fitted_rows": str(rows),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
        "version": f"candide {__version__}",
        "options": shlex.join(options),
    }


# Writing


def save(
    fitted: FittedModel,
    path: str | os.PathLike,
    *,
    detail: str | None = None,
    provenance: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Write a model file, completely or not at all; replace a file that is not a model only with ``force``.

    ``detail`` is "tally" (the counts: the file can be merged, updated and estimated again), "score" (the parameters
    alone: it predicts), or "explain" (the parameters and the evidence of each column). ``provenance`` is text by name,
    such as a date and a source, for the header; without it the file does not depend on when it was written. The new
    file is read back before it replaces an old one.
    """
    check_output(path, is_own_file=is_model_file, force=force)
    pieces = pack_container(*_pack(fitted, detail, provenance))
    write_atomically(path, pieces, check=lambda name: _check_readable(_open_bytes(name, MAX_READ_BYTES)[0]))


def dumps(model: ModelCounts | FittedModel, *, detail: str | None = None) -> bytes:
    """Return the bytes of a model file; for counts, of a file without settings."""
    if isinstance(model, ModelCounts):
        arrays: Arrays = {}
        header = _base_header("tally", None, {}) | fitted_state.pack_plan(model.plan, model.labels, arrays)
        header |= {"settings": None, **fitted_state.pack_counts(model, arrays)}
    else:
        header, arrays = _pack(model, detail, None)
    file = b"".join(bytes(piece) for piece in pack_container(header, arrays))
    _check_readable(memoryview(file))
    return file


def model_digest(fitted: FittedModel) -> bytes:
    """Return a hash of all that determines predictions, whichever release or estimator wrote the model."""
    header, arrays = _pack(fitted, None, {})
    digest = hashlib.sha256()
    for piece in pack_container({k: v for k, v in header.items() if k not in _UNHASHED_FIELDS}, arrays):
        digest.update(piece)
    return digest.digest()


def update_file(
    path: str | os.PathLike, change: Callable[[FittedModel], FittedModel], *, wait: float = 30.0
) -> FittedModel:
    """Load, change and save a model under its lock, so that no process undoes the change of another."""
    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file", value=os.fspath(path))
    with lock_file(path, wait):
        new = change(load(path))
        save(new, path)
    return new


def _check_readable(file: memoryview) -> None:
    try:
        _unpack(file, verify=True)
    except InputError as error:
        what = f"this model cannot be saved, because the file could not be read again: {error.problem}"
        raise InputError(what, column=error.column, value=error.value, remedy=error.remedy or "") from None


def _pack(
    fitted: FittedModel, detail: str | None, provenance: Mapping[str, str] | None
) -> tuple[dict[str, Any], Arrays]:
    detail = detail or ("tally" if fitted.has_counts else "score" if fitted.n_rows is None else "explain")
    if detail not in DETAILS:
        raise unknown_name_error("detail", detail, DETAILS)
    notes = dict(fitted.provenance if provenance is None else provenance)
    if not all(isinstance(text, str) for item in notes.items() for text in item):
        what, remedy = "provenance holds values that are not text", "pass names and values as text"
        raise InputError(what, value=notes, remedy=remedy)
    arrays: Arrays = {}
    has_counts = detail == "tally"
    header = _base_header(detail, fitted.target, notes)
    header |= fitted_state.pack_plan(fitted.counts.plan if has_counts else fitted.plan, fitted.labels, arrays)
    header["settings"] = values.pack_settings(fitted.settings, arrays)
    if has_counts:
        header |= fitted_state.pack_counts(fitted.counts, arrays)
    else:
        header |= fitted_state.pack_parameters(fitted, detail, arrays)
    if fitted.estimator is not None:
        params = {name: values.pack_value(value, arrays) for name, value in fitted.estimator.params.items()}
        header["estimator"] = {**vars(fitted.estimator), "params": params}
    if fitted.policy:
        header["policy"] = values.pack_policy(fitted.policy, fitted.labels, arrays)
    if fitted.term_weights is not None:
        # Without counts the distributions include the token weights.
        term_weights = fitted.term_weights if has_counts else replace(fitted.term_weights, token_weights=())
        header["terms"] = fitted_state.pack_term_weights(term_weights, arrays)
    optional: dict[str, Any] = {"na": list(fitted.na), "dates": sorted(fitted.dates), "times": sorted(fitted.times)}
    optional["text_formats"] = {name: text_format.settings() for name, text_format in fitted.text_formats.items()}
    return header | {name: value for name, value in optional.items() if value}, arrays


def _base_header(detail: str, target: str | None, provenance: Mapping[str, str]) -> dict[str, Any]:
    versions = {"format": FORMAT, "version": __version__}
    return {**versions, "detail": detail, "target": target, "provenance": dict(provenance)}


# Reading


def loads(file: bytes) -> ModelCounts | FittedModel:
    """Return what :func:`dumps` was given."""
    fitted, is_counts = _unpack(memoryview(file), verify=True)
    return fitted.counts if is_counts else fitted


def load(path: str | os.PathLike, *, verify: bool = False, read_whole: int = MAX_READ_BYTES) -> FittedModel:
    """Read a model file; anything wrong with it is a ModelFileError.

    A file of up to ``read_whole`` bytes (64 MB) is read and checked completely. A longer one is mapped: its header and
    shapes are checked, its numbers are read when they are used, and ``verify=True`` checks them too.
    """
    name = os.fspath(path)
    try:
        file, is_read = _open_bytes(name, read_whole)
        return _unpack(file, verify=verify or is_read)[0]
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error.problem}", value=error.value) from None
    except FileNotFoundError:
        raise ModelFileError(f"{name}: no such file", value=name) from None
    except OSError as error:
        raise ModelFileError(f"{name}: {(error.strerror or str(error)).lower()}", value=name) from None


def _open_bytes(name: str, read_whole: int) -> tuple[memoryview, bool]:
    """Return the bytes of a file, and whether they were read rather than mapped."""
    with open(name, "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size > read_whole:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), False
        buffer = np.fromfile(file, np.uint8)  # NumPy requests large pages, which are filled faster
        buffer.flags.writeable = False
        return memoryview(buffer), True  # type: ignore[arg-type]


def _unpack(file: memoryview, *, verify: bool) -> tuple[FittedModel, bool]:
    """Return the model, and whether the file holds counts alone."""
    header, stored = unpack_container(file, verify=verify)
    if header.get("format") != FORMAT:
        format_ = str(header.get("format"))[:20]
        what = f"format {format_}; this version of Candide ({__version__}) reads {FORMAT}"
        raise ModelFileError(what, value=format_)
    header = check_fields(header, "the header", _HEADER, _OPTIONAL)
    detail, provenance = header["detail"], header["provenance"]
    if detail not in DETAILS:
        raise ModelFileError(f"unknown detail {detail[:20]!r} in its header; expected one of {', '.join(DETAILS)}")
    if not all(isinstance(text, str) for text in provenance.values()):
        raise ModelFileError("the provenance in its header holds values that are not text")
    arrays = TrackedArrays(stored, verify)
    plan, labels = fitted_state.unpack_plan(header, arrays, len(file))
    is_counts = header["settings"] is None and detail == "tally"
    fields = {"target": header["target"], "provenance": provenance, "na": tuple(header.get("na", ()))}
    if "estimator" in header:
        fields["estimator"] = values.unpack_estimator(header["estimator"], arrays)
    if not all(isinstance(text, str) for text in fields["na"]):
        raise ModelFileError("the field 'na' of its header holds values that are not text")
    for field in ("dates", "times"):
        names = header.get(field, [])
        if unknown := [name for name in names if name not in plan.columns]:
            raise ModelFileError(f"the field {field!r} of its header names an unknown column {str(unknown[0])[:20]!r}")
        fields[field] = frozenset(names)
    if "text_formats" in header:
        fields["text_formats"] = values.unpack_text_formats(header["text_formats"])
    if not is_counts:
        fields["settings"] = values.unpack_settings(header["settings"], arrays)
    if "policy" in header:
        fields["policy"] = values.unpack_policy(header["policy"], arrays, labels)
    if "terms" in header:
        fields["term_weights"] = fitted_state.unpack_term_weights(header["terms"], arrays, plan, len(labels))
    if detail == "tally":
        fitted = FittedModel(fitted_state.unpack_counts(plan, labels, header["rows"], arrays), **fields)
    else:
        parameters = fitted_state.unpack_parameters(header, arrays, plan, labels)
        fitted = FittedModel(None, **fields, parameters=parameters)
    arrays.check_all_used()
    return fitted, is_counts
