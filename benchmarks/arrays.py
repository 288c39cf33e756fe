"""Arrays in memory: the drop-in estimators against scikit-learn's, and one read of the input as the limit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn.naive_bayes as theirs

import candide as ours
from benchmarks import results
from benchmarks.measure import peak_megabytes, read_once, seconds


@dataclass(frozen=True)
class Case:
    """One line of the table: an estimator, its data, and the ratios that are asked for."""

    name: str
    estimator: str
    X: object
    y: np.ndarray
    fit: float
    predict: float
    verb: str = "predict"


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    parts = [_speed(quick), _small(), _memory(quick), _linear(quick)]
    return "\n\n".join(parts)


def _speed(quick: bool) -> str:
    rows = [line for case in _cases(10 if quick else 1) for line in _case(case)]
    headings = ["work", "candide s", "scikit-learn s", "ratio", "asked", "one read s", "times the read"]
    return results.table(headings, rows)


def _case(case: Case) -> list[list[str]]:
    mine, peer = getattr(ours, case.estimator), getattr(theirs, case.estimator)
    limit = read_once(*_arrays(case.X))
    a, b, r = seconds(lambda: mine().fit(case.X, case.y), lambda: peer().fit(case.X, case.y), limit)
    fit = _line(f"{case.name}: fit", a, b, r, case.fit)
    m, p = mine().fit(case.X, case.y), peer().fit(case.X, case.y)
    a, b, r = seconds(lambda: getattr(m, case.verb)(case.X), lambda: getattr(p, case.verb)(case.X), limit, repeat=3)
    return [fit, _line(f"{case.name}: {case.verb}", a, b, r, case.predict)]


def _line(name: str, a: float, b: float, limit: float, asked: float) -> list[str]:
    goal = f"{asked:g}x" if asked else ""
    line = [name, f"{a:.4f}", f"{b:.4f}", f"{b / a:.1f}x", goal, f"{limit:.4f}", f"{a / limit:.1f}"]
    print(" | ".join(line), flush=True)
    return line


def _cases(shrink: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    n = 1_000_000 // shrink
    X = rng.normal(size=(n, 50))
    for k, predict in ((2, 15), (10, 25)):
        y = rng.integers(0, k, n)
        yield Case(f"GaussianNB {n:,} x 50, k={k}", "GaussianNB", X, y, 12, predict, "predict_proba")
    yield Case(
        f"GaussianNB float32 {n:,} x 50, k=2",
        "GaussianNB",
        X.astype(np.float32),
        rng.integers(0, 2, n),
        0,
        0,
        "predict_proba",
    )
    yield Case(f"BernoulliNB {n:,} x 50, k=2", "BernoulliNB", X, rng.integers(0, 2, n), 10, 10)
    del X
    m = 200_000 // shrink
    yield Case(
        f"GaussianNB {m:,} x 200, k=100", "GaussianNB", rng.normal(size=(m, 200)), rng.integers(0, 100, m), 5, 10
    )
    yield Case(
        f"CategoricalNB {n:,} x 20, 10 levels, k=3",
        "CategoricalNB",
        rng.integers(0, 10, (n, 20)),
        rng.integers(0, 3, n),
        10,
        10,
    )
    yield Case(
        f"MultinomialNB CSR {m:,} x 100,000, {m * 100:,} nonzeros, k=20",
        "MultinomialNB",
        _text_like(m, rng),
        rng.integers(0, 20, m),
        6,
        3,
    )


def _text_like(n: int, rng: np.random.Generator) -> sp.csr_array:
    """Word counts as text has them: 100 words a row, frequent words much more frequent."""
    words = np.minimum((rng.pareto(0.6, n * 100) * 20).astype(np.int64), 99_999) * 7919 % 100_000
    counts = rng.integers(1, 4, n * 100).astype(np.float64)
    X = sp.csr_matrix(
        (counts, words.astype(np.int32), np.arange(0, n * 100 + 1, 100, dtype=np.int32)), shape=(n, 100_000)
    )
    X.sort_indices()
    return X


def _arrays(X: object) -> list[np.ndarray]:
    return [X.data, X.indices] if sp.issparse(X) else [X]


def _small() -> str:
    """Iris-sized data and single rows: never slower than scikit-learn."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 50)
    numbers = rng.normal(size=(150, 4)) + y[:, None]
    whole = np.abs(numbers * 3).astype(int)
    rows = []
    for name in ("GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB"):
        X = numbers if name in ("GaussianNB", "BernoulliNB") else whole
        mine, peer = getattr(ours, name), getattr(theirs, name)
        m, p = mine().fit(X, y), peer().fit(X, y)
        works: dict[str, tuple[Callable, Callable]] = {
            "fit 150 x 4": (lambda X=X, e=mine: e().fit(X, y), lambda X=X, e=peer: e().fit(X, y)),
            "predict 150": (lambda X=X, e=m: e.predict(X), lambda X=X, e=p: e.predict(X)),
            "predict_proba 1 row": (lambda X=X, e=m: e.predict_proba(X[:1]), lambda X=X, e=p: e.predict_proba(X[:1])),
        }
        for what, (a, b) in works.items():
            a, b = seconds(lambda a=a: [a() for _ in range(50)], lambda b=b: [b() for _ in range(50)], repeat=15)
            rows.append([f"{name}: {what}", f"{a / 50 * 1e6:.0f}", f"{b / 50 * 1e6:.0f}", f"{b / a:.1f}x", "1x"])
            print(" | ".join(rows[-1]), flush=True)
    return results.table(["small work", "candide us", "scikit-learn us", "ratio", "asked"], rows)


_PEAK = """
import numpy as np, candide, candide.kernels
rng = np.random.default_rng(0)
X = rng.standard_normal(({rows}, 50), dtype=np.float{bits}); y = (np.arange({rows}) % {k}).astype(np.int64)
candide.{estimator}().fit(X[:100], y[:100])
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = status("VmRSS")
candide.{estimator}().fit(X, y)
print((status("VmHWM") - before) / 1024)
"""


def _memory(quick: bool) -> str:
    rows = []
    n = 100_000 if quick else 2_000_000
    for estimator in ("GaussianNB", "BernoulliNB", "NaiveBayes"):
        for bits in (32, 64):
            peak = peak_megabytes(_PEAK.format(rows=n, bits=bits, k=10, estimator=estimator))
            rows.append(
                [f"{estimator} fit, {n:,} x 50 float{bits}", f"{n * 50 * bits // 8 / 2**20:.0f}", f"{peak:.0f}", "100"]
            )
            print(" | ".join(rows[-1]), flush=True)
    return results.table(["memory", "input MB", "peak above the input MB", "asked at most"], rows)


def _linear(quick: bool) -> str:
    """Cost grows linearly in rows, and in features."""
    shapes = [(10**e, 10) for e in range(4, 7 if quick else 8)] + [(10**5, d) for d in (10, 30, 100, 300, 1000)]
    return results.table(["GaussianNB, k=3", "fit ns/value", "predict ns/value"], [_cost(n, d) for n, d in shapes])


def _cost(n: int, d: int) -> list[str]:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((n, d)), rng.integers(0, 3, n)
    model = ours.GaussianNB().fit(X, y)
    fit, score = seconds(lambda: ours.GaussianNB().fit(X, y), lambda: model.predict(X))
    row = [f"{n:,} x {d}", f"{fit / (n * d) * 1e9:.2f}", f"{score / (n * d) * 1e9:.2f}"]
    print(" | ".join(row), flush=True)
    return row
