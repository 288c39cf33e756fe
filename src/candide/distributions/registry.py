"""The distributions that a file may name, one line each.

>>> DISTRIBUTIONS["student_t"].__name__, "os.system" in DISTRIBUTIONS
('StudentT', False)
"""

from typing import TYPE_CHECKING, Any

from candide.registry import Registry

if TYPE_CHECKING:
    from candide.distributions.base import Distribution

DISTRIBUTIONS: "Registry[Distribution]" = Registry(
    "candide.distributions",
    {
        "bernoulli": "Bernoulli",
        "binned": "Binned",
        "categorical": "Categorical",
        "dirichlet_multinomial": "DirichletMultinomial",
        "exponential": "Exponential",
        "weighted_tokens": "WeightedTokens",
        "log_scale": "LogScale",
        "lomax": "Lomax",
        "multinomial": "Multinomial",
        "multivariate_normal": "MultivariateNormal",
        "multivariate_t": "MultivariateT",
        "negative_binomial": "NegativeBinomial",
        "normal": "Normal",
        "poisson": "Poisson",
        "polya_documents": "PolyaDocuments",
        "student_t": "StudentT",
        "token_scores": "TokenScores",
        "weighted": "WeightedDistribution",
    },
)
_UNSTORED: "Registry[Distribution]" = Registry("candide.distributions", {"base": "Distribution", "density": "Density"})


def get_class(name: str) -> Any:
    """A class by its own name: the ``__getattr__`` of the package."""
    return (_UNSTORED if name in ("Distribution", "Density") else DISTRIBUTIONS).get_class(name)
