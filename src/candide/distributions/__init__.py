"""Distributions: fitted parameters. They score rows, explain a score feature by feature, and sample.

One law a file, all with the same methods; each is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from candide.distributions.base import Distribution
from candide.distributions.density import Density

if TYPE_CHECKING:
    from candide.distributions.bernoulli import Bernoulli
    from candide.distributions.categorical import Categorical
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
    from candide.distributions.term_scores import TermScores
    from candide.distributions.weighted import Weighted

__all__ = [
    "LAWS",
    "Bernoulli",
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
    "TermScores",
    "Weighted",
]
# The laws that a file may name, each the name of its module too, and their classes: a closed table.
LAWS = {
    "bernoulli": "Bernoulli",
    "categorical": "Categorical",
    "dirichlet_multinomial": "DirichletMultinomial",
    "exponential": "Exponential",
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
    "term_scores": "TermScores",
    "weighted": "Weighted",
}


def __getattr__(name: str) -> Any:
    for module, law in LAWS.items():
        if law == name:
            return getattr(import_module(f"candide.distributions.{module}"), name)
    raise AttributeError(f"module 'candide.distributions' has no attribute {name!r}")
