"""Testing: the laws that every engine keeps, as functions to call on your own.

Rows are drawn from a seed and are nasty. A law that does not hold is an AssertionError that names it and the rows.
"""

from candide.testing.engines import check_engine

__all__ = ["check_engine"]
