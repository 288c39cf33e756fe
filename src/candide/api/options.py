"""Options of a call as records, and the output file of a model."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from candide.engines.reading import ReadOptions
from candide.errors import unknown_name_error
from candide.model.settings import Settings, default_settings

if TYPE_CHECKING:
    from candide.model.fitted import FittedModel

Path = str | os.PathLike


def split_options(
    options: Mapping[str, Any], function: Callable, *names: str, model: str | None = None
) -> dict[str, Any]:
    """Keywords as the arguments of the function that does the work: ``names`` as they are, the others as records.

    The record ``settings`` is made where a kind of ``model`` is given.
    """
    records = [ReadOptions] if model is None else [Settings, ReadOptions]
    check_options(options, function, *records, names=names)
    given = [{f.name: options[f.name] for f in fields(record) if f.name in options} for record in records]
    arguments = {name: options[name] for name in names if name in options}
    if model is not None:
        arguments["settings"] = default_settings(model).with_settings(**given[0])
    return {**arguments, "reading": ReadOptions(**given[-1])}


def check_options(options: Mapping[str, Any], function: Callable, *records: type, names: Sequence[str] = ()) -> None:
    """Refuse an unknown keyword, and suggest the nearest known one."""
    known = [*names, *(field.name for record in records for field in fields(record))]
    for name in options:
        if name not in known:
            import inspect

            own = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
            raise unknown_name_error("option", name, [*own, *known])


def save_model(
    fitted: "FittedModel", out: Path | None, force: bool, data: Any = None, typed: Sequence[str] | None = None
) -> None:
    if out is not None:
        from candide import store
        from candide.store.provenance import make_provenance

        origin = {} if typed is None else make_provenance(str(data), fitted.counts.n_rows, typed)
        store.save(fitted, out, provenance=origin, force=force)
