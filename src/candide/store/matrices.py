"""Distributions of columns modelled together, as arrays: a symmetric matrix is kept by its lower triangle.

>>> arrays = {}
>>> told = pack(MultivariateNormal(np.zeros((1, 2)), np.array([[[4.0, 1.0], [1.0, 2.0]]])), arrays, "0")
>>> told["name"], arrays["0.matrix"].tolist()
('multivariate_normal', [[4.0, 1.0, 2.0]])
>>> unpack(told, arrays, "0", n_classes=1, n_features=2).covariance.tolist()
[[[4.0, 1.0], [1.0, 2.0]]]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import Distribution, LogScale
from candide.distributions.multivariate import MultivariateNormal, MultivariateT
from candide.distributions.whitening import SingularError
from candide.errors import ModelFileError
from candide.store.container import fields

_NORMAL, _T = "multivariate_normal", "multivariate_t"


def pack(distribution: Distribution, arrays: dict[str, NDArray], prefix: str) -> dict[str, Any]:
    """Put the arrays of a distribution among the others; what the header says of it."""
    on_logs = isinstance(distribution, LogScale)
    plain: Any = distribution.base if isinstance(distribution, LogScale) else distribution
    lower = np.tril_indices(plain.n_features)
    is_t = isinstance(plain, MultivariateT)
    matrix = plain.scale if is_t else plain.covariance
    held = {"mean": plain.loc if is_t else plain.mean, "matrix": matrix[:, *lower], "alone": plain.alone}
    held |= {"df": plain.df, "stretch": plain.stretch} if is_t else {}
    arrays |= {f"{prefix}.{name}": np.ascontiguousarray(value, np.float64) for name, value in held.items()}
    return {"name": _T if is_t else _NORMAL, "on_logs": on_logs, "matrices": len(matrix)}


def unpack(told: Any, arrays: Any, prefix: str, *, n_classes: int, n_features: int) -> Distribution:
    """The distribution that the header tells of."""
    told = fields(told, "a distribution", {"name": str, "on_logs": bool, "matrices": int})
    if told["name"] not in (_NORMAL, _T) or told["matrices"] not in (1, n_classes):
        raise ModelFileError(f"unknown distribution {told['name'][:40]!r} of columns modelled together")
    lower = np.tril_indices(n_features)

    def array(name: str, *shape: int) -> NDArray:
        found = arrays.get(f"{prefix}.{name}")
        if found is None or found.shape != shape or found.dtype != np.float64 or not np.isfinite(found).all():
            raise ModelFileError(f"{told['name']}: {name} is not an array of shape {shape} with usable values")
        return found

    triangle = array("matrix", told["matrices"], len(lower[0]))
    matrix = np.empty((len(triangle), n_features, n_features))
    matrix[:, lower[0], lower[1]] = matrix[:, lower[1], lower[0]] = triangle
    mean, alone = array("mean", n_classes, n_features), array("alone", n_features)
    plain: MultivariateNormal | MultivariateT
    if told["name"] == _NORMAL:
        plain = MultivariateNormal(mean, matrix, alone != 0)
    else:
        df, stretch = array("df", n_classes), array("stretch", n_classes)
        if not ((df > 0) & (stretch > 0)).all():
            raise ModelFileError(f"{told['name']}: a number is out of range")
        plain = MultivariateT(df, mean, matrix, stretch, alone != 0)
    _check(plain, matrix, alone != 0)
    return LogScale(plain) if told["on_logs"] else plain


def _check(plain: MultivariateNormal | MultivariateT, matrix: NDArray, alone: NDArray) -> None:
    try:
        plain.prepare()
    except SingularError:
        raise ModelFileError("a matrix that is no covariance") from None
    if not (np.diagonal(matrix[0])[alone] > 0).all():
        raise ModelFileError("a variance that is none")
