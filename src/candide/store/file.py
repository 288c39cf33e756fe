"""Model files: the arrays of the counts, and a JSON header that describes them.

No pickle and no class path: events, priors and distributions are looked up by name in closed registries. A file stores
what was counted; distributions are estimated again after loading, so that a loaded model cannot contradict itself. The
format is described in docs/reference/model-file.md.

>>> import tempfile
>>> from candide.demo import garden
>>> path = os.path.join(tempfile.mkdtemp(), "garden.candide")
>>> save(FittedModel(garden()), path)
>>> load(path).labels.values
('lavender', 'sage', 'thyme')
>>> update_file(path, lambda fitted: fitted + fitted).counts.n_rows
600
>>> loads(dumps(garden())).n_rows  # counts alone: what one machine counts and another adds
300
"""

import hashlib
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from candide import __version__
from candide.errors import InputError, ModelFileError, unknown_name_error
from candide.files import check_output, lock_file, write_atomically
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel, Parameters
from candide.model.model import Model
from candide.model.plan import Plan
from candide.store import plans, values
from candide.store.container import check_fields, is_count, is_model_file, pack_container, unpack_container

FORMAT = 1
DETAILS = ("tally", "explain", "score")
_UNHASHED_FIELDS = {"format", "version", "provenance", "estimator"}  # that do not change what a model predicts
MAX_READ_BYTES = 1 << 26  # a longer file is mapped, and its arrays are read when they are used


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
    write_atomically(path, pack_container(*_pack(fitted, detail, provenance)), check=_check_file)


def dumps(model: ModelCounts | FittedModel, *, detail: str | None = None) -> bytes:
    """Return the bytes of a model file; for counts, of a file without settings."""
    if isinstance(model, ModelCounts):
        arrays: plans.Arrays = {}
        header = _base_header("tally", None, {}) | plans.pack_plan(model.plan, model.labels, arrays)
        header |= {"settings": None, **_pack_counts(model, arrays)}
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
    except OSError as error:
        raise ModelFileError(f"{name}: {(error.strerror or str(error)).lower()}", value=name) from None


def update_file(
    path: str | os.PathLike, change: Callable[[FittedModel], FittedModel], *, wait: float = 30.0
) -> FittedModel:
    """Load, change and save a model under its lock, so that no process undoes the change of another."""
    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file or directory", value=os.fspath(path))
    with lock_file(path, wait):
        new = change(load(path))
        save(new, path)
    return new


def _open_bytes(name: str, read_whole: int) -> tuple[memoryview, bool]:
    """Return the bytes of a file, and whether they were read rather than mapped."""
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size > read_whole:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), False
        buffer = np.empty(size, np.uint8)  # NumPy requests large pages, which are filled faster
        n_read, n = 0, 1
        while n:
            n = file.readinto(buffer[n_read:])  # type: ignore[arg-type]
            n_read += n
        buffer.flags.writeable = False
        return memoryview(buffer[:n_read]), True  # type: ignore[arg-type]


# Writing


def _check_file(name: str) -> None:
    """Raise an InputError if a file that was just written cannot be loaded."""
    _check_readable(_open_bytes(name, MAX_READ_BYTES)[0])


def _check_readable(file: memoryview) -> None:
    try:
        _unpack(file, verify=True)
    except InputError as error:
        what = f"this model cannot be saved, because the file could not be read again: {error.problem}"
        location = {"column": error.column, "value": error.value}
        raise InputError(what, remedy=error.remedy or "", **location) from None


def _pack(
    fitted: FittedModel, detail: str | None, provenance: Mapping[str, str] | None
) -> tuple[dict[str, Any], plans.Arrays]:
    """Return the header and the arrays of a model file."""
    detail = detail or ("tally" if fitted.has_counts else "score" if fitted.n_rows is None else "explain")
    if detail not in DETAILS:
        raise unknown_name_error("detail", detail, DETAILS)
    notes = dict(fitted.provenance if provenance is None else provenance)
    if not all(isinstance(text, str) for item in notes.items() for text in item):
        raise InputError(
            "provenance holds values that are not text", value=notes, remedy="pass names and values as text"
        )
    arrays: plans.Arrays = {}
    has_counts = detail == "tally"
    header = _base_header(detail, fitted.target, notes)
    header |= plans.pack_plan(fitted.counts.plan if has_counts else fitted.plan, fitted.labels, arrays)
    header["settings"] = values.pack_settings(fitted.settings, arrays)
    header |= _pack_counts(fitted.counts, arrays) if has_counts else _pack_model(fitted, detail, arrays)
    if fitted.estimator is not None:
        header["estimator"] = values.pack_estimator(fitted.estimator, arrays)
    if fitted.policy:
        header["policy"] = values.pack_policy(fitted.policy, fitted.labels, arrays)
    if fitted.term_weights is not None:
        from candide.store.parameters import pack_term_weights

        # Without counts the distributions include the token weights.
        term_weights = fitted.term_weights if has_counts else replace(fitted.term_weights, token_weights=())
        header["terms"] = pack_term_weights(term_weights, arrays)
    optional: dict[str, Any] = {"na": list(fitted.na), "dates": sorted(fitted.dates), "times": sorted(fitted.times)}
    optional["text_formats"] = {name: text_format.settings() for name, text_format in fitted.text_formats.items()}
    return header | {name: value for name, value in optional.items() if value}, arrays


def _base_header(detail: str, target: str | None, provenance: Mapping[str, str]) -> dict[str, Any]:
    first = {"format": FORMAT, "version": __version__, "detail": detail}
    return {**first, "target": target, "provenance": dict(provenance)}


def _pack_counts(counts: ModelCounts, arrays: plans.Arrays) -> dict[str, Any]:
    plans.pack_counts(counts, arrays)
    return {"rows": counts.n_rows, "distributions": None, "evidence": False}


def _pack_model(fitted: FittedModel, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """Pack what is known without the counts."""
    from candide.store.parameters import pack_distribution

    distributions = fitted.unadjusted_model.distributions
    packed = [pack_distribution(distribution, arrays, str(i)) for i, distribution in enumerate(distributions)]
    arrays["log_prior"] = fitted.unadjusted_model.log_prior
    if detail == "score":
        return {"rows": None, "distributions": packed, "evidence": False}
    evidence = fitted.column_evidence or {}
    arrays["evidence"] = np.array([evidence.get(name, np.nan) for name in fitted.plan.columns])
    return {"rows": fitted.n_rows, "distributions": packed, "evidence": True}


# Reading

_HEADER = {
    "format": int, "version": str, "detail": str, "target": (str, type(None)), "provenance": dict, "columns": int,
    "numbered": bool, "classes": int, "parts": list, "settings": (dict, type(None)), "rows": (int, type(None)),
    "distributions": (list, type(None)), "evidence": bool,
}  # fmt: skip
_OPTIONAL = {"estimator": dict, "text_formats": dict, "na": list, "dates": list, "times": list, "terms": dict,
             "policy": dict}  # fmt: skip


def _unpack(file: memoryview, *, verify: bool) -> tuple[FittedModel, bool]:
    """Return the model, and whether the file holds counts alone."""
    header, found = unpack_container(file, verify=verify)
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
    arrays = plans.TrackedArrays(found, verify)
    plan, labels = plans.unpack_plan(header, arrays, len(file))
    is_counts = header["settings"] is None and detail == "tally"
    fields = {"target": header["target"], "provenance": provenance, **_unpack_optional(header, arrays, plan)}
    if not is_counts:
        fields["settings"] = values.unpack_settings(header["settings"], arrays)
    if "policy" in header:
        fields["policy"] = values.unpack_policy(header["policy"], arrays, labels)
    if "terms" in header:
        from candide.store.parameters import unpack_term_weights

        fields["term_weights"] = unpack_term_weights(header["terms"], arrays, plan, len(labels))
    if detail == "tally":
        fitted = FittedModel(plans.unpack_counts(plan, labels, header["rows"], arrays), **fields)
    else:
        model, evidence = _unpack_model(header, arrays, plan, len(labels))
        fitted = FittedModel(None, **fields, parameters=Parameters(plan, labels, model, header["rows"], evidence))
    arrays.check_all_used()
    return fitted, is_counts


def _unpack_optional(header: dict[str, Any], arrays: plans.TrackedArrays, plan: Plan) -> dict[str, Any]:
    """Return the fields that do not depend on the classes."""
    fields: dict[str, Any] = {}
    if "estimator" in header:
        fields["estimator"] = values.unpack_estimator(header["estimator"], arrays)
    if not all(isinstance(text, str) for text in header.get("na", ())):
        raise ModelFileError("the field 'na' of its header holds values that are not text")
    fields["na"] = tuple(header.get("na", ()))
    for field in ("dates", "times"):
        names = header.get(field, [])
        if unknown := [name for name in names if name not in plan.columns]:
            raise ModelFileError(f"the field {field!r} of its header names an unknown column {str(unknown[0])[:20]!r}")
        fields[field] = frozenset(names)
    if "text_formats" in header:
        fields["text_formats"] = values.unpack_text_formats(header["text_formats"])
    return fields


def _unpack_model(header: dict[str, Any], arrays: plans.TrackedArrays, plan: Plan, n_classes: int) -> tuple[Model, Any]:
    from candide.store.parameters import unpack_calibrator, unpack_distribution

    packed, log_prior = header["distributions"], arrays.get("log_prior")
    if not isinstance(packed, list) or len(packed) != len(plan.parts):
        raise ModelFileError(f"its header has no distribution for each of the {len(plan.parts)} parts of its plan")
    is_vector = log_prior is not None and log_prior.dtype == np.float64 and log_prior.shape == (n_classes,)
    if log_prior is None or not is_vector or not (log_prior <= 1e-9).all() or np.isneginf(log_prior).all():
        raise ModelFileError(f"array 'log_prior' does not hold the log-probabilities of {n_classes} classes")
    distributions = tuple(
        unpack_distribution(distribution, arrays, str(i), plans.part_shape(part, n_classes))
        for i, (distribution, part) in enumerate(zip(packed, plan.parts, strict=True))
    )
    model = Model(log_prior, distributions, calibrator=unpack_calibrator(arrays, n_classes))
    if not header["evidence"]:
        return model, None
    evidence, rows = arrays.get("evidence"), header["rows"]
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    if evidence is None or evidence.shape != (len(plan.columns),):
        raise ModelFileError(f"array 'evidence' does not hold a number for each of {len(plan.columns)} columns")
    pairs = [(name, value) for name, value in zip(plan.columns, evidence.tolist(), strict=True) if value == value]
    return model, tuple(sorted(pairs, key=lambda pair: -pair[1]))
