"""NumPy reference implementations of the compiled loops: the same signatures, the same results to rounding.

Shapes: ``X`` and ``codes`` are (rows, features), ``y`` holds class codes in ``[0, n_classes)``,
``w`` holds row weights or is None. NaN in ``X`` and a negative code are missing values. Scoring
kernels *add* into ``out`` (rows, classes), so that several blocks share one array that stays in cache,
and return the number of missing values, or ``INFINITE`` if a value was infinite (the caller then reports where).
"""

import numpy as np
from numpy.typing import NDArray

from candide.kernels.cells import (  # noqa: F401  part of the same interface
    Sets,
    add_cells,
    cell_counts,
    cell_terms,
    check_classes,
    held_out_cells,
    score_cells,
    take_cells,
)
from candide.kernels.decision_tables import (  # noqa: F401
    Tables,
    add_tables,
    cell_sums,
    grow_table,
    table_cells,
)
from candide.kernels.powers import moments_of, power_sums  # noqa: F401

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
INFINITE = -1
_CHUNK_ROWS = 4096  # a chunk whose temporaries stay in cache


def _chunks(n_rows: int):
    return (slice(a, min(a + _CHUNK_ROWS, n_rows)) for a in range(0, n_rows, _CHUNK_ROWS))


def _membership(y: Codes, w: Floats | None, n_classes: int) -> Floats:
    check_classes(y, n_classes)
    member = np.zeros((n_classes, len(y)))
    member[y, np.arange(len(y))] = 1.0 if w is None else w
    return member


def _ratio(a: NDArray, b: NDArray) -> Floats:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


def moments(X: NDArray, y: Codes, w: Floats | None, n_classes: int) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and centred sum of squares per (class, feature). Infinite input gives a non-finite result."""
    n, mean, m2 = np.zeros((3, n_classes, X.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        for rows in _chunks(len(X)):
            x = X[rows].astype(np.float64)
            member = _membership(y[rows], None if w is None else w[rows], n_classes)
            present = ~np.isnan(x)
            n_new = member @ present
            mean_new = _ratio(_dot(member, np.where(present, x, 0.0)), n_new)
            # Second pass over residuals: the one-pass sum of squares fails when |mean| >> sd.
            residual = np.where(present, x - mean_new[y[rows]], 0.0)
            drift = _ratio(_dot(member, residual), n_new)
            mean_new += drift
            m2_new = np.maximum(_dot(member, residual**2) - n_new * drift**2, 0.0)
            # Chan, Golub and LeVeque (1979); the empty tally is the identity.
            gap = np.where((n > 0) & (n_new > 0), mean_new - mean, 0.0)
            fraction = _ratio(n_new, n + n_new)
            m2 = m2 + m2_new + gap * gap * fraction * n
            mean = np.where(n > 0, mean + gap * fraction, mean_new)
            n = n + n_new
    return n, mean, m2


def _dot(member: Floats, x: Floats) -> Floats:
    # An infinity must stay in its own class: 0 * inf would spread NaN over all of them.
    finite = np.isfinite(x)
    if finite.all():
        return member @ x
    out = member @ np.where(finite, x, 0.0)
    with np.errstate(invalid="ignore"):  # inf - inf
        for r, j in np.argwhere(~finite):
            out[member[:, r] != 0, j] += x[r, j]
    return out


def code_range(codes: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Smallest and largest code of each feature; (0, -1) where there are no rows."""
    if not len(codes):
        return np.zeros(codes.shape[1], np.int64), np.full(codes.shape[1], -1, np.int64)
    return codes.min(axis=0).astype(np.int64), codes.max(axis=0).astype(np.int64)


def distinct(values: NDArray, most: int) -> tuple[Codes, NDArray[np.int32]] | None:
    """The first row of each distinct object, and the number of each row's object; None for more than ``most``.

    Texts are equal letter by letter, other objects if they are identical.
    """
    known: dict[str | int, int] = {}
    keys = (value if type(value) is str else id(value) for value in values.tolist())
    place = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int32, len(values))
    return (np.unique(place, return_index=True)[1], place) if len(known) <= most else None


def grid_codes(x: NDArray, edges: Floats, out: NDArray[np.int32]) -> None:
    """out[r] = how many edges lie below x[r]; -1 where it is absent."""
    out[...] = np.where(np.isnan(x), -1, np.searchsorted(edges, x))


def interpolate(x: NDArray, knots: Floats, values: Floats, out: Floats) -> None:
    """out[r] = the straight lines through the knots at x[r], level beyond the ends; 0 where it is absent."""
    unit = 1.0 if knots[-1] / 4 - knots[0] / 4 < 2.0**1020 else 0.25  # differences of huge numbers overflow
    inside, ends = np.clip(x, knots[0], knots[-1]) * unit, np.append(knots, np.inf) * unit
    i = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 1).clip(0)
    # The fraction of the way first: a slope between tiny knots would be infinite.
    fraction = (inside - ends[i]) / (ends[i + 1] - ends[i])
    rise = np.diff(values, append=values[-1])
    out[...] = np.where(np.isnan(x), 0.0, values[i] + rise[i] * fraction)


def level_counts(codes: NDArray, y: Codes, w: Floats | None, n_classes: int, offsets: Codes) -> Floats:
    """Weight of each level per class, ragged: feature j owns columns ``offsets[j]:offsets[j+1]``."""
    counts = np.zeros((n_classes, offsets[-1]))
    sizes = np.diff(offsets)
    check_classes(y, n_classes)
    if len(codes) and (codes.max(axis=0) >= sizes).any():
        raise IndexError("a level code lies outside its feature's levels")
    for j in range(codes.shape[1]):
        seen = codes[:, j] >= 0
        flat = y[seen] * sizes[j] + codes[seen, j].astype(np.intp)
        n = np.bincount(flat, None if w is None else w[seen], n_classes * sizes[j])
        counts[:, offsets[j] : offsets[j + 1]] = n.reshape(n_classes, sizes[j])
    return counts


def dense_sums(X: NDArray, y: Codes, w: Floats | None, n_classes: int, threshold: float = np.nan):
    """Weight present and weighted sum per (class, feature), and the smallest value (at most 0; NaN after an infinity).

    With a threshold, what is summed is ``x > threshold`` rather than x.
    """
    n, total, low = np.zeros((n_classes, X.shape[1])), np.zeros((n_classes, X.shape[1])), 0.0
    for rows in _chunks(len(X)):
        x = X[rows].astype(np.float64)
        member = _membership(y[rows], None if w is None else w[rows], n_classes)
        present = ~np.isnan(x)
        low = min(low, x.min(initial=0.0, where=present)) if not np.isinf(x).any() else np.nan
        n += member @ present
        total += _dot(member, np.where(present, x if np.isnan(threshold) else x > threshold, 0.0))
    return n, total, low


def csr_sums(data, indices, indptr, y, w, n_classes: int, n_features: int, threshold: float = np.nan):
    """Weighted sum per (class, feature) of CSR rows, and the smallest value (at most 0; NaN if one is not finite)."""
    check_classes(y, n_classes)
    value, column, row = _stored_values(data, indices, indptr, n_features)
    low = value.min(initial=0.0) if np.isfinite(value).all() else np.nan
    if not np.isnan(threshold):
        value = (value > threshold).astype(np.float64)
    if w is not None:
        value = value * w[row]
    total = np.bincount(y[row] * n_features + column, value, n_classes * n_features)
    total = total.astype(np.float64, copy=False)  # for the bincount of nothing is of integers
    return total.reshape(n_classes, n_features), low


def _stored_values(data, indices, indptr, n_features: int) -> tuple[Floats, Codes, Codes]:
    """The stored values of CSR rows, with their columns and rows."""
    stored = slice(indptr[0], indptr[-1])
    column = indices[stored].astype(np.intp)
    if len(column) and (column.min() < 0 or column.max() >= n_features):
        raise IndexError("a column index lies outside the features")
    return data[stored].astype(np.float64), column, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def add_gaussian(X: NDArray, mean: Floats, inv_sd: Floats, log_norm: Floats, out: Floats) -> int:
    """out[r, c] += sum over present j of log_norm[c, j] - ((x - mean) * inv_sd)**2 / 2."""

    def term(x, c):
        z = (x - mean[c]) * inv_sd[c]
        return log_norm[c] - 0.5 * z * z

    return _add_contributions(X, term, out)


def add_student(X: NDArray, loc: Floats, inv_scale: Floats, df: Floats, log_norm: Floats, out: Floats) -> int:
    """out[r, c] += sum over present j of log_norm[c, j] - (df + 1) / 2 * log1p(((x - loc) * inv_scale)**2 / df)."""

    def term(x, c):
        z = (x - loc[c]) * inv_scale[c]
        return log_norm[c] - 0.5 * (df[c] + 1) * np.log1p(z * z / df[c])

    return _add_contributions(X, term, out)


def add_switch(X: NDArray, threshold: float, low: Floats, high: Floats, out: Floats) -> int:
    """out[r, c] += high[c, j] where x > threshold, low[c, j] where it is not, nothing where x is absent."""
    return _add_contributions(X, lambda x, c: np.where(x > threshold, high[c], low[c]), out)


def add_linear(X: NDArray, weights: Floats, out: Floats) -> int:
    """out[r, c] += sum over j of x * weights[j, c], where 0 * -inf = 0; nothing where x is absent."""

    def term(x, c):
        with np.errstate(invalid="ignore"):
            return np.where(x == 0, 0.0, x * weights[:, c])

    return _add_contributions(X, term, out)


def _add_contributions(X: NDArray, term, out: Floats) -> int:
    n_absent = 0
    for rows in _chunks(len(X)):
        x = X[rows].astype(np.float64)
        absent = np.isnan(x)
        n_absent += int(absent.sum())
        if np.isinf(x).any():
            return INFINITE
        for c in range(out.shape[1]):
            out[rows, c] += np.where(absent, 0.0, term(x, c)).sum(axis=1)
    return n_absent


def add_levels(codes: NDArray, offsets: Codes, table: Floats, unseen: Floats, out: Floats) -> int:
    """out[r, c] += table[offsets[j] + code, c] over features j; ``unseen[j, c]`` for a code past the levels.

    ``table`` is (levels, classes), ``unseen`` (features, classes); columns past the classes of ``out`` are padding.
    """
    k = out.shape[1]
    for j in range(codes.shape[1]):
        code, size = codes[:, j], offsets[j + 1] - offsets[j]
        lookup = np.vstack([table[offsets[j] : offsets[j + 1], :k], unseen[j : j + 1, :k], np.zeros((1, k))])
        out += lookup[np.where(code < 0, size + 1, np.minimum(code, size)).astype(np.intp)]
    return int((codes < 0).sum())


def add_discriminant(
    z: NDArray, centres: Floats, roots: Floats, params: Floats, heavy: bool, weight: float, out: Floats
) -> None:
    """out[r, c] += weight times the score of class c by the squared distance q of root z[r] and centres[c].

    ``roots`` is one lower triangular matrix for all classes, or one for each. ``params`` has, each (class,): rows,
    peak, fall and factor. The log of the density is peak - fall q, or if ``heavy`` peak - fall log1p(factor q). What is
    added is the log of that density, mixed with that of any class once in rows + 1.
    """
    rows, peak, fall, factor = params
    each = zip(np.broadcast_to(roots, (len(centres), *roots.shape[1:])), centres, strict=True)
    q = np.stack([((z @ root.T - centre) ** 2).sum(axis=1) for root, centre in each], axis=1)
    terms = peak - fall * (np.log1p(factor * q) if heavy else q)
    largest = terms.max(axis=1, keepdims=True)
    p = rows * np.exp(terms - largest)
    out += weight * (np.log((p + p.sum(axis=1, keepdims=True) / rows.sum()) / (rows + 1.0)) + largest)


def add_linear_csr(data, indices, indptr, weights: Floats, out: Floats, threshold: float = np.nan) -> int:
    """out[r, c] += sum over stored j of x * weights[j, c]; with a threshold, of (x > threshold) * weights.

    Columns of the weights past the classes of ``out`` are padding.
    """
    value, column, row = _stored_values(data, indices, indptr, len(weights))
    if not np.isfinite(value).all():
        return INFINITE
    if not np.isnan(threshold):
        value = (value > threshold).astype(np.float64)
    keep = value != 0  # 0 * -inf = 0: an absent word contributes nothing
    value, column, row = value[keep], column[keep], row[keep]
    for c in range(out.shape[1]):
        out[:, c] += np.bincount(row, value * weights[column, c], len(out))
    return 0


def normalise(joint: Floats) -> Floats:
    """Turn joint log-probabilities into log-posteriors in place; return log p(x) of each row.

    A row that is impossible under every class has evidence -inf and keeps -inf everywhere.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        top = joint.max(axis=1, initial=-np.inf)
        shift = np.where(np.isfinite(top), top, 0.0)
        total = np.log(np.exp(joint - shift[:, None]).sum(axis=1))
        is_possible = np.isfinite(shift + total)
        for part in (shift, total):  # one after the other: beside an enormous log-probability log 2 would be lost
            joint -= np.where(is_possible, part, 0.0)[:, None]
    return shift + total


def posterior(joint: Floats, otherwise: Floats) -> None:
    """Turn joint log-probabilities into posteriors in place; ``otherwise`` where every class is impossible."""
    impossible = np.isneginf(normalise(joint))
    np.exp(joint, out=joint)
    joint[impossible] = otherwise


def fill_rows(out: Floats, row: Floats) -> None:
    """out[r] = row for every r: what scores start from."""
    out[...] = row


def first_largest(joint: Floats, otherwise: int, out: Codes) -> None:
    """out[r] = the first class with the largest joint[r]; ``otherwise`` where every class is impossible."""
    possible = joint > -np.inf
    out[...] = np.where(possible, joint, -np.inf).argmax(axis=1)
    out[~possible.any(axis=1)] = otherwise


# Words with individual weights. A word's score of class c is ``table[word, c]``, plus ``own`` for the class of its
# document, since the document is left out of its counts. Documents are rows in CSR, ``x`` the counts of their words.
# Tables are padded with zeros behind the classes.


def word_scores(starts, term, x, own, table, y, weight: Floats, out: Floats) -> None:
    """out[d, c] += the sum over the words of a document of weight * x * their scores of a class."""
    row, term, x, score = _token_scores(starts, term, x, own, table, y)
    each = (weight[term] * x)[:, None] * score
    for c in range(out.shape[1]):
        out[:, c] += np.bincount(row, each[:, c], len(out))


def word_slopes(starts, term, x, own, table, y, error: NDArray, out: Floats) -> None:
    """out[v] += the sum over documents of x * the score of the word for each class, times the error of that class."""
    row, term, x, score = _token_scores(starts, term, x, own, table, y)
    out += np.bincount(term, x * (error[row] * score).sum(axis=1), len(out))


def word_spreads(starts, term, x, own, table, y, often: Floats, share: NDArray, out: Floats) -> None:
    """out[v] += the sum over documents of often * x**2 * the variance, over the classes, of the score of the word."""
    row, term, x, score = _token_scores(starts, term, x, own, table, y)
    mean = (share[row] * score).sum(axis=1)
    variance = np.maximum((share[row] * score**2).sum(axis=1) - mean**2, 0.0)
    out += np.bincount(term, often[row] * x.astype(np.float64) ** 2 * variance, len(out))


def word_groups(starts, term, x, own, table, y, group: Codes, out: Floats) -> None:
    """out[d, g, c] += the sum over the words of a document that are of group g of x * their scores of a class."""
    row, term, x, score = _token_scores(starts, term, x, own, table, y)
    np.add.at(out, (row, group[term]), x.astype(np.float64)[:, None] * score)


def _token_scores(starts: Codes, term: NDArray, x: NDArray, own: NDArray, table: NDArray, y: Codes):
    """The row, the term and the count of every word, and its score for each class."""
    if len(starts) != len(y) + 1 or starts[0] < 0 or (np.diff(starts) < 0).any() or starts[-1] > len(term):
        raise ValueError("a word, a class or a document lies outside the tables")
    stored = slice(starts[0], starts[-1])
    row, term = np.repeat(np.arange(len(y)), np.diff(starts)), term[stored]
    for codes, size in ((term, table.shape[0]), (y, table.shape[1])):
        if len(codes) and not (codes.min() >= 0 and codes.max() < size):
            raise ValueError("a word, a class or a document lies outside the tables")
    score = table[term].astype(np.float64)
    score[np.arange(len(row)), y[row]] += own[stored]
    return row, term, x[stored], score
