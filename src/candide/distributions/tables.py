"""Distributions over levels: a table of log-probabilities, and its two-level form on raw numbers.

>>> even = LevelTable(np.log([[0.5], [0.5]]), np.array([0, 2]), unseen=np.log([[0.25]]))
>>> np.exp(even.log_prob(np.array([[0], [7], [-1]]))).ravel().tolist()  # a level, a level never seen, an absent value
[0.5, 0.25, 1.0]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.distributions.base import Distribution, numbers, where_present
from candide.distributions.linear import LogWeights
from candide.errors import InputError
from candide.rows.blocks import Block, Codes, Csr, Floats

if TYPE_CHECKING:
    from candide.distributions.forms import OfLevels, OfNumbers


@dataclass(frozen=True, eq=False)
class LevelTable(Distribution):
    table: Floats  # (levels of all features, class) log-probabilities
    offsets: Codes  # (features + 1) feature j owns rows offsets[j]:offsets[j+1]
    unseen: Floats  # (feature, class) what a level never seen adds

    @property
    def n_classes(self) -> int:
        return self.table.shape[1]

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def _arrays(self) -> tuple[Codes, Floats, Floats]:
        return (
            np.ascontiguousarray(self.offsets, np.intp),
            kernels.padded(self.table),
            kernels.padded(self.unseen),
        )

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_levels(block, *self._arrays, out)

    def _terms(self, x: NDArray) -> Floats:
        # One table with, after each feature's levels, a row for the unseen and a row for the absent.
        sizes = np.diff(self.offsets)
        starts = self.offsets[:-1] + 2 * np.arange(self.n_features)
        full = np.zeros((len(self.table) + 2 * self.n_features, self.n_classes))
        full[np.arange(len(self.table)) + 2 * np.repeat(np.arange(self.n_features), sizes)] = self.table
        full[starts + sizes] = self.unseen
        place = starts + np.where(x < 0, sizes + 1, np.minimum(x, sizes))
        return full[place].transpose(0, 2, 1)

    def sample(self, y: Codes, rng: "np.random.Generator") -> Codes:
        """Level codes; -1 where a feature has no level at all."""
        out = np.full((len(y), self.n_features), -1, np.intp)
        for j, (start, stop) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            running = np.cumsum(np.exp(self.table[start:stop]), axis=0)
            # Class c owns the interval (c, c + 1), so one sorted search serves every row.
            edges = (running / running[-1:] + np.arange(self.n_classes)).T.ravel()
            found = np.searchsorted(edges, y + rng.random(len(y)), side="right") - y * (stop - start)
            out[:, j] = np.minimum(found, stop - start - 1)
        return out

    def quadratic(self) -> "OfLevels":
        from candide.distributions.forms import OfLevels, with_unseen

        weight = with_unseen(self.table, self.unseen, self.offsets)
        return OfLevels(weight, np.zeros((self.n_classes, self.n_features)), offsets=self.offsets)

    def parameters(self) -> dict[str, NDArray]:
        """Probabilities (class, levels), ragged over features by ``offsets``."""
        return {"probability": np.exp(self.table.T), "offsets": self.offsets}


@dataclass(frozen=True, eq=False)
class Switch(Distribution):
    """Yes where a number lies above the threshold, no where it does not. In sparse rows what is not stored is zero."""

    log_no: Floats  # (class, feature)
    log_yes: Floats  # (class, feature)
    threshold: float = 0.0

    @property
    def n_classes(self) -> int:
        return self.log_no.shape[0]

    @property
    def n_features(self) -> int:
        return self.log_no.shape[1]

    @cached_property
    def _dense(self) -> tuple[Floats, Floats]:
        return np.ascontiguousarray(self.log_no, np.float64), np.ascontiguousarray(self.log_yes, np.float64)

    @cached_property
    def _sparse(self) -> tuple[Floats, Floats, Floats | None, Floats]:
        """What a row of nothing but no scores, what each yes changes, and both for the count of impossible values."""
        no, yes = LogWeights.of(self.log_no.T), LogWeights.of(self.log_yes.T)
        struck = no.struck.sum(axis=0) if no.any or yes.any else None
        change, struck_change = kernels.padded(yes.finite - no.finite), kernels.padded(yes.struck - no.struck)
        return no.finite.sum(axis=0), change, struck, struck_change

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if not isinstance(block, Csr):
            return kernels.add_switch(numbers(block), self.threshold, *self._dense, out)
        if self.threshold < 0:
            raise InputError(
                f"threshold {self.threshold:g} < 0 would make all that sparse rows omit a yes; pass dense rows"
            )
        # Every feature says no, then the stored ones above the threshold say yes instead.
        all_no, change, impossible, impossible_change = self._sparse
        out += all_no
        if kernels.add_linear_csr(*block[:3], change, out, self.threshold) == kernels.INFINITE:
            return kernels.INFINITE
        if impossible is not None:
            struck = np.tile(impossible, (len(out), 1))
            kernels.add_linear_csr(*block[:3], impossible_change, struck, self.threshold)
            out[struck > 0.5] = -np.inf
        return 0

    def _terms(self, x: NDArray) -> Floats:
        return where_present(x, np.where((x > self.threshold)[:, None, :], self.log_yes, self.log_no))

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """0 and 1, or where the threshold does not part these, numbers that it does part."""
        no, yes = min(0.0, self.threshold), max(1.0, np.nextafter(self.threshold, np.inf))
        return np.where(rng.random((len(y), self.n_features)) < np.exp(self.log_yes)[y], yes, no)

    def quadratic(self) -> "OfNumbers":
        from candide.distributions.forms import OfNumbers

        with np.errstate(invalid="ignore"):
            weight = self.log_yes - self.log_no
        return OfNumbers(weight, self.log_no, function="above", threshold=self.threshold)

    def parameters(self) -> dict[str, NDArray]:
        return {"probability": np.exp(self.log_yes)}
