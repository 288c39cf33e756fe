"""Making estimators of what was counted elsewhere: a source in one pass, or a model file.

>>> import os, tempfile, candide as cd
>>> path = os.path.join(tempfile.mkdtemp(), "m.candide")
>>> cd.GaussianBayes("diagonal").fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path)
>>> load(path)
GaussianBayes(covariance='diagonal')
"""

import os
from collections.abc import Sequence
from typing import Any

from candide import store
from candide.errors import InputError, ModelFileError
from candide.estimators.gaussian_bayes import GaussianBayes
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.text import TextNB
from candide.model.fitted import Fitted
from candide.model.settings import Settings
from candide.rows import remarks

_CLASSES: dict[str, type[NaiveBayes]] = {c.__name__: c for c in (NaiveBayes, TextNB, GaussianBayes)}


def fit(
    source: Any,
    target: str,
    *,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    class_prior: Any = "empirical",
    estimate: Any = "predictive",
    priors: Any = None,
    select: int | str | None = None,
    **reading: Any,
) -> NaiveBayes:
    """Fit a model to any source in one pass: a file, a folder, a query, a data frame, a relation.

    ``drop`` leaves columns out; ``weight`` names a column of row weights; ``reading`` takes ``na``, ``delimiter``,
    ``header``, ``encoding``, ``errors``, ``table``, ``memory_limit`` and ``threads``. The rest is as in
    :class:`NaiveBayes`.

    >>> import candide as cd
    >>> rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None], "buys": ["no", "no", "yes", "yes"]}
    >>> model = cd.fit(rows, target="buys")
    >>> model.predict_table({"age": [30], "job": ["cook"]}).to_pylist()[0]["prediction"]
    'no'
    """
    from candide.engines.reading import Reading
    from candide.tasks.learn import learn

    settings = Settings(class_prior, estimate, priors, select)
    learned = learn(
        source, target, events=events, drop=drop, weight=weight, settings=settings, reading=Reading(**reading)
    )
    remarks.warn(learned.remarks)
    return NaiveBayes.of(learned.fitted)


def load(path: str | os.PathLike) -> NaiveBayes:
    """Read a model file: the :class:`NaiveBayes`, :class:`TextNB` or :class:`GaussianBayes` that was saved.

    >>> import os, tempfile, candide as cd
    >>> path = os.path.join(tempfile.mkdtemp(), "m.candide")
    >>> cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path)
    >>> cd.load(path).predict([[8.0]]).tolist()
    ['b']
    """
    fitted = store.load(path)
    try:
        return (_CLASSES[fitted.estimator] if fitted.estimator else _likely(fitted)).of(fitted)
    except InputError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def name_in_file(model: NaiveBayes) -> str | None:
    """The class of a model as its file must name it; None where that shows in the columns."""
    kind = next(c for c in type(model).__mro__ if c in _CLASSES.values())
    given = isinstance(model, TextNB) and isinstance(model.class_prior, str) and model.class_prior != "auto"
    return None if kind is _likely(model.fitted_) and not given else kind.__name__


def _likely(fitted: Fitted) -> type[NaiveBayes]:
    """What a file that names no class holds: documents, one group of Gaussian columns, or any table."""
    if TextNB._can_be(fitted) and fitted.target is None and fitted.plan.columns == ("text",):
        return TextNB
    return GaussianBayes if GaussianBayes._can_be(fitted) and fitted.plan.parts[0].is_group else NaiveBayes
