"""Powers: sums of w, w x and w x^2 as expansions of three doubles each; those of rows are counted by compiled loops.

Such sums add and subtract without a rounding error that anybody meets: one value of 1e9 among values near 1, counted
and removed again, leaves their variance as it was. An array of them is (..., power, part).

>>> one, other = (of_moments(*(np.array([v]) for v in state)) for state in ((4.0, 2.0, 6.0), (1.0, 1e9, 0.0)))
>>> [v.item() for v in moments_of(minus(plus(one, other), other))]
[4.0, 2.0, 6.0]
"""

import numpy as np
from numpy.typing import NDArray

from candide.numerics import PARTS, expansion, parts_of, two_product

Floats = NDArray[np.float64]

POWERS = 3
_CHUNK = 8192  # values that the twin sums at a time
REST = POWERS * (PARTS - 1)  # numbers that say what is lost where weight, mean and spread are rounded to doubles


def of_moments(n: Floats, mean: Floats, m2: Floats, rest: Floats | None = None) -> Floats:
    """The sums that weight, mean and centred sum of squares stand for, with what rounding took from these."""
    with np.errstate(invalid="ignore", over="ignore"):
        first, square = two_product(n, mean), _times(n, mean)
        more = [[rest[..., 2 * k], rest[..., 2 * k + 1]] for k in range(POWERS)] if rest is not None else [[]] * POWERS
        sums = expansion(n, *more[0]), expansion(*first, *more[1]), expansion(*square, m2, *more[2])
        return np.stack(sums, axis=-2)


def moments_of(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and centred sum of squares, each rounded once; the last may be negative by rounding."""
    n = sums[..., 0, 0]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(n > 0, n, 1.0)
        mean = sums[..., 1, 0] / safe
        mean = np.where(n > 0, mean + _left(sums, mean)[..., 0] / safe, 0.0)
        gap = _left(sums, mean)  # sum of w (x - mean): the mean's own rounding
        cross = [-2.0 * t for part in range(2) for t in two_product(mean, gap[..., part])]
        square = [-t for part in range(PARTS) for t in _times(sums[..., 0, part], mean)]
        m2 = expansion(*parts_of(sums[..., 2, :]), *square, *cross, -(gap[..., 0] ** 2) / safe)[..., 0]
    return n, mean, np.where(n > 0, m2, 0.0)


def rest_of(sums: Floats, n: Floats, mean: Floats, m2: Floats) -> Floats:
    """(..., REST) what the sums hold beyond weight, mean and centred sum of squares."""
    plain = of_moments(n, mean, m2)
    return minus(sums, plain)[..., : PARTS - 1].reshape(*n.shape, REST)


def last_of(sums: Floats, found: Floats) -> Floats:
    """What sums differ by from those found of their rest, whose last digits were rounded: one number each."""
    return minus(sums, found)[..., 0]


def with_last(found: Floats, last: Floats) -> Floats:
    """The sums that ``last_of`` was told of."""
    with np.errstate(invalid="ignore", over="ignore"):
        return expansion(*parts_of(found), last)


def plus(a: Floats, b: Floats) -> Floats:
    """a + b."""
    with np.errstate(invalid="ignore", over="ignore"):
        return expansion(*(term for pair in zip(parts_of(a), parts_of(b), strict=True) for term in pair))


def minus(a: Floats, b: Floats) -> Floats:
    """a - b."""
    return plus(a, -b)


def scaled(sums: Floats, factor: float | Floats) -> Floats:
    """The sums of rows that count ``factor`` times."""
    with np.errstate(invalid="ignore", over="ignore"):
        return expansion(*(t for part in parts_of(sums) for t in two_product(part, np.asarray(factor, float))))


def _left(sums: Floats, mean: Floats) -> Floats:
    """The sum of w (x - mean), as an expansion."""
    products = [-t for part in range(PARTS) for t in two_product(sums[..., 0, part], mean)]
    return expansion(*parts_of(sums[..., 1, :]), *products)


def _times(n: Floats, mean: Floats) -> list[Floats]:
    """n mean^2 as four terms."""
    square, error = two_product(mean, mean)
    return [*two_product(n, square), *two_product(n, error)]


def power_sums(X: Floats, y: NDArray[np.intp], w: Floats | None, n_classes: int) -> Floats:
    """(class, feature, power, part) the sums of rows; NaN is an absent value. The twin of the compiled loop."""
    out = np.zeros((n_classes, X.shape[1], POWERS, PARTS))
    if len(y) and (y.min() < 0 or y.max() >= n_classes):
        raise IndexError("a class code lies outside the classes")
    step = max(1, _CHUNK // max(1, X.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        for c in range(n_classes):
            mine = np.flatnonzero((y == c) & ((w if w is not None else np.ones(len(y))) != 0))
            for start in range(0, len(mine), step):  # an exact sum takes thirty times the room of its value
                at = mine[start : start + step]
                out[c] = plus(out[c], _total(_single(np.asarray(X[at], float), None if w is None else w[at, None])))
    return out


def _single(x: Floats, w: Floats | None) -> Floats:
    """(..., power, part) the sums of single values with their weights."""
    weight = np.where(np.isnan(x), 0.0, 1.0 if w is None else w)
    x = np.where(np.isnan(x), 0.0, x)
    square, error = two_product(x, x)
    first, second = two_product(weight, x), [*two_product(weight, square), *two_product(weight, error)]
    return np.stack([expansion(weight), expansion(*first), expansion(*second)], axis=-2)


def _total(sums: Floats) -> Floats:
    """The total over the first axis, by halves."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = np.concatenate([plus(sums[:half], sums[half : 2 * half]), sums[2 * half :]])
    return sums[0] if len(sums) else np.zeros(sums.shape[1:])
