"""Testing: the properties of every tally, event model and engine, as checks to run on your own.

>>> from candide.testing import check_event
>>> check_event("gaussian")

Rows are drawn from a seed and are hard cases: gaps, no weight, a column without values, one class, 1e8 from zero,
float32. A property that does not hold is an AssertionError that names it and the rows.
"""

from candide.testing.engines import check_engine
from candide.testing.events import check_event
from candide.testing.tallies import check_tally

__all__ = ["check_engine", "check_event", "check_tally"]
