"""Making estimators of what was counted elsewhere: a source in one pass, or a model file.

>>> import os, tempfile, candide as cd
>>> path = os.path.join(tempfile.mkdtemp(), "m.candide")
>>> cd.GaussianBayes("diagonal").fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path)
>>> load(path)
GaussianBayes(covariance='diagonal')
"""

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from candide import store
from candide.data import notes
from candide.errors import CandideError, ModelFileError
from candide.model.fitted import FittedModel
from candide.model.settings import DEFAULT_MODEL, default_settings

if TYPE_CHECKING:
    from candide.estimators.base import Classifier


def fit(
    source: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    calibration: str | None = None,
    like: Any = None,
    **options: Any,
) -> Any:
    """Fit a model to any source: a file, a folder, a query, a data frame, a relation.

    ``model`` is "naive" for :class:`NaiveBayes`, in one pass, or "bayes" for :class:`BayesClassifier`, which looks at
    some rows first. Neither takes more memory where there are more rows.

    ``drop`` leaves columns out; ``weight`` names a column of row weights; ``calibration`` bends the probabilities of a
    :class:`BayesClassifier` to what came true of rows held out, "logistic" or "isotonic"; ``like`` is a model, or the
    path of one: the rows are counted as it counts, so that both add. How counts become a model is said as in
    :class:`NaiveBayes` (``class_prior``, ``estimate``, ``priors``, ``select``), and how the source is read by ``na``,
    ``delimiter``, ``header``, ``encoding``, ``errors``, ``table``, ``decimal``, ``day_first``, ``memory_limit`` and
    ``threads``.

    >>> import candide as cd
    >>> rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None], "buys": ["no", "no", "yes", "yes"]}
    >>> model = cd.fit(rows, target="buys")
    >>> model.predict_table({"age": [30], "job": ["cook"]}).to_pylist()[0]["prediction"]
    'no'
    """
    from candide.estimators.options import split_options
    from candide.operations.fit import fit_model

    if like is not None:
        from candide.operations.fit import resolve_model_kind

        model = resolve_model_kind(like, model)
    settings, reading = split_options(
        options, default_settings(model), ("model", "events", "drop", "weight", "calibration", "like")
    )
    how = {"events": events, "drop": drop, "weight": weight, "settings": settings, "reading": reading}
    learned = fit_model(source, target, model=model, calibration=calibration, like=like, **how)
    notes.issue_warnings(learned.notes)
    return build_estimator(learned.fitted)


def load(path: str | os.PathLike) -> "Classifier":
    """Read a model file: the estimator that was saved, with its parameters; the one that was fitted.

    >>> import os, tempfile, candide as cd
    >>> path = os.path.join(tempfile.mkdtemp(), "m.candide")
    >>> cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path)
    >>> cd.load(path).predict([[8.0]]).tolist()
    ['b']
    """
    return build_estimator(store.load(path), os.fspath(path))


def build_estimator(fitted: FittedModel, name: str = "this model") -> "Classifier":
    """The estimator that a model says it is of; without a word a NaiveBayes."""
    record = fitted.estimator
    if record is None:
        from candide.estimators.naive_bayes import NaiveBayes

        return NaiveBayes.from_fitted(fitted)
    cls: Any = getattr(import_module("candide"), record.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what was said when it was fitted
            return cls(**record.params)._adopt_fitted(fitted)
    except (CandideError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{name}: its parameters are none of {record.name}: {error}") from None
