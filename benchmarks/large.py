"""Accuracy and processor time of BayesClassifier and boosting on tables of 20,000 to 200,000 rows.

Three tables are real and three are drawn with a fixed seed. Of the drawn ones the true probabilities are known, and
their scores are the best that a model can reach. Each result is added to ``build/large.jsonl`` as soon as it is
measured, and an interrupted run continues from that file.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import results
from benchmarks.accuracy import (
    FOLDER,
    METRICS,
    TIMES,
    CategoryModel,
    bayes,
    bayes_tables,
    boosting,
    clock,
    lightgbm,
    make_lightgbm,
    read,
    scores,
    split_tenth,
    warm_up,
)

RESULTS = Path(__file__).resolve().parents[1] / "build" / "large.jsonl"
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"min_child_samples": 100, "reg_lambda": 10.0},
    {"colsample_bytree": 0.5, "subsample": 0.7, "subsample_freq": 1},
)
TUNED_PATIENCE = 50  # rounds without a gain on the held-out rows
NOISE = 0.1  # share of the labels of the random tree that are replaced


@dataclass(frozen=True)
class Split:
    """Training and test rows; of drawn tables also the true probabilities of the test rows."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    true: np.ndarray | None = None

    @classmethod
    def from_rows(cls, X: pd.DataFrame, y: np.ndarray, is_test: np.ndarray, true: np.ndarray | None = None) -> "Split":
        test_true = None if true is None else true[is_test]
        return cls(X[~is_test], y[~is_test], X[is_test], y[is_test], test_true)

    def take_tenth(self) -> "Split":
        """Every tenth row, of training and of test rows."""
        true = None if self.true is None else self.true[::10]
        return Split(self.X[::10], self.y[::10], self.X_test[::10], self.y_test[::10], true)


def adult(*, quick: bool = False) -> Split:
    split = Split(*read("adult_train"), *read("adult_test"))
    return split.take_tenth() if quick else split


def letter(*, quick: bool = False) -> Split:
    X, y = read("letter")
    split = Split.from_rows(X, y, _draw_third(len(y)))
    return split.take_tenth() if quick else split


def digits(*, quick: bool = False) -> Split:
    """MNIST, each block of 4 x 4 pixels replaced by its mean."""
    with np.load(FOLDER / "mnist.npz") as file:
        images = {part: file[f"X_{part}"] for part in ("train", "test")}
        labels = {part: file[f"y_{part}"].astype(str).astype(object) for part in ("train", "test")}
    names = [f"row {i} column {j}" for i in range(7) for j in range(7)]
    frames = {
        part: pd.DataFrame(pixels.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49), columns=names)
        for part, pixels in images.items()
    }
    split = Split(frames["train"], labels["train"], frames["test"], labels["test"])
    return split.take_tenth() if quick else split


def random_tree(*, quick: bool = False) -> Split:
    """Three classes by the leaves of a tree of depth 12 over 12 numbers and 8 categories; 10 % of labels replaced.

    The class scores of a node are those of its parent plus a normal number, so that upper splits are informative too.
    """
    n, k, depth, rng = 20_000 if quick else 200_000, 3, 12, np.random.default_rng(12)
    numbers = rng.normal(size=(n, 12))
    numbers[:, 6:] = np.exp(numbers[:, 6:]).round(1)
    levels = np.stack([rng.choice(m, n, p=rng.dirichlet(np.full(m, 3.0))) for m in (2, 3, 4, 5, 6, 8, 12, 20)], axis=1)
    leaf = np.zeros(n, np.intp)  # class of the leaf of each row
    nodes = [(np.arange(n), np.zeros(k), 0)]
    while nodes:
        rows, score, level = nodes.pop()
        if level == depth or len(rows) < 20:
            leaf[rows] = score.argmax()
            continue
        j = rng.integers(20)
        if j < 12:
            is_left = numbers[rows, j] <= np.quantile(numbers[rows, j], rng.uniform(0.2, 0.8))
        else:
            is_left = (rng.random(20) < 0.5)[levels[rows, j - 12]]
        for side in (rows[is_left], rows[~is_left]):
            nodes.append((side, score + rng.normal(size=k), level + 1))
    true = np.full((n, k), NOISE / (k - 1))
    true[np.arange(n), leaf] = 1 - NOISE
    X = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(12)])
    for j in range(8):
        X[f"level {j}"] = _level_names(levels[:, j])
    return Split.from_rows(X, _draw_labels(true, rng), _draw_third(n), true)


def linear_model(*, quick: bool = False) -> Split:
    """Logistic model of 10 normal columns, with 50 columns of noise."""
    n, rng = 10_000 if quick else 100_000, np.random.default_rng(10)
    numbers = rng.normal(size=(n, 60))
    score = numbers[:, :10] @ (rng.choice([-1.0, 1.0], 10) * np.linspace(0.2, 1.2, 10))
    true = _two_classes(score)
    X = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(60)])
    return Split.from_rows(X, _draw_labels(true, rng), _draw_third(n), true)


def drift(*, quick: bool = False) -> Split:
    """Rows in time order: effects of numbers and levels change over time, and rows near in time are alike.

    The score adds numbers with slowly changing coefficients, levels whose effects change at random times, and a random
    walk of its own, which is the same for rows of the same moment. Every third row is a test row.
    """
    n, rng = 10_000 if quick else 100_000, np.random.default_rng(11)
    time, n_numbers, periods = np.arange(n) / n, 6, 25
    numbers = rng.normal(size=(n, n_numbers))
    phase, speed = rng.uniform(0, 2 * np.pi, n_numbers), rng.uniform(1, 6, n_numbers)
    score = (numbers * 0.7 * np.sin(phase + speed * 2 * np.pi * time[:, None])).sum(axis=1)
    X = pd.DataFrame({"time": time, **{f"number {j}": numbers[:, j] for j in range(n_numbers)}})
    for name, m in {"region": 5, "shop": 12, "product": 40}.items():
        code, starts = rng.integers(m, size=n), np.sort(rng.uniform(size=periods - 1))
        effect = np.cumsum(rng.normal(size=(periods, m)) * 0.4, axis=0)
        effect -= effect.mean(axis=1, keepdims=True)
        score += 0.7 * (effect / effect.std())[np.searchsorted(starts, time), code]
        X[name] = _level_names(code)
    walk = np.cumsum(rng.normal(size=400))
    walk = np.interp(time, np.linspace(0, 1, 400), walk - walk.mean())
    score += walk / walk.std()
    hour = np.arange(n) % 24
    X["hour"] = hour
    score += 0.8 * np.sin(2 * np.pi * hour / 24) * (numbers[:, 0] > 0)
    true = _two_classes(score)
    return Split.from_rows(X, _draw_labels(true, rng), np.arange(n) % 3 == 2, true)


def lightgbm_tuned(X: pd.DataFrame, y: np.ndarray) -> Any:
    """The best of three settings by the log-loss of a tenth of the rows, which also stops the rounds."""
    train, held_out = split_tenth(y)
    held_out_rows = (X.iloc[held_out], y[held_out])
    shared = {"n_estimators": 1000, "num_leaves": 63, "learning_rate": 0.05}
    models = [
        CategoryModel(make_lightgbm(**shared, **settings)).fit(X.iloc[train], y[train], held_out_rows, TUNED_PATIENCE)
        for settings in SETTINGS
    ]
    return min(models, key=lambda fitted: min(fitted.model.best_score_["valid_0"].values()))


TABLES: dict[str, Callable[..., Split]] = {
    "adult": adult,
    "letter": letter,
    "MNIST 7 x 7": digits,
    "random tree": random_tree,
    "linear model": linear_model,
    "drift": drift,
}
MODELS: dict[str, Callable] = {
    "bayes": bayes,
    "lightgbm": lightgbm,
    "boosting": boosting,
    "bayes_tables": bayes_tables,
    "lightgbm_tuned": lightgbm_tuned,
}
NAMES = {
    "bayes": "BayesClassifier",
    "bayes_tables": 'BayesClassifier(terms="tables")',
    "lightgbm": "LightGBM",
    "lightgbm_tuned": "LightGBM, tuned",
    "boosting": "HistGradientBoosting",
    "true": "true probabilities",
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="TABLE", help="only these")
    parser.add_argument("--models", nargs="+", choices=MODELS, help="only these")
    parser.add_argument("--again", nargs="+", choices=MODELS, default=[], help="measure these models again")


def run(*, quick: bool = False, tables: Any = None, models: Any = None, again: Iterable[str] = ()) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    names, models = list(tables or TABLES), list(models or MODELS)
    known = {} if quick else _read_results(without=again)
    todo = {name: [model for model in models if (name, model) not in known] for name in names}
    for model in {model for pending in todo.values() for model in pending}:
        warm_up(MODELS[model])
    for name, pending in todo.items():  # all models of a table one after another, under the same load of the machine
        split = TABLES[name](quick=quick) if pending else None
        if split and split.true is not None and (name, "true") not in known:
            _add(known, name, "true", _describe(split) | _score(split, split.true), keep=not quick)
        for model in pending:
            _add(known, name, model, _describe(split) | _measure(split, MODELS[model]), keep=not quick)
    section = _section(names, known)
    print(section)
    return section


Found = dict[str, float]
Known = dict[tuple[str, str], Found]


def _add(known: Known, name: str, model: str, found: Found, *, keep: bool) -> None:
    known[name, model] = found
    if keep:
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps({"table": name, "model": model, **found}) + "\n")
    print(" | ".join([name, *_cells(model, found)]), flush=True)


def _read_results(*, without: Iterable[str]) -> Known:
    """Earlier results; the last of repeated ones."""
    if not RESULTS.exists():
        return {}
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {(line.pop("table"), line.pop("model")): line for line in lines if line["model"] not in set(without)}


def _describe(split: Split) -> Found:
    return {"rows": len(split.y), "test rows": len(split.y_test), "columns": split.X.shape[1]}


def _measure(split: Split, fit: Callable) -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = clock()
        fitted = fit(split.X, split.y)
        middle = clock()
        p = fitted.predict_proba(split.X_test)
        end = clock()
    (fit_s, fit_cpu), (predict_s, predict_cpu) = (middle - start).tolist(), (end - middle).tolist()
    times = {"fit": fit_s, "fit cpu": fit_cpu, "predict": predict_s, "predict cpu": predict_cpu}
    return _score(split, p) | times


def _score(split: Split, p: np.ndarray) -> Found:
    return scores(p, np.searchsorted(np.unique(split.y), split.y_test), average="macro")


def _cells(model: str, found: Found) -> list[str]:
    metrics = [f"{found[metric]:.4f}" for metric in METRICS]
    return [NAMES[model], *metrics, *(f"{found[what]:.3g}" if what in found else "" for what in TIMES)]


def _section(names: list[str], known: Known) -> str:
    """One table of results for each table of data."""
    parts = [
        "AUC: the mean of each class against the rest. LightGBM, tuned: 1,000 rounds, 63 leaves, learning rate .05, "
        f"the best of {len(SETTINGS)} settings by the log-loss of a tenth of the training rows, each stopped after "
        f"{TUNED_PATIENCE} rounds without a gain on them; its seconds are those of all settings. The rest: defaults."
    ]
    for name in names:
        models = [model for model in NAMES if (name, model) in known]
        if not models:
            continue
        found = known[name, models[0]]
        size = f"{found['rows']:,} training and {found['test rows']:,} test rows, {found['columns']} columns"
        lines = [_cells(model, known[name, model]) for model in models]
        parts += [f"**{name}**: {size}", results.table(["model", *METRICS, *TIMES.values()], lines)]
    return "\n\n".join(parts)


def _draw_third(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n) < n // 3


def _draw_labels(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A class of each row by its probabilities."""
    codes = (true.cumsum(axis=1) < rng.random(len(true))[:, None]).sum(axis=1).clip(0, true.shape[1] - 1)
    return np.array([f"class {c}" for c in range(true.shape[1])], object)[codes]


def _two_classes(score: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return np.stack([expit(-score), expit(score)], axis=1)


def _level_names(codes: np.ndarray) -> np.ndarray:
    return np.array([f"level {c}" for c in range(codes.max() + 1)], object)[codes]
