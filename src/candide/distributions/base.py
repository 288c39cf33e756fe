"""What every distribution is: fitted parameters that score rows, explain a score feature by feature, and sample.

Axes are (row, class, feature). A distribution holds no state but its parameters: threads may share one.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.errors import InputError, InputTypeError
from candide.rows.blocks import Block, Codes, Csr, Floats

if TYPE_CHECKING:  # read when a form is asked for, so that loading a model stays quick
    from candide.distributions.forms import Form


class Distribution(ABC):
    """p(x | class) for every column of a block at once. An absent value adds 0."""

    not_linear: ClassVar[str] = "its log-density is not linear in the value; choose another event model"  # why, remedy

    rows_at_once: ClassVar[int] = 64  # fewer of them are scored at a higher price each
    by_blas: ClassVar[bool] = False  # whether rows are scored by products of matrices
    screens: bool = False  # whether to find the largest class costs less than to score them all

    @property
    @abstractmethod
    def n_classes(self) -> int: ...

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @abstractmethod
    def add_log_prob(self, block: Block, out: Floats) -> int:
        """Add log p(row | class) into ``out`` (row, class); return how many values were absent, or kernels.INFINITE."""

    def add_to_choose(self, block: Block, out: Floats) -> int:
        """As ``add_log_prob``, where nothing but the largest class of each row is asked for, and nothing follows.

        The largest is then the largest of ``add_log_prob``; what the others get may be anything below it.
        """
        return self.add_log_prob(block, out)

    @abstractmethod
    def _terms(self, x: NDArray) -> Floats:
        """What each feature adds, of a dense block without infinities."""

    @abstractmethod
    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """One row (row, feature) for each class code in ``y``."""

    @abstractmethod
    def parameters(self) -> dict[str, NDArray]:
        """What a person wants to see: (class, feature) arrays by name."""

    def quadratic(self) -> "Form | None":
        """The score as a polynomial of at most second degree in inputs read from the row; None where it is none."""
        return None

    def linear(self) -> "Form | None":
        """The score as weights and a base; None where it is not linear."""
        form = self.quadratic()
        return form if form is not None and form.square is None else None

    def log_prob(self, block: Block) -> Floats:
        """(row, class) log-probabilities."""
        out = np.zeros((block.shape[0], self.n_classes))
        if self.add_log_prob(block, out) == kernels.INFINITE:
            refuse_infinite(dense(block))
        return out

    def terms(self, block: Block) -> Floats:
        """(row, class, feature): what each feature adds to log_prob."""
        x = dense(block)
        refuse_infinite(x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._terms(x)


def dense(block: Block) -> NDArray:
    """A block as a plain array."""
    if not isinstance(block, Csr):
        return block
    x = np.zeros(block.shape)
    stored = slice(block.indptr[0], block.indptr[-1])
    # add, not set: a column stored twice in a row means its sum
    np.add.at(x, (row_numbers(block), block.indices[stored]), block.data[stored])
    return x


def row_numbers(block: Csr) -> Codes:
    """The row of each stored value."""
    return np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))


def numbers(block: Block) -> NDArray:
    """The block as the dense floats that kernels read: float32 and float64 stay what they are."""
    if isinstance(block, Csr):
        raise InputTypeError("sparse rows where dense ones are needed: zeros are values here; pass X.toarray()")
    return block if block.dtype in (np.float32, np.float64) else block.astype(np.float64)


def where_present(x: NDArray, terms: Floats) -> Floats:
    """(row, class, feature) terms, 0 where the (row, feature) value is absent."""
    return np.where(np.isnan(x)[:, None, :], 0.0, terms)


def refuse_infinite(x: NDArray) -> None:
    """Say where a block holds an infinity."""
    at = np.argwhere(np.isinf(x))
    if len(at):
        row, column = at[0].tolist()
        raise InputError(f"row {row}, column {column}: {x[row, column]} is not a finite number; pass NaN for absent")
