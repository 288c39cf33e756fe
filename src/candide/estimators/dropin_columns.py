"""GaussianNB and CategoricalNB: scikit-learn's, from moments and level counts that add."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import encoding, kernels
from candide.data.blocks import Block, Codes, Floats
from candide.data.labels import Labels
from candide.data.table import Table
from candide.errors import InputError
from candide.estimators.dropin import ROWS_PER_CHUNK, DropIn, negative_error, not_finite_error, read_only_view
from candide.estimators.dropin_discrete import DiscreteNB
from candide.estimators.sklearn_contract import takes_settings
from candide.events import Categorical, EventModel, Gaussian
from candide.kernels import threads
from candide.model.plan import PlanPart
from candide.model.settings import Settings
from candide.priors import AddedVariance
from candide.tally import LevelTally
from candide.tally.base import divide_or_zero

_INT32 = np.iinfo(np.int32)
_MAX_CELLS = 1 << 30  # a larger table of counts is a mistaken encoding


class GaussianNB(DropIn):
    """Gaussian naive Bayes: a mean and a variance for every class and column.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes; None: their proportions in the data.
    var_smoothing : float, default=1e-9
        This fraction of the largest variance of any column, all rows pooled, is added to every variance.

    Attributes
    ----------
    classes_, class_count_, class_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    theta_, var_ : ndarrays of shape (n_classes, n_features)
        Means; variances, with ``epsilon_`` added.
    epsilon_ : float

    Examples
    --------
    >>> from candide import GaussianNB
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [1, 1, 1, 2, 2, 2]
    >>> model = GaussianNB().fit(X, y)
    >>> model.predict([[-0.8, -1]]).tolist(), model.class_count_.tolist(), model.class_prior_.round(3).tolist()
    ([1], [3.0, 3.0], [0.5, 0.5])
    >>> model.theta_.round(2).tolist(), model.var_.round(2).tolist()
    ([[-2.0, -1.33], [2.0, 1.33]], [[0.67, 0.22], [0.67, 0.22]])

    Chunks do not change the result, not even ``epsilon_``, which comes from the pooled tally:

    >>> parts = GaussianNB().partial_fit(X[:4], y[:4], classes=[1, 2]).partial_fit(X[4:], y[4:])
    >>> bool(np.isclose(parts.epsilon_, model.epsilon_, rtol=1e-12))
    True
    """

    _record_name = "GaussianNB"
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {"priors": ("array", "none"), "var_smoothing": ("amount",)}

    priors: Any
    var_smoothing: float

    @takes_settings()
    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9): ...

    def _event(self) -> Gaussian:
        return Gaussian()

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        prior: Any = "empirical" if self.priors is None else np.asarray(self.priors, np.float64)
        if isinstance(prior, np.ndarray):
            if prior.shape != (len(labels),):
                what = f"Number of priors must match number of classes. {prior.size} priors, {len(labels)} classes"
                raise InputError(what)
            if not np.isclose(prior.sum(), 1.0):
                raise InputError(f"The sum of the priors should be 1. It is {prior.sum():g}")
            if (prior < 0).any():
                raise InputError(f"Priors must be non-negative. Got {prior.min():g}")
            prior = tuple(prior.tolist())
        return Settings(prior, "mle", AddedVariance(self.var_smoothing))

    @property
    def class_prior_(self) -> Floats:
        """(classes,) probabilities of the classes."""
        return np.exp(self._checked_fitted.model.log_prior)

    @property
    def theta_(self) -> Floats:
        """(classes, features) means."""
        return read_only_view(self._tally_of_block.mean)

    @property
    def epsilon_(self) -> float:
        """The smoothing added to every variance."""
        pooled, prior = self._tally_of_block.pool(), self.fitted_.settings.param_priors
        return float(prior.fraction * divide_or_zero(pooled.m2, pooled.n).max())

    @property
    def var_(self) -> Floats:
        """(classes, features) variances, with ``epsilon_`` added."""
        return divide_or_zero(self._tally_of_block.m2, self._tally_of_block.n) + self.epsilon_


class CategoricalNB(DiscreteNB):
    """Categorical naive Bayes: every column holds categories, as the numbers 0, 1, 2, ...

    An unseen category has the prior's probability of one category.

    Parameters
    ----------
    alpha : float, default=1.0
        Imaginary occurrences of every category in every class.
    min_categories : int or array-like of shape (n_features,), default=None
        How many categories a column has at least; None takes as many as the data show.
    force_alpha, fit_prior, class_prior : as in MultinomialNB

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    category_count_, feature_log_prob_ : lists of ndarrays of shape (n_classes, n_categories_[j]), one a column
    n_categories_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from candide import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [0, 2], [1, 0]], ["a", "a", "b"])
    >>> model.predict([[0, 1], [1, 9]]).tolist()  # category 9 is unseen
    ['a', 'b']
    >>> model.n_categories_.tolist(), model.category_count_[0].tolist(), model.class_count_.tolist()
    ([2, 3], [[2.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> np.exp(model.feature_log_prob_[0]).round(3).tolist(), np.exp(model.class_log_prior_).round(3).tolist()
    ([[0.75, 0.25], [0.333, 0.667]], [0.667, 0.333])
    """

    _record_name = "CategoricalNB"
    _input_tags: ClassVar[dict[str, bool]] = {"categorical": True, "positive_only": True}
    _counting_params = ("min_categories",)
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {
        **DiscreteNB._param_kinds,
        "min_categories": ("none", "array", "count"),
        "alpha": ("amount",),
    }

    min_categories: Any

    @takes_settings()
    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ): ...

    def _event(self) -> EventModel:
        return Categorical()

    def _read(self, X: Any) -> Table:
        table = super()._read(X)
        codes: NDArray = table.source
        if (x := codes).dtype.kind == "f":  # the fraction is cut off, as in scikit-learn; past int32 all are unseen
            codes = np.empty(x.shape, np.int32, order="C" if x.flags.c_contiguous else "F")
            for start in range(0, len(x), ROWS_PER_CHUNK):
                chunk = x[start : start + ROWS_PER_CHUNK]
                if not np.isfinite(chunk).all():
                    raise not_finite_error(x, table.names, "CategoricalNB")
                codes[start : start + ROWS_PER_CHUNK] = np.clip(np.trunc(chunk), _INT32.min, _INT32.max)
        return replace(table, source=codes.view(np.uint8) if codes.dtype.kind == "b" else codes)

    def _tally(
        self, table: Table, part: PlanPart, codes: Codes, weight: Floats | None, class_weight: Floats
    ) -> tuple[PlanPart, LevelTally]:
        block = table.source
        ranges = threads.map_rows(lambda at: kernels.code_range(block[at]), len(block), cost=block.shape[1])
        low, high = np.min([r[0] for r in ranges], axis=0), np.max([r[1] for r in ranges], axis=0)
        if low.min() < 0:
            raise negative_error(block, table.names, type(self).__name__)
        sizes = self._apply_min_categories(high + 1)
        if sizes.sum() * len(class_weight) > _MAX_CELLS:
            j = int(sizes.argmax())
            what = f"{int(sizes[j])} categories: they are counted as 0, 1, 2, ..., so this table would be too large"
            raise InputError(what, column=table.names[j], remedy="encode the column with OrdinalEncoder")
        declared = self._apply_min_categories(np.zeros_like(sizes))
        pairs = list(zip(sizes.tolist(), declared.tolist(), strict=True))
        encodings = {pair: encoding.LevelEncoding.from_size(*pair) for pair in set(pairs)}
        part = replace(part, encodings=tuple(encodings[pair] for pair in pairs))
        return part, LevelTally.from_rows(block, codes, weight, n_classes=len(class_weight), spec=part.spec)

    def _apply_min_categories(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.min_categories is None:
            return sizes
        least = np.asarray(self.min_categories)
        if least.dtype.kind != "i":
            raise InputError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.ndim and least.shape != sizes.shape:
            what = f"'min_categories' should have shape {sizes.shape} when an array-like is provided."
            raise InputError(f"{what} Got {least.shape} instead.")
        return np.maximum(sizes, least)

    def _value_error(self, block: Block, names: Any) -> InputError:
        return negative_error(block, names, type(self).__name__)

    @property
    def n_categories_(self) -> NDArray[np.int64]:
        """(features,) number of categories of each column."""
        return np.diff(self._distribution.offsets).astype(np.int64)

    @property
    def category_count_(self) -> list[Floats]:
        """One (classes, categories) array of weights a column."""
        return np.split(read_only_view(self._tally_of_block.counts), self._tally_of_block.offsets[1:-1], axis=1)

    @property
    def feature_log_prob_(self) -> list[Floats]:
        """One (classes, categories) array of log-probabilities a column."""
        return np.split(read_only_view(self._distribution.table.T), self._distribution.offsets[1:-1], axis=1)
