"""Adult or child, by height and weight: two Gaussians for each class, their contours, and the decision.

    python examples/height_and_weight.py [FOLDER]

The people are made up: drawn from the four Gaussians below. Where the variances of adults and children differ the
boundary is quadratic; where one variance is shared it is a line.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import candide as cd
from candide import plot
from candide.events import Gaussian

HEIGHT, WEIGHT = "height (cm)", "weight (kg)"
PEOPLE = {"adult": ((171.0, 9.0), (73.0, 13.0)), "child": ((128.0, 17.0), (29.0, 9.0))}  # mean, deviation of each


def rows(n: int = 120, seed: int = 4) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """As many adults as children."""
    rng = np.random.default_rng(seed)
    drawn = {who: [rng.normal(*law, n) for law in laws] for who, laws in PEOPLE.items()}
    height, weight = (np.concatenate([drawn[who][i] for who in PEOPLE]) for i in (0, 1))
    return {HEIGHT: height.round(1), WEIGHT: np.maximum(weight, 4.0).round(1)}, np.repeat(list(PEOPLE), n)


def densities(model: cd.NaiveBayes, X: dict[str, np.ndarray], y: np.ndarray) -> list[Any]:
    """p(height | class) and p(weight | class), side by side."""
    _, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
    for ax, feature in zip(axes, (HEIGHT, WEIGHT), strict=True):
        plot.densities(model, X, y, feature=feature, ax=ax)
    return axes.tolist()


def contours(model: cd.NaiveBayes, X: dict[str, np.ndarray], y: np.ndarray) -> Any:
    """The contours of both classes over their regions."""
    ax = plot.regions(model, X, y)
    return plot.ellipses(model, ax=ax, levels=(1, 2, 3))


def main(folder: str | Path = ".") -> dict[str, tuple[cd.NaiveBayes, Any]]:
    """Draw all pictures into a folder; give back each model with its axes, by the picture's name."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    X, y = rows()
    learned = cd.NaiveBayes("gaussian", estimate="mle").fit(X, y)
    shared = cd.NaiveBayes(Gaussian(covariance="tied-diagonal"), estimate="mle").fit(X, y)
    found = {
        "height_and_weight_densities": (learned, densities(learned, X, y)),
        "height_and_weight_quadratic": (learned, contours(learned, X, y)),
        "height_and_weight_linear": (shared, contours(shared, X, y)),
    }
    found["height_and_weight_quadratic"][1].set_title("variances differ: a quadratic boundary", fontsize="medium")
    found["height_and_weight_linear"][1].set_title("variances shared: a linear boundary", fontsize="medium")
    for name, (_, axes) in found.items():
        figure = (axes[0] if isinstance(axes, list) else axes).figure
        figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(figure)
    return found


if __name__ == "__main__":
    print("\n".join(main(*sys.argv[1:2])))
