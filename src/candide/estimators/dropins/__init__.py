"""scikit-learn's five naive Bayes classifiers: its parameters, attributes and results, from tallies."""

from candide.estimators.dropins.bernoulli import BernoulliNB
from candide.estimators.dropins.categorical import CategoricalNB
from candide.estimators.dropins.gaussian import GaussianNB
from candide.estimators.dropins.multinomial import ComplementNB, MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
