"""Scale: rows made on the fly by DuckDB, from a million to a billion: flat memory, steady rows per second.

Then files of 20 mixed columns. Both by naive Bayes and by the model whose voices are weighed.
"""

import tempfile
from pathlib import Path

from benchmarks import results
from benchmarks.measure import child

_WORK = """
import time
from candide.fit_source import fit_model
query = '''
SELECT i % 1000 / 7.0 AS a, (i * 7919) % 10007 / 11.0 AS b, (i * 104729) % 1299709 / 13.0 AS c, i % 97 * 1.5 AS d,
       (i % 5)::VARCHAR AS e, (i % 11)::VARCHAR AS f, i % 2 AS g, (i // 7) % 3 AS y
FROM range({rows}) t(i)
'''
few = query.replace("range({rows})", "range(1000)")
fit_model(few, "y", model="{model}")  # what is done once a process is not the cost of rows
start = time.perf_counter()
learned = fit_model(query, "y", model="{model}")
assert learned.fitted.census.n_rows == {rows}
print("seconds", time.perf_counter() - start)
"""


_FILE = """
import time
from candide.fit_source import fit_model
fit_model({small!r}, "y", model="{model}")
start = time.perf_counter()
learned = fit_model({path!r}, "y", model="{model}")
assert learned.fitted.census.n_rows == {rows}
print("seconds", time.perf_counter() - start)
"""


def mixed(path: Path, rows: int) -> str:
    """Ten numbers, eight columns of levels, two counts that are mostly 0; the label depends on some, and on a pair."""
    import duckdb

    def chance(seed: int) -> str:
        return f"((hash(i + {seed}::BIGINT * 1000000007) % 1000003 + 0.5) / 1000003)"

    def normal(seed: int) -> str:
        return f"sqrt(-2 * ln({chance(seed)})) * cos(2 * pi() * {chance(seed + 50)})"

    numbers = [f"{normal(j)} AS n{j}" for j in range(10)]
    levels = [
        f"'v' || floor({chance(20 + j)} ^ 2 * {size}) AS c{j}" for j, size in enumerate((2, 3, 4, 5, 6, 8, 12, 30))
    ]
    counts = [f"CASE WHEN {chance(30 + j)} < 0.7 THEN 0 ELSE floor({chance(32 + j)} * 9) END AS z{j}" for j in range(2)]
    odds = "n0 - 0.6 * n1 + 0.4 * n2 * n2 + 0.2 * z0 + (c1 = 'v1')::INT + 1.5 * ((c2 = 'v1') <> (c3 = 'v0'))::INT - 1.5"
    label = f"CASE WHEN {chance(40)} < 1 / (1 + exp(-({odds}))) THEN 'yes' ELSE 'no' END AS y"
    made = f"SELECT i, {', '.join([*numbers, *levels, *counts])} FROM range({rows}) t(i)"
    duckdb.sql(f"COPY (SELECT * EXCLUDE i, {label} FROM ({made})) TO '{path}' (FORMAT parquet)")
    return str(path)


def _files(folder: Path, millions: tuple[int, ...]) -> list[list[str]]:
    small, lines = mixed(folder / "small.parquet", 1000), list[list[str]]()
    for rows in (n * 10**6 for n in millions):
        path, took = mixed(folder / "rows.parquet", rows), dict[str, float]()
        for model in ("naive", "bayes"):
            done = child(_FILE.format(small=small, path=path, model=model, rows=rows), timeout=3600)
            took[model] = done.said
            times = f" ({done.said / took['naive']:.1f} times naive)" if model == "bayes" else ""
            work = f"{rows // 10**6} million rows x 20 mixed columns of Parquet, {model}"
            said = [f"{done.said:.2f}{times}", f"{rows / done.said / 1e6:.1f}", f"{done.megabytes:.0f}"]
            lines.append([work, *said])
            print(" | ".join(lines[-1]), flush=True)
    return lines


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    lines = []
    powers = {"naive": (6, 7) if quick else (6, 7, 8, 9), "bayes": (6, 7) if quick else (6, 7, 8)}
    for model, power in ((model, power) for model, some in powers.items() for power in some):
        done = child(_WORK.format(rows=10**power, model=model), timeout=3600)
        lines.append(
            [
                f"10^{power} rows x 8 columns, {model}",
                f"{done.said:.2f}",
                f"{10**power / done.said / 1e6:.1f}",
                f"{done.megabytes:.0f}",
            ]
        )
        print(" | ".join(lines[-1]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        lines += _files(Path(folder), (1,) if quick else (1, 4, 8))
    return results.table(["work", "seconds", "million rows per second", "peak memory MB"], lines)
