"""Parameters: distributions as arrays, by name in a closed table. What a model without its counts consists of.

>>> arrays = {}
>>> told = pack(Normal(np.array([[0.0]]), np.array([[4.0]])), arrays, "0")
>>> told, sorted(arrays)
({'name': 'normal', 'on_logs': False, 'scalars': {}}, ['0.mean', '0.variance'])
>>> unpack(told, arrays, "0", n_classes=1, sizes=(), n_features=1).variance.item()
4.0
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import (
    Density,
    DirichletMultinomial,
    Distribution,
    LevelTable,
    LogScale,
    Normal,
    StudentT,
    Switch,
    TermWeights,
)
from candide.errors import InputError, ModelFileError
from candide.events import exponential, poisson
from candide.store.container import fields, is_count

Check = Callable[[NDArray], NDArray]
_finite: Check = np.isfinite


def _positive(a: NDArray) -> NDArray:
    return np.isfinite(a) & (a > 0)


def _from_zero(a: NDArray) -> NDArray:
    return np.isfinite(a) & (a >= 0)


def _log(a: NDArray) -> NDArray:
    return a < np.inf  # -inf is the log of 0; NaN is not less than anything


@dataclass(frozen=True)
class _Form:
    """How a distribution is kept: its arrays and what their values must be, its scalars, and the way back."""

    kind: type[Distribution]
    arrays: Mapping[str, Check]
    scalars: tuple[str, ...] = ()
    by_feature: bool = False  # arrays are (feature, class), not (class, feature)
    density: tuple[Callable, ...] | None = None  # of a Density, its log-density, how to draw from it, its natural form


_FORMS = {
    "normal": _Form(Normal, {"mean": _finite, "variance": _positive}),
    "student_t": _Form(StudentT, {"df": _positive, "loc": _finite, "scale": _positive}),
    "levels": _Form(LevelTable, {"table": _log, "unseen": _log}, by_feature=True),
    "switch": _Form(Switch, {"log_no": _log, "log_yes": _log}, ("threshold",)),
    "words": _Form(TermWeights, {"weights": _log}, ("length",), by_feature=True),
    "dirichlet_multinomial": _Form(DirichletMultinomial, {"alpha": _from_zero}, ("length",)),
    "poisson": _Form(
        Density,
        {"rate": _from_zero},
        density=(poisson.log_poisson, poisson.draw_poisson, poisson.natural_poisson),
    ),
    "negative_binomial": _Form(
        Density,
        {"shape": _from_zero, "rate": _positive},
        density=(poisson.log_negative_binomial, poisson.draw_negative_binomial),
    ),
    "exponential": _Form(
        Density,
        {"rate": _positive},
        density=(exponential.log_exponential, exponential.draw_exponential, exponential.natural_exponential),
    ),
    "lomax": _Form(
        Density, {"shape": _positive, "rate": _positive}, density=(exponential.log_lomax, exponential.draw_lomax)
    ),
}


def pack(distribution: Distribution, arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Put the arrays of a distribution among the others; what the header says of it."""
    on_logs = isinstance(distribution, LogScale)
    plain = distribution.base if isinstance(distribution, LogScale) else distribution
    for name, form in _FORMS.items():
        if type(plain) is form.kind and (form.density is None or plain.log_density is form.density[0]):  # type: ignore[attr-defined]
            held = plain.params if isinstance(plain, Density) else vars(plain)
            arrays |= {f"{prefix}.{field}": np.asarray(held[field], np.float64) for field in form.arrays}
            return {"name": name, "on_logs": on_logs, "scalars": {s: held[s] for s in form.scalars}}
    raise InputError(f"a {type(plain).__name__} cannot be kept without its counts; save the model with detail='tally'")


def unpack(
    told: Any, arrays: Any, prefix: str, *, n_classes: int, n_features: int, sizes: tuple[int, ...]
) -> Distribution:
    """The distribution that the header tells of; ``sizes`` are the numbers of levels where it has levels."""
    told = fields(told, "a distribution", {"name": str, "on_logs": bool, "scalars": dict})
    if told["name"] not in _FORMS:
        raise ModelFileError(f"unknown distribution {told['name']!r}")
    form = _FORMS[told["name"]]
    scalars = fields(told["scalars"], told["name"], dict.fromkeys(form.scalars, (int, float, type(None))))
    if not all(_good_scalar(name, value) for name, value in scalars.items()):
        raise ModelFileError(f"{told['name']}: a number is out of range")
    held = {}
    for name, check in form.arrays.items():
        width = sum(sizes) if name == "table" else n_features
        shape = (width, n_classes) if form.by_feature else (n_classes, width)
        array = arrays.get(f"{prefix}.{name}")
        if array is None or array.shape != shape or array.dtype != np.float64 or not check(array).all():
            raise ModelFileError(f"{told['name']}: {name} is not an array of shape {shape} with usable values")
        held[name] = array
    return _build(form, held, scalars, sizes, told["on_logs"])


def _build(form: _Form, held: dict[str, Any], scalars: dict[str, Any], sizes: Any, on_logs: bool) -> Distribution:
    if on_logs and form.kind not in (Normal, StudentT):
        raise ModelFileError("logs where there are none")
    if form.density is not None:
        return Density(form.density[0], held, *form.density[1:])
    if form.kind is LevelTable:
        held["offsets"] = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)
    plain = form.kind(**held, **scalars)
    return LogScale(plain) if on_logs else plain


def _good_scalar(name: str, value: Any) -> bool:
    if name == "threshold":
        return value is not None and abs(value) < 1e300
    return value is None or (is_count(value) and 0 < value < 1 << 31)
