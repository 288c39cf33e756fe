"""Store: a model file. A safetensors container: the census's arrays, and a JSON header that says what they are.

No pickle and no class path: events and priors are looked up by name in closed tables. What is stored is what was
counted; distributions are estimated again after loading, so a loaded model cannot disagree with itself.

>>> import os, tempfile
>>> from candide.demo import garden
>>> path = os.path.join(tempfile.mkdtemp(), "garden.candide")
>>> save(Fitted(garden()), path)
>>> load(path).census.labels.values
('lavender', 'sage', 'thyme')
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import __version__
from candide.census import Census
from candide.errors import CandideError, InputError
from candide.events import EVENTS, EventModel
from candide.fitted import Fitted, Settings
from candide.labels import Labels
from candide.plan import Part, Plan
from candide.priors import PRIORS, Prior
from candide.tally import KINDS

FORMAT = 1
_LARGEST_HEADER = 1 << 28


class ModelFileError(InputError):
    """A file that is not a model, or not a whole one."""


def save(fitted: Fitted, path: str | os.PathLike) -> None:
    """Write a model file whole or not at all: to a temporary file beside it, to the disk, then renamed."""
    from safetensors.numpy import save as pack

    census, tensors = fitted.census, {"class_weight": fitted.census.class_weight}
    for i, tally in enumerate(census.tallies):
        tensors |= {f"{i}.{name}": np.ascontiguousarray(array) for name, array in tally.arrays().items()}
    header = {
        "format": FORMAT,
        "version": __version__,
        "target": fitted.target,
        "rows": census.n_rows,
        "labels": _pack_labels(census.labels),
        "columns": list(census.plan.columns),
        "parts": [_pack_part(part) for part in census.plan.parts],
        "settings": {name: _pack(getattr(fitted.settings, name)) for name in ("class_prior", "estimate", "priors")},
    }
    data = pack(tensors, metadata={"candide": json.dumps(header, ensure_ascii=True, sort_keys=True)})
    write_whole(Path(path), data)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file by new content, atomically and durably."""
    handle, temporary = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike) -> Fitted:
    """Read a model file; anything wrong with it is a ModelFileError."""
    from safetensors import SafetensorError, safe_open

    if not os.path.exists(path):
        raise ModelFileError(f"{os.fspath(path)}: no such file")
    try:
        with safe_open(path, framework="numpy") as container:
            text = (container.metadata() or {}).get("candide", "")
            header = json.loads(text) if 0 < len(text) < _LARGEST_HEADER else None
            if not isinstance(header, dict):
                raise ModelFileError(f"{os.fspath(path)}: not a Candide model file")
            if header.get("format") != FORMAT:
                raise ModelFileError(
                    f"{os.fspath(path)}: format {header.get('format')!r}; this version of Candide reads {FORMAT}"
                )
            tensors = {name: container.get_tensor(name) for name in container.keys()}  # noqa: SIM118
        return _unpack(header, tensors)
    except (
        SafetensorError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
    ) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{os.fspath(path)}: not a whole Candide model file ({type(error).__name__}: {error})"
        ) from None


def _unpack(header: dict[str, Any], tensors: dict[str, NDArray]) -> Fitted:
    plan = Plan(tuple(header["columns"]), tuple(_unpack_part(part) for part in header["parts"]))
    labels = _unpack_labels(header["labels"])
    tallies = []
    for i, part in enumerate(plan.parts):
        mine = {name.partition(".")[2]: array for name, array in tensors.items() if name.startswith(f"{i}.")}
        empty = KINDS[part.spec.kind].empty(len(labels), part.spec).arrays()
        _check_arrays(mine, empty)
        tallies.append(KINDS[part.spec.kind].from_arrays(mine))
    _check_arrays({"class_weight": tensors["class_weight"]}, {"class_weight": np.zeros(len(labels))})
    census = Census(plan, labels, tensors["class_weight"], tuple(tallies), int(header["rows"]))
    settings = Settings(**{name: _unpack_value(value) for name, value in header["settings"].items()})
    target = header["target"]
    return Fitted(census, settings, None if target is None else str(target))


def _check_arrays(found: Mapping[str, NDArray], expected: Mapping[str, NDArray]) -> None:
    if found.keys() != expected.keys():
        raise ModelFileError(f"arrays {sorted(found)} where {sorted(expected)} are expected")
    for name, array in found.items():
        like = expected[name]
        if array.shape != like.shape or array.dtype != like.dtype or not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} is not a finite {like.dtype} of shape {like.shape}")
        if name == "offsets" and not np.array_equal(array, like):
            raise ModelFileError("offsets that do not follow the levels")
        if name in ("n", "m2", "counts", "class_weight") and (array < 0).any():
            raise ModelFileError(f"array {name!r} holds a negative weight")


def _pack_part(part: Part) -> dict[str, Any]:
    return {"event": _pack(part.event), "columns": list(part.columns), "levels": [_pack_labels(s) for s in part.levels]}


def _unpack_part(packed: dict[str, Any]) -> Part:
    levels = tuple(_unpack_labels(s) for s in packed["levels"])
    event = _unpack_value(packed["event"])
    if not isinstance(event, EventModel):
        raise ModelFileError("a part without an event model")
    part = Part(event, tuple(packed["columns"]), levels)
    if len(levels) != (len(part.columns) if part.has_levels else 0):
        raise ModelFileError("levels that do not fit the columns")
    return part


_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def _pack_labels(labels: Labels) -> list[list[Any]]:
    """Values with their types; numbers as text, so that none is rounded."""
    out = []
    for value in labels.values:
        kind = type(value).__name__
        if kind not in _TYPES:
            raise InputError(f"the label {value!r} is a {kind}; a model file keeps text, numbers and booleans")
        out.append([kind, value if kind in ("str", "bool") else repr(value)])
    return out


def _unpack_labels(packed: list[list[Any]]) -> Labels:
    values = tuple(value if kind in ("str", "bool") else _TYPES[kind](value) for kind, value in packed)
    if any(type(v) is not _TYPES[kind] for v, (kind, _) in zip(values, packed, strict=True)) or len(set(values)) < len(
        values
    ):
        raise ModelFileError("labels that are not distinct values of their types")
    return Labels(values)


def _pack(value: Any) -> Any:
    """Plain values as they are; events and priors by name and settings; mappings as pairs."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, EventModel | Prior):
        table: Mapping[str, type] = EVENTS if isinstance(value, EventModel) else PRIORS
        name = next((n for n, c in table.items() if c is type(value)), None)
        if name is None:
            raise InputError(
                f"{value!r} is not one of the package's own; such a model cannot be kept in a file (pickle can)"
            )
        kind = "event" if isinstance(value, EventModel) else "prior"
        return {kind: name, "settings": {f.name: _pack(getattr(value, f.name)) for f in fields(value)}}  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return {"pairs": [[_pack(k), _pack(v)] for k, v in value.items()]}
    return {"sequence": [_pack(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]}


def _unpack_value(packed: Any) -> Any:
    if not isinstance(packed, dict):
        return packed
    if "pairs" in packed:
        return {_unpack_value(k): _unpack_value(v) for k, v in packed["pairs"]}
    if "sequence" in packed:
        return tuple(_unpack_value(v) for v in packed["sequence"])
    kind = "event" if "event" in packed else "prior"
    table: Mapping[str, Any] = EVENTS if kind == "event" else PRIORS
    if packed[kind] not in table:
        raise ModelFileError(f"unknown {kind} {packed[kind]!r}")
    try:
        return table[packed[kind]](**{name: _unpack_value(v) for name, v in packed["settings"].items()})
    except CandideError as error:
        raise ModelFileError(f"{kind} {packed[kind]!r}: {error}") from None
