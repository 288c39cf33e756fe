"""Weights: how much each voice counts, learned from what the voices say of rows that they have not counted.

    score(c | x) = log p(c) + b_c + sum_v w_v t_v(x, c)

The weights maximise the likelihood of the classes. Those of a group of voices are drawn round a common mean,

    w_v ~ Normal(mean_g, 1 / strength_g)        mean_g ~ Normal(0, 1)

which is free, so that the worst that few rows can do is to temper all voices alike. The strength of each group is the
one under which the rows are most probable (MacKay's fixed point): voices that agree are held together, and those
whose weights pay for themselves are let go. The problem is convex; it is solved by Newton's method.

>>> rng = np.random.default_rng(0)
>>> y = rng.integers(0, 2, 500)
>>> clear = (1.5 * (y - 0.5) + rng.normal(size=500))[:, None] * np.array([-0.5, 0.5])  # what a voice says of each class
>>> terms = np.stack([clear, clear, rng.normal(size=(500, 2))], axis=1)  # (row, voice, class): it speaks twice
>>> learned = learn(terms, np.log([0.5, 0.5]), y, groups=[0, 0, 0])
>>> learned.weight.round(1).tolist()
[0.7, 0.7, 0.1]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide.kernels import threads
from candide.rows.blocks import Codes, Floats

_FIRST = 10.0  # the strength to begin with
_ROUNDS = 12  # of a Newton step and a new strength
_STEPS = 50  # of Newton's method, once the strengths stand
_CLOSE = 0.1  # strengths that change by less than this share stand
_STRENGTHS = (1e-3, 1e6)
_BIAS = 0.02  # the strength with which a class bias is held at 0: hardly
_EXACT = 1 << 24  # so many terms are worked in double precision; more of them in single
_PIECE = 1 << 17  # numbers worked at once


@dataclass(frozen=True, eq=False)
class Learned:
    """The weights, the class biases, and the strength of each group."""

    weight: Floats  # (voice)
    bias: Floats  # (class)
    strength: Floats  # (group)


def learn(
    terms: NDArray,
    log_prior: Floats,
    y: Codes,
    weight: Floats | None = None,
    *,
    groups: Sequence[int] | Codes,
    start: Learned | None = None,
) -> Learned:
    """The weights of voices whose ``terms`` are (row, voice, class); ``groups`` numbers the group of each voice.

    ``weight`` says how often each row counts. ``start`` is where to begin: the same answer, sooner.
    """
    problem = _Problem(terms, log_prior, y, weight, np.asarray(groups, np.intp))
    x, strength = problem.start(start)
    with threads.one_blas_thread():  # the products are small, and rows are shared out among threads
        for _ in range(_ROUNDS):
            x, _, curvature = problem.step(x, strength)
            better = problem.evidence(x, strength, curvature)
            stands = bool((np.abs(np.log(better / strength)) < _CLOSE).all())
            strength = better
            if stands:
                break
        x = problem.solve(x, strength)
    return Learned(x[: problem.n_voices], x[problem.n_voices :], strength)


class _Problem:
    """The penalised likelihood: unknown are the weights, and the biases of all classes."""

    def __init__(self, terms: NDArray, log_prior: Floats, y: Codes, weight: Floats | None, groups: Codes):
        n, self.n_voices, self.k = terms.shape
        dtype = np.float64 if terms.size <= _EXACT else np.float32
        middle = terms.mean(axis=2, dtype=np.float64)  # what all classes share says nothing
        self.terms = np.stack([(terms[:, :, c] - middle).astype(dtype) for c in range(self.k)])  # (class, row, voice)
        self.log_prior, self.y, self.groups = log_prior, y, groups
        self.weight = np.ones(n) if weight is None else weight
        self.size = np.bincount(groups) if len(groups) else np.zeros(0, np.intp)
        self.rows = np.arange(n)

    def start(self, known: Learned | None) -> tuple[Floats, Floats]:
        """Where to begin: at known weights, those of new voices 0; or at those of voices that all say the same."""
        x, strength = np.zeros(self.n_voices + self.k), np.full(len(self.size), _FIRST)
        if known is None:
            first = self.groups == 0
            x[: self.n_voices][first] = 1.0 / np.sqrt(max(1, first.sum()))
        else:
            x[: len(known.weight)], x[self.n_voices :] = known.weight, known.bias
            strength[: len(known.strength)] = known.strength
        return x, strength

    def log_posterior(self, x: Floats) -> Floats:
        """(row, class) log p(class | row)."""
        w = x[: self.n_voices].astype(self.terms.dtype)
        scores = (self.terms @ w).T + (self.log_prior + x[self.n_voices :])
        scores -= scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def precision(self, strength: Floats) -> Floats:
        """(unknown, unknown) of the prior: a strength each, and a common mean that is nearly free."""
        v, same = self.n_voices, self.groups[:, None] == self.groups
        shared = (strength**2 / (1.0 + strength * self.size))[self.groups]
        out = np.diag(np.full(v + self.k, _BIAS))
        out[:v, :v] = np.diag(strength[self.groups]) - np.where(same, shared, 0.0)
        return out

    def value(self, x: Floats, precision: Floats) -> tuple[float, Floats]:
        """What is made least, and p(class | row)."""
        log_p = self.log_posterior(x)
        loss = -float(self.weight @ log_p[self.rows, self.y])
        return loss + 0.5 * float(x @ precision @ x), np.exp(log_p)

    def slope(self, x: Floats, p: Floats, precision: Floats) -> Floats:
        error = p * self.weight[:, None]
        error[self.rows, self.y] -= self.weight
        each = (terms.T @ error[:, c].astype(terms.dtype) for c, terms in enumerate(self.terms))
        by_voice = np.sum([one.astype(np.float64) for one in each], axis=0)
        return np.concatenate([by_voice, error.sum(axis=0)]) + precision @ x

    def curvature(self, p: Floats) -> Floats:
        """(unknown, unknown) of the likelihood: the weighted sum over rows of the variance of what voices say."""
        u = self.n_voices + self.k
        return np.sum(threads.over_rows(lambda rows: self._spread(p, rows), len(p), cost=u * u, by_blas=True), axis=0)

    def _spread(self, p: Floats, rows: slice) -> Floats:
        """The curvature of some of the rows."""
        v, k, dtype = self.n_voices, self.k, self.terms.dtype
        out = np.zeros((v + k, v + k))
        step = max(256, _PIECE // (v + k))  # rows whose products stay in cache
        for start in range(rows.start, rows.stop, step):
            some = slice(start, min(start + step, rows.stop))
            shares, root = p[some].astype(dtype), np.sqrt(self.weight[some]).astype(dtype)[:, None]
            mean, each = (np.zeros((len(shares), v + k), dtype) for _ in range(2))
            for c in range(k):
                each[:, :v], each[:, v:] = self.terms[c, some], 0.0
                each[:, v + c] = 1.0
                mean += shares[:, c : c + 1] * each
                each *= np.sqrt(shares[:, c : c + 1]) * root
                out += each.T @ each
            mean *= root
            out -= mean.T @ mean
        return out

    def step(self, x: Floats, strength: Floats) -> tuple[Floats, bool, Floats]:
        """One step of Newton's method, halved until it helps; whether it was small; the curvature of the likelihood."""
        precision = self.precision(strength)
        value, p = self.value(x, precision)
        slope, curvature = self.slope(x, p, precision), self.curvature(p)
        move = np.linalg.solve(curvature + precision, slope)
        gain, size = float(slope @ move), 1.0
        while size > 1e-6 and self.value(x - size * move, precision)[0] > value - 1e-4 * size * gain + 1e-9 * abs(
            value
        ):
            size /= 2
        return x - size * move, gain <= np.finfo(self.terms.dtype).eps * (1.0 + abs(value)), curvature

    def solve(self, x: Floats, strength: Floats) -> Floats:
        """The maximum under these strengths."""
        for _ in range(_STEPS):
            x, small, _ = self.step(x, strength)
            if small:
                break
        return x

    def evidence(self, x: Floats, strength: Floats, curvature: Floats) -> Floats:
        """Better strengths: how many weights the rows determine, given their means, over how far these are away."""
        v = self.n_voices
        w, spread = x[:v], np.diag(np.linalg.inv(curvature[:v, :v] + np.diag(strength[self.groups])))
        mean = strength * np.bincount(self.groups, w, len(self.size)) / (strength * self.size + 1.0)
        away = np.bincount(self.groups, (w - mean[self.groups]) ** 2, len(self.size))
        determined = np.bincount(self.groups, np.maximum(1.0 - strength[self.groups] * spread, 0.0), len(self.size))
        return np.clip(determined / np.maximum(away, 1e-12), *_STRENGTHS)
