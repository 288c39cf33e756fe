"""GaussianBayes: all columns modelled together, as one normal distribution in each class."""

from typing import Any

from candide.estimators.naive_bayes import NaiveBayes
from candide.events import Gaussian


class GaussianBayes(NaiveBayes):
    """Gaussian classes with a full, tied, diagonal, spherical or fixed covariance: QDA, LDA, naive Bayes, nearest mean.

    Parameters
    ----------
    covariance : "full", "tied", "diagonal", "tied-diagonal", "spherical" or "fixed"
        Of each class its own ("full": quadratic discriminant analysis), one for all classes ("tied": linear
        discriminant analysis), without covariances ("diagonal": Gaussian naive Bayes; "tied-diagonal" the same with
        variances that classes share), one variance for all columns of a class ("spherical"), or the variance ``fixed``
        everywhere.
    shrinkage : None, a number in 0..1, "ledoit-wolf" or "oas"
        How far a "full" or "tied" covariance is pulled towards its mean variance times the identity. Columns should
        have the same units for a number and "oas". Fourth moments are counted for "ledoit-wolf" only.
    fixed : the variance when "fixed"
    class_prior, estimate, priors : as in NaiveBayes
        With ``estimate="predictive"`` classes are multivariate t. The default prior expects the variances within
        classes, with the weight of about one row, in any units: a singular covariance, a constant column or fewer rows
        than columns are no trouble. ``estimate="mle"`` equals scikit-learn's QuadraticDiscriminantAnalysis ("full") and
        LinearDiscriminantAnalysis ("tied"); ``priors="unbiased"`` with it divides by n - 1, or n - k, instead of n.

    Notes
    -----
    A row with a missing value is left out of the counts where columns are modelled together; when it is scored, what
    is missing is integrated out exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["down", "up"], 100)  # two classes that differ in how their columns go together, in nothing else
    >>> a = rng.normal(size=200)
    >>> X = np.column_stack([a, np.where(y == "up", a, -a) + 0.3 * rng.normal(size=200)])
    >>> float(cd.GaussianBayes("full").fit(X, y).score(X, y)), float(cd.GaussianBayes("diagonal").fit(X, y).score(X, y))
    (0.905, 0.535)

    Models add here, too.

    >>> halves = [cd.GaussianBayes().fit(X[i::2], y[i::2]) for i in (0, 1)]
    >>> bool(np.allclose(sum(halves).predict_proba(X), cd.GaussianBayes().fit(X, y).predict_proba(X)))
    True
    """

    _record_name = "GaussianBayes"
    select = None  # all columns, or it is another model

    def __init__(
        self,
        covariance: str = "full",
        shrinkage: float | str | None = None,
        *,
        fixed: float = 1.0,
        class_prior: Any = "empirical",
        estimate: Any = "predictive",
        param_priors: Any = None,
    ):
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.fixed = fixed
        self.class_prior = class_prior
        self.estimate = estimate
        self.param_priors = param_priors

    @property
    def events(self) -> Gaussian:
        """The one event model of all columns.

        >>> GaussianBayes("tied").events.covariance
        'tied'
        """
        return Gaussian(covariance=self.covariance, fixed=self.fixed, shrinkage=self.shrinkage)

    def _event(self) -> Gaussian:
        return self.events

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.categorical = False
        return tags
