"""Right answers: BayesClassifier beside its peers on real tables, by five folds, each model as it comes.

Every result is kept in ``build/accuracy.jsonl`` as soon as it is there, so that a run that was stopped goes on where it
was: what has been measured is not measured again, unless ``--again MODEL`` asks for it.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import results
from benchmarks.corpora import FOLDER as TEXTS

FOLDER = TEXTS.with_name("tables")
KEPT = Path(__file__).resolve().parents[1] / "build" / "accuracy.jsonl"
NOT = {"weather", "lenses", "adult_test", "golub_leukemia"}  # toys, the other half of a table, and rows in genes
LATE = ("adult_train", "letter")
HARD = "nursery"  # on which boosting fails
SMALL = 2_000  # rows of a table on which the slow peers are measured too
METRICS = {"accuracy": -1, "AUC": -1, "log-loss": 1}  # which way is better


def bayes(X: pd.DataFrame, y: np.ndarray) -> Any:
    import candide as cd

    return cd.BayesClassifier().fit(X, y)


def naive(X: pd.DataFrame, y: np.ndarray) -> Any:
    import candide as cd

    return cd.NaiveBayes().fit(X, y)


def linear(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Logistic regression of levels as 0/1 columns and of scaled numbers, gaps filled by the mean."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers, levels = _kinds(X)
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), levels),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(X, y)


def boosting(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Histogram gradient boosting, categories as such."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    numbers, levels = _kinds(X)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((codes, levels), ("passthrough", numbers))
    # Of many rows it sets some of each class aside to know when to stop, which a class of one row does not allow.
    stop = "auto" if np.unique(y, return_counts=True)[1].min() > 1 else False
    model = HistGradientBoostingClassifier(
        categorical_features=list(range(len(levels))), early_stopping=stop, random_state=0
    )
    return make_pipeline(columns, model).fit(X, y)


def additive(X: pd.DataFrame, y: np.ndarray) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0).fit(X, y)


def catboost(X: pd.DataFrame, y: np.ndarray) -> Any:
    from catboost import CatBoostClassifier

    levels = _kinds(X)[1]
    cores = len(os.sched_getaffinity(0))
    model = CatBoostClassifier(
        verbose=0, cat_features=levels, random_seed=0, allow_writing_files=False, thread_count=cores
    )
    model.fit(_filled(X), y)
    return _Filled(model)


class _Filled:
    """CatBoost takes no gap among categories: it is one more level."""

    def __init__(self, model: Any):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(_filled(X))


MODELS: dict[str, Callable] = {"bayes": bayes, "naive": naive, "linear": linear, "boosting": boosting}
SLOW: dict[str, tuple[Callable, str]] = {"catboost": (catboost, "catboost"), "ebm": (additive, "interpret")}
NAMES = {
    "bayes": "BayesClassifier",
    "naive": "NaiveBayes",
    "linear": "LogisticRegression",
    "boosting": "HistGradientBoosting",
    "catboost": "CatBoost",
    "ebm": "ExplainableBoosting",
}
RANKED = ("bayes", "linear", "boosting")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", metavar="TABLE", help="only these")
    parser.add_argument("--models", nargs="+", choices=NAMES, help="only these")
    parser.add_argument("--again", nargs="+", choices=NAMES, default=[], help="measure these models again")


def run(*, quick: bool = False, tables: Any = None, models: Any = None, again: Iterable[str] = ()) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    there = [*MODELS, *(name for name, (_, package) in SLOW.items() if _installed(name, package))]
    models = [name for name in there if (name in models if models else not quick or name in MODELS)]
    names = tables or (["iris", "heart_cleveland"] if quick else _tables())
    known = {} if quick else _kept(without=again)
    for model in models:
        for name in names:
            if (name, model) in known or (model in SLOW and _rows(name) > SMALL):
                continue
            known[name, model] = found = _measure(name, model)
            if not quick:
                KEPT.parent.mkdir(exist_ok=True)
                with KEPT.open("a") as file:
                    file.write(json.dumps({"table": name, "model": model, **found}) + "\n")
            print(" | ".join([name, NAMES[model], *_line(found)]), flush=True)
    section = _section(names, known)
    print(section)
    return section


def _installed(name: str, package: str) -> bool:
    if find_spec(package) is None:
        print(f"{NAMES[name]} is not installed, and skipped: pip install 'candide[dev]'", flush=True)
        return False
    return True


def _tables() -> list[str]:
    names = sorted(path.stem for path in FOLDER.glob("*.parquet") if path.stem not in NOT)
    return [name for name in names if name not in LATE] + [name for name in LATE if name in names]


def _rows(name: str) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(FOLDER / f"{name}.parquet").num_rows


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of real data: its columns, and the class of each row."""
    X = pd.read_parquet(FOLDER / f"{name}.parquet")
    y = X.pop("class").astype(str).to_numpy(object)
    for column in _kinds(X)[1]:
        X[column] = X[column].astype(object).where(X[column].notna(), np.nan)
    return X, y


def folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of fewer rows than folds
        return list(StratifiedKFold(5, shuffle=True, random_state=0).split(y, y))


def _measure(name: str, model: str) -> dict[str, float]:
    """Accuracy, AUC and log-loss of rows that were not learned from, all folds together; mean seconds of a fold."""
    fit = MODELS[model] if model in MODELS else SLOW[model][0]
    X, y = read(name)
    classes, code = np.unique(y, return_inverse=True)
    p, took = np.zeros((len(y), len(classes))), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in folds(y):
            start = time.perf_counter()
            fitted = fit(X.iloc[train], y[train])
            middle = time.perf_counter()
            shares = fitted.predict_proba(X.iloc[test])
            took.append((middle - start, time.perf_counter() - middle))
            p[np.ix_(test, np.searchsorted(classes, np.asarray(fitted.classes_).astype(str)))] = shares
    fit_s, predict_s = np.mean(took, axis=0)
    return {**scores(p, code), "fit": float(fit_s), "predict": float(predict_s)}


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of probabilities (row, class) and codes of classes; the AUC is that of each class against the rest, weighted."""
    from sklearn.metrics import roc_auc_score

    p = np.maximum(p, 1e-15)
    p /= p.sum(axis=1, keepdims=True)
    k = p.shape[1]
    auc = roc_auc_score(y, p[:, 1]) if k == 2 else roc_auc_score(np.eye(k)[y], p, average="weighted")
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    return {"accuracy": float((p.argmax(axis=1) == y).mean()), "AUC": float(auc), "log-loss": float(loss)}


def _kinds(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    numbers = [str(c) for c in X if X[c].dtype.kind in "iuf"]
    return numbers, [str(c) for c in X if str(c) not in set(numbers)]


def _filled(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(**{c: X[c].fillna("").astype(str) for c in _kinds(X)[1]})


def _kept(*, without: Iterable[str] = ()) -> dict[tuple[str, str], dict[str, float]]:
    """What was measured before; of what was measured twice the last."""
    if not KEPT.exists():
        return {}
    lines = [json.loads(line) for line in KEPT.read_text().splitlines()]
    return {(one.pop("table"), one.pop("model")): one for one in lines if one["model"] not in set(without)}


def _line(found: dict[str, float]) -> list[str]:
    return [*(f"{found[m]:.3f}" for m in METRICS), f"{found['fit']:.2f}", f"{found['predict']:.3f}"]


Known = dict[tuple[str, str], dict[str, float]]


def _section(names: list[str], known: Known) -> str:
    """Each table, then the means, ranks and seconds."""
    parts = [
        "Five folds, stratified and shuffled (seed 0), default settings. Accuracy / AUC (each class against the rest, "
        "weighted) / log-loss, of all folds together. Seconds are those of a fold, in the run that measured the model.",
        _each(names, known),
    ]
    common = [name for name in names if all((name, m) in known for m in MODELS)]
    if common:
        parts += [f"Of {len(common)} tables:", _means(common, known, MODELS, RANKED), _seconds(common, known)]
        rest = [name for name in common if name != HARD]
        if 0 < len(rest) < len(common):
            told = f"Boosting does not bear the class of two rows that {HARD} has. Without that table:"
            parts += [told, _means(rest, known, RANKED, RANKED)]
    measured = [m for m in SLOW if any((name, m) in known for name in names)]
    for n in range(1, len(measured) + 1):  # one more of the slow peers at a time, as far as each was measured
        models = [*MODELS, *measured[:n]]
        small = [name for name in names if all((name, m) in known for m in models)]
        if small:
            also = " and ".join(NAMES[m] for m in measured[:n])
            told = f"Of {len(small)} tables with at most {SMALL:,} rows, beside {also}:"
            parts += [told, _means(small, known, models, models)]
    return "\n\n".join(parts)


def _each(names: list[str], known: Known) -> str:
    models = [m for m in NAMES if any((name, m) in known for name in names)]
    cell = lambda found: " / ".join(f"{found[m]:.3f}".removeprefix("0") for m in METRICS) if found else ""  # noqa: E731
    rows = [[name, *(cell(known.get((name, m))) for m in models)] for name in sorted(names)]
    return results.table(["table", *(NAMES[m] for m in models)], rows)


def _means(names: list[str], known: Known, models: Iterable[str], ranked: Iterable[str]) -> str:
    from scipy.stats import rankdata

    ranked, rows = list(ranked), []
    values = lambda m, metric: np.array([known[name, m][metric] for name in names])  # noqa: E731
    ranks = {
        metric: rankdata([sign * values(m, metric).round(4) for m in ranked], axis=0).mean(axis=1)
        for metric, sign in METRICS.items()
    }
    for m in models:
        means = [f"{values(m, metric).mean():.3f}" for metric in METRICS]
        of_rank = [f"{ranks[metric][ranked.index(m)]:.2f}" if m in ranked else "" for metric in METRICS]
        took = [f"{values(m, what).sum():.2f}" for what in ("fit", "predict")]
        rows.append([NAMES[m], *means, *of_rank, *took])
    head = ["mean", *METRICS, *(f"rank in {metric}" for metric in METRICS)]
    return results.table([*head, "fit, s, all tables", "predict, s"], rows)


def _seconds(names: list[str], known: Known) -> str:
    rows = []
    for name in (name for name in LATE if name in names):
        ours, theirs = known[name, "bayes"], known[name, "boosting"]
        rows.append([name, *(f"{one[what]:.3f}" for what in ("fit", "predict") for one in (ours, theirs))])
    head = ["seconds", "fit", "fit of boosting", "predict", "predict of boosting"]
    return results.table(head, rows) if rows else ""
