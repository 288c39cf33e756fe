"""Limits of the weighted model: what bounds the work of selecting terms and learning weights, and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WeightedLimits:
    """One record, so that the cost of a fit can be read, and changed, in one place."""

    # Interactions. A pair term costs about as much as a column; beyond these the gain on held-out rows is noise.
    max_sets: tuple[tuple[int, int], ...] = ((2, 200), (3, 100))  # (columns in a set, sets selected)
    max_seed_pairs: int = 60  # selected pairs that are extended to triples
    max_paired_columns: int = 200  # columns tried in pairs: 20,000 pairs
    max_set_cells: int = 200_000  # cells of a tested set, over all classes
    grid_cells: tuple[int, int] = (8, 16)  # cells of a numeric column in a set, at least and at most
    max_singleton_share: float = 0.01  # rows whose level occurs once; above this new rows keep bringing new levels
    contributions_at_once: int = 1 << 22  # (row, class, set) numbers of the exact score test: 32 MB

    # Discriminants and prototypes. Their cost grows with the square of the width.
    max_discriminant_numbers: int = 300
    max_column_indicators: int = 60  # indicator variables of a categorical column
    max_indicators: int = 400  # width of a discriminant of numbers and categories
    n_prototypes: int = 64  # rows that others are compared with; each adds a column to the kernel discriminant

    # Text options. A trial learns weights once; a search has up to 27 of them.
    max_searched_documents: int = 1000  # up to which options are searched unasked; with more the default serves
    max_held_out_documents: int = 1000  # in all trials, about
    max_training_documents: int = 10_000  # of a trial: from a tenth of them, pairs would seem to contribute little
    character_documents: int = 3000  # on which runs of characters are tried

    # Contributions (row, class, term).
    max_double_contributions: int = 1 << 22  # of a part, kept in double precision; more of them in single
    chunk_numbers: int = 1 << 17  # numbers that stay in cache while they are worked on: 1 MB


LIMITS = WeightedLimits()
