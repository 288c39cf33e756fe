"""How many rows are looked at before and while a model is fitted: every bound on a sample, with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleLimits:
    """Sizes of the samples of a source."""

    rows: int = 20_000  # of the sample: term weights hardly change with more
    documents: int = 100_000  # rows for token weights: these are very many,
    text_bytes: int = 1 << 25  # with so many bytes in all: about eight million tokens, which take 300 MB
    class_rows: int = 2_000  # rows of a class that are enough to score it
    searched_rows: int = 4_000_000  # rows among which those of rare classes are looked for
    extra_terms: int = 200  # terms besides the columns, at most: interactions and discriminants
    token_groups: int = 24  # and groups of tokens
    contributions: int = 60_000_000  # row x class x term: fewer rows where these are many,
    wide_rows: int = 2_000  # but so many, unless even these would have more than
    memory_contributions: int = 240_000_000  # contributions: about 1 GB
    row_weight: float = 1e200  # of a row: products of row weights stay finite

    def n_rows(self, rows: int, n_classes: int, n_columns: int, n_extra_terms: int | None = None) -> int:
        """The size of a sample: fewer than ``rows`` where classes and columns are many."""
        extra = self.extra_terms if n_extra_terms is None else n_extra_terms
        per_row = max(1, n_classes * (n_columns + extra))
        least = min(self.wide_rows, self.memory_contributions // per_row)
        return min(rows, max(self.contributions // per_row, least, 1))


LIMITS = SampleLimits()
