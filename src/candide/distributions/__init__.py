"""Distributions: fitted parameters. They score rows, explain a score feature by feature, and sample.

One distribution a file, all with the same methods; each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from candide.distributions.registry import DISTRIBUTIONS
from candide.distributions.registry import get_class as __getattr__  # noqa: F401  (imported when first used)

if TYPE_CHECKING:
    from candide.distributions.base import Distribution
    from candide.distributions.bernoulli import Bernoulli
    from candide.distributions.binned import Binned
    from candide.distributions.categorical import Categorical
    from candide.distributions.density import Density
    from candide.distributions.dirichlet_multinomial import DirichletMultinomial
    from candide.distributions.exponential import Exponential
    from candide.distributions.log_scale import LogScale
    from candide.distributions.lomax import Lomax
    from candide.distributions.multinomial import Multinomial
    from candide.distributions.multivariate_normal import MultivariateNormal
    from candide.distributions.multivariate_t import MultivariateT
    from candide.distributions.negative_binomial import NegativeBinomial
    from candide.distributions.normal import Normal
    from candide.distributions.poisson import Poisson
    from candide.distributions.polya_documents import PolyaDocuments
    from candide.distributions.student_t import StudentT
    from candide.distributions.token_scores import TokenScores
    from candide.distributions.weighted import WeightedDistribution
    from candide.distributions.weighted_tokens import WeightedTokens

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
