"""Pictures of a model: each function draws on the axes it is given, or on new ones, and returns the axes.

``model`` is any fitted estimator of Candide, or a loaded model file. matplotlib is imported when the first plot is
drawn (``pip install 'candide[plot]'``). A class has the same colour and marker in every plot of its model, from a
palette that colour-blind readers can distinguish (Okabe and Ito, 2008).

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> ax = densities(FittedModel(garden()), feature="height_cm")
>>> ax.get_xlabel(), [line.get_label() for line in ax.lines]
('height_cm', ['lavender', 'sage', 'thyme'])
"""

from candide.plot.contributions import nomogram, term
from candide.plot.densities import dirichlet, posterior_curve
from candide.plot.features import class_means, densities
from candide.plot.graph import network
from candide.plot.performance import calibration, confusion, discriminant
from candide.plot.planes import ellipses, posterior_surface, regions
from candide.plot.threshold_curves import coverage, lift, precision_recall, roc, thresholds

__all__ = [
    "calibration",
    "class_means",
    "confusion",
    "coverage",
    "densities",
    "dirichlet",
    "discriminant",
    "ellipses",
    "lift",
    "network",
    "nomogram",
    "posterior_curve",
    "posterior_surface",
    "precision_recall",
    "regions",
    "roc",
    "term",
    "thresholds",
]
