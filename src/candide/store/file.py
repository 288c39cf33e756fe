"""Store: a model file. The census's arrays, and a JSON header that says what they are.

No pickle and no class path: events, priors and distributions are looked up by name in closed tables. What is stored
is what was counted; distributions are estimated again after loading, so a loaded model cannot disagree with itself.
The format is described in docs/reference/model-file.md.

>>> import tempfile
>>> from candide.demo import garden
>>> path = os.path.join(tempfile.mkdtemp(), "garden.candide")
>>> save(FittedModel(garden()), path)
>>> load(path).labels.values
('lavender', 'sage', 'thyme')
>>> update_file(path, lambda fitted: fitted + fitted).counts.n_rows
600
>>> loads(dumps(garden())).n_rows  # a census alone: what one machine counts and another adds
300
>>> save(load(path), path, detail="score")  # what predicting needs, and no counts
>>> load(path).counts
Traceback (most recent call last):
    ...
candide.errors.InputError: this model keeps no counts: it predicts, but cannot be merged, updated, scaled or estimated \
again; save it with detail='tally' for that
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
_UNHASHED_FIELDS = {
    "format",
    "version",
    "provenance",
    "estimator",
}  # of what a file holds, what makes no other model of it
MAX_READ_BYTES = 1 << 26  # bytes: a longer file is mapped, and its arrays are read where and when they are used


def save(
    fitted: FittedModel,
    path: str | os.PathLike,
    *,
    detail: str | None = None,
    provenance: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Write a model file, whole or not at all; over a file that is no model only by ``force``.

    ``detail`` is "tally" (the counts: the file can be merged, updated and estimated again), "score" (the parameters
    alone: it predicts), or "explain" (the parameters, and how much each column tells). ``provenance`` is text by name,
    such as a date and a source, which is kept in the header; without it nothing in a file depends on when it was made.
    The new file is read back before it takes the place of an old one.
    """
    check_output(path, is_own_file=is_model_file, force=force)
    write_atomically(path, pack_container(*_pack(fitted, detail, provenance)), check=_check_file)


def dumps(model: ModelCounts | FittedModel, *, detail: str | None = None) -> bytes:
    """The bytes of a model file; of a census, those of a file without settings."""
    if isinstance(model, ModelCounts):
        arrays: plans.Arrays = {}
        header = {
            **_base_header("tally", None, {}),
            **plans.pack_plan(model.plan, model.labels, arrays),
            "settings": None,
        }
        header |= _pack_counts(model, arrays)
    else:
        header, arrays = _pack(model, detail, None)
    file = b"".join(bytes(piece) for piece in pack_container(header, arrays))
    _check_readable(memoryview(file))
    return file


def model_digest(fitted: FittedModel) -> bytes:
    """What tells a model from another: all that answers, whichever release or estimator wrote it, of whichever rows."""
    header, arrays = _pack(fitted, None, {})
    told = {name: value for name, value in header.items() if name not in _UNHASHED_FIELDS}
    out = hashlib.sha256()
    for piece in pack_container(told, arrays):
        out.update(piece)
    return out.digest()


def loads(file: bytes) -> ModelCounts | FittedModel:
    """What :func:`dumps` was given."""
    found, is_census = _unpack(memoryview(file), verify=True)
    return found.counts if is_census else found


def load(path: str | os.PathLike, *, verify: bool = False, read_whole: int = MAX_READ_BYTES) -> FittedModel:
    """Read a model file; anything wrong with it is a ModelFileError.

    A file of up to ``read_whole`` bytes (64 MB) is read and checked whole. A longer one is mapped: its header and its
    shapes are checked, its numbers are read when they are used, and ``verify=True`` checks them too.
    """
    name = os.fspath(path)
    try:
        file, whole = _open_bytes(name, read_whole)
        return _unpack(file, verify=verify or whole)[0]
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error.problem}", value=error.value) from None
    except OSError as error:
        raise ModelFileError(f"{name}: {(error.strerror or str(error)).lower()}", value=name) from None


def update_file(
    path: str | os.PathLike, change: Callable[[FittedModel], FittedModel], *, wait: float = 30.0
) -> FittedModel:
    """Load, change and save a model under its lock: of several processes none undoes what another did."""
    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file or directory", value=os.fspath(path))
    with lock_file(path, wait):
        new = change(load(path))
        save(new, path)
    return new


def _open_bytes(name: str, read_whole: int) -> tuple[memoryview, bool]:
    """The bytes of a file, and whether they were read (or else mapped)."""
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size > read_whole:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), False
        room = np.empty(size, np.uint8)  # NumPy asks for large pages, which are quicker to fill
        got, part = 0, 1
        while part:
            part = file.readinto(room[got:])  # type: ignore[arg-type]
            got += part
        room.flags.writeable = False
        return memoryview(room[:got]), True  # type: ignore[arg-type]


# Writing


def _check_file(name: str) -> None:
    """Raise an InputError where a file that was just written cannot be loaded."""
    _check_readable(_open_bytes(name, MAX_READ_BYTES)[0])


def _check_readable(file: memoryview) -> None:
    try:
        _unpack(file, verify=True)
    except InputError as error:
        raise InputError(
            f"this model cannot be kept in a file, which could not be read again: {error.problem}",
            column=error.column,
            value=error.value,
            remedy=error.remedy or "",
        ) from None


def _pack(
    fitted: FittedModel, detail: str | None, provenance: Mapping[str, str] | None
) -> tuple[dict[str, Any], plans.Arrays]:
    """The header and the arrays of a model file."""
    detail = detail or ("tally" if fitted.has_counts else "score" if fitted.n_rows is None else "explain")
    if detail not in DETAILS:
        raise unknown_name_error("detail", detail, DETAILS)
    notes = dict(fitted.provenance if provenance is None else provenance)
    if not all(isinstance(text, str) for item in notes.items() for text in item):
        raise InputError("provenance holds what is not text", value=notes, remedy="pass names and values that are text")
    arrays: plans.Arrays = {}
    header = {
        **_base_header(detail, fitted.target, notes),
        **plans.pack_plan(fitted.counts.plan if detail == "tally" else fitted.plan, fitted.labels, arrays),
        "settings": values.pack_settings(fitted.settings, arrays),
        **(_pack_counts(fitted.counts, arrays) if detail == "tally" else _pack_model(fitted, detail, arrays)),
        **({} if fitted.estimator is None else {"estimator": values.pack_estimator(fitted.estimator, arrays)}),
        **({} if not fitted.policy else {"policy": values.pack_policy(fitted.policy, fitted.labels, arrays)}),
        **({"na": list(fitted.na)} if fitted.na else {}),
        **({"dates": sorted(fitted.dates)} if fitted.dates else {}),
        **({"times": sorted(fitted.times)} if fitted.times else {}),
        **({} if fitted.term_weights is None else {"terms": _pack_term_weights(fitted, detail, arrays)}),
        **(
            {"text_formats": {name: how.settings() for name, how in fitted.text_formats.items()}}
            if fitted.text_formats
            else {}
        ),
    }
    return header, arrays


def _base_header(detail: str, target: str | None, provenance: Mapping[str, str]) -> dict[str, Any]:
    known = {"format": FORMAT, "version": __version__, "detail": detail}
    return {**known, "target": target, "provenance": dict(provenance)}


def _pack_counts(counts: ModelCounts, arrays: plans.Arrays) -> dict[str, Any]:
    plans.pack_counts(counts, arrays)
    return {"rows": counts.n_rows, "distributions": None, "evidence": False}


def _pack_term_weights(fitted: FittedModel, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """Of a model without counts the laws have the weights of words in them."""
    from candide.store.term_weights import pack_term_weights

    assert fitted.term_weights is not None
    return pack_term_weights(
        fitted.term_weights if detail == "tally" else replace(fitted.term_weights, token_weights=()), arrays
    )


def _pack_model(fitted: FittedModel, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """What is known without the counts."""
    from candide.store import distributions as laws

    packed = [
        laws.pack_distribution(law, arrays, str(i)) for i, law in enumerate(fitted.unadjusted_model.distributions)
    ]
    arrays["log_prior"] = fitted.unadjusted_model.log_prior
    if detail == "score":
        return {"rows": None, "distributions": packed, "evidence": False}
    rows, strengths = fitted.n_rows, fitted.column_evidence or {}
    arrays["evidence"] = np.array([strengths.get(name, np.nan) for name in fitted.plan.columns])
    return {"rows": rows, "distributions": packed, "evidence": True}


# Reading

_HEADER = {
    "format": int, "version": str, "detail": str, "target": (str, type(None)), "provenance": dict, "columns": int,
    "numbered": bool, "classes": int, "parts": list, "settings": (dict, type(None)), "rows": (int, type(None)),
    "distributions": (list, type(None)), "evidence": bool,
}  # fmt: skip
_OPTIONAL = {"estimator": dict, "text_formats": dict, "na": list, "dates": list, "times": list,
             "terms": dict, "policy": dict}  # fmt: skip


def _unpack(file: memoryview, *, verify: bool) -> tuple[FittedModel, bool]:
    """The model, and whether the file holds a census alone."""
    header, found = unpack_container(file, verify=verify)
    if header.get("format") != FORMAT:
        read = str(header.get("format"))[:20]
        raise ModelFileError(f"format {read}; this version of Candide ({__version__}) reads {FORMAT}", value=read)
    header = check_fields(
        header, "the header", _HEADER | {name: kind for name, kind in _OPTIONAL.items() if name in header}
    )
    detail, provenance = header["detail"], header["provenance"]
    if detail not in DETAILS:
        raise ModelFileError(f"unknown detail {detail[:20]!r} in its header; expected one of {', '.join(DETAILS)}")
    if not all(isinstance(text, str) for text in provenance.values()):
        raise ModelFileError("the provenance in its header holds what is not text")
    arrays = plans.TrackedArrays(found, verify)
    plan, labels = plans.unpack_plan(header, arrays, len(file))
    is_census = header["settings"] is None and detail == "tally"
    settings = {} if is_census else {"settings": values.unpack_settings(header["settings"], arrays)}
    known = {**settings, "target": header["target"], "provenance": provenance}
    if "estimator" in header:
        known["estimator"] = values.unpack_estimator(header["estimator"], arrays)
    if "policy" in header:
        known["policy"] = values.unpack_policy(header["policy"], arrays, labels)
    if not all(isinstance(text, str) for text in header.get("na", ())):
        raise ModelFileError("the field 'na' of its header holds what is not text")
    known["na"] = tuple(header.get("na", ()))
    for field in ("dates", "times"):
        known[field] = _names(header.get(field, []), field, plan)
    if "text_formats" in header:
        known["text_formats"] = values.unpack_text_formats(header["text_formats"])
    if "terms" in header:
        from candide.store.term_weights import unpack_term_weights

        known["term_weights"] = unpack_term_weights(header["terms"], arrays, plan, len(labels))
    if detail == "tally":
        out = FittedModel(plans.unpack_counts(plan, labels, header["rows"], arrays), **known)
    else:
        model, strengths = _unpack_model(header, arrays, plan, len(labels))
        out = FittedModel(None, **known, parameters=Parameters(plan, labels, model, header["rows"], strengths))
    arrays.check_all_used()
    return out, is_census


def _names(names: list[Any], field: str, plan: Plan) -> frozenset[str]:
    if strange := [name for name in names if name not in plan.columns]:
        what = f"the field {field!r} of its header names the column {str(strange[0])[:20]!r}, which it does not have"
        raise ModelFileError(what)
    return frozenset(names)


def _unpack_model(header: dict[str, Any], arrays: plans.TrackedArrays, plan: Plan, n_classes: int) -> tuple[Model, Any]:
    from candide.store import distributions as laws
    from candide.store.term_weights import unpack_calibrator

    packed, log_prior = header["distributions"], arrays.get("log_prior")
    if not isinstance(packed, list) or len(packed) != len(plan.parts):
        raise ModelFileError(f"its header has no distribution for each of the {len(plan.parts)} parts of its plan")
    if (
        log_prior is None
        or log_prior.dtype != np.float64
        or log_prior.shape != (n_classes,)
        or not (log_prior <= 1e-9).all()
        or np.isneginf(log_prior).all()
    ):
        raise ModelFileError(f"array 'log_prior' does not hold the log of a share for each of {n_classes} classes")
    distributions = tuple(
        laws.unpack_distribution(one, arrays, str(i), plans.part_shape(part, n_classes))
        for i, (one, part) in enumerate(zip(packed, plan.parts, strict=True))
    )
    model = Model(log_prior, distributions, calibrator=unpack_calibrator(arrays, n_classes))
    if not header["evidence"]:
        return model, None
    found, rows = arrays.get("evidence"), header["rows"]
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    if found is None or found.shape != (len(plan.columns),):
        raise ModelFileError(f"array 'evidence' does not hold a number for each of {len(plan.columns)} columns")
    pairs = [(name, value) for name, value in zip(plan.columns, found.tolist(), strict=True) if value == value]
    return model, tuple(sorted(pairs, key=lambda pair: -pair[1]))
