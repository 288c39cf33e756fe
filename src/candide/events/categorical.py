"""Categorical: one of K levels, counted. An unseen level gets the prior's probability of one level: finite.

By default the table of each class is pulled towards the level proportions of all classes, as far as the counts suggest
(see :mod:`candide.conjugate.dirichlet`); with ``Dirichlet(1)`` each has an imaginary row of every level (Laplace).

Whole is few different whole numbers, which may be amounts or codes; the counts decide. They are counted as levels, from
which the moments of a number follow. When a model is estimated, a column is Gaussian or categorical, whichever predicts
the class better: by the sum over rows of the leave-one-out log p(class | value). So more parameters have no advantage.

Binned is numbers of any shape, by their frequencies in bins. A column is counted in the cells of a grid, at most 255 of
them, that is drawn without labels. Neighbouring cells whose classes do not differ are merged when the counts become a
distribution, so other counts may have other bins. A column without association to the class is one bin. Within a bin
the classes do not differ. Cells are merged by Fayyad and Irani's criterion: an interval is cut where the information
gained about the class pays for the bits needed to describe the cut and the classes on both sides. The best cut is tried
first, then both halves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import conjugate, distributions, formatting
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.encoding import Encoding, Grid
from candide.errors import InputError
from candide.events.base import EventModel, PosteriorSampler, SettledColumns, Support, TallyComparison
from candide.events.normal import Gaussian
from candide.numerics import log_or_minus_inf
from candide.priors import Dirichlet, Jeffreys, PooledDirichlet, Prior, Uniform, refuse_improper
from candide.tally import LevelTally, Moments
from candide.tally.base import subtract_sums

_MIN_LOG_ODDS = 3.0  # by which categories must predict better, odds of twenty to one; else the column stays a number
_MAX_CELLS = 1 << 22  # (class, level, class): beyond, a column is taken for a number
_COMPARISON_CELLS = 10  # in which two tallies are compared
_DIGITS = 6  # of weights that are compared
_RELATIVE_TOLERANCE = 1e-9  # of the bits by which two equally good cuts may differ


@dataclass(frozen=True)
class Categorical(EventModel):
    """The probability of each level in each class, under a prior centred on the pooled proportions or a Dirichlet.

    >>> import candide as cd
    >>> code, y = {"code": [7, 7, 9, 9]}, ["a", "a", "b", "b"]
    >>> model = cd.NaiveBayes({"code": Categorical(prior="dirichlet")}).fit(code, y)
    >>> model.predict_proba({"code": [7, 8]}).round(3).tolist()  # (2 + 1) / (2 + 2) against 1/4; 8 was never seen
    [[0.75, 0.25], [0.5, 0.5]]
    >>> cd.NaiveBayes({"code": Categorical()}).fit(code, y).predict_proba({"code": [7, 8]}).round(3).tolist()
    [[0.716, 0.284], [0.5, 0.5]]
    """

    name: ClassVar[str] = "categorical"
    kind: ClassVar[str] = "levels"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (PooledDirichlet, Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None

    prior: Prior | str | None = field(default=PooledDirichlet())

    def _estimate(self, tally: LevelTally, prior: Prior | None, how: str) -> "distributions.Categorical":
        """The posterior predictive of one value is the posterior mean.

        An unseen level has probability 0 where the prior has no mass for it (MLE; MAP with alpha <= 1): it contributes
        nothing then, and the density of its row is 0.
        """
        if isinstance(prior, PooledDirichlet) and how != "mle":
            table, unseen = conjugate.dirichlet.pooled_log_prob(tally, prior.alpha)
            return distributions.Categorical(table.T, tally.offsets, unseen)
        alpha = _alpha(prior, tally)
        log_prob = conjugate.dirichlet.level_log_prob(tally, alpha, how)
        unseen = conjugate.dirichlet.unseen_log_prob(tally, alpha, how)
        return distributions.Categorical(log_prob.T, tally.offsets, unseen)

    def _posterior_sampler(self, tally: LevelTally, prior: Prior | None) -> PosteriorSampler:
        """Draws of the probabilities of levels; an unseen level has that of the posterior mean."""
        if isinstance(prior, PooledDirichlet):
            _, unseen = conjugate.dirichlet.pooled_log_prob(tally, prior.alpha)
            draw = conjugate.dirichlet.pooled_sampler(tally, prior.alpha)
        else:
            alpha = conjugate.dirichlet.proper_alpha(_alpha(prior, tally))
            unseen = conjugate.dirichlet.unseen_log_prob(tally, alpha, "mean")
            draw = partial(conjugate.dirichlet.draw_log_prob, tally.counts + alpha, tally.offsets)
        return lambda rng: distributions.Categorical(draw(rng).T, tally.offsets, unseen)

    def _evidence(self, tally: LevelTally, prior: Prior | None) -> Floats:
        if isinstance(prior, PooledDirichlet):
            return conjugate.dirichlet.pooled_evidence(tally, prior.alpha)
        alpha = _alpha(prior, tally)
        refuse_improper(alpha <= 0, prior)
        return tally.per_feature(conjugate.dirichlet.level_evidence(tally, alpha))

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        if isinstance(prior, PooledDirichlet) and how != "mle":
            return conjugate.dirichlet.held_out_pooled(tally, prior.alpha, to_dense(block), y, weight)
        return conjugate.dirichlet.held_out_levels(tally, _alpha(prior, tally), how, to_dense(block), y, weight)


def _alpha(prior: Prior | None, tally: LevelTally) -> Floats:
    """Imaginary counts of every level of every column; a sequence must fit each column's levels."""
    sizes = np.diff(tally.offsets)
    alpha = dirichlet_alpha(prior)
    if alpha.ndim == 0:
        return np.full(tally.offsets[-1], float(alpha))
    if (sizes != len(alpha)).any():
        j = int(np.flatnonzero(sizes != len(alpha))[0])
        levels, values = formatting.format_count(sizes[j], "level"), formatting.format_count(len(alpha), "value")
        raise InputError(f"column {j} has {levels}, and the Dirichlet prior {values} of alpha")
    return np.tile(alpha, len(sizes))


def dirichlet_alpha(prior: Prior | None) -> Floats:
    """The alpha, one or a sequence, that a prior on level probabilities means."""
    if isinstance(prior, Dirichlet):
        return np.asarray(prior.alpha, float)
    return np.asarray(0.5 if isinstance(prior, Jeffreys) else 1.0)


@dataclass(frozen=True)
class Whole(Categorical):
    """Few different whole numbers: an amount, or codes for categories.

    >>> import candide as cd
    >>> rows = {"floor": [1, 2, 3] * 20}
    >>> model = cd.NaiveBayes({"floor": Whole()}).fit(rows, ["a", "b", "a"] * 20)
    >>> model.fitted_.plan.parts[0].event.name, model.predict({"floor": [2, 3]}).tolist()
    ('categorical', ['b', 'a'])
    """

    name: ClassVar[str] = "whole"
    max_levels: ClassVar[int | None] = 64

    def settle_columns(self, tally: LevelTally, encodings: Sequence[Encoding]) -> list[SettledColumns]:
        """Its columns as numbers, and as categories; in each the order of the columns."""
        values = [_level_values(encoding) for encoding in encodings]
        for j, x in enumerate(values):
            if x is not None and np.isinf(x).any():
                value, remedy = float(x[np.isinf(x)][0]), "make it missing, or drop the row"
                raise InputError(f"infinity is not a usable value ({value})", column=j, value=value, remedy=remedy)
        are_codes = _are_codes(tally, values)
        numbers, codes = ([j for j, is_code in enumerate(are_codes) if is_code == kind] for kind in (False, True))
        settled: list[SettledColumns] = []
        if numbers:
            settled.append((Gaussian(), numbers, (), self.moments_from_levels(tally, encodings, numbers)))
        if codes:
            code_tally = tally.select_features(np.array(codes))
            settled.append((Categorical(prior=self.prior), codes, tuple(encodings[j] for j in codes), code_tally))
        return settled

    def moments_from_levels(self, tally: Any, encodings: Sequence[Encoding], features: Sequence[int]) -> Moments:
        """The moments of these columns: what counting them as numbers gives."""
        counts = [tally.counts[:, tally.offsets[j] : tally.offsets[j + 1]] for j in features]
        values = [_level_values(encodings[j]) for j in features]
        numbers = [np.zeros(n.shape[1]) if x is None else x for n, x in zip(counts, values, strict=True)]
        return _moments_from_counts(counts, numbers)


def _level_values(encoding: Any) -> Floats | None:
    """The values of the levels; None where they are not numbers."""
    try:
        return np.array([float(value) for value in encoding.labels.values])
    except (TypeError, ValueError, OverflowError):
        return None


def _moments_from_counts(counts: Sequence[Floats], values: Sequence[Floats]) -> Moments:
    """The moments of columns from (class, level) counts and the values of the levels of each."""
    columns = []
    for n, x in zip(counts, values, strict=True):
        x, y = np.tile(x, len(n))[:, None], np.repeat(np.arange(len(n)), n.shape[1])
        columns.append(Moments.from_rows(x, y, n.ravel(), n_classes=len(n), spec=Gaussian().spec(1)).arrays())
    return Moments(**{key: np.concatenate([column[key] for column in columns], axis=1) for key in columns[0]})


def _are_codes(tally: LevelTally, values: Sequence[Floats | None]) -> list[bool]:
    """Of each column whether its levels predict the class better than its values; a chunk of columns at a time."""
    n_classes, n_levels = len(tally.counts), int(np.diff(tally.offsets).max(initial=1))
    step, are_codes = _MAX_CELLS // max(1, n_classes * n_classes * n_levels), [value is None for value in values]
    numbers = [j for j, value in enumerate(values) if value is not None]
    for start in range(0, len(numbers) if step else 0, max(1, step)):
        chunk = numbers[start : start + step]
        is_better = _is_categorical_better(tally.select_features(np.array(chunk)), [values[j] for j in chunk])
        for j, is_code in zip(chunk, is_better.tolist(), strict=True):
            are_codes[j] = is_code
    return are_codes


def _is_categorical_better(tally: LevelTally, values: Sequence[Any]) -> NDArray[np.bool_]:
    """(feature,) whether levels predict better than numbers, by a row for each class and level counted."""
    sizes, n_classes = np.diff(tally.offsets), len(tally.counts)
    y, level = np.divmod(np.arange(n_classes * sizes.max(initial=1)), sizes.max(initial=1))
    n, codes, x = (np.full((len(y), len(sizes)), empty) for empty in (0.0, -1.0, np.nan))
    for j, start in enumerate(tally.offsets[:-1]):
        is_level = level < sizes[j]
        n[is_level, j] = tally.counts[y[is_level], start + level[is_level]]
        has_rows = n[:, j] > 0
        codes[has_rows, j], x[has_rows, j] = level[has_rows], values[j][level[has_rows]]
    least = np.where(n > 0, n, 1.0).min(axis=1, initial=1.0)  # what is left out: a row, or what there is of it
    moments = _moments_from_counts([tally.counts[:, a:b] for a, b in pairwise(tally.offsets)], values)
    as_levels = Categorical().held_out_contributions(tally, None, "predictive", codes.astype(np.intp), y, least)
    as_numbers = Gaussian().held_out_contributions(moments, None, "predictive", x, y, least)
    sums = []  # of log p(class | value)
    for contributions in (as_levels, as_numbers):
        joint = contributions + log_or_minus_inf(tally.n / tally.n.sum(axis=0))
        sums.append((n * (joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1))).sum(axis=0))
    return sums[0] > sums[1] + _MIN_LOG_ODDS


@dataclass(frozen=True)
class Binned(EventModel):
    """The probability of each bin in each class.

    The prior is that of a bin; by default equal proportions that count for one row in all.

    >>> import candide as cd
    >>> hours = [1, 2, 3, 9, 10, 11, 20, 21, 22] * 9
    >>> y = ["day" if 8 < hour < 12 else "night" for hour in hours]
    >>> cd.NaiveBayes({"hour": "binned"}).fit({"hour": hours}, y).predict({"hour": [2, 10, 21]}).tolist()
    ['night', 'day', 'night']
    """

    name: ClassVar[str] = "binned"
    kind: ClassVar[str] = "levels"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None
    has_learned_structure: ClassVar[bool] = True

    prior: Prior | str | None = None
    cells: int = 255

    def __post_init__(self) -> None:
        self.encoding  # noqa: B018  too many cells are an error now

    @property
    def encoding(self) -> Encoding:
        return Grid(cells=self.cells)

    def freeze_structure(self, tally: LevelTally) -> "Binned":
        """The same in the bins of a tally, whatever the counts."""
        return _FixedBins(self.prior, self.cells, bins=tuple(self._bins(tally)))

    def prepare_comparison(self, a: LevelTally, b: LevelTally, encodings: Sequence[Encoding]) -> TallyComparison:
        """In a few cells of equal weight over both tallies: changes in many small cells are chance."""
        offsets, n = a.offsets, (a.counts + b.counts).sum(axis=0)
        groups = list[Codes]()
        for start, stop in pairwise(offsets.tolist()):
            cell_weight = n[start:stop]
            middle = (np.cumsum(cell_weight) - cell_weight / 2) / max(float(cell_weight.sum()), 1e-300)
            number = (_COMPARISON_CELLS * middle).astype(np.intp)
            groups.append(np.unique(number, return_inverse=True)[1].astype(np.intp))
        coarse = tuple(e.coarsen(group) for e, group in zip(encodings, groups, strict=True))  # type: ignore[attr-defined]
        return Categorical(), a.coarsen(groups), b.coarsen(groups), coarse

    def _tally_to_test(self, tally: LevelTally) -> LevelTally:
        """That of the bins: with so many cells chance would seem to be information."""
        return tally.coarsen(self._bins(tally))

    def free_parameters(self, tally: LevelTally, n_features: int) -> Floats:
        """(feature,) the number of bins less one."""
        return super().free_parameters(self._tally_to_test(tally), n_features)

    def _estimate(self, tally: LevelTally, prior: Prior | None, how: str) -> "distributions.Binned":
        bins = self._bins(tally)
        binned, place = tally.coarsen(bins), _number_bins(tally, bins)
        log_prob = conjugate.dirichlet.level_log_prob(binned, _bin_alpha(prior, binned), how)
        [cell, whole], rows = _cell_weights(tally, place, binned.offsets[-1])
        unseen = np.zeros((len(bins), len(tally.counts)))  # every number lies in a cell
        within = np.log((cell + 1.0) / (whole + rows))
        return distributions.Binned(log_prob.T[place] + within[:, None], tally.offsets, unseen, np.concatenate(bins))

    def held_out_contributions(self, tally: LevelTally, *args: Any, **kwargs: Any) -> NDArray:
        """(row, class, feature) contributions of rows under the distribution without each, in the bins of all rows."""
        return super(Binned, self.freeze_structure(tally)).held_out_contributions(tally, *args, **kwargs)

    def _held_out_contributions(
        self, tally: LevelTally, prior: Prior | None, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """The row is taken out of the counts of its bin, and of its cell within that."""
        bins, codes = self._bins(tally), to_dense(block)
        binned, place = tally.coarsen(bins), _number_bins(tally, bins)
        coarse = np.column_stack([np.where(c < 0, -1, b[c]) for c, b in zip(codes.T, bins, strict=True)])
        cell = tally.offsets[:-1] + np.maximum(codes, 0)
        removed = np.where(codes < 0, 0.0, 1.0 if weight is None else weight[:, None])
        weights, rows = _cell_weights(tally, place, binned.offsets[-1])
        of_cell, whole = (np.maximum(subtract_sums(n[cell], removed), 0.0) for n in weights)
        out = conjugate.dirichlet.held_out_levels(binned, _bin_alpha(prior, binned), how, coarse, y, weight)
        return out + np.where(codes < 0, 0.0, np.log((of_cell + 1.0) / (whole + rows[cell])))[:, None, :]

    def _bins(self, tally: LevelTally) -> list[Codes]:
        """The bin of each cell of each column."""
        return [merge_cells(tally.counts[:, a:b]) for a, b in pairwise(tally.offsets.tolist())]


@dataclass(frozen=True)
class _FixedBins(Binned):
    bins: tuple[Codes, ...] = ()

    def _bins(self, tally: LevelTally) -> list[Codes]:
        return list(self.bins)


def _number_bins(tally: LevelTally, bins: list[Codes]) -> Codes:
    """(cell,) the bin of each cell, numbered over all columns."""
    sizes = np.array([int(b.max(initial=-1)) + 1 for b in bins], np.intp)
    return np.repeat(np.cumsum(sizes) - sizes, np.diff(tally.offsets)) + np.concatenate(bins)


def _bin_alpha(prior: Prior | None, binned: LevelTally) -> Floats:
    sizes = np.diff(binned.offsets)
    if prior is None:
        return np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    alpha = dirichlet_alpha(prior)
    if alpha.ndim:
        what = "a Dirichlet prior of several values for bins"
        raise InputError(what, value=prior, remedy="pass one alpha for all bins")
    return np.full(binned.offsets[-1], float(alpha))


def _cell_weights(tally: LevelTally, place: Codes, n_bins: int) -> tuple[tuple[Floats, Floats], Codes]:
    """(cell,) the weight of each cell over all classes and of its bin; and the rows added to that: one a cell."""
    cell: Floats = tally.counts.sum(axis=0)
    whole: Floats = np.bincount(place, cell, n_bins).astype(np.float64)
    return (cell, whole[place]), np.bincount(place, minlength=n_bins)[place]


def merge_cells(counts: Floats) -> Codes:
    """(cell,) the bin of each cell of counts (class, cell), numbered in order; empty cells join the bin before them.

    Cells are read in the direction in which their weights, and then those of the classes, come first in lexical order:
    the bins of a negated column are the same, reversed.
    """
    if _profile(counts[:, ::-1]) < _profile(counts):
        bins = _merge_ordered(counts[:, ::-1])
        return bins[-1] - bins[::-1]
    return _merge_ordered(counts)


def _profile(counts: Floats) -> tuple[list[float], list[list[float]]]:
    """The rounded weights of the cells, and of the cells of each class in any order of classes."""
    rounded = np.round(counts, _DIGITS) + 0.0
    return rounded.sum(axis=0).round(_DIGITS).tolist(), sorted(rounded.tolist())


def _merge_ordered(counts: Floats) -> Codes:
    running = np.pad(np.cumsum(counts, axis=1), [(0, 0), (1, 0)]).T  # (cell + 1, class): rows below each edge
    total = running.sum(axis=1)
    edges = np.flatnonzero(np.diff(total) > 0)[1:]  # before each cell with rows but the first
    below = running[edges]
    cuts: list[int] = []
    intervals = [(running[0], running[-1], 0, len(edges))]  # rows below both ends, and the edges in between
    while intervals:
        low, high, first, last = intervals.pop()
        cut = _find_cut(high - low, below[first:last] - low) if first < last else None
        if cut is not None:
            at = first + cut
            cuts.append(edges[at])
            intervals += [(low, below[at], first, at), (below[at], high, at + 1, last)]
    return np.searchsorted(np.sort(cuts), np.arange(counts.shape[1]), side="right").astype(np.intp)


def _find_cut(whole: Floats, left: Floats) -> int | None:
    """The most informative cut, if it pays; ``left`` (cut, class) has the rows below each."""
    right, m = whole - left, len(left)
    counts = np.concatenate([left, right, whole[None]])
    proportion = np.divide(counts, counts.sum(axis=-1, keepdims=True), out=np.ones(counts.shape), where=counts > 0)
    every = -(counts * np.log2(proportion)).sum(axis=-1)  # n times the entropy of the classes
    n, bits, left_bits, right_bits = whole.sum(), every[-1], every[:m], every[m:-1]
    both = left_bits + right_bits
    best = int(np.argmax(both <= both.min() + _RELATIVE_TOLERANCE * bits))  # the first of equally good ones
    gain = bits - left_bits[best] - right_bits[best]  # over all rows
    k, k_left, k_right = (float((a > 0).sum()) for a in (whole, left[best], right[best]))
    sides = k * bits / n - k_left * left_bits[best] / left[best].sum() - k_right * right_bits[best] / right[best].sum()
    price = np.log2(m) + k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - sides  # log2(m) + log2(3^k - 2) - sides
    return best if gain > price + _RELATIVE_TOLERANCE * bits else None
