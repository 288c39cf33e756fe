"""Distributions: fitted parameters. They score rows, explain a score feature by feature, and sample."""

from candide.distributions.base import Distribution
from candide.distributions.density import Density
from candide.distributions.dirichlet_multinomial import DirichletMultinomial
from candide.distributions.linear import TermWeights
from candide.distributions.normal import LogScale, Normal, StudentT
from candide.distributions.tables import LevelTable, Switch

__all__ = [
    "Density",
    "DirichletMultinomial",
    "Distribution",
    "LevelTable",
    "LogScale",
    "Normal",
    "StudentT",
    "Switch",
    "TermWeights",
]
