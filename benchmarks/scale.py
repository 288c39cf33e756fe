"""Scale: rows made on the fly by DuckDB, from a million to a billion: flat memory, steady rows per second."""

from benchmarks import results
from benchmarks.measure import child

_WORK = """
import time
from candide.tasks.learn import learn
query = '''
SELECT i % 1000 / 7.0 AS a, (i * 7919) % 10007 / 11.0 AS b, (i * 104729) % 1299709 / 13.0 AS c, i % 97 * 1.5 AS d,
       (i % 5)::VARCHAR AS e, (i % 11)::VARCHAR AS f, i % 2 AS g, (i // 7) % 3 AS y
FROM range({rows}) t(i)
'''
learn(query.replace("range({rows})", "range(1000)"), "y")  # what is done once a process is not the cost of rows
start = time.perf_counter()
learned = learn(query, "y")
assert learned.fitted.census.n_rows == {rows}
print("seconds", time.perf_counter() - start)
"""


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    lines = []
    for power in (6, 7) if quick else (6, 7, 8, 9):
        done = child(_WORK.format(rows=10**power), timeout=3600)
        lines.append(
            [
                f"10^{power} rows x 8 columns",
                f"{done.said:.2f}",
                f"{10**power / done.said / 1e6:.1f}",
                f"{done.megabytes:.0f}",
            ]
        )
        print(" | ".join(lines[-1]), flush=True)
    return results.table(["work", "seconds", "million rows per second", "peak memory MB"], lines)
