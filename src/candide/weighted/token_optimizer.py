"""Learn the weights of the tokens of documents from their leave-one-out contributions t.

    score(c | document) = offset(c) + b_c + sum_v w_v t_v(document, c)        w_v ~ Normal(mean_g, 1 / strength)
                                                                           mean_g ~ Normal(1, 1)

Tokens of as many words that are about as rare are a group with a mean weight of its own, so rare tokens, pairs of words
and very common words count as much as their group deserves, and single tokens more or less where documents support it.
The means are learned first, by Newton's method; then all weights together, by L-BFGS (Nocedal, 1980), in units in which
every weight is about as well determined as the others. Where no document is informative every weight is 1: naive Bayes,
but for the length of documents.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Floats
from candide.distributions.token_weights import TokenWeights
from candide.kernels import threads
from candide.kernels.text import join_keys
from candide.weighted import optimizer
from candide.weighted.held_out_tokens import HeldOutTokens, concatenate_tokens

# Precision of an intercept around 0, as for the means: the intercept of a class of one document would run away, and
# take every document of which little is known.
TOKEN_BIAS_STRENGTH = 1.0
_FIXED_STRENGTH = 1e9  # precision with which weights do not leave their group mean
_MAX_STEPS = 200
_TOLERANCE = 1e-6  # a step with a smaller relative gain is the last
_HISTORY_LENGTH = 10  # steps of L-BFGS that approximate the curvature
_SUFFICIENT_DECREASE = 1e-4  # fraction of the decrease that the slope promises, which a step must reach
_CURVATURE_CONDITION = 0.9  # fraction of the slope that may be left at the end of a step
_MAX_LINE_SEARCH_STEPS = 20

Objective = Callable[[Floats], tuple[float, Floats]]
_Step = tuple[NDArray[np.float32], NDArray[np.float32], float]  # move, change of the gradient, their product


@dataclass(frozen=True, eq=False)
class LearnedTokenWeights:
    """The weights of the tokens, the intercepts of the classes, and (document, class) the weighted contributions."""

    token_weights: TokenWeights
    bias: Floats
    contributions: Floats


def learn_joint_token_weights(
    parts: Sequence[HeldOutTokens],
    offset: Floats,
    weight: Floats | None = None,
    start: Sequence[TokenWeights | None] = (),
    *,
    max_steps: int = _MAX_STEPS,
    tolerance: float = _TOLERANCE,
) -> list[LearnedTokenWeights]:
    """Learn the token weights of several parts of the same documents together.

    ``offset`` (class) or (document, class) is the score of all other terms, ``weight`` the frequency of each document.
    """
    weights = [np.full(len(part.group), part.scale) for part in parts]
    zero = np.zeros((len(parts[0]), parts[0].n_classes))
    scores = [zero if p.weighting.has_weights else p.scores(w) for p, w in zip(parts, weights, strict=True)]
    bias, default = np.zeros(parts[0].n_classes), {}
    free = [i for i, part in enumerate(parts) if part.weighting.has_weights]
    if free:
        known = [start[i] if start else None for i in free]
        problem = _TokenWeightProblem([parts[i] for i in free], offset + sum(scores), weight)
        mean, bias, deviation, curvature = problem.starting_point(known)
        if problem.v and (problem.strength < _FIXED_STRENGTH).any():
            mean, bias, deviation = problem.solve(mean, bias, deviation, curvature, max_steps, tolerance)
        by_part = np.split(mean[problem.tokens.group] + deviation, problem.ends)
        for i, own, first in zip(free, by_part, problem.first_groups, strict=True):
            weights[i], scores[i] = own, parts[i].scores(own)
            if parts[i].n_groups:
                default[i] = float(mean[first])  # unseen tokens count as rare ones, the first group, do
    out = []
    for i, part in enumerate(parts):
        keys, own = join_keys([]), np.empty(0)
        if part.weighting.has_weights:
            keys, own = (part.letters, part.starts), weights[i] / part.scale
        rest = default.get(i, part.scale) / part.scale
        tokens = TokenWeights.from_unsorted(*keys, own, rest, part.weighting)
        out.append(LearnedTokenWeights(tokens, bias, scores[i]))
    return out


class _TokenWeightProblem:
    """The penalised likelihood of group means, intercepts, and the deviation of each token from its group mean."""

    def __init__(self, parts: Sequence[HeldOutTokens], offset: Floats, weight: Floats | None):
        self.parts = parts
        tokens, sizes = concatenate_tokens(parts), [len(part.group) for part in parts]
        self.strength = np.repeat([min(part.weighting.strength, _FIXED_STRENGTH) for part in parts], sizes)
        self.ends = np.cumsum(sizes)[:-1]
        self.first_groups = np.cumsum([0, *(part.n_groups for part in parts)])[:-1]  # of each part
        self.tokens, self.y = tokens, tokens.y
        is_used = tokens.is_informative & (np.diff(tokens.ends) > 0)
        self.document_weights = np.where(is_used, 1.0 if weight is None else weight, 0.0)
        self.offset = np.broadcast_to(offset, (len(tokens), tokens.n_classes))
        self.v, self.g = len(tokens.group), tokens.n_groups
        self.unit_weights = np.repeat([part.scale for part in parts], [part.n_groups for part in parts])  # (group)

    def starting_point(self, start: Sequence[TokenWeights | None]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return group means, intercepts, deviations by the weights in ``start``, and the curvature of the first two.

        The contributions of groups take much memory, which is freed before the weights of all tokens are learned.
        """
        tokens, own = self.tokens, np.arange(self.g)
        groups = tokens.sum_by_group(optimizer.allocate_contributions(len(tokens), tokens.n_classes, self.g))
        base = self.offset + groups @ self.unit_weights
        learned = optimizer.learn_weights(
            [groups], base, self.y, self.document_weights, groups=own, bias_strength=TOKEN_BIAS_STRENGTH
        )  # how far means are from one
        mean = self.unit_weights + learned.weight
        deviation = np.zeros(self.v)
        by_part = np.split(deviation, self.ends), np.split(mean[tokens.group], self.ends)
        for part, known, away, group_mean in zip(self.parts, start, *by_part, strict=True):
            if known is not None:
                away[:] = part.scale * known.lookup(part.letters, part.starts) - group_mean
        problem = optimizer.WeightProblem([groups], self.offset, self.y, self.document_weights, own, self.g)
        p = self._posterior(mean[tokens.group] + deviation, learned.bias)
        return mean, learned.bias, deviation, problem.curvature(p)

    def solve(
        self, mean: Floats, bias: Floats, deviation: Floats, curvature: Floats, max_steps: int, tolerance: float
    ) -> tuple[Floats, Floats, Floats]:
        p, v = self._posterior(mean[self.tokens.group] + deviation, bias), self.v
        precision = np.append(self.unit_weights**-2, np.full(len(bias), TOKEN_BIAS_STRENGTH))
        prior_mean = np.append(self.unit_weights, np.zeros(len(bias)))
        root = np.linalg.cholesky(curvature + np.diag(precision))
        unit = 1.0 / np.sqrt(self.tokens.score_variance(p, self.document_weights) + self.strength)

        def value(q: Floats) -> tuple[float, Floats]:
            shared = np.linalg.solve(root.T, q[v:])  # means and intercepts
            own, away = q[:v] * unit, shared - prior_mean
            loss, by_token, by_class = self._loss(shared[: self.g][self.tokens.group] + own, shared[self.g :])
            slope = np.concatenate([np.bincount(self.tokens.group, by_token, self.g), by_class]) + precision * away
            penalty = 0.5 * (self.strength * own) @ own + 0.5 * precision @ away**2
            slopes = [(by_token + self.strength * own) * unit, np.linalg.solve(root, slope)]
            return float(loss + penalty), np.concatenate(slopes)

        start = np.concatenate([deviation / unit, root.T @ np.concatenate([mean, bias])])
        with threads.one_blas_thread():
            best = minimize(value, start, max_steps=max_steps, tolerance=tolerance)
        shared = np.linalg.solve(root.T, best[v:])
        return shared[: self.g], shared[self.g :], best[:v] * unit

    def _posterior(self, weight: Floats, bias: Floats) -> Floats:
        scores = self.tokens.scores(weight) + self.offset + bias
        return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))

    def _loss(self, weight: Floats, bias: Floats) -> tuple[float, Floats, Floats]:
        tokens, base, frequency = self.tokens, self.offset + bias, self.document_weights

        def work(rows: slice) -> tuple[float, Floats, Floats]:
            loss, by_token, by_class = 0.0, np.zeros(self.v), np.zeros(base.shape[1])
            for chunk in tokens.cached_slices(rows):
                scores = base[chunk].copy()
                kernels.word_scores(*tokens.kernel_arrays(chunk), weight, scores)
                scores -= scores.max(axis=1, keepdims=True)
                at = np.arange(len(scores)), self.y[chunk]
                own = scores[at]
                np.exp(scores, out=scores)
                total = scores.sum(axis=1)
                loss += float(frequency[chunk] @ (np.log(total) - own))
                scores *= (frequency[chunk] / total)[:, None]
                scores[at] -= frequency[chunk]
                by_class += scores.sum(axis=0)
                kernels.word_slopes(*tokens.kernel_arrays(chunk), tokens.pad_classes(scores), by_token)
            return loss, by_token, by_class

        losses, by_token, by_class = zip(*threads.map_rows(work, len(tokens), cost=tokens.cost), strict=True)
        return sum(losses), np.sum(by_token, axis=0), np.sum(by_class, axis=0)


def minimize(objective: Objective, start: Floats, *, max_steps: int, tolerance: float) -> Floats:
    """Minimise a function, given with its gradient, by L-BFGS until a step gains less than ``tolerance``, relatively.

    Not SciPy's: the history only steers, so that it is kept in single precision, which halves the memory.
    """
    x, (value, slope), history = start, objective(start), deque[_Step](maxlen=_HISTORY_LENGTH)
    for _ in range(max_steps):
        direction = _search_direction(slope, history)
        if not direction @ slope < 0:
            break
        if (step := _line_search(objective, x, value, slope, direction)) is None:
            break
        before, (x_new, value, slope_new) = value, step
        move, turn = (x_new - x).astype(np.float32), (slope_new - slope).astype(np.float32)
        x, slope = x_new, slope_new
        if before - value <= tolerance * max(abs(before), abs(value), 1.0):
            break
        if (product := float(move @ turn)) > 0:
            history.append((move, turn, product))
    return x


def _search_direction(slope: Floats, history: deque[_Step]) -> Floats:
    """The two-loop recursion: minus the approximate inverse of the curvature, times the gradient."""
    direction, factors = -slope.astype(np.float32), []
    for move, turn, product in reversed(history):
        factors.append(float(move @ direction) / product)
        direction -= np.float32(factors[-1]) * turn
    if history:
        _, turn, product = history[-1]
        direction *= np.float32(product / float(turn @ turn))
    for (move, turn, product), factor in zip(history, reversed(factors), strict=True):
        direction += np.float32(factor - float(turn @ direction) / product) * move
    return direction.astype(np.float64)


def _line_search(
    objective: Objective, x: Floats, value: float, slope: Floats, direction: Floats
) -> tuple[Floats, float, Floats] | None:
    """A point in this direction that satisfies Wolfe's conditions, with value and gradient; None if there is none."""
    low, high, size, descent = 0.0, np.inf, 1.0, float(slope @ direction)
    for _ in range(_MAX_LINE_SEARCH_STEPS):
        x_new = x + size * direction
        value_new, slope_new = objective(x_new)
        if not value_new <= value + _SUFFICIENT_DECREASE * size * descent:
            high = size
            curvature = (value_new - value - size * descent) / size**2  # of the parabola through both points
            best = -descent / (2 * curvature) if np.isfinite(curvature) and curvature > 0 else 0.0
            size = min(max(best, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        elif float(slope_new @ direction) < _CURVATURE_CONDITION * descent:
            low = size
            size = 4 * size if high == np.inf else (low + high) / 2
        else:
            return x_new, value_new, slope_new
    return None
