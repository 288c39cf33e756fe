"""Noise: how often BayesClassifier admits interactions where there are none, and what noise costs in log-loss."""

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

import candide as cd
from benchmarks import results
from benchmarks.accuracy import folds, read

SIZES = ((100, 20), (300, 50), (1_000, 50), (100, 200), (5_000, 30))
CLASSES = {"balanced": (0.5, 0.5), "10 % positive": (0.9, 0.1), "3 classes": (1 / 3, 1 / 3, 1 / 3)}
KINDS = ("numbers", "5 levels")
TABLES, TABLES_LARGEST, TABLES_SCORED = 300, 100, 30
NEW_ROWS = 4_000
REAL = ("tic_tac_toe", "car_evaluation", "nursery")


def run(*, quick: bool = False, n_tables: int | None = None) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise = [_print(line) for line in _noise_lines(quick, n_tables)]
        signal = [_print(line) for line in _signal_lines(quick)]
    head = ["rows x columns", "kind", "classes", "tables", "with an interaction", "mean excess", "worst excess"]
    parts = [
        "Tables of noise. Asked: at most 2 % of the tables with an interaction, and a log-loss on new rows above that "
        f"of the class prior by at most .02 in the mean and .10 in the worst of {TABLES_SCORED} tables.",
        results.table(head, noise),
        "Tables with signal:",
        results.table(["table", "interactions", "log-loss", "asked"], signal),
    ]
    return "\n\n".join(parts)


def noise_table(
    n_rows: int, n_columns: int, kind: str, shares: tuple[float, ...], seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Independent columns, and classes that depend on none of them."""
    rng = np.random.default_rng([n_rows, n_columns, KINDS.index(kind), len(shares), seed])
    if kind == "numbers":
        values = rng.normal(size=(n_rows, n_columns))
    else:
        values = np.array(list("abcde"), object)[rng.integers(0, 5, (n_rows, n_columns))]
    return pd.DataFrame(values).add_prefix("x"), rng.choice(len(shares), n_rows, p=shares)


def count_interactions(model: cd.BayesClassifier) -> int:
    return sum(len(part.spec.sets) for part in model.fitted_.plan.parts)


def _noise_lines(quick: bool, n_tables: int | None) -> Iterator[list[str]]:
    for n_rows, n_columns in SIZES[:1] if quick else SIZES:
        for kind in KINDS:
            for classes, shares in CLASSES.items():
                largest = n_rows * n_columns**2 > 2_000_000
                tables = n_tables or (5 if quick else TABLES_LARGEST if largest else TABLES)
                admitted, excess = _measure(n_rows, n_columns, kind, shares, tables)
                share = f"{admitted} ({100 * admitted / tables:.1f} %)"
                figures = [f"{np.mean(excess):+.4f}", f"{np.max(excess):+.4f}"]
                yield [f"{n_rows:,} x {n_columns}", kind, classes, str(tables), share, *figures]


def _measure(n_rows: int, n_columns: int, kind: str, shares: tuple[float, ...], tables: int) -> tuple[int, list[float]]:
    """How many tables have an interaction, and the log-loss of new rows above that of the class prior."""
    admitted, excess = 0, []
    for seed in range(tables):
        scored = NEW_ROWS if seed < TABLES_SCORED else 0
        X, y = noise_table(n_rows + scored, n_columns, kind, shares, seed)
        model = cd.BayesClassifier().fit(X[:n_rows], y[:n_rows])
        admitted += count_interactions(model) > 0
        if scored:
            counts = np.bincount(y[:n_rows], minlength=len(shares))
            prior = (counts + 0.5) / (n_rows + 0.5 * len(shares))
            excess.append(_log_loss(model, X[n_rows:], y[n_rows:]) + float(np.log(prior[y[n_rows:]]).mean()))
    return admitted, excess


def _signal_lines(quick: bool) -> Iterator[list[str]]:
    for name, extra, kind, limit in (
        ("XOR of two columns, 10 % label noise", 0, "levels", "below .40"),
        ("XOR among 50 noise columns", 50, "levels", "below .40"),
        ("XOR of two signs among 50 noise columns", 50, "numbers", "found"),
    ):
        X, y = _xor(extra, kind)
        model = cd.BayesClassifier().fit(X[:1000], y[:1000])
        yield [name, str(count_interactions(model)), f"{_log_loss(model, X[1000:], y[1000:]):.3f}", limit]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300 + NEW_ROWS, 100))).add_prefix("x")
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-X.to_numpy()[:, :3] @ [1.0, -1.0, 1.0]))).astype(int)
    model = cd.BayesClassifier().fit(X[:300], y[:300])
    yield ["3 of 100 columns", str(count_interactions(model)), f"{_log_loss(model, X[300:], y[300:]):.3f}", "none"]
    for name in () if quick else REAL:
        X, labels = read(name)
        train, test = folds(labels)[0]
        model = cd.BayesClassifier().fit(X.iloc[train], labels[train])
        codes = np.searchsorted(np.asarray(model.classes_).astype(str), labels[test])
        yield [name, str(count_interactions(model)), f"{_log_loss(model, X.iloc[test], codes):.3f}", "found"]


def _xor(extra: int, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    rng, shape = np.random.default_rng(0), (1000 + NEW_ROWS, 2 + extra)
    values = rng.integers(0, 2, shape) if kind == "levels" else rng.normal(size=shape)
    y = (values[:, 0] > 0) ^ (values[:, 1] > 0) ^ (rng.random(shape[0]) < 0.1)
    X = pd.DataFrame(values).add_prefix("x")
    return X.astype(str) if kind == "levels" else X, y.astype(int)


def _log_loss(model: cd.BayesClassifier, X: pd.DataFrame, y: np.ndarray) -> float:
    p = model.predict_proba(X)[np.arange(len(y)), y]
    return float(-np.log(np.maximum(p, 1e-15)).mean())


def _print(line: list[str]) -> list[str]:
    print(" | ".join(line), flush=True)
    return line
