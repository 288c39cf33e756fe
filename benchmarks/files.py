"""Model files: what saving, loading and merging take, and what loading adds to a new process.

A child is measured by the processor time it takes, which other work on the machine disturbs least, in turns with one
that only imports NumPy; its bytecode is cached.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.measure import seconds

DATA = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

_NUMPY = "import numpy"
_LOAD = "from candide import store; store.load({path!r})"
_ASK = _LOAD + ".posterior(__import__('candide.data.table').rows.table.Table.of({{'age': [30.0], 'job': ['cook']}}))"
_ESTIMATOR = "import candide; candide.load({path!r})"
_MAPPED = """
import time
from pathlib import Path
from candide import store
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
before, start = resident(), time.perf_counter()
fitted = store.load({path!r})
took = time.perf_counter() - start
assert fitted.census.n_rows == {rows}
print(took * 1000)
print(resident() - before)
"""


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = _new_process(folder, 5 if quick else 20) + _vocabulary(folder, quick) + _shards(folder, quick)
        lines += _buckets(folder, 20 if quick else 26)
    return results.table(["work", "measured", "asked"], lines)


def _new_process(folder: Path, turns: int) -> list[list[str]]:
    """Medians above a process that imports NumPy alone."""
    import candide as cd

    path = str(folder / "small.candide")
    rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}
    cd.NaiveBayes().fit(rows, ["no", "no", "yes", "yes"]).save(path)
    codes = [code.format(path=path) for code in (_NUMPY, _LOAD, _ASK, _ESTIMATOR)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    took: list[list[float]] = [[] for _ in codes]
    for turn in range(turns + 1):
        for i, code in enumerate(codes):
            process = subprocess.Popen([sys.executable, "-c", code], env=environment)
            _, status, used = os.wait4(process.pid, 0)
            assert status == 0
            if turn:  # the first makes the bytecode
                took[i].append(1000 * (used.ru_utime + used.ru_stime))
    bare, *others = (statistics.median(times) for times in took)
    names = ("store.load", "store.load and one prediction", "candide.load")
    lines = [_line("a new process that imports NumPy, ms", bare, "")]
    for name, median in zip(names, others, strict=True):
        wish = "at most 60 ms" if name == "candide.load" else ""
        lines.append(_line(f"{name} of a small model in a new process, ms above NumPy", median - bare, wish))
    return lines


def _vocabulary(folder: Path, quick: bool) -> list[list[str]]:
    """200,000 words x 20 classes: as text in the order it was met, and as columns of counts."""
    from candide import store
    from candide.data.labels import Labels
    from candide.events import Multinomial, Text
    from candide.model.counts import ModelCounts
    from candide.model.fitted import FittedModel
    from candide.model.plan import Plan, PlanPart
    from candide.tally import Sums

    rng, n, k = np.random.default_rng(0), 20_000 if quick else 200_000, 20
    words = [f"{word:x}" for word in rng.permutation(1 << 24)[:n].tolist()]
    labels, weight = Labels(tuple(f"class {c:02}" for c in range(k))), np.full(k, 1000.0)
    counts = np.where(rng.random((k, n)) < 0.2, rng.geometric(0.4, (k, n)), 0).astype(float)
    sums = Sums(np.full((k, n), 1000.0), counts, np.zeros((k, n)))
    names = tuple(sorted(words))
    columns = ModelCounts(Plan(names, (PlanPart(Multinomial(), names),)), labels, weight, (sums,), 1000 * k)
    text = ModelCounts(
        Plan(("text",), (PlanPart(Text(), ("text",)),)), labels, weight, (_terms(words, counts),), 1000 * k
    )
    lines = []
    for name, census in (("text", text), ("columns of counts", columns)):
        fitted, path = FittedModel(census), folder / "words.candide"
        save, load = seconds(lambda f=fitted, p=path: store.save(f, p), lambda p=path: store.load(p), repeat=7)
        size = path.stat().st_size / 1e6
        detail = f"{1000 * save:.0f} + {1000 * load:.0f}; {size:.0f} MB"
        what = f"save + load of {n:,} words x {k} classes as {name}, ms ({detail})"
        lines.append(_line(what, 1000 * (save + load), "at most 150 ms"))
    return lines


def _terms(words: list[str], counts: np.ndarray) -> Any:
    from candide.tally import TokenCounts

    keys = [word.encode() for word in words]
    classes = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    word = np.concatenate([np.flatnonzero(row).astype(np.int32) for row in counts])
    total = counts[counts > 0]
    length = counts.sum(axis=1, keepdims=True)
    starts = np.concatenate([[0], np.cumsum([len(key) for key in keys])])
    letters = np.frombuffer(b"".join(keys), np.uint8)
    return TokenCounts(
        np.full((len(counts), 1), 1000.0), length, letters, starts, classes, word, total, np.minimum(total, 1.0)
    )


def _shards(folder: Path, quick: bool) -> list[list[str]]:
    """Adult in many files, read and added."""
    from functools import reduce
    from operator import add

    import pyarrow.parquet as pq

    from candide import store
    from candide.data.table import Table
    from candide.engines import arrays
    from candide.fit_source import fit_model

    path = DATA / "tables" / "adult_train.parquet"
    if not path.exists():
        return []
    rows, n = pq.read_table(path), 100 if quick else 1000
    target = rows.column_names[-1]
    whole: Any = fit_model(rows, target, model="naive").fitted
    for i in range(n):
        start, stop = (j * len(rows) // n for j in (i, i + 1))
        part = rows.slice(start, stop - start).combine_chunks()
        table = Table.from_data(part.select(list(whole.plan.columns)))
        census = arrays.count_table(table, part.column(target), plan=whole.plan.with_levels(table))
        store.save(whole.with_counts(census), folder / f"{i}.candide")
    [took] = seconds(lambda: reduce(add, (store.load(folder / f"{i}.candide") for i in range(n))), repeat=3)
    merged = reduce(add, (store.load(folder / f"{i}.candide") for i in range(n)))
    assert merged.counts.n_rows == len(rows)
    return [_line(f"load and add {n:,} shards of Adult, {len(rows):,} rows, seconds", took, "at most 3 s")]


def _buckets(folder: Path, bits: int) -> list[list[str]]:
    """A model that has met every bucket, each in one class: saved, and loaded by memory map."""
    from candide import store
    from candide.data.labels import Labels
    from candide.events import Text
    from candide.model.counts import ModelCounts
    from candide.model.fitted import FittedModel
    from candide.model.plan import Plan, PlanPart
    from candide.tally import TokenCounts

    n, k, path = 1 << bits, 20, folder / "buckets.candide"
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    if free < 150 * n:
        return [[f"2**{bits} buckets", f"skipped: {free / 1e9:.0f} GB are free", ""]]
    letters, word = np.arange(n, dtype="<u4").view(np.uint8), np.arange(n, dtype=np.int32)
    classes, total, sizes = np.linspace(0, n, k + 1).astype(np.int64), np.full(n, 2.0), np.full((k, 1), 1e6)
    # bytes of a little-endian number are not in its order: this is the one they are kept in
    letters = np.sort(letters.reshape(-1, 4).copy().view(">u4").ravel()).view(np.uint8)
    starts = np.arange(0, 4 * n + 1, 4)
    tally = TokenCounts(sizes, np.full((k, 1), 2.0 * n / k), letters, starts, classes, word, total, total)
    plan = Plan(("text",), (PlanPart(Text(bits=bits), ("text",)),))
    labels = Labels(tuple(range(k)))
    start = time.perf_counter()
    store.save(FittedModel(ModelCounts(plan, labels, sizes[:, 0], (tally,), n)), path)
    saved = time.perf_counter() - start
    del tally, letters, word, total, starts
    size = path.stat().st_size / 1e6
    code = _MAPPED.format(path=str(path), rows=n)
    if bits < 24:  # small files are read whole
        code = code.replace("fitted =", "store.READ_WHOLE = 0\nfitted =")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took, grown = (float(text) for text in out.stdout.split())
    what = f"a model of 2**{bits} buckets met, {k} classes, {size:,.0f} MB, saved in {saved:.1f} s"
    return [
        _line(f"{what}: loaded by memory map, ms", took, "by memory map"),
        _line("the same: resident memory that loading takes, MB", grown, "small beside the file"),
    ]


def _line(name: str, value: float, asked: str) -> list[str]:
    line = [name, f"{value:,.3g}", asked]
    print(" | ".join(line), flush=True)
    return line
