"""Weights: how much each voice counts, learned from what the voices say of rows that they have not counted.

    score(c | x) = log p(c) + b_c + sum_v w_v t_v(x, c)

The weights maximise the likelihood of the classes. Those of a group of voices are drawn round a common mean,

    w_v ~ Normal(mean_g, 1 / strength_g)        mean_g ~ Normal(0, 1)

which is free, so that few rows mostly temper all voices alike; very few may leave some a little below 0. The mean of a
group that is alone is at least 0: there are no other terms that it could correct. The strength of each group is the one
under which the rows are most probable (MacKay's fixed point): voices that agree are held together, and those whose
weights pay for themselves are let go. The problem is convex; it is solved by Newton's method.

Terms are learned from the same rows, so they follow the noise in them. For a term with d degrees of freedom that is
noise, and a chi-square Q with d degrees, the slope of the likelihood is Q - d and its curvature Q; the weight
(Q - d) / Q would be far below 0 where Q is small. The slope varies by 2 d, not by Q. So d is added to what holds a
weight to the mean of its group, by as much as the classes are uncertain: then the curvature agrees with the slope's
variance, and chance is not taken for evidence.

The best of many terms still looks good by chance: see :mod:`candide.model.shrinkage`.

>>> rng = np.random.default_rng(0)
>>> y = rng.integers(0, 2, 500)
>>> clear = (1.5 * (y - 0.5) + rng.normal(size=500))[:, None] * np.array([-0.5, 0.5])  # what a voice says of each class
>>> terms = np.stack([clear, clear, rng.normal(size=(500, 2))], axis=2)  # (row, class, voice): it speaks twice
>>> learned = learn_weights([terms], np.log([0.5, 0.5]), y, groups=[0, 0, 0])
>>> learned.weight.round(1).tolist()
[0.7, 0.7, 0.1]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.kernels import threads
from candide.weighted.limits import LIMITS

_INITIAL_STRENGTH = 10.0  # the strength to begin with
_MAX_ROUNDS = 12, 100  # of a Newton step and a new strength: of most learning, and where there is patience
_MAX_NEWTON_STEPS = 50  # of Newton's method, once the strengths stand
_STRENGTH_TOLERANCE = 0.1  # strengths that change by less than this share stand
_PSEUDO_WEIGHTS = 0.1  # of a weight more, near its mean: else weights that part few rows run away
_STRENGTH_RANGE = (1e-3, 1e6)
BIAS_STRENGTH = 0.02  # the strength with which a class bias is held at 0: hardly
_INACTIVE_BELOW = 1e-9  # a term that says less than this says nothing
_N_FIRST_ROWS = 256  # rows of which nearly every voice says something
_CURVATURE_REUSE_GAIN = 0.03  # a curvature serves for the next step too while the gain falls to this share


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """The weights, the class biases, and the strength of each group."""

    weight: Floats  # (voice)
    bias: Floats  # (class)
    strength: Floats  # (group)


def allocate_contributions(n_rows: int, n_classes: int, n_terms: int) -> NDArray:
    """Room for terms: in single precision where they are many, whose rounding is far below what a row can tell."""
    many = n_rows * n_classes * n_terms > LIMITS.max_double_contributions
    return np.empty((n_rows, n_classes, n_terms), np.float32 if many else np.float64)


def center_contributions(contributions: NDArray) -> NDArray:
    """Terms (row, class, voice) as weights are learned from them, in their place where that has the precision.

    What all classes share says nothing, and is taken away.

    >>> center_contributions(np.array([[[1.0], [2.0]]])).tolist()
    [[[-0.5], [0.5]]]
    """
    out = allocate_contributions(*contributions.shape)
    out = contributions if contributions.dtype == out.dtype else out
    for some in _row_chunks(slice(0, len(contributions)), contributions.shape[1] * contributions.shape[2]):
        np.subtract(
            contributions[some], contributions[some].mean(axis=1, keepdims=True), out=out[some], casting="same_kind"
        )
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
    """The weights of voices whose ``terms`` are parts (row, class, voice); ``groups`` numbers the group of each voice.

    ``log_prior`` is what they are added to, (class) or (row, class).
    ``weight`` says how often each row counts. ``start`` is where to begin: the same answer, sooner. Without it the
    strengths may take long to stand; ``patient`` waits for them. Voices that say nothing of any row have the mean of
    their group, and need not be asked. ``hold`` is the strength with which biases are held at 0. ``noise`` is, of each
    voice, the degrees of freedom of its terms.
    """
    groups = np.asarray(groups, np.intp)
    term_degrees = np.zeros(len(groups)) if term_degrees is None else term_degrees
    each = [_active_terms(part) for part in contributions]
    contributions = [
        part if own.all() else part.compress(own, axis=2) for part, own in zip(contributions, each, strict=True)
    ]
    heard = np.concatenate(each) if each else np.zeros(0, bool)
    problem = WeightProblem(
        contributions,
        log_prior,
        y,
        weight,
        groups[heard],
        1 + int(groups.max(initial=-1)),
        bias_strength,
        term_degrees[heard],
    )
    columns = groups == 0
    even = np.where(columns, 1.0 / np.sqrt(max(1, (heard & columns).sum())), 0.0)
    x, strength = problem.starting_point(even, heard, start)
    at = problem.evaluate(x)
    with threads.one_blas_thread():  # the products are small, and rows are shared out among threads
        while True:
            at, strength = problem.optimize(at, strength, _MAX_ROUNDS[until_converged])
            below = problem.group_means(at.x, strength) < 0
            if not below.any() or np.count_nonzero(problem.size) > 1:  # beside others, they may correct these
                break
            problem.has_mean &= ~below
    x = at.x
    found = problem.group_means(x, strength)[groups]
    found[heard] = x[: problem.n_terms]
    return LearnedWeights(found, x[problem.n_terms :], strength)


def _active_terms(part: NDArray) -> NDArray[np.bool_]:
    """(voice,) whether it says anything of any row."""
    out = (np.abs(part[:_N_FIRST_ROWS]) > _INACTIVE_BELOW).any(axis=(0, 1))
    if not out.all():
        out[~out] = (np.abs(part[_N_FIRST_ROWS:, :, ~out]) > _INACTIVE_BELOW).any(axis=(0, 1))
    return out


def compute_posterior(contributions: Sequence[NDArray], base: Floats, weight: Floats) -> Floats:
    """(row, class) what weighted voices come to; ``base`` is what they are added to."""
    nothing = np.zeros(len(contributions[0]), np.intp)
    return (
        WeightProblem(contributions, base, nothing, None, nothing[:0], 0)
        .evaluate(np.append(weight, np.zeros(base.shape[-1])))
        .p
    )


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights and biases, and what they make of the rows."""

    x: Floats  # (unknown)
    p: Floats  # (row, class) p(class | row)
    loss: float

    def objective(self, precision: Floats) -> float:
        """What is made least."""
        return self.loss + 0.5 * float(self.x @ precision @ self.x)


class WeightProblem:
    """The penalised likelihood: unknown are the weights, and the biases of all classes."""

    def __init__(
        self,
        terms: Sequence[NDArray],
        log_prior: Floats,
        y: Codes,
        weight: Floats | None,
        groups: Codes,
        n_groups: int,
        hold: float = BIAS_STRENGTH,
        noise: Floats | None = None,
    ):
        self.n, self.k, self.bias_strength = len(y), log_prior.shape[-1], hold
        ends = np.cumsum([0, *(part.shape[2] for part in terms)])
        self.n_terms = int(ends[-1])
        # Each part by (row and class, voice), and which of the voices are its own.
        self.parts = [
            (np.ascontiguousarray(part).reshape(self.n * self.k, -1), slice(a, b))
            for part, a, b in zip(terms, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            if b > a
        ]
        self.dtype = np.float32 if any(part.dtype == np.float32 for part, _ in self.parts) else np.float64
        self.eps = float(np.finfo(self.dtype).eps)
        self.log_prior, self.y, self.groups = log_prior, y, groups
        self.weight = np.ones(self.n) if weight is None else weight
        self.degrees = np.zeros(len(groups)) if noise is None else noise
        self.noise = self.degrees
        self.size = np.bincount(groups, minlength=n_groups)
        self.has_mean = np.ones(n_groups, bool)  # whether the weights of a group have a common mean, or that is 0
        self.rows = np.arange(self.n)

    def starting_point(
        self, even_weights: Floats, active: NDArray[np.bool_], known_weights: LearnedWeights | None
    ) -> tuple[Floats, Floats]:
        """Where to begin: at known weights, those of new voices 0; or at those of voices that all say the same."""
        bias, strength = np.zeros(self.k), np.full(len(self.size), _INITIAL_STRENGTH)
        if known_weights is not None:
            even_weights = np.append(known_weights.weight, np.zeros(len(active) - len(known_weights.weight)))
            bias, strength[: len(known_weights.strength)] = known_weights.bias, known_weights.strength
        return np.concatenate([even_weights[active], bias]), strength

    def map_rows(self, work: Callable[[slice], Any]) -> list[Any]:
        """What ``work`` makes of pieces of the rows, in order."""

        def some(rows: slice) -> list[Any]:
            return [work(piece) for piece in _row_chunks(rows, 16 * self.k)]  # short sums, in single precision, too

        shared = threads.map_rows(some, self.n, cost=self.k * max(1, self.n_terms), is_blas_bound=True)
        return [one for each in shared for one in each]

    def evaluate(self, x: Floats) -> _Point:
        p = np.empty((self.n, self.k))
        base = self.log_prior + x[self.n_terms :]

        def work(rows: slice) -> float:
            scores, own = p[rows], slice(rows.start * self.k, rows.stop * self.k)
            scores[:] = base[rows] if base.ndim == 2 else base
            for part, voices in self.parts:
                scores += (part[own] @ x[voices].astype(part.dtype)).reshape(scores.shape)
            scores -= scores.max(axis=1, keepdims=True)
            mine = scores[np.arange(len(scores)), self.y[rows]]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1)
            scores /= total[:, None]
            return float(self.weight[rows] @ (np.log(total) - mine))

        return _Point(x, p, float(np.sum(self.map_rows(work))))

    def prior_precision(self, strength: Floats) -> Floats:
        """(unknown, unknown) of the prior: a strength each, and a common mean that is nearly free."""
        v, same = self.n_terms, self.groups[:, None] == self.groups
        held = strength[self.groups] + self.noise
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
            for part, voices in self.parts:
                out[voices] = error[rows].ravel().astype(part.dtype) @ part[own]
            return out

        by_voice = np.sum(self.map_rows(work), axis=0) if self.n else np.zeros(self.n_terms)
        return np.concatenate([by_voice, error.sum(axis=0)]) + precision @ point.x

    def curvature(self, p: Floats) -> Floats:
        """(unknown, unknown) of the likelihood: the weighted sum over rows of the variance of what voices say.

        What they say of a class is taken against the likeliest: nothing is then lost where that is all but certain,
        and classes that are all but excluded in a row (by the root of the precision) need not be looked at. A bias is
        said of one class alone, so what grows with the square of the classes is one product.
        """
        v, top = self.n_terms, p.argmax(axis=1)
        share = p * self.weight[:, None]
        share[self.rows, top] = 0.0
        share[share <= np.sqrt(self.eps) * share.sum() / max(1, share.size)] = 0.0
        away = np.where(share > 0, p, 0.0)  # the mean of the biases, against that of the likeliest class
        away[self.rows, top] = -away.sum(axis=1)
        row, c = np.nonzero(share)
        first = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))  # where each row begins, and the end
        cost = max(1, len(row) * v * v // len(first))

        def work(rows: slice) -> Floats:
            return self._partial_curvature(share, away, row, c, top, first[rows.start : rows.stop + 1])

        out = np.empty((v + self.k, v + self.k))
        out[:v] = np.sum(threads.map_rows(work, len(first) - 1, cost=cost, is_blas_bound=True), axis=0)
        out[v:, :v] = out[:v, v:].T
        beside = _sum_by_class(top, share, self.k)
        own = np.diag(share.sum(axis=0) + np.bincount(top, share.sum(axis=1), self.k))
        out[v:, v:] = own - beside - beside.T - (away * self.weight[:, None]).T @ away
        return out

    def _partial_curvature(self, share: Floats, away: Floats, row: Codes, c: Codes, top: Codes, first: Codes) -> Floats:
        """(voice, unknown) the curvature of some rows; ``first`` is where each begins in ``row`` and ``c``.

        ``share`` (row, class) is the probability of every class but the likeliest, times the weight of the row.
        """
        v, k = self.n_terms, self.k
        out = np.zeros((v, v + k))
        i, at_once = (
            0,
            max(v + 1, LIMITS.chunk_numbers // (v + 1)),
        )  # fewer rows would cost more to add up than to multiply
        while i < len(first) - 1:
            j = max(i + 1, int(np.searchsorted(first, first[i] + at_once, side="right")) - 1)
            own = slice(first[i], first[j])
            r, of_class = row[own], c[own]
            each = np.empty((len(r), v), self.dtype)
            here, there = r * k + of_class, r * k + top[r]
            for part, voices in self.parts:
                np.subtract(part.take(here, axis=0), part.take(there, axis=0), out=each[:, voices])
            heard = np.sqrt(share[r, of_class]).astype(self.dtype)[:, None]
            each *= heard
            out[:, :v] += each.T @ each
            each *= heard
            starts = first[i:j] - first[i]
            rows, total = r[starts], np.add.reduceat(each, starts, axis=0)  # (row, voice) the mean, times the weight
            out[:, :v] -= (total / self.weight[rows, None]).T @ total
            out[:, v:] += (_sum_by_class(of_class, each, k) - _sum_by_class(top[rows], total, k)).T - total.T @ away[
                rows
            ]
            i = j
        return out

    def newton_step(self, point: _Point, precision: Floats, curvature: Floats) -> tuple[_Point, float]:
        """A step of Newton's method, halved until it helps; and what it promised to gain."""
        slope, value = self.gradient(point, precision), point.objective(precision)
        move = np.linalg.solve(curvature + precision, slope)
        gain, size, rounding = float(slope @ move), 1.0, max(1e-9, self.eps) * abs(value)
        after = self.evaluate(point.x - move)
        while size > 1e-6 and after.objective(precision) > value - 1e-4 * size * gain + rounding:
            size /= 2
            after = self.evaluate(point.x - size * move)
        return after, gain

    def optimize(self, point: _Point, strength: Floats, rounds: int) -> tuple[_Point, Floats]:
        """The weights and the strengths under which the rows are most probable, in at most so many rounds."""
        for _ in range(rounds):
            curvature = self.curvature(point.p)
            self.noise = self.degrees * self.uncertainty(point.p)
            point, _ = self.newton_step(point, self.prior_precision(strength), curvature)
            better = self.update_strengths(point.x, strength, curvature)
            stands = bool((np.abs(np.log(better / strength)) < _STRENGTH_TOLERANCE).all())
            strength = better
            if stands:
                break
        return self.solve(point, self.prior_precision(strength), curvature), strength

    def uncertainty(self, p: Floats) -> float:
        """How uncertain the classes of the rows still are: 1 where no more is known than the class shares."""
        n, rows = float(self.weight.sum()), np.bincount(self.y, self.weight, self.k)
        most = n - float(rows @ rows) / n if n > 0 else 0.0
        return min(1.0, float(self.weight @ (1.0 - (p**2).sum(axis=1))) / most) if most > 0 else 1.0

    def solve(self, point: _Point, precision: Floats, curvature: Floats) -> _Point:
        """The maximum: the curvature is taken anew when it no longer serves."""
        before = np.inf
        for _ in range(_MAX_NEWTON_STEPS):
            point, gain = self.newton_step(point, precision, curvature)
            if gain <= self.eps * (1.0 + abs(point.objective(precision))):
                break
            if gain > _CURVATURE_REUSE_GAIN * before:
                curvature = self.curvature(point.p)
            before = gain
        return point

    def update_strengths(self, x: Floats, strength: Floats, curvature: Floats) -> Floats:
        """Better strengths: how many weights the rows determine, given their means, over how far these are away."""
        v = self.n_terms
        w, spread = x[:v], np.diag(np.linalg.inv(curvature[:v, :v] + np.diag(strength[self.groups] + self.noise)))
        away = np.bincount(self.groups, (w - self.group_means(x, strength)[self.groups]) ** 2, len(self.size))
        determined = np.bincount(self.groups, np.maximum(1.0 - strength[self.groups] * spread, 0.0), len(self.size))
        return np.where(
            self.size > 0, np.clip((determined + _PSEUDO_WEIGHTS) / np.maximum(away, 1e-12), *_STRENGTH_RANGE), strength
        )

    def group_means(self, x: Floats, strength: Floats) -> Floats:
        """(group,) the best common mean of the weights."""
        held = strength[self.groups] + self.noise
        total = np.bincount(self.groups, held * x[: self.n_terms], len(self.size))
        return np.where(self.has_mean, total / (np.bincount(self.groups, held, len(self.size)) + 1.0), 0.0)


def _sum_by_class(of_class: Codes, values: Floats, n_classes: int) -> Floats:
    """(class, ...) the sums of the values of each class."""
    out = np.zeros((n_classes, *values.shape[1:]))
    if len(of_class):
        order = np.argsort(of_class, kind="stable")
        starts = np.flatnonzero(np.diff(of_class[order], prepend=-1))
        out[of_class[order[starts]]] = np.add.reduceat(values[order], starts, axis=0)
    return out


def _row_chunks(rows: slice, width: int) -> Iterator[slice]:
    """Rows of so many numbers each, some at a time."""
    step = max(1, LIMITS.chunk_numbers // max(1, width))
    return (slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step))
