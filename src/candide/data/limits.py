"""How many rows of a source are looked at before and while a model is fitted: every bound, with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleLimits:
    """Sizes of samples.

    >>> LIMITS.head_rows(10), LIMITS.head_rows(10_000)
    (20000, 2000)
    """

    rows: int = 20_000  # of a sample: term weights and column types hardly change with more
    wide_rows: int = 2_000  # of a sample of very many columns; as many show the scale of numbers, or score a class
    checked_rows: int = 4_096  # that a fit searches for problems: more would take longer than a small fit
    audited_rows: int = 50_000  # that a data check reads in a pass of its own: it searches for rare faults
    values: int = 1 << 23  # in the first rows, from which column types are inferred
    documents: int = 100_000  # rows for token weights: tokens are very many,
    text_bytes: int = 1 << 25  # with so many bytes in all: about eight million tokens, which take 300 MB
    searched_rows: int = 4_000_000  # among which those of rare classes are searched for
    extra_terms: int = 200  # terms besides the columns: interactions and discriminants
    token_groups: int = 24  # and groups of tokens
    contributions: int = 60_000_000  # row x class x term: fewer rows where these are many,
    memory_contributions: int = 240_000_000  # but ``wide_rows``, unless even these would have so many: about 1 GB
    row_weight: float = 1e200  # of a row: products of row weights stay finite

    def head_rows(self, n_columns: int) -> int:
        """How many first rows column types are inferred from: fewer where columns are very many."""
        return max(self.wide_rows, min(self.rows, self.values // max(1, n_columns)))

    def n_rows(self, rows: int, n_classes: int, n_columns: int, n_extra_terms: int | None = None) -> int:
        """The size of a sample: fewer than ``rows`` where classes and columns are many."""
        extra = self.extra_terms if n_extra_terms is None else n_extra_terms
        per_row = max(1, n_classes * (n_columns + extra))
        least = min(self.wide_rows, self.memory_contributions // per_row)
        return min(rows, max(self.contributions // per_row, least, 1))


LIMITS = SampleLimits()
