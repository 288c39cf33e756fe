"""Bernoulli: yes where a number lies above the threshold, no where it does not. In sparse rows what is not stored is 0.

Without a threshold a value from 0 to 1 is how much of a yes it is, so that the score is linear in it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats
from candide.distributions.arrays import LOG_VALUES, ArraySource, DistributionShape, read_array, read_optional_array
from candide.distributions.base import (
    Distribution,
    mask_absent,
    multiply_contributions,
    symmetric_divergence,
    to_dense,
    to_dense_floats,
)
from candide.distributions.score_expression import Expression, parameter, times, where, zero_if_missing
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    log_no: Floats  # (class, feature)
    log_yes: Floats  # (class, feature)
    threshold: float | None = 0.0  # None: values from 0 to 1, each so much of a yes

    name: ClassVar[str] = "bernoulli"
    _shaped_like: ClassVar[str] = "log_no"

    @cached_property
    def _dense(self) -> tuple[Floats, Floats]:
        return np.ascontiguousarray(self.log_no, np.float64), np.ascontiguousarray(self.log_yes, np.float64)

    @cached_property
    def _sparse(self) -> tuple[Floats, Floats, Floats | None, Floats]:
        """What a row of nothing but no scores, what each yes changes, and both for the count of impossible values."""
        no, never = _split_infinite(self.log_no.T)
        yes, always = _split_infinite(self.log_yes.T)
        impossible = never.sum(axis=0) if never.any() or always.any() else None
        return no.sum(axis=0), kernels.pad_columns(yes - no), impossible, kernels.pad_columns(always - never)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if self.threshold is None:
            return self._add_fractions(block, out)
        if not isinstance(block, Csr):
            return kernels.add_switch(to_dense_floats(block), self.threshold, *self._dense, out)
        if self.threshold < 0:
            what = f"threshold {self.threshold:g} < 0 would make all that sparse rows omit a yes"
            raise InputError(what, value=self.threshold, remedy="pass dense rows")
        # Every feature counts as no, then stored values above the threshold count as yes instead.
        all_no, change, impossible, impossible_change = self._sparse
        out += all_no
        if kernels.add_linear_csr(*block[:3], change, out, self.threshold) == kernels.INFINITE:
            return kernels.INFINITE
        if impossible is not None:
            count = np.tile(impossible, (len(out), 1))
            kernels.add_linear_csr(*block[:3], impossible_change, count, self.threshold)
            out[count > 0.5] = -np.inf
        return 0

    def _add_fractions(self, block: Block, out: Floats) -> int:
        """Every feature counts as no, then each value as that fraction of yes."""
        all_no, change, impossible, _ = self._sparse
        if impossible is not None:  # 0 * -inf = 0: the fractions of no and yes separately
            x = to_dense_floats(to_dense(block)).astype(np.float64, copy=False)
            kernels.add_linear(1.0 - x, np.asfortranarray(self.log_no.T), out)
            return kernels.add_linear(x, np.asfortranarray(self.log_yes.T), out)
        out += all_no
        if isinstance(block, Csr):
            return kernels.add_linear_csr(*block[:3], change, out)
        n_absent = kernels.add_linear(block, np.asfortranarray((self.log_yes - self.log_no).T), out)
        if n_absent > 0:
            out -= np.isnan(block) @ self.log_no.T
        return n_absent

    def _contributions(self, x: NDArray) -> Floats:
        if self.threshold is None:
            fraction = x[:, None, :].astype(np.float64, copy=False)
            of_yes = np.where(fraction == 0, 0.0, fraction * self.log_yes)
            return mask_absent(x, of_yes + np.where(fraction == 1, 0.0, (1.0 - fraction) * self.log_no))
        return mask_absent(x, np.where((x > self.threshold)[:, None, :], self.log_yes, self.log_no))

    def scale_tables(self, weight: Floats) -> "Bernoulli":
        no, yes = (multiply_contributions(table, weight) for table in (self.log_no, self.log_yes))
        return Bernoulli(no, yes, self.threshold)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """0 and 1, or numbers on both sides of the threshold where these are not."""
        limit = 0.0 if self.threshold is None else self.threshold
        no, yes = min(0.0, limit), max(1.0, np.nextafter(limit, np.inf))
        return np.where(rng.random((len(y), self.n_features)) < np.exp(self.log_yes)[y], yes, no)

    def mean(self) -> Floats:
        return np.exp(self.log_yes)

    def divergence(self, other: Self) -> Floats:
        pairs = ((self.log_yes, other.log_yes), (self.log_no, other.log_no))
        yes, no = (symmetric_divergence(np.exp(p), np.exp(q)) for p, q in pairs)
        return yes + no

    def parameters(self) -> dict[str, NDArray]:
        return {"probability": np.exp(self.log_yes)}

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import NumericForm

        with np.errstate(invalid="ignore"):
            weight = self.log_yes - self.log_no
        if self.threshold is None:
            return NumericForm(self.log_no, weight)
        return NumericForm(self.log_no, weight, function="above", threshold=self.threshold)

    def score_expression(self, x: Expression) -> Expression:
        if self.threshold is None:
            return zero_if_missing(x, times(x, "yes", self.log_yes) + times(1.0 - x, "no", self.log_no))
        no, yes = parameter("no", self.log_no), parameter("yes", self.log_yes)
        return zero_if_missing(x, where(x <= self.threshold, no, yes))

    def arrays(self) -> dict[str, NDArray]:
        threshold = {} if self.threshold is None else {"threshold": np.array([self.threshold], np.float64)}
        return {"log_no": self.log_no, "log_yes": self.log_yes, **threshold}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        size = shape.n_classes, shape.n_features
        no, yes = (read_array(arrays, name, size, LOG_VALUES) for name in ("log_no", "log_yes"))
        threshold = read_optional_array(arrays, "threshold", (1,))
        return cls(no, yes, None if threshold is None else threshold.item())


def _split_infinite(weights: Floats) -> tuple[Floats, Floats]:
    """Log-weights in two parts that add without NaN: the finite ones, and marks (1.0) where they are -inf."""
    infinite = np.isneginf(weights)
    return np.where(infinite, 0.0, weights), infinite.astype(np.float64)
