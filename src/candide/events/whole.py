"""Whole: few different whole numbers, which may be amounts or codes; the counts decide.

They are counted as levels, from which the moments of a number follow. When a model is estimated, a column is Gaussian
or categorical, whichever predicts the class better: by the sum over rows of the leave-one-out log p(class | value).
So more parameters have no advantage.

>>> from candide.encoding import LevelEncoding as Values
>>> from candide.data.labels import Labels
>>> codes, amounts = np.array([[30.0, 2, 30], [2, 58, 2]]), np.array([[30.0, 20, 10], [10, 20, 32]])
>>> tally = LevelTally(np.hstack([codes, amounts]), np.array([0, 3, 6]))
>>> [(event.name, at) for event, at, _, _ in Whole().settle_columns(tally, [Values(Labels((1, 2, 3)))] * 2)]
[('gaussian', [1]), ('categorical', [0])]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.encoding import Encoding
from candide.errors import InputError
from candide.events.base import SettledColumns
from candide.events.categorical import Categorical
from candide.events.gaussian import Gaussian
from candide.numerics import log_or_minus_inf
from candide.tally import LevelTally, Moments

_MIN_LOG_ODDS = 3.0  # by which categories must predict better, odds of twenty to one; else the column stays a number
_MAX_CELLS = 1 << 22  # (class, level, class): beyond, a column is taken for a number


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
        codes = _are_codes(tally, values)
        found: list[SettledColumns] = []
        if not all(codes):
            at = [j for j, is_code in enumerate(codes) if not is_code]
            found.append((Gaussian(), at, (), self.moments_from_levels(tally, encodings, at)))
        if any(codes):
            at = [j for j, is_code in enumerate(codes) if is_code]
            event = Categorical(prior=self.prior)
            found.append((event, at, tuple(encodings[j] for j in at), tally.select_features(np.array(at))))
        return found

    def moments_from_levels(self, tally: Any, encodings: Sequence[Encoding], features: Sequence[int]) -> Moments:
        """The moments of some of the columns: what counting them as numbers gives."""
        values = [_level_values(encodings[j]) for j in features]
        counts = [tally.counts[:, tally.offsets[j] : tally.offsets[j + 1]] for j in features]
        return _moments_from_counts(
            [(n, np.zeros(n.shape[1]) if x is None else x) for n, x in zip(counts, values, strict=True)]
        )


def _level_values(encoding: Any) -> Floats | None:
    """The values of the levels; None where they are not numbers."""
    try:
        return np.array([float(value) for value in encoding.labels.values])
    except (TypeError, ValueError, OverflowError):
        return None


def _moments_from_counts(columns: Sequence[tuple[Floats, Floats]]) -> Moments:
    """The moments of columns from (class, level) counts and the values of the levels."""
    found = []
    for counts, values in columns:
        x, y = np.tile(values, len(counts))[:, None], np.repeat(np.arange(len(counts)), counts.shape[1])
        found.append(Moments.from_rows(x, y, counts.ravel(), n_classes=len(counts), spec=Gaussian().spec(1)))
    return Moments(
        **{key: np.concatenate([getattr(moments, key) for moments in found], axis=1) for key in found[0].arrays()}
    )


def _are_codes(tally: LevelTally, values: Sequence[Floats | None]) -> list[bool]:
    """Of each column whether its levels predict the class better than its values; some columns at a time."""
    n_classes, n_levels = len(tally.counts), int(np.diff(tally.offsets).max(initial=1))
    at_once, found = _MAX_CELLS // max(1, n_classes * n_classes * n_levels), [value is None for value in values]
    numbers = [j for j, value in enumerate(values) if value is not None]
    for start in range(0, len(numbers) if at_once else 0, max(1, at_once)):
        some = numbers[start : start + at_once]
        more = _is_categorical_better(tally.select_features(np.array(some)), [values[j] for j in some])
        for j, is_code in zip(some, more.tolist(), strict=True):
            found[j] = is_code
    return found


def _is_categorical_better(tally: LevelTally, values: Sequence[Any]) -> NDArray[np.bool_]:
    """(feature,) whether levels predict better than numbers, by a row for each class and level counted."""
    sizes, n_classes = np.diff(tally.offsets), len(tally.counts)
    y, level = np.divmod(np.arange(n_classes * sizes.max(initial=1)), sizes.max(initial=1))
    n, codes, x = (np.full((len(y), len(sizes)), empty) for empty in (0.0, -1.0, np.nan))
    for j, start in enumerate(tally.offsets[:-1]):
        here = level < sizes[j]
        n[here, j] = tally.counts[y[here], start + level[here]]
        there = n[:, j] > 0
        codes[there, j], x[there, j] = level[there], values[j][level[there]]
    least = np.where(n > 0, n, 1.0).min(axis=1, initial=1.0)  # what is left out: a row, or what there is of it
    moments = _moments_from_counts(
        [(tally.counts[:, a:b], v) for a, b, v in zip(tally.offsets[:-1], tally.offsets[1:], values, strict=True)]
    )
    as_levels = Categorical().held_out_contributions(tally, None, "predictive", codes.astype(np.intp), y, least)
    as_numbers = Gaussian().held_out_contributions(moments, None, "predictive", x, y, least)
    return _log_likelihood(as_levels, y, n, tally.n) > _log_likelihood(as_numbers, y, n, tally.n) + _MIN_LOG_ODDS


def _log_likelihood(terms: Floats, y: Any, n: Floats, n_class: Floats) -> Floats:
    """(feature,) the sum of log p(class | value)."""
    joint = terms + log_or_minus_inf(n_class / n_class.sum(axis=0))
    return (n * (joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1))).sum(axis=0)
