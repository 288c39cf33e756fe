"""Plans of Spark, as ``explain`` prints them: whether rows come in the same order again, and whether to read them twice
costs little more than once, and gives the same rows.

>>> scan = "*(1) Project [a#1 AS c0#2]\\n+- *(1) ColumnarToRow\\n   +- FileScan parquet [a#1] Batched: true"
>>> joined = "AdaptiveSparkPlan isFinalPlan=false\\n+- SortMergeJoin [a#1]\\n   :- Exchange hashpartitioning(a#1, 200)"
>>> [(find_shuffle(plan), is_only_read(plan)) for plan in (scan, joined)]
[(None, True), ('Exchange', False)]

Of text only the columns that are asked for are parsed, and which rows are malformed, and dropped, depends on that:

>>> is_only_read("FileScan csv [a#1] Batched: false")
False

However rows were made that are stored, they stay the same; beside them others may not:

>>> stored = ":- InMemoryTableScan [a#1]\\n:     +- InMemoryRelation [a#1]\\n:        +- Project [rand(5) AS a#1]"
>>> [is_only_read(f"Union\\n{stored}\\n+- *(1) {other}") for other in ("Range (0, 3)", "SortMergeJoin [a#1]")]
[True, False]
"""

import re
from collections.abc import Iterator

_SHUFFLE_NODES = re.compile(r"(?<!Broadcast)Exchange|JDBC")  # in a plan whose rows may come in another order each time
_NODE = re.compile(r"(?m)^(?P<above>[ :|+\-]*)(?:\*\(\d+\) )?(?P<node>(?:(?:File|Batch)Scan )?\w+)(?P<rest>.*)")
_CACHED_SCAN = "InMemoryTableScan"  # of rows that were cached, however they were made
_READ_NODES = {"AdaptiveSparkPlan", "Project", "Filter", "ColumnarToRow", "Union", "Coalesce", "Range"}
_READ_NODES |= {"LocalTableScan", _CACHED_SCAN}
_READ_NODES |= {f"{scan}Scan {form}" for scan in ("File", "Batch") for form in ("parquet", "orc")}
# Where Spark itself cannot be asked; of what is encrypted by a chance of its own it does not tell
_NONDETERMINISTIC = re.compile(r"(?i)\b(rand\w*|uuid|shuffle|reflect|java_method|input_file_\w+|\w+_id|aesEncrypt)\(")
_CLOCK_FUNCTIONS = re.compile(r"\b(now|current_date|(current_|local)time(stamp)?)\(")


def find_shuffle(plan: str) -> str | None:
    """What in a plan has rows come in another order each time."""
    found = _SHUFFLE_NODES.search(plan)
    return found[0] if found else None


def is_only_read(plan: str) -> bool:
    """Whether rows are read from where they are stored, and at most chosen and changed one by one."""
    nodes = list(_nodes(plan))
    return bool(nodes) and all(node in _READ_NODES and not _NONDETERMINISTIC.search(rest) for node, rest in nodes)


def has_clock(analyzed: str) -> bool:
    """Whether a plan, as it is before each query puts its own time there, reads the clock.

    >>> [has_clock(f"Filter (t#1 < {what})") for what in ("now()", "2024-01-01")]
    [True, False]
    """
    return _CLOCK_FUNCTIONS.search(analyzed) is not None


def _nodes(plan: str) -> Iterator[tuple[str, str]]:
    """The nodes of a plan, without those by which rows were made that are stored."""
    stored = None
    for found in _NODE.finditer(plan):
        depth = len(found["above"])
        if stored is not None and depth > stored:
            continue
        stored = depth if found["node"] == _CACHED_SCAN else None
        yield found["node"], found["rest"]
