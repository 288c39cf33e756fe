"""Plans of Spark, as ``explain`` prints them: whether rows come in the same order again, and whether to read them twice
costs little more than once, and gives the same rows.

>>> scan = "*(1) Project [a#1 AS c0#2]\\n+- *(1) ColumnarToRow\\n   +- FileScan parquet [a#1] Batched: true"
>>> joined = "AdaptiveSparkPlan isFinalPlan=false\\n+- SortMergeJoin [a#1]\\n   :- Exchange hashpartitioning(a#1, 200)"
>>> [(shuffled(plan), only_read(plan)) for plan in (scan, joined)]
[(None, True), ('Exchange', False)]
>>> only_read("InMemoryTableScan [a#1]\\n   +- InMemoryRelation [a#1]\\n      +- Exchange hashpartitioning(a#1, 200)")
True
"""

import re
from collections.abc import Iterator

_SHUFFLED = re.compile(r"(?<!Broadcast)Exchange|JDBC")  # in a plan whose rows may come in another order each time
_NODE = re.compile(r"^[\s:|+\-]*(?:\*\(\d+\) )?(?P<node>\w+)(?P<what> \w+)?", re.MULTILINE)
_READ = {"AdaptiveSparkPlan", "Project", "Filter", "ColumnarToRow", "Union", "Coalesce", "Range"}
_READ |= {"LocalTableScan", "FileScan", "BatchScan"}
_STORED = "InMemoryTableScan"  # of rows that were cached, however they were made
_CHANGING = re.compile(r"\b(rand|randn|random|uuid|shuffle)\(")


def shuffled(plan: str) -> str | None:
    """What in a plan has rows come in another order each time."""
    found = _SHUFFLED.search(plan)
    return found[0] if found else None


def only_read(plan: str) -> bool:
    """Whether rows are read from where they are stored, and at most chosen and changed one by one."""
    nodes = list(_nodes(plan))
    return bool(nodes) and all(node in _READ or node == _STORED for node in nodes) and not _CHANGING.search(plan)


def _nodes(plan: str) -> Iterator[str]:
    """The nodes of a plan, without those by which rows were made that are stored."""
    stored = None
    for found in _NODE.finditer(plan):
        depth = found.start("node") - found.start()
        if stored is not None and depth > stored:
            continue
        stored = depth if found["node"] == _STORED else None
        yield "FileScan" if (found["node"], found["what"]) == ("Scan", " hive") else found["node"]
