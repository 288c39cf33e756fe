"""scikit-learn's contract of an estimator, met without importing scikit-learn until that is asked for.

scikit-learn asks for methods, not for a base class: ``get_params`` and ``set_params`` here are its own by signature;
tags, scores, metadata routing and the HTML view are handed on to it when they are first called.

>>> import candide as cd
>>> model = cd.GaussianBayes("tied")
>>> model, model.get_params()["covariance"]
(GaussianBayes(covariance='tied'), 'tied')
"""

import inspect
from copy import deepcopy
from functools import cache
from typing import Any, Self

from candide import formatting
from candide.errors import InputError

_MAX_REPR_LENGTH = 300  # letters of a parameter in print


class RequestMethod:
    """``set_fit_request`` and its kin: scikit-learn's own, made when it is asked for."""

    def __init__(self, method: str, *keys: str):
        self.method, self.keys = method, keys

    def __get__(self, instance: Any, owner: type) -> Any:
        from sklearn.utils._metadata_requests import RequestMethod

        return RequestMethod(self.method, list(self.keys)).__get__(instance, owner)


class Estimator:
    """What scikit-learn asks of anything that is fitted."""

    fitted_: Any
    set_fit_request = RequestMethod("fit", "sample_weight")
    set_partial_fit_request = RequestMethod("partial_fit", "classes", "sample_weight")
    set_score_request = RequestMethod("score", "sample_weight")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(_defaults(cls))  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        >>> import candide as cd
        >>> cd.GaussianNB().get_params()
        {'priors': None, 'var_smoothing': 1e-09}
        """
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters; rows already counted stay as they were counted.

        >>> import candide as cd
        >>> cd.GaussianNB().set_params(var_smoothing=0.0)
        GaussianNB(var_smoothing=0.0)
        """
        known = self._get_param_names()
        for name in params:
            if name not in known:
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.", value=name
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = _defaults(type(self))  # type: ignore[arg-type]
        given = {name: repr(getattr(self, name, None)) for name in usual}
        changed = [
            f"{name}={formatting.truncate(v, _MAX_REPR_LENGTH)}" for name, v in given.items() if v != repr(usual[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _unfitted(self) -> Self:
        """An estimator with the same parameters, not fitted."""
        return type(self)(**deepcopy(self.get_params(deep=False)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def _check_fitted(self) -> None:
        if not hasattr(self, "fitted_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are given their label.

        >>> import candide as cd
        >>> cd.GaussianNB().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).score([[1.5], [8.0]], ["a", "a"])
        0.5
        """
        from sklearn.base import ClassifierMixin

        return ClassifierMixin.score(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing passes on to ``fit``, ``partial_fit`` and ``score``.

        >>> import candide as cd
        >>> cd.GaussianNB().get_metadata_routing().fit.requests
        {'sample_weight': None}
        """
        return self._get_metadata_request()

    def _get_metadata_request(self) -> Any:
        from sklearn.base import BaseEstimator

        twin = object.__new__(_sklearn_class(type(self)))  # type: ignore[arg-type]
        twin.__dict__.update(vars(self))
        return BaseEstimator._get_metadata_request(twin)

    @property
    def _repr_html_(self) -> Any:
        from sklearn import get_config
        from sklearn.utils import estimator_html_repr

        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is only defined when the 'display' configuration option is 'diagram'")
        return (lambda: self._html_summary()) if hasattr(self, "fitted_") else lambda: estimator_html_repr(self)

    def _html_summary(self) -> str:
        """What a notebook shows once it is fitted; before, it shows scikit-learn's diagram of the parameters."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = getattr(self, "_repr_html_", None)
        return {"text/plain": repr(self)} | ({} if html is None else {"text/html": html()})

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator._get_params_html(self, deep, doc_link)


@cache
def _defaults(cls: Any) -> dict[str, Any]:
    """The parameters of an estimator and their defaults, in the order of its signature."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return {one.name: one.default for one in parameters}


@cache
def _sklearn_class(cls: Any) -> Any:
    """The class as if it inherited from scikit-learn's: that knows what each method takes."""
    from sklearn.base import BaseEstimator

    return type(cls.__name__, (cls, BaseEstimator), {"__module__": cls.__module__})
