"""Ng and Jordan's experiment (2001): naive Bayes against logistic regression as the training set grows, on real tables.

    python examples/ng_and_jordan.py            # all tables, two or three minutes on two cores
    python examples/ng_and_jordan.py --quick    # three tables, few draws

The tables are read from the folder that the environment variable CANDIDE_DATA names, else from ../shared/data; the
digits come with scikit-learn. As in the paper a number has a variance that the classes share, so that naive Bayes and
logistic regression draw the same sort of boundary. Beside this pair: naive Bayes with a variance of its own in each
class, logistic regression with scikit-learn's usual penalty on the weights, and the perceptron.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from learning_curves import LearningCurves, default_models, learning_curves
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import candide as cd

DATA = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "tables"
MOST_ROWS = 3000  # of a large table; a third of them tests
# name: (file, the two classes if there are more, whether the paper has it)
TABLES: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "adult": ("adult_train", (), True),
    "breast cancer": ("breast_cancer_wisconsin", (), True),
    "congressional voting": ("congressional_voting", (), True),
    "digits 0 or 1": ("digits", ("0", "1"), True),
    "digits 2 or 3": ("digits", ("2", "3"), True),
    "ionosphere": ("ionosphere", (), True),
    "lenses, hard or soft": ("lenses", ("hard", "soft"), True),
    "lymphography": ("lymphography", ("malign_lymph", "metastases"), True),
    "pima diabetes": ("pima_diabetes", (), True),
    "promoters": ("promoters", (), True),
    "sonar": ("sonar", (), True),
    "bank": ("bank", (), False),
    "german credit": ("german_credit", (), False),
    "heart": ("heart_cleveland", (), False),
    "mushroom": ("mushroom", (), False),
    "tic-tac-toe": ("tic_tac_toe", (), False),
}


def table(name: str) -> tuple[dict[str, Any], list[str]]:
    """The columns and labels of one table, restricted to two classes and to so many rows."""
    file, classes, _ = TABLES[name]
    if file == "digits":
        digits = load_digits()
        whole = pa.table({f"pixel {j}": column for j, column in enumerate(digits.data.T)})
        whole = whole.append_column("class", pa.array(digits.target.astype(str)))
    else:
        whole = pq.read_table(DATA / f"{file}.parquet")
    if classes:
        whole = whole.filter(pc.is_in(whole["class"], pa.array(classes, whole["class"].type)))
    if whole.num_rows > MOST_ROWS:
        whole = whole.take(np.random.default_rng(0).permutation(whole.num_rows)[:MOST_ROWS])
    columns = {column: whole[column] for column in whole.column_names if column != "class"}
    return columns, whole["class"].to_pylist()


def models(columns: dict[str, Any]) -> dict[str, Any]:
    """The paper's pair first, then the other three."""
    numbers = [name for name, values in columns.items() if not pa.types.is_large_string(values.type)]
    numbers = [name for name in numbers if set(columns[name].drop_null().unique().to_pylist()) - {0, 1}]
    shared = {name: cd.events.Gaussian(covariance="tied-diagonal") for name in numbers}
    others = default_models()
    return {
        "naive Bayes": cd.NaiveBayes(shared),
        "logistic regression": LogisticRegression(C=np.inf, max_iter=200),
        "with a penalty": others["logistic regression"],
        "perceptron": others["perceptron"],
        "variance per class": others["naive Bayes"],
    }


def curves_of(name: str, draws: int | None = None) -> LearningCurves:
    """The learning curves of one table: many draws of a small table, fewer of a large one."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # without a penalty weights may grow without end
    columns, y = table(name)
    left = len(y) - round(len(y) / 3)
    sizes = np.unique(np.geomspace(min(10, max(2, left // 3)), left, 8).round().astype(int))
    return learning_curves(
        columns, y, models=models(columns), sizes=sizes.tolist(), draws=draws or max(20, min(100, 20_000 // len(y)))
    )


def available() -> list[str]:
    return [name for name, (file, _, _) in TABLES.items() if file == "digits" or (DATA / f"{file}.parquet").exists()]


def lines(found: list[tuple[str, LearningCurves]]) -> Iterator[str]:
    """Two tables in Markdown: errors with the fewest and the most rows, and who takes over from naive Bayes where."""
    yield "| table | rows | naive Bayes | variance per class | logistic regression | with a penalty | perceptron |"
    yield "|---|---|---|---|---|---|---|"
    for name, curves in found:
        cell = {n: f"{a:.3f} → {b:.3f}" for n, (a, b) in zip(curves.names, curves.mean[:, [0, -1]], strict=True)}
        order = ("naive Bayes", "variance per class", "logistic regression", "with a penalty", "perceptron")
        yield f"| {name} | {curves.sizes[0]} → {curves.sizes[-1]} | {' | '.join(cell[n] for n in order)} |"
    yield ""
    yield "| table | naive Bayes against logistic regression | with a penalty | perceptron |"
    yield "|---|---|---|---|"
    for name, curves in found:
        verdicts = (
            curves.describe_comparison(other) for other in ("logistic regression", "with a penalty", "perceptron")
        )
        yield f"| {name} | {' | '.join(verdicts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three tables, few draws")
    quick = parser.parse_args().quick
    names = [name for name in available() if not quick or name.startswith(("digits", "lenses"))]
    with ProcessPoolExecutor(1 if quick else os.cpu_count()) as pool:
        found = pool.map(curves_of, names, [3 if quick else None] * len(names))
        print("\n".join(lines(list(zip(names, found, strict=True)))))


if __name__ == "__main__":
    main()
