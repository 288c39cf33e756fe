"""Accuracy of BayesClassifier and its peers on real tables, by five folds: defaults, and boosting with early stopping.

Each result is added to ``build/accuracy.jsonl`` as soon as it is measured, and an interrupted run continues from that
file. ``--again MODEL`` measures a model again. All models use as many threads as OMP_NUM_THREADS, or one per core.
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
HARD = {  # tables on which a peer fails by its default settings, which means should not depend on
    "nursery": "HistGradientBoosting does not predict nursery well, which has a class of two rows",
    "promoters": "LightGBM predicts the class proportions of promoters, which has fewer rows than its default "
    "min_data_per_group asks of levels",
}
SMALL = 2_000  # rows of a table on which the slow peers are measured too
METRICS = {"accuracy": -1, "AUC": -1, "log-loss": 1}  # which way is better
TIMES = {  # processor time: of all threads
    "fit cpu": "fit, processor s",
    "predict cpu": "predict, processor s",
    "fit": "fit, wall s",
    "predict": "predict, wall s",
}
N_THREADS = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
PATIENCE = 20  # rounds without a gain on the held-out rows


def bayes(X: pd.DataFrame, y: np.ndarray) -> Any:
    import candide as cd

    return cd.BayesClassifier().fit(X, y)


def bayes_tables(X: pd.DataFrame, y: np.ndarray) -> Any:
    import candide as cd

    return cd.BayesClassifier(terms="tables").fit(X, y)


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


def boosting(X: pd.DataFrame, y: np.ndarray, **settings: Any) -> Any:
    """Histogram gradient boosting, categories as such."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    numbers, levels = _kinds(X)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((codes, levels), ("passthrough", numbers))
    settings = {"early_stopping": "auto"} | settings
    if np.unique(y, return_counts=True)[1].min() == 1:  # its validation rows are stratified, which one row cannot be
        settings["early_stopping"] = False
    model = HistGradientBoostingClassifier(categorical_features=list(range(len(levels))), random_state=0, **settings)
    return make_pipeline(columns, model).fit(X, y)


def boosting_stopped(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Up to 500 iterations, stopped on a tenth of the rows."""
    return boosting(X, y, max_iter=500, early_stopping=True, validation_fraction=0.1, n_iter_no_change=PATIENCE)


def lightgbm(X: pd.DataFrame, y: np.ndarray) -> Any:
    return CategoryModel(make_lightgbm()).fit(X, y)


def lightgbm_stopped(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Up to 500 iterations, stopped on a tenth of the rows."""
    train, held_out = split_tenth(y)
    held_out_rows = (X.iloc[held_out], y[held_out])
    return CategoryModel(make_lightgbm(n_estimators=500)).fit(X.iloc[train], y[train], held_out_rows)


def xgboost(X: pd.DataFrame, y: np.ndarray) -> Any:
    from xgboost import XGBClassifier

    return CategoryModel(XGBClassifier(enable_categorical=True, random_state=0, n_jobs=N_THREADS)).fit(X, y)


def forest(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Random forest of levels as 0/1 columns; it accepts missing numbers."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    numbers, levels = _kinds(X)
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((codes, levels), ("passthrough", numbers))
    return make_pipeline(columns, RandomForestClassifier(random_state=0, n_jobs=N_THREADS)).fit(X, y)


def make_lightgbm(**settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=N_THREADS, verbose=-1, **settings)


class CategoryModel:
    """A model that reads the categorical dtype of pandas: levels of the training rows, any other value missing."""

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X: pd.DataFrame, y: np.ndarray, held_out: Any = None, patience: int = PATIENCE) -> "CategoryModel":
        """Fit, and stop when the log-loss of the held-out rows no longer improves (LightGBM only)."""
        self.levels = {c: pd.CategoricalDtype(sorted(X[c].dropna().unique(), key=str)) for c in _kinds(X)[1]}
        self.classes_, codes = np.unique(y, return_inverse=True)
        if held_out is None:
            self.model.fit(self._frame(X), codes)
            return self
        from lightgbm import early_stopping

        rows = (self._frame(held_out[0]), np.searchsorted(self.classes_, held_out[1]))
        self.model.fit(self._frame(X), codes, eval_set=[rows], callbacks=[early_stopping(patience, verbose=False)])
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self._frame(X))

    def _frame(self, X: pd.DataFrame) -> pd.DataFrame:
        frame = X.astype(self.levels)
        frame.columns = [f"c{j}" for j in range(X.shape[1])]  # neither library accepts every name
        return frame


def split_tenth(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and a stratified tenth held out that has no class the training rows lack."""
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        train, held_out = next(iter(StratifiedKFold(10, shuffle=True, random_state=0).split(y, y)))
    is_new = ~np.isin(y[held_out], y[train])
    return np.concatenate([train, held_out[is_new]]), held_out[~is_new]


def additive(X: pd.DataFrame, y: np.ndarray) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    # In this process, so that its processor time is counted.
    return ExplainableBoostingClassifier(random_state=0, n_jobs=1).fit(X, y)


def catboost(X: pd.DataFrame, y: np.ndarray) -> Any:
    from catboost import CatBoostClassifier

    levels = _kinds(X)[1]
    model = CatBoostClassifier(
        verbose=0, cat_features=levels, random_seed=0, allow_writing_files=False, thread_count=N_THREADS
    )
    model.fit(_filled(X), y)
    return _Filled(model)


class _Filled:
    """CatBoost takes no gap among categories: it is one more level."""

    def __init__(self, model: Any):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(_filled(X))


MODELS: dict[str, Callable] = {
    "bayes": bayes,
    "bayes_tables": bayes_tables,
    "naive": naive,
    "linear": linear,
    "boosting": boosting,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "forest": forest,
    "boosting_stopped": boosting_stopped,
    "lightgbm_stopped": lightgbm_stopped,
}
SLOW: dict[str, Callable] = {"catboost": catboost, "ebm": additive}
PACKAGES = {
    "lightgbm": "lightgbm",
    "lightgbm_stopped": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
    "ebm": "interpret",
}
NAMES = {
    "bayes": "BayesClassifier",
    "bayes_tables": 'BayesClassifier(terms="tables")',
    "naive": "NaiveBayes",
    "linear": "LogisticRegression",
    "boosting": "HistGradientBoosting",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "forest": "RandomForest",
    "boosting_stopped": "HistGradientBoosting, 500",
    "lightgbm_stopped": "LightGBM, 500",
    "catboost": "CatBoost",
    "ebm": "ExplainableBoosting",
}
RANKED = ("bayes", "bayes_tables", "linear", "boosting", "lightgbm")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", metavar="TABLE", help="only these")
    parser.add_argument("--models", nargs="+", choices=NAMES, help="only these")
    parser.add_argument("--again", nargs="+", choices=NAMES, default=[], help="measure these models again")


def run(*, quick: bool = False, tables: Any = None, models: Any = None, again: Iterable[str] = ()) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    available = [name for name in [*MODELS, *SLOW] if _is_installed(name)]
    models = [name for name in available if (name in models if models else not quick or name in MODELS)]
    names = tables or (["iris", "heart_cleveland"] if quick else _tables())
    fits, known = MODELS | SLOW, {} if quick else _kept(without=again)
    todo = {
        name: [m for m in models if (name, m) not in known and (m in MODELS or _rows(name) <= SMALL)] for name in names
    }
    for model in {model for pending in todo.values() for model in pending}:
        warm_up(fits[model])
    for name, pending in todo.items():  # all models of a table one after another, under the same load of the machine
        for model in pending:
            known[name, model] = found = _measure(name, model)
            if not quick:
                KEPT.parent.mkdir(exist_ok=True)
                with KEPT.open("a") as file:
                    file.write(json.dumps({"table": name, "model": model, **found}) + "\n")
            print(" | ".join([name, NAMES[model], *_line(found)]), flush=True)
    section = _section(names, known)
    print(section)
    return section


def _is_installed(name: str) -> bool:
    if name in PACKAGES and find_spec(PACKAGES[name]) is None:
        print(f"{NAMES[name]} is not installed, and skipped: pip install {PACKAGES[name]}", flush=True)
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
    """Accuracy, AUC and log-loss of held-out rows, all folds together; mean seconds of a fold."""
    fit = (MODELS | SLOW)[model]
    X, y = read(name)
    classes, code = np.unique(y, return_inverse=True)
    p, took = np.zeros((len(y), len(classes))), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in folds(y):
            start = clock()
            fitted = fit(X.iloc[train], y[train])
            middle = clock()
            proportions = fitted.predict_proba(X.iloc[test])
            took.append(np.concatenate([middle - start, clock() - middle]))
            p[np.ix_(test, np.searchsorted(classes, np.asarray(fitted.classes_).astype(str)))] = proportions
    keys = ("fit", "fit cpu", "predict", "predict cpu")
    return {**scores(p, code), **dict(zip(keys, np.mean(took, axis=0).tolist(), strict=True))}


def warm_up(fit: Callable) -> None:
    """Fit a few rows, so that no measurement includes imports."""
    X = pd.DataFrame({"number": np.arange(60.0) % 7, "level": np.tile(["a", "b", "c"], 20).astype(object)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(X, np.tile(["no", "yes"], 30).astype(object)).predict_proba(X)


def clock() -> np.ndarray:
    """Wall time, and the processor time of all threads of this process."""
    return np.array([time.perf_counter(), time.process_time()])


def scores(p: np.ndarray, y: np.ndarray, average: str = "weighted") -> dict[str, float]:
    """Of probabilities (row, class) and codes of classes; the AUC is the average of each class against the rest."""
    from sklearn.metrics import roc_auc_score

    p = np.maximum(p, 1e-15)
    p /= p.sum(axis=1, keepdims=True)
    k = p.shape[1]
    auc = roc_auc_score(y, p[:, 1]) if k == 2 else roc_auc_score(np.eye(k)[y], p, average=average)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    return {"accuracy": float((p.argmax(axis=1) == y).mean()), "AUC": float(auc), "log-loss": float(loss)}


def _kinds(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    numbers = [str(c) for c in X if X[c].dtype.kind in "iuf"]
    return numbers, [str(c) for c in X if str(c) not in set(numbers)]


def _filled(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(**{c: X[c].fillna("").astype(str) for c in _kinds(X)[1]})


def _kept(*, without: Iterable[str] = ()) -> dict[tuple[str, str], dict[str, float]]:
    """Earlier results that have processor times; the last of repeated ones."""
    if not KEPT.exists():
        return {}
    lines = [json.loads(line) for line in KEPT.read_text().splitlines()]
    lines = [line for line in lines if line["model"] not in set(without) and "fit cpu" in line]
    return {(line.pop("table"), line.pop("model")): line for line in lines}


def _line(found: dict[str, float]) -> list[str]:
    return [*(f"{found[m]:.3f}" for m in METRICS), *(f"{found[name]:.3f}" for name in TIMES)]


Known = dict[tuple[str, str], dict[str, float]]


def _section(names: list[str], known: Known) -> str:
    """Each table, then the means, ranks and seconds."""
    parts = [
        "Five folds, stratified and shuffled (seed 0). Default settings; those with 500 take up to 500 iterations and "
        f"stop after {PATIENCE} without a gain on a tenth of the training rows. Accuracy / AUC (each class against the "
        "rest, weighted) / log-loss, of all folds together. Seconds are the mean of a fold in the run that measured "
        "the model, with the threads of that run. Ranks: 1 is best.",
        _each(names, known),
        "Processor seconds of a fold, fit / predict:",
        _seconds(names, known),
    ]
    ranked = [m for m in RANKED if any((name, m) in known for name in names)]
    common = [name for name in names if ranked and all((name, m) in known for m in ranked)]
    measured = [m for m in MODELS if all((name, m) in known for name in common)]
    if common:
        parts += [f"Of {len(common)} tables:", _means(common, known, measured, ranked)]
        rest = [name for name in common if name not in HARD]
        if 0 < len(rest) < len(common):
            reasons = "; ".join(reason for name, reason in HARD.items() if name in common)
            parts += [f"{reasons}. Without these tables:", _means(rest, known, measured, ranked)]
    slow = [m for m in SLOW if any((name, m) in known for name in names)]
    for n in range(1, len(slow) + 1):  # one more of the slow peers at a time, on the tables it was measured on
        small = [name for name in common if all((name, m) in known for m in slow[:n])]
        models = [*(m for m in MODELS if all((name, m) in known for name in small)), *slow[:n]]
        if small:
            also = " and ".join(NAMES[m] for m in slow[:n])
            text = f"Of {len(small)} tables with at most {SMALL:,} rows, with {also}:"
            parts += [text, _means(small, known, models, [*ranked, *slow[:n]])]
    return "\n\n".join(parts)


def _each(names: list[str], known: Known) -> str:
    return _by_table(names, known, lambda found: " / ".join(f"{found[m]:.3f}".removeprefix("0") for m in METRICS))


def _seconds(names: list[str], known: Known) -> str:
    return _by_table(names, known, lambda found: f"{found['fit cpu']:.3g} / {found['predict cpu']:.2g}")


def _by_table(names: list[str], known: Known, cell: Callable[[dict[str, float]], str]) -> str:
    models = [m for m in NAMES if any((name, m) in known for name in names)]
    rows = [[name, *(cell(known[name, m]) if (name, m) in known else "" for m in models)] for name in sorted(names)]
    return results.table(["table", *(NAMES[m] for m in models)], rows)


def _means(names: list[str], known: Known, models: Iterable[str], ranked: Iterable[str]) -> str:
    from scipy.stats import rankdata

    ranked, rows = list(ranked), []
    values = lambda m, metric: np.array([known[name, m][metric] for name in names])  # noqa: E731
    ranks = {
        metric: rankdata([sign * values(m, metric).round(4) for m in ranked], axis=0).mean(axis=1)
        for metric, sign in METRICS.items()
        if ranked
    }
    for m in models:
        means = [f"{values(m, metric).mean():.3f}" for metric in METRICS]
        mean_ranks = [f"{ranks[metric][ranked.index(m)]:.2f}" if m in ranked else "" for metric in METRICS]
        took = [f"{values(m, what).sum():.2f}" for what in TIMES]
        rows.append([NAMES[m], *means, *mean_ranks, *took])
    head = ["mean", *METRICS, *(f"rank in {metric}" for metric in METRICS)]
    return results.table([*head, *(f"{text}, all tables" for text in TIMES.values())], rows)
