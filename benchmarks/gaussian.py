"""Gaussian classes with covariances: GaussianBayes against scikit-learn's QDA and LDA on MNIST, in the same run."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import candide as cd
from benchmarks import results
from benchmarks.measure import seconds

FOLDER = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    rows, qda = _mnist(quick), QuadraticDiscriminantAnalysis(reg_param=0.1)
    return "\n\n".join([_speed(rows, qda), _accuracy(rows, qda), _golub()])


def _mnist(quick: bool) -> Rows:
    file = np.load(FOLDER / "tables" / "mnist.npz")
    X, y, Xt, yt = (file[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    return (X[:10_000], y[:10_000], Xt[:2_000], yt[:2_000]) if quick else (X, y, Xt, yt)


def _speed(rows: Rows, qda: QuadraticDiscriminantAnalysis) -> str:
    X, y, Xt, _ = rows
    wide = X.astype(np.float64)
    size, score = f"{len(X):,} x {X.shape[1]}", f"{len(Xt):,} rows"
    ours, tied = cd.GaussianBayes("full", 0.1, estimate="mle"), cd.GaussianBayes("tied", 0.1, estimate="mle")
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    lines = [
        _line(f"full covariance: fit {size}", lambda: ours.fit(X, y), lambda: qda.fit(wide, y), "3x"),
        _line(f"full: predict {score}", lambda: ours.predict(Xt), lambda: qda.predict(Xt), "3x"),
        _line(f"tied covariance: fit {size}", lambda: tied.fit(X, y), lambda: lda.fit(wide, y), ""),
        _line(f"tied: predict {score}", lambda: tied.predict(Xt), lambda: lda.predict(Xt), ""),
    ]
    return results.table(["MNIST, grey pixels", "candide s", "scikit-learn s", "ratio", "asked"], lines)


def _line(name: str, mine: Callable, peer: Callable, asked: str) -> list[str]:
    a, b = seconds(mine, peer, repeat=3, budget=20)
    line = [name, f"{a:.2f}", f"{b:.2f}", f"{b / a:.1f}x", asked]
    print(" | ".join(line), flush=True)
    return line


def _accuracy(rows: Rows, qda: QuadraticDiscriminantAnalysis) -> str:
    X, y, Xt, yt = rows
    full = cd.GaussianBayes("full", 0.8).fit(X, y)
    # Chosen among shrinkage 0.02 to 0.95 and four estimates by the last 10,000 training rows.
    chosen = cd.GaussianBayes("full", 0.8, estimate="map").fit(X, y)
    models: dict[str, tuple[Callable[[], float], str]] = {
        'GaussianBayes("full", shrinkage=0.8)': (lambda: full.score(Xt, yt), ""),
        'GaussianBayes("full", shrinkage=0.8, estimate="map")': (lambda: chosen.score(Xt, yt), ".95"),
        'GaussianBayes("tied", shrinkage=0.1)': (lambda: cd.GaussianBayes("tied", 0.1).fit(X, y).score(Xt, yt), ""),
        'GaussianBayes("diagonal")': (lambda: cd.GaussianBayes("diagonal").fit(X, y).score(Xt, yt), ""),
        "NaiveBayes(Bernoulli(threshold=127)), pixels black or white": (
            lambda: cd.NaiveBayes(cd.events.Bernoulli(threshold=127)).fit(X, y).score(Xt, yt),
            ".84",
        ),
        "scikit-learn QDA(reg_param=0.1)": (lambda: qda.score(Xt, yt), ""),
    }
    lines = []
    for name, (score, asked) in models.items():
        lines.append([name, f"{score():.4f}", asked])
        print(" | ".join(lines[-1]), flush=True)
    return results.table(["MNIST", "test accuracy", "asked"], lines)


def _golub() -> str:
    """The whole script: imports, 7129 genes, the choice among them, the picture."""
    script = Path(__file__).resolve().parents[1] / "examples" / "golub.py"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script), folder]
        [took] = seconds(lambda: subprocess.run(command, check=True, capture_output=True), repeat=3)
    line = ["examples/golub.py, imports and picture", f"{took:.1f}", "5"]
    print(" | ".join(line), flush=True)
    return results.table(["leukaemia", "seconds", "asked at most"], [line])
