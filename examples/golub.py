"""Two kinds of leukaemia told apart by the activity of 7129 genes (Golub et al., 1999): 38 samples, and 34 to test.

    python examples/golub.py [FOLDER]

The table is read from the folder that the environment variable CANDIDE_DATA names, else from ../shared/data. How many
genes to use is chosen by cross-validation on the 38 samples alone: the folds are counted once, the counts of the others
are what is left when a fold is taken from the whole, and each choice of genes is made from those counts. The 34 samples
play no part in it. The picture is the discriminant log p(AML | x) / p(ALL | x) of each of them.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import candide as cd

DATA = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of genes that are tried
FOLDS = 10


@dataclass
class Result:
    """The model of the training samples, how it was chosen, and what it makes of the test samples."""

    model: cd.NaiveBayes
    log_loss: dict[int, float]  # cross-validated on the training samples, by the number of genes
    genes: list[str]
    X: np.ndarray  # test samples
    y: np.ndarray

    @property
    def errors(self) -> int:
        return int((self.model.predict(self.X) != self.y).sum())


def validated(X: np.ndarray, y: np.ndarray) -> dict[int, float]:
    """The cross-validated log loss of each number of genes, from counts made once."""
    fold = np.arange(len(y)) % FOLDS
    whole, lost = cd.NaiveBayes("gaussian").fit(X, y), dict.fromkeys(SIZES, 0.0)
    for f in range(FOLDS):
        test = fold == f
        others = whole - cd.NaiveBayes("gaussian").partial_fit(X[test], y[test])
        truth = np.searchsorted(others.classes_, y[test])
        for size in SIZES:
            log_p = others.with_prior(select=size).predict_log_proba(X[test])
            lost[size] -= log_p[np.arange(len(truth)), truth].sum() / len(y)
    return lost


def run(path: str | Path = DATA / "tables" / "golub_leukemia.parquet") -> Result:
    """Read, choose on the training samples, fit them."""
    table = pq.read_table(path)
    y, train = np.array(table["class"]), np.array(table["split"]) == "train"
    genes = table.drop_columns(["class", "split"])
    X = np.column_stack([column.to_numpy() for column in genes.columns]).astype(np.float64)
    lost = validated(X[train], y[train])
    model = cd.NaiveBayes("gaussian", select=min(lost, key=lost.__getitem__)).fit(X[train], y[train])
    return Result(model, lost, genes.column_names, X[~train], y[~train])


def main(folder: str | Path = ".") -> Result:
    """Print what was found, and draw the discriminant of the test samples."""
    found = run()
    for size, loss in found.log_loss.items():
        print(f"{size:5} genes: cross-validated log loss {loss:.3f}")
    best = [found.genes[score.column] for score in found.model.feature_scores()[:5]]
    print(f"{found.model.select} genes chosen, first of all {', '.join(best)}")
    print(f"{found.errors} errors in {len(found.y)} test samples")
    try:
        from candide import plot

        ax = plot.discriminant(found.model, found.X, found.y, kind="bars", positive="AML")
    except ImportError as error:  # matplotlib is optional
        print(error)
        return found
    title = f"Leukaemia: {len(found.y)} test samples, {found.model.select} genes, {found.errors} errors"
    ax.set_title(title, loc="left")
    ax.figure.savefig(Path(folder) / "golub.png", dpi=120)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
