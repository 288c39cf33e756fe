"""Store: a model file. The census's arrays, and a JSON header that says what they are.

No pickle and no class path: events, priors and distributions are looked up by name in closed tables. What is stored
is what was counted; distributions are estimated again after loading, so a loaded model cannot disagree with itself.
The format is described in docs/reference/model-file.md.

>>> import tempfile
>>> from candide.demo import garden
>>> path = os.path.join(tempfile.mkdtemp(), "garden.candide")
>>> save(Fitted(garden()), path)
>>> load(path).labels.values
('lavender', 'sage', 'thyme')
>>> update(path, lambda fitted: fitted + fitted).census.n_rows
600
>>> loads(dumps(garden())).n_rows  # a census alone: what one machine counts and another adds
300
>>> save(load(path), path, detail="score")  # what predicting needs, and no counts
>>> load(path).census
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
from candide.errors import InputError, ModelFileError, unknown
from candide.files import check_output, locked, write_whole
from candide.model.census import Census
from candide.model.fitted import Fitted, Parameters
from candide.model.model import Model
from candide.model.plan import Plan
from candide.store import plans, values
from candide.store.container import fields, is_count, is_model, pack, unpack

FORMAT = 3
_READS = (2, FORMAT)  # one of format 2 keeps nothing of what rounding took from its sums, and nothing declared
DETAILS = ("tally", "explain", "score")
_UNTOLD = {"format", "version", "provenance", "estimator"}  # of what a file holds, what makes no other model of it
READ_WHOLE = 1 << 26  # bytes: a longer file is mapped, and its arrays are read where and when they are used


def save(
    fitted: Fitted,
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
    check_output(path, ours=is_model, force=force)
    write_whole(path, pack(*_packed(fitted, detail, provenance)), check=_check_file)


def dumps(kept: Census | Fitted, *, detail: str | None = None) -> bytes:
    """The bytes of a model file; of a census, those of a file without settings."""
    if isinstance(kept, Census):
        arrays: plans.Arrays = {}
        header = {**_opening("tally", None, {}), **plans.pack_plan(kept.plan, kept.labels, arrays), "settings": None}
        header |= _pack_counts(kept, arrays)
    else:
        header, arrays = _packed(kept, detail, None)
    file = b"".join(bytes(piece) for piece in pack(header, arrays))
    _check_readable(memoryview(file))
    return file


def digest(fitted: Fitted) -> bytes:
    """What tells a model from another: all that answers, whichever release or estimator wrote it, of whichever rows."""
    header, arrays = _packed(fitted, None, {})
    told = {name: value for name, value in header.items() if name not in _UNTOLD}
    out = hashlib.sha256()
    for piece in pack(told, arrays):
        out.update(piece)
    return out.digest()


def loads(file: bytes) -> Census | Fitted:
    """What :func:`dumps` was given."""
    found, is_census = _unpack(memoryview(file), verify=True)
    return found.census if is_census else found


def load(path: str | os.PathLike, *, verify: bool = False, read_whole: int = READ_WHOLE) -> Fitted:
    """Read a model file; anything wrong with it is a ModelFileError.

    A file of up to ``read_whole`` bytes (64 MB) is read and checked whole. A longer one is mapped: its header and its
    shapes are checked, its numbers are read when they are used, and ``verify=True`` checks them too.
    """
    name = os.fspath(path)
    try:
        file, whole = _opened(name, read_whole)
        return _unpack(file, verify=verify or whole)[0]
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error.what}", value=error.value) from None
    except OSError as error:
        raise ModelFileError(f"{name}: {(error.strerror or str(error)).lower()}", value=name) from None


def update(path: str | os.PathLike, change: Callable[[Fitted], Fitted], *, wait: float = 30.0) -> Fitted:
    """Load, change and save a model under its lock: of several processes none undoes what another did."""
    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file or directory", value=os.fspath(path))
    with locked(path, wait):
        new = change(load(path))
        save(new, path)
    return new


def _opened(name: str, read_whole: int) -> tuple[memoryview, bool]:
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
    _check_readable(_opened(name, READ_WHOLE)[0])


def _check_readable(file: memoryview) -> None:
    try:
        _unpack(file, verify=True)
    except InputError as error:
        raise InputError(
            f"this model cannot be kept in a file, which could not be read again: {error.what}",
            column=error.column,
            value=error.value,
            remedy=error.remedy or "",
        ) from None


def _packed(
    fitted: Fitted, detail: str | None, provenance: Mapping[str, str] | None
) -> tuple[dict[str, Any], plans.Arrays]:
    """The header and the arrays of a model file."""
    detail = detail or ("tally" if fitted.has_counts else "score" if fitted.rows is None else "explain")
    if detail not in DETAILS:
        raise unknown("detail", detail, DETAILS)
    notes = dict(fitted.provenance if provenance is None else provenance)
    if not all(isinstance(text, str) for item in notes.items() for text in item):
        raise InputError("provenance holds what is not text", value=notes, remedy="pass names and values that are text")
    arrays: plans.Arrays = {}
    header = {
        **_opening(detail, fitted.target, notes),
        **plans.pack_plan(fitted.census.plan if detail == "tally" else fitted.plan, fitted.labels, arrays),
        "settings": values.pack_settings(fitted.settings, arrays),
        **(_pack_counts(fitted.census, arrays) if detail == "tally" else _pack_model(fitted, detail, arrays)),
        **({} if fitted.estimator is None else {"estimator": values.pack_estimator(fitted.estimator, arrays)}),
        **({} if not fitted.policy else {"policy": values.pack_policy(fitted.policy, fitted.labels, arrays)}),
        **({"na": list(fitted.na)} if fitted.na else {}),
        **({"dates": sorted(fitted.dates)} if fitted.dates else {}),
        **({"times": sorted(fitted.times)} if fitted.times else {}),
        **({} if fitted.voices is None else {"voices": _pack_voices(fitted, detail, arrays)}),
        **({"spelled": {name: how.settings() for name, how in fitted.spelled.items()}} if fitted.spelled else {}),
    }
    return header, arrays


def _opening(detail: str, target: str | None, provenance: Mapping[str, str]) -> dict[str, Any]:
    known = {"format": FORMAT, "version": __version__, "detail": detail}
    return {**known, "target": target, "provenance": dict(provenance)}


def _pack_counts(census: Census, arrays: plans.Arrays) -> dict[str, Any]:
    plans.pack_counts(census, arrays)
    return {"rows": census.n_rows, "distributions": None, "strengths": False}


def _pack_voices(fitted: Fitted, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """Of a model without counts the laws have the weights of words in them."""
    from candide.store.voices import pack_voices

    assert fitted.voices is not None
    return pack_voices(fitted.voices if detail == "tally" else replace(fitted.voices, words=()), arrays)


def _pack_model(fitted: Fitted, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """What is known without the counts."""
    from candide.store import laws

    packed = [laws.pack(law, arrays, str(i)) for i, law in enumerate(fitted.learned.distributions)]
    arrays["log_prior"] = fitted.learned.log_prior
    if detail == "score":
        return {"rows": None, "distributions": packed, "strengths": False}
    rows, strengths = fitted.rows, fitted.strengths or {}
    arrays["strength"] = np.array([strengths.get(name, np.nan) for name in fitted.plan.columns])
    return {"rows": rows, "distributions": packed, "strengths": True}


# Reading

_HEADER = {
    "format": int, "version": str, "detail": str, "target": (str, type(None)), "provenance": dict, "columns": int,
    "numbered": bool, "classes": int, "parts": list, "settings": (dict, type(None)), "rows": (int, type(None)),
    "distributions": (list, type(None)), "strengths": bool,
}  # fmt: skip
_OPTIONAL = {"estimator": dict, "spelled": dict, "na": list, "dates": list, "times": list,
             "voices": dict, "policy": dict}  # fmt: skip


def _unpack(file: memoryview, *, verify: bool) -> tuple[Fitted, bool]:
    """The model, and whether the file holds a census alone."""
    header, found = unpack(file, verify=verify)
    if header.get("format") not in _READS:
        read = str(header.get("format"))[:20]
        raise ModelFileError(
            f"format {read}; this version of Candide ({__version__}) reads {_READS[0]} to {FORMAT}", value=read
        )
    header = fields(header, "the header", _HEADER | {name: kind for name, kind in _OPTIONAL.items() if name in header})
    detail, provenance = header["detail"], header["provenance"]
    if detail not in DETAILS:
        raise ModelFileError(f"unknown detail {detail[:20]!r} in its header; expected one of {', '.join(DETAILS)}")
    if not all(isinstance(text, str) for text in provenance.values()):
        raise ModelFileError("the provenance in its header holds what is not text")
    arrays = plans.Taken(found, verify)
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
    if "spelled" in header:
        known["spelled"] = values.unpack_spelled(header["spelled"])
    if "voices" in header:
        from candide.store.voices import unpack_voices

        known["voices"] = unpack_voices(header["voices"], arrays, plan, len(labels))
    if detail == "tally":
        out = Fitted(plans.unpack_counts(plan, labels, header["rows"], arrays), **known)
    else:
        model, strengths = _unpack_model(header, arrays, plan, len(labels))
        out = Fitted(None, **known, parameters=Parameters(plan, labels, model, header["rows"], strengths))
    arrays.finish()
    return out, is_census


def _names(names: list[Any], field: str, plan: Plan) -> frozenset[str]:
    if strange := [name for name in names if name not in plan.columns]:
        what = f"the field {field!r} of its header names the column {str(strange[0])[:20]!r}, which it does not have"
        raise ModelFileError(what)
    return frozenset(names)


def _unpack_model(header: dict[str, Any], arrays: plans.Taken, plan: Plan, n_classes: int) -> tuple[Model, Any]:
    from candide.store import laws
    from candide.store.voices import unpack_curve

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
        laws.unpack(one, arrays, str(i), plans.shape_of(part, n_classes))
        for i, (one, part) in enumerate(zip(packed, plan.parts, strict=True))
    )
    model = Model(log_prior, distributions, curve=unpack_curve(arrays, n_classes))
    if not header["strengths"]:
        return model, None
    found, rows = arrays.get("strength"), header["rows"]
    if not is_count(rows):
        raise ModelFileError(f"the field 'rows' of its header is {rows!r}; expected a whole number >= 0", value=rows)
    if found is None or found.shape != (len(plan.columns),):
        raise ModelFileError(f"array 'strength' does not hold a number for each of {len(plan.columns)} columns")
    pairs = [(name, value) for name, value in zip(plan.columns, found.tolist(), strict=True) if value == value]
    return model, tuple(sorted(pairs, key=lambda pair: -pair[1]))
