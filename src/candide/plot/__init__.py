"""Pictures of a model: each function takes axes or makes them, draws, and gives the axes back.

``model`` is any fitted estimator of Candide, or what a model file holds. matplotlib is imported at the first picture
(``pip install 'candide[plot]'``). A class has the same colour and marker in every picture of its model, from a
palette that colour-blind readers can tell apart (Okabe and Ito, 2008).

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> ax = densities(FittedModel(garden()), feature="height_cm")
>>> ax.get_xlabel(), [line.get_label() for line in ax.lines]
('height_cm', ['lavender', 'sage', 'thyme'])
>>> import matplotlib.pyplot as plt
>>> plt.close(ax.figure)
"""

from candide.plot.curves import dirichlet, posterior_curve
from candide.plot.discriminants import discriminant
from candide.plot.gaussians import ellipses
from candide.plot.graph import network
from candide.plot.images import class_means
from candide.plot.nomogram import nomogram
from candide.plot.planes import posterior_surface, regions
from candide.plot.quality import calibration, confusion
from candide.plot.term_plot import term
from candide.plot.threshold_curves import coverage, lift, precision_recall, roc, thresholds
from candide.plot.univariate import densities

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
