"""Bins: neighbouring cells of a grid merged where they say the same of the class, by description length.

Fayyad and Irani's criterion: an interval is cut where the information that the cut gains about the class pays for the
bits that it takes to describe the cut and the classes on both sides. The cut that gains most is tried first, and both
halves are then cut alike. What is merged is the tally, so a bin depends on the counts alone.

>>> counts = np.array([[9.0, 9.0, 8.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 9.0, 8.0, 9.0]])  # (class, cell)
>>> merge_cells(counts).tolist()
[0, 0, 0, 1, 1, 1]
"""

import numpy as np

from candide.data.blocks import Codes, Floats

_DIGITS = 6  # of weights that are compared
_RELATIVE_TOLERANCE = 1e-9  # the share of the bits by which two cuts may differ and be as good


def merge_cells(counts: Floats) -> Codes:
    """(cell,) the bin of each cell, numbered in order; cells that no row fell into join the bin before them.

    Cells are read in the direction in which their weights, and then those of the classes, come first in lexical order:
    the bins of a negated column are the same, reversed.

    >>> (
    ...     merge_cells(counts := np.array([[9.0, 0.0, 3.0], [9.0, 0.0, 9.0]])).tolist(),
    ...     merge_cells(counts[:, ::-1]).tolist(),
    ... )
    ([0, 0, 0], [0, 0, 0])
    """
    if _profile(counts[:, ::-1]) < _profile(counts):
        found = _merge_rows(counts[:, ::-1])
        return found[-1] - found[::-1]
    return _merge_rows(counts)


def _profile(counts: Floats) -> tuple[list[float], list[list[float]]]:
    """The weights of the cells, and of the cells of each class in whatever order of classes, but for rounding."""
    rounded = np.round(counts, _DIGITS) + 0.0
    return rounded.sum(axis=0).round(_DIGITS).tolist(), sorted(rounded.tolist())


def _merge_rows(counts: Floats) -> Codes:
    running = np.pad(np.cumsum(counts, axis=1), [(0, 0), (1, 0)]).T  # (cell + 1, class): rows below each edge
    total = running.sum(axis=1)
    edges = np.flatnonzero(np.diff(total) > 0)[1:]  # before each cell but the first that holds rows
    below = running[edges]
    cuts: list[int] = []
    waiting = [(running[0], running[-1], 0, len(edges))]  # the rows below both ends, and the edges between these
    while waiting:
        low, high, first, last = waiting.pop()
        cut = _find_cut(high - low, below[first:last] - low) if first < last else None
        if cut is not None:
            at = first + cut
            cuts.append(edges[at])
            waiting += [(low, below[at], first, at), (below[at], high, at + 1, last)]
    return np.searchsorted(np.sort(cuts), np.arange(counts.shape[1]), side="right").astype(np.intp)


def _find_cut(whole: Floats, left: Floats) -> int | None:
    """The cut that tells most of the class, where it pays; ``left`` (cut, class) has the rows below each."""
    right, m = whole - left, len(left)
    each = _class_bits(np.concatenate([left, right, whole[None]]))
    n, bits, left_bits, right_bits = whole.sum(), each[-1], each[:m], each[m:-1]
    both = left_bits + right_bits
    best = int(
        np.argmax(both <= both.min() + _RELATIVE_TOLERANCE * bits)
    )  # the first of those that are as good, but for rounding
    gain = bits - left_bits[best] - right_bits[best]  # over all rows
    k, k_left, k_right = (float((a > 0).sum()) for a in (whole, left[best], right[best]))
    sides = k * bits / n - k_left * left_bits[best] / left[best].sum() - k_right * right_bits[best] / right[best].sum()
    price = np.log2(m) + k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - sides  # log(3^k - 2), of any k
    return best if gain > price + _RELATIVE_TOLERANCE * bits else None


def _class_bits(counts: Floats) -> Floats:
    """n times the entropy of the classes, in bits, along the last axis."""
    n = counts.sum(axis=-1, keepdims=True)
    share = np.divide(counts, n, out=np.ones(counts.shape), where=counts > 0)
    return -(counts * np.log2(share)).sum(axis=-1)
