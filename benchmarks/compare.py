"""Compare two commits in one run: ``python -m benchmarks compare BASE HEAD [--only TEXT] [--repeat N]``.

Each commit is checked out into a folder of its own. Every work runs in new processes, the two commits in turns, and is
measured in processor seconds, which suffer less from other load than the clock does. The ratio is the median over the
repetitions of HEAD / BASE, and its bound two standard errors of that median: a work is slower only if the ratio less
the bound is above the limit.
"""

import argparse
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import results

LIMIT = 1.05  # HEAD may take this many times the processor seconds of BASE
ROOT = Path(__file__).parents[1]

_TABLE = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, candide as cd
rng = np.random.default_rng(0)
n = {rows}
y = rng.integers(0, 3, n)
X = {{f"x{{j}}": rng.normal(y * (j < 4), 1.0) for j in range(8)}}
X |= {{f"c{{j}}": np.array(list("abcdefgh"))[(rng.integers(0, 8, n) + y * (j < 3)) % 8] for j in range(6)}}
table, label = pa.table(X), np.array(["low", "middle", "high"])[y]
"""
_ARRAYS = """
import numpy as np, scipy.sparse as sp, candide as cd
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 300_000)
X = rng.normal(size=(300_000, 30)) + y[:, None]
C = rng.integers(0, 10, (300_000, 20))
at = rng.integers(0, 50_000, 2_000_000), rng.integers(0, 20_000, 2_000_000)
S = sp.csr_array((np.ones(2_000_000), at), shape=(50_000, 20_000))
"""
_TEXT = """
import numpy as np, candide as cd
rng = np.random.default_rng(0)
words = np.array([f"word{i}" for i in range(5000)])
y = rng.integers(0, 2, 4000)
texts = [" ".join(words[(rng.zipf(1.3, 60) * (1 + label)) % 5000]) for label in y]
"""
_FILES = (
    _TABLE.format(rows=2000)
    + """
import pyarrow.csv
pyarrow.csv.write_csv(table.append_column("class", pa.array(label)), "rows.csv")
pyarrow.csv.write_csv(table.slice(0, 150), "new.csv")
cd.fit("rows.csv", target="class").save("model.candide")
"""
)

WORKS = {  # name: (what comes before and is not measured, what is measured)
    "NaiveBayes fit, 100,000 mixed rows": (_TABLE.format(rows=100_000), "cd.NaiveBayes().fit(table, label)"),
    "NaiveBayes predict, 100,000 mixed rows": (
        _TABLE.format(rows=100_000) + "model = cd.NaiveBayes().fit(table, label)",
        "model.predict_proba(table)",
    ),
    "BayesClassifier fit, 3,000 mixed rows": (_TABLE.format(rows=3000), "cd.BayesClassifier().fit(table, label)"),
    "BayesClassifier fit, 30,000 mixed rows": (_TABLE.format(rows=30_000), "cd.BayesClassifier().fit(table, label)"),
    "BayesClassifier predict, 30,000 mixed rows": (
        _TABLE.format(rows=30_000) + "model = cd.BayesClassifier().fit(table.slice(0, 3000), label[:3000])",
        "model.predict_proba(table)",
    ),
    "explain, 200 rows": (
        _TABLE.format(rows=3000) + "model = cd.BayesClassifier().fit(table, label)",
        "model.explain(table.slice(0, 200))",
    ),
    "fit a Parquet file, naive, 300,000 rows": (
        _TABLE.format(rows=300_000) + 'pq.write_table(table.append_column("class", pa.array(label)), "rows.parquet")',
        'cd.fit("rows.parquet", target="class", model="naive")',
    ),
    "GaussianNB fit, 300,000 x 30": (_ARRAYS, "cd.GaussianNB().fit(X, y)"),
    "GaussianNB predict, 300,000 x 30": (_ARRAYS + "model = cd.GaussianNB().fit(X, y)", "model.predict_proba(X)"),
    "CategoricalNB fit, 300,000 x 20": (_ARRAYS, "cd.CategoricalNB().fit(C, y)"),
    "MultinomialNB fit, sparse": (_ARRAYS, "cd.MultinomialNB().fit(S, y[:50_000])"),
    "TextNB fit, 4,000 documents": (_TEXT, "cd.TextNB().fit(texts, y)"),
    "TextNB predict, 4,000 documents": (_TEXT + "model = cd.TextNB().fit(texts, y)", "model.predict_proba(texts)"),
    "BayesClassifier fit, 4,000 documents": (_TEXT, 'cd.BayesClassifier().fit({"text": texts}, y)'),
}
COMMANDS = {  # name: arguments of a new process, in a folder with rows.csv, new.csv and model.candide
    "candide --help": ["-m", "candide", "--help"],
    "candide fit rows.csv": ["-m", "candide", "fit", "rows.csv", "--target", "class"],
    "candide fit --model naive": ["-m", "candide", "fit", "rows.csv", "--target", "class", "--model", "naive"],
    "candide predict, 150 rows": ["-m", "candide", "predict", "model.candide", "new.csv", "-o", "out.csv", "--force"],
    "candide show": ["-m", "candide", "show", "model.candide"],
    "import candide, cd.load": ["-c", "import candide as cd; cd.load('model.candide')"],
}


@dataclass(frozen=True)
class Comparison:
    """Processor seconds of one work in both commits, a pair for each repetition."""

    name: str
    base: list[float]
    head: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self._ratios)

    @property
    def bound(self) -> float:
        """Two standard errors of the median, from the median absolute deviation (a normal's times 1.4826)."""
        deviation = 1.4826 * statistics.median(abs(ratio - self.ratio) for ratio in self._ratios)
        return 2.0 * 1.2533 * deviation / math.sqrt(len(self._ratios))

    @property
    def is_slower(self) -> bool:
        return self.ratio - self.bound > LIMIT

    @property
    def _ratios(self) -> list[float]:
        return [head / base for base, head in zip(self.base, self.head, strict=True)]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("head", help="the commit that is measured")
    parser.add_argument("--only", default="", help="works whose name contains this text")
    parser.add_argument("--repeat", type=int, default=7, help="repetitions of each work (default: 7)")


def run(*, base: str, head: str, only: str = "", repeat: int = 7, quick: bool = False) -> str:
    """Measure and print everything; return the table. The exit status is 1 if a work is slower."""
    with checkout(base) as old, checkout(head) as new:
        found = []
        for name in [*WORKS, *COMMANDS]:
            if only in name:
                found.append(_compare(name, (old, new), 2 if quick else repeat))
                print(" | ".join(_line(found[-1])), flush=True)
    slower = [comparison.name for comparison in found if comparison.is_slower]
    headings = ["work", "base s", "head s", "head / base", "within"]
    section = results.table(headings, [_line(comparison) for comparison in found])
    if slower:
        print(f"slower by more than {LIMIT - 1:.0%}: {', '.join(slower)}")
        sys.exit(1)
    return section


def _line(comparison: Comparison) -> list[str]:
    base, head = min(comparison.base), min(comparison.head)
    return [comparison.name, f"{base:.3f}", f"{head:.3f}", f"{comparison.ratio:.3f}", f"{comparison.bound:.3f}"]


@contextmanager
def checkout(commit: str):
    """A folder with the source of a commit and its compiled kernels, which are built only if they differ from ours."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["git", "worktree", "add", "--detach", "-f", folder, commit], cwd=ROOT, check=True, capture_output=True
        )
        try:
            kernels = ["src/candide/kernels/*.pyx", "src/candide/kernels/*.pxi", "setup.py"]
            same = not subprocess.run(["git", "diff", "--quiet", commit, "--", *kernels], cwd=ROOT).returncode
            compiled = list((ROOT / "src/candide/kernels").glob("*.so"))
            if same and compiled:
                for path in compiled:
                    shutil.copy(path, Path(folder, "src/candide/kernels"))
            else:
                subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True)
            yield Path(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, capture_output=True)


def _compare(name: str, trees: tuple[Path, Path], repeat: int) -> Comparison:
    taken: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        for tree in trees:
            Path(folder, tree.name).mkdir()
            if name in COMMANDS:
                _python(tree, Path(folder, tree.name), ["-c", _FILES])
        for i in range(repeat):
            for side in (0, 1) if i % 2 else (1, 0):
                taken[side].append(_measure(name, trees[side], Path(folder, trees[side].name)))
    return Comparison(name, *taken)


def _measure(name: str, tree: Path, folder: Path) -> float:
    if name in COMMANDS:
        before = os.times()
        _python(tree, folder, COMMANDS[name])
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system
    setup, work = WORKS[name]
    # Both commits start from an empty generation of the garbage collector, whose passes cost as much as short works.
    code = f"{setup}\nimport gc, time\n{work}\ngc.collect()\nstart = time.process_time()\n{work}"
    code += "\nprint(time.process_time() - start)"
    return float(_python(tree, folder, ["-W", "ignore", "-c", code]).split()[-1])


def _python(tree: Path, folder: Path, arguments: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr[-2000:]}")
    return done.stdout
