"""The scikit-learn face: the only layer that imports sklearn."""

from candide.estimators.dropins import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from candide.estimators.factory import fit, load
from candide.estimators.gaussian_bayes import GaussianBayes
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.text import TextNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianBayes",
    "GaussianNB",
    "MultinomialNB",
    "NaiveBayes",
    "TextNB",
    "fit",
    "load",
]
