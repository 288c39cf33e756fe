"""The laws that a file may name, one line each.

>>> LAWS["student_t"].__name__, "os.system" in LAWS
('StudentT', False)
"""

from typing import TYPE_CHECKING, Any

from candide.tables import Table

if TYPE_CHECKING:
    from candide.distributions.base import Distribution

LAWS: "Table[Distribution]" = Table(
    "candide.distributions",
    {
        "bernoulli": "Bernoulli",
        "binned": "Binned",
        "categorical": "Categorical",
        "dirichlet_multinomial": "DirichletMultinomial",
        "discriminants": "Discriminants",
        "exponential": "Exponential",
        "heard_terms": "HeardTerms",
        "interactions": "Interactions",
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
    },
)
_OTHERS: "Table[Distribution]" = Table("candide.distributions", {"base": "Distribution", "density": "Density"})


def attribute(name: str) -> Any:
    """A class by its own name: the ``__getattr__`` of the package."""
    return (_OTHERS if name in ("Distribution", "Density") else LAWS).attribute(name)
