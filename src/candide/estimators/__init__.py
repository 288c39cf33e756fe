"""The scikit-learn face: the only layer that imports sklearn."""

from candide.estimators.dropins import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from candide.estimators.naive_bayes import NaiveBayes, fit, load

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB", "NaiveBayes", "fit", "load"]
