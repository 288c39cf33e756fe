"""RESULTS.md: one section a subject, replaced when that subject is measured again."""

import os
import re
from pathlib import Path

FILE = Path(__file__).with_name("RESULTS.md")
HEAD = """# Measured results

Each section is the last output of `python -m benchmarks SUBJECT --save`. Ratios hold, seconds do not.
"""


def save(subject: str, section: str) -> None:
    """Write a section, keeping the others."""
    text = FILE.read_text() if FILE.exists() else HEAD
    start, end = f"<!-- {subject} -->", f"<!-- end of {subject} -->"
    block = f"{start}\n## {subject}\n\n{machine()}\n\n{section.strip()}\n{end}"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    text = pattern.sub(lambda _: block, text) if pattern.search(text) else f"{text.rstrip()}\n\n{block}\n"
    FILE.write_text(text)


def machine() -> str:
    """The machine, by cores and memory only."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores, {gigabytes:.0f} GiB of memory."


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in [headings, ["---"] * len(headings), *rows]]
    return "\n".join(lines)
