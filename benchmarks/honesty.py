"""Honesty: whether what the default model reports of itself holds on rows that it has not seen.

Noise tables, repeated rows, changes that must not matter, printed against true log-loss, and false alarms of drift.
"""

import importlib
from typing import Any

PARTS = ("repeats", "invariance", "noise", "drift")


def options(parser: Any) -> None:
    """The options of this subject."""
    parser.add_argument("--part", choices=PARTS, help="measure one part alone")
    parser.add_argument("--tables", type=int, help="number of tables of each size, instead of those asked for")


def run(*, quick: bool = False, part: str | None = None, tables: int | None = None) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    sections = []
    for name in (part,) if part else PARTS:
        module = importlib.import_module(f"benchmarks.honesty_{name}")
        title = (module.__doc__ or name).split("\n")[0]
        print(f"\n{title}", flush=True)
        size = f"{tables} tables of each size.\n\n" if tables else ""
        sections.append(f"### {title}\n\n{size}{module.run(quick=quick, n_tables=tables)}")
    return "\n\n".join(sections)
