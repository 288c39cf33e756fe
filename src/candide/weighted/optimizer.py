"""Learn the weights of terms from their leave-one-out contributions t (row, class, term).

    score(c | x) = log p(c) + b_c + sum_v w_v t_v(x, c)

The weights maximise the likelihood of the classes. Those of a group have a normal prior around a common mean,

    w_v ~ Normal(mean_g, 1 / strength_g)        mean_g ~ Normal(0, 1)

The mean is free, so few rows mostly scale all terms by one factor; very few may leave some weights a little below 0.
The mean of a group that is alone is at least 0: there are no other terms that it could correct. The strength of each
group maximises the evidence (MacKay's fixed point): weights that agree are shrunk strongly towards their mean, others
little. The problem is convex; it is solved by Newton's method.

Terms are learned from the same rows, so they follow the noise in them. For a term with d degrees of freedom that is
noise, and a chi-square Q with d degrees, the slope of the likelihood is Q - d and its curvature Q; the weight
(Q - d) / Q would be far below 0 where Q is small. The slope varies by 2 d, not by Q. So d is added to the precision of
a weight, in proportion to how uncertain the classes are: then the curvature agrees with the slope's variance, and
chance is not taken for evidence. The best of many terms still seems good by chance: see
:mod:`candide.weighted.learning`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.kernels import threads
from candide.model.settings import LIMITS

_INITIAL_STRENGTH = 10.0
_MAX_ROUNDS = 12, 100  # of a Newton step and new strengths: usually, and until they converge
_MAX_NEWTON_STEPS = 50  # once the strengths have converged
_STRENGTH_TOLERANCE = 0.1  # relative change of a strength that has converged
_PSEUDO_WEIGHTS = 0.1  # of a weight near its mean, added to each group: weights that separate few rows would run away
_STRENGTH_RANGE = (1e-3, 1e6)
BIAS_STRENGTH = 0.02  # precision of an intercept around 0: nearly free
_INACTIVE_BELOW = 1e-9  # a contribution smaller than this is 0
_N_FIRST_ROWS = 256  # rows to which nearly every term contributes
_CURVATURE_REUSE_GAIN = 0.03  # a curvature serves for the next step too while the gain falls to this fraction


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """The weights, the intercepts of the classes, and the strength of each group."""

    weight: Floats  # (term)
    bias: Floats  # (class)
    strength: Floats  # (group)


def allocate_contributions(n_rows: int, n_classes: int, n_terms: int) -> NDArray:
    """An array for contributions: in single precision where they are many, whose rounding hardly matters."""
    many = n_rows * n_classes * n_terms > LIMITS.max_double_contributions
    return np.empty((n_rows, n_classes, n_terms), np.float32 if many else np.float64)


def center_contributions(contributions: NDArray) -> NDArray:
    """Subtract from contributions (row, class, term) their mean over classes, in place if the precision allows."""
    out = allocate_contributions(*contributions.shape)
    out = contributions if contributions.dtype == out.dtype else out
    for rows in _row_chunks(slice(0, len(contributions)), contributions.shape[1] * contributions.shape[2]):
        chunk = contributions[rows]
        np.subtract(chunk, chunk.mean(axis=1, keepdims=True), out=out[rows], casting="same_kind")
    return out


def learn_weights(
    contributions: Sequence[NDArray],
    log_prior: Floats,
    y: Codes,
    weight: Floats | None = None,
    *,
    groups: Sequence[int] | Codes,
    start: LearnedWeights | None = None,
    until_converged: bool = False,
    bias_strength: float = BIAS_STRENGTH,
    term_degrees: Floats | None = None,
) -> LearnedWeights:
    """Learn the weights of terms; ``contributions`` are parts (row, class, term), ``groups`` the group of each term.

    ``log_prior`` (class) or (row, class) is added to them; ``weight`` is the frequency of each row. ``start`` gives the
    same answer sooner; without it the strengths may take long to converge, which ``until_converged`` waits for.
    ``bias_strength`` is the precision of the intercepts around 0, ``term_degrees`` the degrees of freedom of each term.
    Terms that contribute nothing have the mean weight of their group.
    """
    groups = np.asarray(groups, np.intp)
    term_degrees = np.zeros(len(groups)) if term_degrees is None else term_degrees
    masks = [_active_terms(part) for part in contributions]
    pairs = zip(contributions, masks, strict=True)
    parts = [part if mask.all() else part.compress(mask, axis=2) for part, mask in pairs]
    active = np.concatenate([np.zeros(0, bool), *masks])
    n_groups = 1 + int(groups.max(initial=-1))
    problem = WeightProblem(parts, log_prior, y, weight, groups[active], n_groups, bias_strength, term_degrees[active])
    columns, bias, strength = groups == 0, np.zeros(problem.k), np.full(n_groups, _INITIAL_STRENGTH)
    first = np.where(columns, 1.0 / np.sqrt(max(1, (active & columns).sum())), 0.0)  # equal weights of the columns
    if start is not None:  # known weights, with 0 for new terms
        first = np.append(start.weight, np.zeros(len(active) - len(start.weight)))
        bias, strength[: len(start.strength)] = start.bias, start.strength
    point = problem.evaluate(np.concatenate([first[active], bias]))
    with threads.one_blas_thread():  # the products are small, and rows are divided among threads
        while True:
            point, strength = problem.optimize(point, strength, _MAX_ROUNDS[until_converged])
            negative = problem.group_means(point.x, strength) < 0
            if not negative.any() or np.count_nonzero(problem.size) > 1:  # a group may correct others
                break
            problem.has_mean &= ~negative
    weights = problem.group_means(point.x, strength)[groups]
    weights[active] = point.x[: problem.n_terms]
    return LearnedWeights(weights, point.x[problem.n_terms :], strength)


def _active_terms(part: NDArray) -> NDArray[np.bool_]:
    out = (np.abs(part[:_N_FIRST_ROWS]) > _INACTIVE_BELOW).any(axis=(0, 1))
    if not out.all():
        out[~out] = (np.abs(part[_N_FIRST_ROWS:, :, ~out]) > _INACTIVE_BELOW).any(axis=(0, 1))
    return out


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights and intercepts, and the probabilities and loss that they give."""

    x: Floats  # (unknown)
    p: Floats  # (row, class) p(class | row)
    loss: float

    def objective(self, precision: Floats) -> float:
        return self.loss + 0.5 * float(self.x @ precision @ self.x)


class WeightProblem:
    """The penalised likelihood of the unknowns: the weights, then the intercepts of all classes."""

    def __init__(
        self,
        contributions: Sequence[NDArray],
        log_prior: Floats,
        y: Codes,
        weight: Floats | None,
        groups: Codes,
        n_groups: int,
        bias_strength: float = BIAS_STRENGTH,
        degrees: Floats | None = None,
    ):
        self.n, self.k, self.bias_strength = len(y), log_prior.shape[-1], bias_strength
        ends = np.cumsum([0, *(part.shape[2] for part in contributions)])
        self.n_terms = int(ends[-1])
        # Each part as (row and class, term), and the place of its terms among all.
        self.parts = [
            (np.ascontiguousarray(part).reshape(self.n * self.k, -1), slice(a, b))
            for part, a, b in zip(contributions, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            if b > a
        ]
        self.dtype = np.float32 if any(part.dtype == np.float32 for part, _ in self.parts) else np.float64
        self.eps = float(np.finfo(self.dtype).eps)
        self.log_prior, self.y, self.groups = log_prior, y, groups
        self.weight = np.ones(self.n) if weight is None else weight
        self.degrees = np.zeros(len(groups)) if degrees is None else degrees
        self.extra_precision = self.degrees  # of each weight, for its degrees of freedom
        self.size = np.bincount(groups, minlength=n_groups)
        self.has_mean = np.ones(n_groups, bool)  # whether the weights of a group have a free mean; else it is 0
        self.rows = np.arange(self.n)

    def map_rows(self, work: Callable[[slice], Any]) -> list[Any]:
        """The results of ``work`` for chunks of the rows, in order: short sums, for single precision."""

        def map_chunks(rows: slice) -> list[Any]:
            return [work(chunk) for chunk in _row_chunks(rows, 16 * self.k)]

        cost = self.k * max(1, self.n_terms)
        parts = threads.map_rows(map_chunks, self.n, cost=cost, is_blas_bound=True)
        return [result for part in parts for result in part]

    def evaluate(self, x: Floats) -> _Point:
        p = np.empty((self.n, self.k))
        base = self.log_prior + x[self.n_terms :]

        def work(rows: slice) -> float:
            scores, own = p[rows], slice(rows.start * self.k, rows.stop * self.k)
            scores[:] = base[rows] if base.ndim == 2 else base
            for part, terms in self.parts:
                scores += (part[own] @ x[terms].astype(part.dtype)).reshape(scores.shape)
            scores -= scores.max(axis=1, keepdims=True)
            of_class = scores[np.arange(len(scores)), self.y[rows]]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1)
            scores /= total[:, None]
            return float(self.weight[rows] @ (np.log(total) - of_class))

        return _Point(x, p, float(np.sum(self.map_rows(work))))

    def prior_precision(self, strength: Floats) -> Floats:
        """(unknown, unknown) the precision of the prior, with the nearly free group means integrated out."""
        v, same = self.n_terms, self.groups[:, None] == self.groups
        held = strength[self.groups] + self.extra_precision
        same &= self.has_mean[self.groups]
        total = 1.0 + np.bincount(self.groups, held, len(self.size))[self.groups]
        out = np.diag(np.full(v + self.k, self.bias_strength))
        out[:v, :v] = np.diag(held) - np.where(same, held[:, None] * held / total, 0.0)
        return out

    def gradient(self, point: _Point, precision: Floats) -> Floats:
        error = point.p * self.weight[:, None]
        error[self.rows, self.y] -= self.weight

        def work(rows: slice) -> Floats:
            own, out = slice(rows.start * self.k, rows.stop * self.k), np.empty(self.n_terms)
            for part, terms in self.parts:
                out[terms] = error[rows].ravel().astype(part.dtype) @ part[own]
            return out

        by_term = np.sum(self.map_rows(work), axis=0) if self.n else np.zeros(self.n_terms)
        return np.concatenate([by_term, error.sum(axis=0)]) + precision @ point.x

    def curvature(self, p: Floats) -> Floats:
        """(unknown, unknown) of the likelihood: the weighted sum over rows of the variance of contributions.

        Contributions are taken relative to the most probable class, so that nothing is lost where that is nearly
        certain; classes with a negligible probability in a row (below the root of the precision) are skipped. An
        intercept contributes to one class alone, so only one product grows with the square of the classes.
        """
        v, top = self.n_terms, p.argmax(axis=1)
        other = p * self.weight[:, None]  # (row, class) of every class but the most probable, times the row's weight
        other[self.rows, top] = 0.0
        other[other <= np.sqrt(self.eps) * other.sum() / max(1, other.size)] = 0.0
        away = np.where(other > 0, p, 0.0)  # mean of the intercepts, relative to the most probable class
        away[self.rows, top] = -away.sum(axis=1)
        row, c = np.nonzero(other)
        first = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))  # start of each row, and the end
        cost = max(1, len(row) * v * v // len(first))

        def work(rows: slice) -> Floats:
            return self._partial_curvature(other, away, row, c, top, first[rows.start : rows.stop + 1])

        out = np.empty((v + self.k, v + self.k))
        out[:v] = np.sum(threads.map_rows(work, len(first) - 1, cost=cost, is_blas_bound=True), axis=0)
        out[v:, :v] = out[:v, v:].T
        cross = _sum_by_class(top, other, self.k)
        own = np.diag(other.sum(axis=0) + np.bincount(top, other.sum(axis=1), self.k))
        out[v:, v:] = own - cross - cross.T - (away * self.weight[:, None]).T @ away
        return out

    def _partial_curvature(self, other: Floats, away: Floats, row: Codes, c: Codes, top: Codes, first: Codes) -> Floats:
        """(term, unknown) the curvature of some rows; ``first`` is where each begins in ``row`` and ``c``."""
        v, k = self.n_terms, self.k
        out = np.zeros((v, v + k))
        i, step = 0, max(v + 1, LIMITS.chunk_numbers // (v + 1))  # fewer rows cost more to add up than to multiply
        while i < len(first) - 1:
            j = max(i + 1, int(np.searchsorted(first, first[i] + step, side="right")) - 1)
            own = slice(first[i], first[j])
            r, of_class = row[own], c[own]
            terms = np.empty((len(r), v), self.dtype)
            at_class, at_top = r * k + of_class, r * k + top[r]
            for part, place in self.parts:
                np.subtract(part.take(at_class, axis=0), part.take(at_top, axis=0), out=terms[:, place])
            root = np.sqrt(other[r, of_class]).astype(self.dtype)[:, None]
            terms *= root
            out[:, :v] += terms.T @ terms
            terms *= root
            starts = first[i:j] - first[i]
            rows, total = r[starts], np.add.reduceat(terms, starts, axis=0)  # (row, term) the mean, times the weight
            out[:, :v] -= (total / self.weight[rows, None]).T @ total
            by_class = _sum_by_class(of_class, terms, k) - _sum_by_class(top[rows], total, k)
            out[:, v:] += by_class.T - total.T @ away[rows]
            i = j
        return out

    def newton_step(self, point: _Point, precision: Floats, curvature: Floats) -> tuple[_Point, float]:
        """A step of Newton's method, halved until it helps; and the gain it promised."""
        slope, value = self.gradient(point, precision), point.objective(precision)
        move = np.linalg.solve(curvature + precision, slope)
        gain, size, rounding = float(slope @ move), 1.0, max(1e-9, self.eps) * abs(value)
        after = self.evaluate(point.x - move)
        while size > 1e-6 and after.objective(precision) > value - 1e-4 * size * gain + rounding:
            size /= 2
            after = self.evaluate(point.x - size * move)
        return after, gain

    def optimize(self, point: _Point, strength: Floats, rounds: int) -> tuple[_Point, Floats]:
        """The weights, and the strengths under which the rows are most probable, in at most so many rounds."""
        for _ in range(rounds):
            curvature = self.curvature(point.p)
            self.extra_precision = self.degrees * self.uncertainty(point.p)
            point, _ = self.newton_step(point, self.prior_precision(strength), curvature)
            # MacKay's update: how many weights the rows determine, over their squared distance from the group means.
            v, held = self.n_terms, strength[self.groups]
            variance = np.diag(np.linalg.inv(curvature[:v, :v] + np.diag(held + self.extra_precision)))
            determined = np.bincount(self.groups, np.maximum(1.0 - held * variance, 0.0), len(self.size))
            means = self.group_means(point.x, strength)[self.groups]
            away = np.bincount(self.groups, (point.x[:v] - means) ** 2, len(self.size))
            better = np.clip((determined + _PSEUDO_WEIGHTS) / np.maximum(away, 1e-12), *_STRENGTH_RANGE)
            before, strength = strength, np.where(self.size > 0, better, strength)
            if (np.abs(np.log(strength / before)) < _STRENGTH_TOLERANCE).all():
                break
        return self.solve(point, self.prior_precision(strength), curvature), strength

    def uncertainty(self, p: Floats) -> float:
        """How uncertain the classes of the rows are: 1 where the probabilities are the class proportions."""
        n, rows = float(self.weight.sum()), np.bincount(self.y, self.weight, self.k)
        most = n - float(rows @ rows) / n if n > 0 else 0.0
        return min(1.0, float(self.weight @ (1.0 - (p**2).sum(axis=1))) / most) if most > 0 else 1.0

    def solve(self, point: _Point, precision: Floats, curvature: Floats) -> _Point:
        """The maximum for this prior; the curvature is computed again when steps no longer gain enough."""
        before = np.inf
        for _ in range(_MAX_NEWTON_STEPS):
            point, gain = self.newton_step(point, precision, curvature)
            if gain <= self.eps * (1.0 + abs(point.objective(precision))):
                break
            if gain > _CURVATURE_REUSE_GAIN * before:
                curvature = self.curvature(point.p)
            before = gain
        return point

    def group_means(self, x: Floats, strength: Floats) -> Floats:
        """(group,) the best common mean of the weights."""
        held = strength[self.groups] + self.extra_precision
        total = np.bincount(self.groups, held * x[: self.n_terms], len(self.size))
        return np.where(self.has_mean, total / (np.bincount(self.groups, held, len(self.size)) + 1.0), 0.0)


def _sum_by_class(of_class: Codes, values: Floats, n_classes: int) -> Floats:
    """(class, ...) the sum of the values of each class."""
    out = np.zeros((n_classes, *values.shape[1:]))
    if len(of_class):
        order = np.argsort(of_class, kind="stable")
        starts = np.flatnonzero(np.diff(of_class[order], prepend=-1))
        out[of_class[order[starts]]] = np.add.reduceat(values[order], starts, axis=0)
    return out


def _row_chunks(rows: slice, width: int) -> Iterator[slice]:
    """Slices of rows of so many numbers each, that stay in cache."""
    step = max(1, LIMITS.chunk_numbers // max(1, width))
    return (slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step))
