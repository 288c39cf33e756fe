"""Store: a model file. The census's arrays, and a JSON header that says what they are.

No pickle and no class path: events, priors and distributions are looked up by name in closed tables. What is stored
is what was counted; distributions are estimated again after loading, so a loaded model cannot disagree with itself.
The format is told in docs/reference/model-file.md.

>>> import tempfile
>>> from candide.demo import garden
>>> path = os.path.join(tempfile.mkdtemp(), "garden.candide")
>>> save(Fitted(garden()), path)
>>> load(path).labels.values
('lavender', 'sage', 'thyme')
>>> update(path, lambda fitted: fitted + fitted).census.n_rows
600
>>> save(load(path), path, detail="score")  # what predicting needs, and no counts
>>> load(path).census
Traceback (most recent call last):
    ...
candide.errors.InputError: this model keeps no counts: it predicts, but cannot be merged, updated, scaled or estimated \
again; save it with detail='tally' for that
"""

import mmap
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from candide import __version__
from candide.distributions import Distribution
from candide.errors import InputError, ModelFileError, unknown
from candide.files import locked, write_whole
from candide.model.fitted import Fitted, Parameters
from candide.model.model import Model
from candide.model.plan import Part
from candide.store import plans, values
from candide.store.container import fields, is_count, pack, unpack

FORMAT = 1
DETAILS = ("tally", "explain", "score")
READ_WHOLE = 1 << 26  # bytes: a longer file is mapped, and its arrays are read where and when they are used


def save(
    fitted: Fitted,
    path: str | os.PathLike,
    *,
    detail: str | None = None,
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a model file, whole or not at all.

    ``detail`` is "tally" (the counts: the file can be merged, updated and estimated again), "score" (the parameters
    alone: it predicts), or "explain" (the parameters, and how much each column tells). ``provenance`` is text by name,
    such as a date and a source, which is kept in the header; without it nothing in a file depends on when it was made.
    """
    detail = detail or ("tally" if fitted.has_counts else "score" if fitted.rows is None else "explain")
    if detail not in DETAILS:
        raise unknown("detail", detail, DETAILS)
    notes = dict(fitted.provenance if provenance is None else provenance)
    if not all(isinstance(text, str) for item in notes.items() for text in item):
        raise InputError("provenance: pass names and values that are text")
    arrays: plans.Arrays = {}
    header = {
        "format": FORMAT,
        "version": __version__,
        "detail": detail,
        "target": fitted.target,
        "provenance": notes,
        **plans.pack_plan(fitted.census.plan if detail == "tally" else fitted.plan, fitted.labels, arrays),
        "settings": values.pack_settings(fitted.settings, arrays),
        **_pack_content(fitted, detail, arrays),
        **({} if fitted.estimator is None else {"estimator": values.pack_estimator(fitted.estimator, arrays)}),
    }
    write_whole(path, pack(header, arrays))


def load(path: str | os.PathLike, *, verify: bool = False) -> Fitted:
    """Read a model file; anything wrong with it is a ModelFileError.

    A file of up to 64 MB is read and checked whole. A longer one is mapped: its header and its shapes are checked, its
    numbers are read when they are used, and ``verify=True`` checks them too.
    """
    name = os.fspath(path)
    try:
        file, whole = _opened(name)
        return _unpack(file, verify=verify or whole)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{name}: {(error.strerror or str(error)).lower()}") from None


def update(path: str | os.PathLike, change: Callable[[Fitted], Fitted], *, wait: float = 30.0) -> Fitted:
    """Load, change and save a model under its lock: of several processes none undoes what another did."""
    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file or directory")
    with locked(path, wait):
        new = change(load(path))
        save(new, path)
    return new


def _opened(name: str) -> tuple[memoryview, bool]:
    """The bytes of a file, and whether they were read (or else mapped)."""
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size > READ_WHOLE:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), False
        room = np.empty(size, np.uint8)  # NumPy asks for large pages, which are quicker to fill
        got, part = 0, 1
        while part:
            part = file.readinto(room[got:])  # type: ignore[arg-type]
            got += part
        room.flags.writeable = False
        return memoryview(room[:got]), True  # type: ignore[arg-type]


_HEADER = {
    "format": int, "version": str, "detail": str, "target": (str, type(None)), "provenance": dict, "columns": int,
    "numbered": bool, "classes": int, "parts": list, "settings": dict, "rows": (int, type(None)),
    "distributions": (list, type(None)), "strengths": bool,
}  # fmt: skip


def _unpack(file: memoryview, *, verify: bool) -> Fitted:
    header, found = unpack(file, verify=verify)
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"format {str(header.get('format'))[:20]}; this version of Candide ({__version__}) reads {FORMAT}"
        )
    told = fields(header, "the header", _HEADER | ({"estimator": dict} if "estimator" in header else {}))
    if told["detail"] not in DETAILS or not all(isinstance(text, str) for text in told["provenance"].values()):
        raise ModelFileError("its detail or provenance is none")
    arrays = plans.Taken(found, verify)
    plan, labels = plans.unpack_plan(told, arrays, len(file))
    known = {"settings": values.unpack_settings(told["settings"], arrays), "target": told["target"]}
    if "estimator" in told:
        known["estimator"] = values.unpack_estimator(told["estimator"], arrays)
    known["provenance"] = told["provenance"]
    if told["detail"] == "tally":
        out = Fitted(plans.unpack_counts(plan, labels, told["rows"], arrays), **known)
    else:
        model, strengths = _unpack_model(told, arrays, plan, len(labels))
        out = Fitted(None, **known, parameters=Parameters(plan, labels, model, told["rows"], strengths))
    arrays.finish()
    return out


def _pack_content(fitted: Fitted, detail: str, arrays: plans.Arrays) -> dict[str, Any]:
    """The counts, or what is known without them."""
    if detail == "tally":
        plans.pack_counts(fitted.census, arrays)
        return {"rows": fitted.census.n_rows, "distributions": None, "strengths": False}
    from candide.store import parameters

    told = []
    for i, (part, law) in enumerate(zip(fitted.plan.parts, fitted.model.distributions, strict=True)):
        if part.has_documents:
            from candide.store import terms

            told.append(terms.pack_weights(law, arrays, str(i)))  # type: ignore[arg-type]
        elif part.event.kind == "comoments":
            from candide.store import matrices

            told.append(matrices.pack(law, arrays, str(i)))
        else:
            told.append(parameters.pack(law, arrays, str(i)))
    arrays["log_prior"] = fitted.model.log_prior
    if detail == "score":
        return {"rows": None, "distributions": told, "strengths": False}
    rows, strengths = fitted.rows, fitted.strengths or {}
    arrays["strength"] = np.array([strengths.get(name, np.nan) for name in fitted.plan.columns])
    return {"rows": rows, "distributions": told, "strengths": True}


def _unpack_distribution(told: Any, arrays: plans.Taken, prefix: str, part: Part, n_classes: int) -> Distribution:
    if part.has_documents:
        from candide.store import terms

        tokens = part.event.tokens  # type: ignore[attr-defined]
        return terms.unpack_weights(told, arrays, prefix, tokens=tokens, n_classes=n_classes)
    from candide.store import parameters

    if part.event.kind == "comoments":
        from candide.store import matrices

        return matrices.unpack(told, arrays, prefix, n_classes=n_classes, n_features=len(part.columns))
    sizes = tuple(len(levels) for levels in part.levels)
    return parameters.unpack(told, arrays, prefix, n_classes=n_classes, n_features=len(part.columns), sizes=sizes)


def _unpack_model(told: dict[str, Any], arrays: plans.Taken, plan: Any, n_classes: int) -> tuple[Model, Any]:
    packed, log_prior = told["distributions"], arrays.get("log_prior")
    if not isinstance(packed, list) or len(packed) != len(plan.parts):
        raise ModelFileError("it has no distribution for each part of its plan")
    if log_prior is None or log_prior.shape != (n_classes,) or not (log_prior <= 1e-9).all():
        raise ModelFileError("it has no share for each class")
    distributions = tuple(
        _unpack_distribution(one, arrays, str(i), part, n_classes)
        for i, (one, part) in enumerate(zip(packed, plan.parts, strict=True))
    )
    if not told["strengths"]:
        return Model(log_prior, distributions), None
    found = arrays.get("strength")
    if found is None or found.shape != (len(plan.columns),) or not is_count(told["rows"]):
        raise ModelFileError("it does not say how much each column tells")
    pairs = [(name, value) for name, value in zip(plan.columns, found.tolist(), strict=True) if value == value]
    return Model(log_prior, distributions), tuple(sorted(pairs, key=lambda pair: -pair[1]))
