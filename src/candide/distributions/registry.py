"""The distributions that a file may name, one line each."""

from typing import TYPE_CHECKING

from candide.registry import Registry

if TYPE_CHECKING:
    from candide.distributions.base import Distribution

DISTRIBUTIONS: "Registry[Distribution]" = Registry(
    "candide.distributions",
    {
        "bernoulli": "Bernoulli",
        "binned": "categorical.Binned",
        "categorical": "Categorical",
        "dirichlet_multinomial": "multinomial.DirichletMultinomial",
        "exponential": "density.Exponential",
        "log_scale": "normal.LogScale",
        "lomax": "density.Lomax",
        "multinomial": "Multinomial",
        "multivariate_normal": "elliptical.MultivariateNormal",
        "multivariate_t": "elliptical.MultivariateT",
        "negative_binomial": "density.NegativeBinomial",
        "normal": "Normal",
        "poisson": "density.Poisson",
        "polya_documents": "documents.PolyaDocuments",
        "student_t": "normal.StudentT",
        "token_scores": "TokenScores",
        "weighted": "base.WeightedDistribution",
        "weighted_tokens": "token_scores.WeightedTokens",
    },
)
_UNSAVED = {"base": "Distribution", "density": "Density"}
get_class = Registry("candide.distributions", {**DISTRIBUTIONS.class_names, **_UNSAVED}).get_class
