"""Iris by Gaussian naive Bayes: two and three species, with variances learned, shared by the species, or fixed at 1.

    python examples/iris.py [FOLDER]

Where the species share their variances the boundary is a line; where each has its own it is a curve. The surface is
p(versicolor | x) - p(setosa | x).
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import candide as cd
from candide import plot
from candide.events import Gaussian

VARIANCES = {
    "learned": Gaussian(covariance="diagonal"),
    "shared": Gaussian(covariance="tied-diagonal"),
    "fixed": Gaussian(covariance="fixed", fixed=1.0),
}
TITLES = {
    "learned": "variance learned for each class",
    "shared": "variance shared by the classes",
    "fixed": "variance = 1",
}
TWO, SEPAL = ("setosa", "versicolor"), ("sepal length (cm)", "sepal width (cm)")
THREE, PETAL = ("setosa", "versicolor", "virginica"), ("petal length (cm)", "petal width (cm)")


def rows(species: tuple[str, ...], features: tuple[str, str]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two measurements of some species."""
    iris = load_iris()
    y = iris.target_names[iris.target]
    keep = np.isin(y, species)
    return {name: iris.data[keep, iris.feature_names.index(name)] for name in features}, y[keep]


def fitted(variance: str, species: tuple[str, ...], features: tuple[str, str]) -> cd.NaiveBayes:
    """Maximum likelihood, as in the lecture."""
    return cd.NaiveBayes(VARIANCES[variance], estimate="mle").fit(*rows(species, features))


def main(folder: str | Path = ".") -> dict[str, tuple[cd.NaiveBayes, Any]]:
    """Draw all pictures into a folder; give back each model with its axes, by the picture's name."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for species, features, number in ((TWO, SEPAL, "two"), (THREE, PETAL, "three")):
        X, y = rows(species, features)
        for variance, title in TITLES.items():
            model = fitted(variance, species, features)
            ax = plot.regions(model, X, y)
            ax.set_title(f"Iris, {number} classes: {title}", fontsize="medium")
            found[f"iris_{number}_{variance}"] = (model, ax)
    for variance in ("learned", "shared"):
        model = fitted(variance, TWO, SEPAL)
        ax = plot.posterior_surface(model, rows(TWO, SEPAL)[0])
        ax.set_title(f"{ax.get_title()}, {TITLES[variance]}", fontsize="medium")
        found[f"iris_surface_{variance}"] = (model, ax)
    for name, (_, ax) in found.items():
        ax.figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(ax.figure)
    return found


if __name__ == "__main__":
    print("\n".join(main(*sys.argv[1:2])))
