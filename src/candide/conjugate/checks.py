"""What an estimate refuses: cells without enough values, and priors without a finite integral."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import CellError, InputError
from candide.priors import Prior


def refuse_cells(mask: NDArray, reason: str) -> None:
    """Raise if any (class, feature) cell is marked, naming the first, and the row where there is an axis of rows."""
    if mask.any():
        *row, c, j = np.argwhere(mask)[0].tolist()
        raise CellError(c, j, reason, row=row[0] if row else None)


def refuse_improper(improper: Any, prior: Prior | None) -> None:
    """Raise if a prior has no finite integral: nothing is marginal under it."""
    if np.any(improper):
        what = f"{prior!r} is improper here, so there is no marginal likelihood"
        raise InputError(what, value=prior, remedy="use a proper prior")
