"""Accuracy on real collections of documents, with options chosen by cross-validation on the training documents alone.

For each way to divide documents into terms the training documents are counted once, whole and fold by fold; a model
without a fold is the whole minus the fold, and everything else in the grid comes after the counting. The test set is
looked at once, with the option set that did best. Where a collection has no official test set, this is done within each
of five outer folds.
"""

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results

FOLDER = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "text"
ENCODINGS: dict[str, tuple] = {"ngrams": ((1, 1), (1, 2)), "sublinear": (False, True)}
CHOICES: dict[str, tuple] = {
    "model": ("multinomial", "complement"),
    "idf": (False, True),
    "alpha": (1.0, 0.3, 0.1, 0.03),
}
ASKED = {"sms_spam": ".986", "newsgroups20": ".835", "reuters_r8": ".955"}


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    lines = []
    for name in (
        ("sms_spam", "reuters_r8") if quick else ("sms_spam", "reuters_r8", "newsgroups20", "sentence_polarity")
    ):
        texts, y, test = read(name)
        if test.any():
            train = ~test
            chosen, within = choose(texts[train], y[train])
            ours = accuracy(fitted(chosen, texts[train], y[train]), texts[test], y[test])
            how, told = "official test set", describe(chosen)
        else:
            chosen, within, ours = nested(texts, y)
            how, told = "5 folds, chosen within each", describe(chosen)
        theirs = [f"{score:.3f}" for score in peers(texts, y, test)]
        lines.append([name, how, told, f"{within:.3f}", f"{ours:.3f}", ASKED.get(name, ""), *theirs])
        print(" | ".join(lines[-1]), flush=True)
    head = ["collection", "measured on", "chosen", "in cross-validation", "accuracy", "asked at least"]
    return results.table([*head, "CountVectorizer, MultinomialNB", "TfidfVectorizer, ComplementNB"], lines)


def read(name: str) -> tuple[Any, Any, Any]:
    """Documents, classes, and which belong to the official test set."""
    import pyarrow.parquet as pq

    table = pq.read_table(FOLDER / f"{name}.parquet")
    texts = np.array(table["text"].to_pylist(), object)
    split = np.array(table["split"].to_pylist()) if "split" in table.column_names else np.full(len(texts), "train")
    return texts, np.array(table["class"].to_pylist()), split == "test"


def folds(y: Any, seed: int) -> list[Any]:
    """Which documents belong to each of five shuffled, stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    return [test for _, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y)]


def choose(texts: Any, y: Any, seed: int = 1) -> tuple[dict[str, Any], float]:
    """The option set with the best accuracy in five folds of these documents, and that accuracy."""
    from candide import TextNB

    parts, best, right = folds(y, seed), {}, -1.0
    for encoding in _grid(ENCODINGS):
        whole = TextNB(**encoding).fit(texts, y)
        without = [whole - TextNB(**encoding).fit(texts[part], y[part]) for part in parts]
        for choice in _grid(CHOICES):
            models = (model.with_prior(**choice) for model in without)
            scores = [accuracy(m, texts[part], y[part]) for m, part in zip(models, parts, strict=True)]
            if np.mean(scores) > right + 1e-12:
                best, right = {**encoding, **choice}, float(np.mean(scores))
    return best, right


def nested(texts: Any, y: Any) -> tuple[dict[str, Any], float, float]:
    """The option set chosen most often, mean accuracy of the choices where they were made, and outside."""
    chosen, inside, outside = [], [], []
    for test in folds(y, 0):
        train = np.setdiff1d(np.arange(len(y)), test)
        options, within = choose(texts[train], y[train])
        chosen.append(options)
        inside.append(within)
        outside.append(accuracy(fitted(options, texts[train], y[train]), texts[test], y[test]))
    return max(chosen, key=chosen.count), float(np.mean(inside)), float(np.mean(outside))


def fitted(options: dict[str, Any], texts: Any, y: Any) -> Any:
    from candide import TextNB

    return TextNB(**options).fit(texts, y)


def accuracy(model: Any, texts: Any, y: Any) -> float:
    return float((model.predict(texts) == y).mean())


def peers(texts: Any, y: Any, test: Any) -> list[float]:
    """scikit-learn's two customary pipelines at their defaults, on the same documents."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.naive_bayes import ComplementNB, MultinomialNB
    from sklearn.pipeline import make_pipeline

    outer = [np.flatnonzero(test)] if test.any() else folds(y, 0)
    found = []
    for steps in ((CountVectorizer, MultinomialNB), (TfidfVectorizer, ComplementNB)):
        scores = []
        for part in outer:
            train = np.setdiff1d(np.arange(len(y)), part)
            model = make_pipeline(*(step() for step in steps)).fit(texts[train], y[train])
            scores.append(accuracy(model, texts[part], y[part]))
        found.append(float(np.mean(scores)))
    return found


def describe(options: dict[str, Any]) -> str:
    """An option set as it would be written."""
    from candide import TextNB

    usual = TextNB().get_params()
    told = [f"{name}={value!r}" for name, value in options.items() if value != usual[name]]
    return f"`TextNB({', '.join(told)})`"


def _grid(options: dict[str, tuple]) -> list[dict[str, Any]]:
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]
