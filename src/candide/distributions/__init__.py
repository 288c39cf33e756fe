"""Distributions: fitted parameters that score rows, explain a score feature by feature, and sample.

All have the same methods; each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from candide.distributions.registry import DISTRIBUTIONS
from candide.distributions.registry import get_class as __getattr__  # noqa: F401  (imported when first used)

if TYPE_CHECKING:
    from candide.distributions.base import Distribution, WeightedDistribution
    from candide.distributions.bernoulli import Bernoulli
    from candide.distributions.categorical import Binned, Categorical
    from candide.distributions.density import Density, Exponential, Lomax, NegativeBinomial, Poisson
    from candide.distributions.documents import PolyaDocuments
    from candide.distributions.elliptical import MultivariateNormal, MultivariateT
    from candide.distributions.multinomial import DirichletMultinomial, Multinomial
    from candide.distributions.normal import LogScale, Normal, StudentT
    from candide.distributions.token_scores import TokenScores, WeightedTokens

__all__ = [
    "DISTRIBUTIONS",
    "Bernoulli",
    "Binned",
    "Categorical",
    "Density",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "LogScale",
    "Lomax",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateT",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "PolyaDocuments",
    "StudentT",
    "TokenScores",
    "WeightedDistribution",
    "WeightedTokens",
]
