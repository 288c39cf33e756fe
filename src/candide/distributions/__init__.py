"""Distributions: fitted parameters. They score rows, explain a score feature by feature, and sample.

Each is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from candide.distributions.base import Distribution

if TYPE_CHECKING:
    from candide.distributions.density import Density
    from candide.distributions.dirichlet_multinomial import DirichletMultinomial
    from candide.distributions.linear import TermWeights
    from candide.distributions.multivariate import MultivariateNormal, MultivariateT
    from candide.distributions.normal import LogScale, Normal, StudentT
    from candide.distributions.tables import LevelTable, Switch
    from candide.distributions.terms import PolyaDocuments, TermScores

__all__ = [
    "Density",
    "DirichletMultinomial",
    "Distribution",
    "LevelTable",
    "LogScale",
    "MultivariateNormal",
    "MultivariateT",
    "Normal",
    "PolyaDocuments",
    "StudentT",
    "Switch",
    "TermScores",
    "TermWeights",
]
_HOME = {
    "Density": "density",
    "DirichletMultinomial": "dirichlet_multinomial",
    "LevelTable": "tables",
    "LogScale": "normal",
    "MultivariateNormal": "multivariate",
    "MultivariateT": "multivariate",
    "Normal": "normal",
    "StudentT": "normal",
    "Switch": "tables",
    "PolyaDocuments": "terms",
    "TermScores": "terms",
    "TermWeights": "linear",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'candide.distributions' has no attribute {name!r}")
    return getattr(import_module(f"candide.distributions.{_HOME[name]}"), name)
