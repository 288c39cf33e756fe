"""Pairs: the probabilities of single levels or terms in two laws, side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats


@dataclass(frozen=True, eq=False)
class LevelComparison:
    """The probabilities that one class gives to single levels or terms, in two laws."""

    feature: Codes  # (item) the column
    level: Codes  # (item) which of its levels, or of the terms of both
    before: Floats  # (item)
    after: Floats  # (item)
    divergence: Floats  # (item) what each adds to the divergence
    rest_divergence: float = 0.0  # what all others add
    is_seen: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None  # (item) whether each law has met it
    token_key: Callable[[int], bytes] | None = (
        None  # the term of a place, where the law and not the plan knows the names
    )
