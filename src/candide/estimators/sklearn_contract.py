"""scikit-learn's estimator contract, without importing scikit-learn before it is needed.

scikit-learn requires methods, not a base class. Tags, scores, metadata routing and the HTML view are delegated to it on
first use. Locks serialise changes of an estimator.
"""

import inspect
import os
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import fields
from functools import cache, wraps
from threading import Lock, RLock
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

from candide.errors import InputError
from candide.formatting import truncate
from candide.model.fitted import FittedModel

_MAX_REPR_LENGTH = 300  # characters of a parameter in print
_locks: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()  # beside the objects, which stay picklable
_guard = Lock()


def lock_of(instance: object) -> Any:
    """The lock of an object, to be held while it is changed; a thread that holds it may take it again."""
    with _guard:
        return _locks.setdefault(instance, RLock())


def _reset_locks() -> None:
    """In a forked process no thread is left that could release a lock."""
    global _guard
    _guard = Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_reset_locks) if hasattr(os, "register_at_fork") else None


def takes_settings(
    settings: type | None = None, *, without: Collection[str] = (), **defaults: Any
) -> Callable[[Callable], Callable]:
    """Let ``__init__`` store every parameter, and take the fields of a settings record for its ``**settings``.

    A new field is then a parameter of the estimator. ``defaults`` replace those of the fields.
    """

    def decorate(init: Callable) -> Callable:
        declared = [p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(field.name, declared[-1].kind, default=defaults.get(field.name, field.default))
            for field in (fields(settings) if settings else ())
            if field.name not in without
        ]
        signature = inspect.Signature([*declared, *added])

        @wraps(init)
        def store(*args: Any, **params: Any) -> None:
            bound = signature.bind(*args, **params)
            bound.apply_defaults()
            (_, self), *values = bound.arguments.items()
            for name, value in values:
                setattr(self, name, value)

        store.__signature__ = signature  # type: ignore[attr-defined]
        return store

    return decorate


class RequestMethod:
    """``set_fit_request`` and similar: scikit-learn's own, made at first use."""

    def __init__(self, method: str, *keys: str):
        self.method, self.keys = method, keys

    def __get__(self, instance: Any, owner: type) -> Any:
        from sklearn.utils._metadata_requests import RequestMethod

        return RequestMethod(self.method, list(self.keys)).__get__(instance, owner)


class Estimator:
    """What scikit-learn requires of an estimator.

    >>> import candide as cd
    >>> model = cd.GaussianNB().set_params(var_smoothing=0.0)
    >>> model, model.get_params(), model.get_metadata_routing().fit.requests
    (GaussianNB(var_smoothing=0.0), {'priors': None, 'var_smoothing': 0.0}, {'sample_weight': None})
    >>> model.fit([[1.0], [2.0], [8.0], [9.0]], ["a", "a", "b", "b"]).score([[1.5], [8.0]], ["a", "a"])
    0.5
    """

    fitted_: FittedModel
    _input_tags: ClassVar[dict[str, bool]] = {}  # scikit-learn's, where they differ from its defaults
    set_fit_request = RequestMethod("fit", "sample_weight")
    set_partial_fit_request = RequestMethod("partial_fit", "classes", "sample_weight")
    set_score_request = RequestMethod("score", "sample_weight")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(_defaults(cls))  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters; rows already counted stay as they were counted."""
        known = self._get_param_names()
        for name in params:
            if name not in known:
                what = f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}."
                raise InputError(what, value=name)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _defaults(type(self))  # type: ignore[arg-type]
        given = {name: repr(getattr(self, name, None)) for name in defaults}
        changed = {name: text for name, text in given.items() if text != repr(defaults[name])}
        params = [f"{name}={truncate(text, _MAX_REPR_LENGTH)}" for name, text in changed.items()]
        return f"{type(self).__name__}({', '.join(params)})"

    def _unfitted(self) -> Self:
        """An estimator with the same parameters, not fitted."""
        return type(self)(**deepcopy(self.get_params(deep=False)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @property
    def _checked_fitted(self) -> FittedModel:
        if not hasattr(self, "fitted_"):
            from sklearn.exceptions import NotFittedError

            remedy = "Call 'fit' with appropriate arguments before using this estimator."
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. {remedy}")
        return self.fitted_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the proportion of rows whose predicted class is their label."""
        from sklearn.base import ClassifierMixin

        return ClassifierMixin.score(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        tags = Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())
        for name, value in self._input_tags.items():
            setattr(tags.input_tags, name, value)
        return tags

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing passes on to ``fit``, ``partial_fit`` and ``score``."""
        return self._get_metadata_request()

    def _get_metadata_request(self) -> Any:
        from sklearn.base import BaseEstimator

        copy = object.__new__(_sklearn_class(type(self)))  # type: ignore[arg-type]
        copy.__dict__.update(vars(self))
        return BaseEstimator._get_metadata_request(copy)

    @property
    def _repr_html_(self) -> Any:
        from sklearn import get_config
        from sklearn.utils import estimator_html_repr

        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is only defined when the 'display' configuration option is 'diagram'")
        return self._html_summary if hasattr(self, "fitted_") else lambda: estimator_html_repr(self)

    def _html_summary(self) -> str:
        """What a notebook displays once it is fitted; before, scikit-learn's diagram of the parameters."""
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
    return {parameter.name: parameter.default for parameter in parameters}


@cache
def _sklearn_class(cls: Any) -> Any:
    """The class with scikit-learn's base class, which finds the metadata that each method accepts."""
    from sklearn.base import BaseEstimator

    return type(cls.__name__, (cls, BaseEstimator), {"__module__": cls.__module__})
