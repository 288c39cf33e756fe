"""One pocket: a narrow class in the midst of a wide one. With a variance for each class naive Bayes rings it in.

    python examples/one_pocket.py [FOLDER]

The difference of two log-densities with unequal variances is a quadratic form; here both squares have the same sign, so
the boundary is a closed curve, an ellipse. With shared variances it can only be a line, and there is no pocket.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import candide as cd
from candide import plot
from candide.events import Gaussian


def rows(n: int = 90, seed: int = 2) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A pocket around (0.4, -0.2) in a wide cloud around the origin."""
    rng = np.random.default_rng(seed)
    wide, narrow = rng.normal((0.0, 0.0), (2.2, 1.8), (n, 2)), rng.normal((0.4, -0.2), (0.8, 0.6), (n, 2))
    x = np.vstack([wide, narrow])
    return {"x1": x[:, 0], "x2": x[:, 1]}, np.repeat(["around", "pocket"], n)


def main(folder: str | Path = ".") -> dict[str, tuple[cd.NaiveBayes, Any]]:
    """Draw all pictures into a folder; give back each model with its axes, by the picture's name."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    X, y = rows()
    learned = cd.NaiveBayes("gaussian", estimate="mle").fit(X, y)
    shared = cd.NaiveBayes(Gaussian(covariance="tied-diagonal"), estimate="mle").fit(X, y)
    found = {
        "one_pocket_learned": (learned, plot.regions(learned, X, y)),
        "one_pocket_shared": (shared, plot.regions(shared, X, y)),
        "one_pocket_ellipses": (learned, plot.ellipses(learned, X, y)),
        "one_pocket_surface": (learned, plot.posterior_surface(learned, X)),
    }
    found["one_pocket_learned"][1].set_title("One pocket: variance learned for each class", fontsize="medium")
    found["one_pocket_shared"][1].set_title("No pocket: variance shared by the classes", fontsize="medium")
    for name, (_, ax) in found.items():
        ax.figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(ax.figure)
    return found


if __name__ == "__main__":
    print("\n".join(main(*sys.argv[1:2])))
