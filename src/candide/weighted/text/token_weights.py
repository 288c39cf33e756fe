"""Words: how much each term of a text counts, learned from what the terms say of documents that they have not counted.

    score(c | document) = offset(c) + b_c + sum_v w_v t_v(document, c)        w_v ~ Normal(mean_g, 1 / strength)
                                                                           mean_g ~ Normal(1, 1)

Terms of as many words that are about as rare are a group with a mean of its own: so rare terms, pairs of words and very
common words are heard as much as their kind deserves, and single terms more or less where the documents say so. The
means are found first, by Newton's method; then all weights together, by L-BFGS, in units in which every weight is
about as well determined as the others. Where no document teaches, every word counts once: naive Bayes, but for the
length of documents.

>>> from candide.conjugate import token_estimates
>>> from candide.weighted.text.leave_one_out import Documents, TokenCounts, leave_out_tokens
>>> from candide.encoding.tokens import Tokens
>>> from candide.tally.base import TallySpec
>>> texts, y = ["free prize now", "see you now", "free call now", "call you now"] * 5, np.array([0, 1, 0, 1] * 5)
>>> tally = TokenCounts.from_rows(
...     Documents.from_column(texts), y, n_classes=2, spec=TallySpec("token_counts", (Tokens(),))
... )
>>> said = leave_out_tokens(
...     token_estimates.WeightedTokenCounts(tally, Tokens()), 0.5, Documents.from_column(texts), y, power=0.5
... )
>>> learned = learn_token_weights(said, np.log([0.5, 0.5]))
>>> dict(zip(learned.token_weights.keys(), (learned.token_weights.weight > 0.3).tolist(), strict=True))[b"free"]
True
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from candide.data.blocks import Floats
from candide.distributions.token_weights import TokenWeights
from candide.kernels import threads
from candide.kernels.text_twin import join_keys
from candide.weighted import optimizer
from candide.weighted.text.lbfgs import minimize
from candide.weighted.text.leave_one_out import HeldOutTokens, concatenate_tokens

# The bias of a class is held at 0 as the means are: that of a class of one document, of which all others speak ill,
# would run away, and take every document of which little is known.
TOKEN_BIAS_STRENGTH = 1.0
_FIXED_STRENGTH = 1e9  # a strength with which weights do not stray
_MAX_STEPS = 200  # of L-BFGS, at most
_TOLERANCE = 1e-6  # a step that gains less than this share is the last


@dataclass(frozen=True, eq=False)
class LearnedTokenWeights:
    """The weights of the terms, the biases of the classes, and (document, class) what the terms come to."""

    token_weights: TokenWeights
    bias: Floats
    contributions: Floats


def learn_token_weights(
    tokens: HeldOutTokens,
    offset: Floats,
    weight: Floats | None = None,
    start: TokenWeights | None = None,
    *,
    max_steps: int = _MAX_STEPS,
    tolerance: float = _TOLERANCE,
) -> LearnedTokenWeights:
    """The weights of the terms of documents; ``offset`` (class) or (document, class) is what is known beside them.

    ``weight`` says how often each document counts; ``start`` is where to begin.
    """
    return learn_joint_token_weights([tokens], offset, weight, [start], max_steps=max_steps, tolerance=tolerance)[0]


def learn_joint_token_weights(
    parts: Sequence[HeldOutTokens],
    offset: Floats,
    weight: Floats | None = None,
    start: Sequence[TokenWeights | None] = (),
    *,
    max_steps: int = _MAX_STEPS,
    tolerance: float = _TOLERANCE,
) -> list[LearnedTokenWeights]:
    """The weights of the terms of several parts of the same documents, which are learned as one."""
    each = [np.full(len(one.group), one.scale) for one in parts]
    nothing = np.zeros((len(parts[0]), parts[0].n_classes))
    said = [nothing if one.weighting.has_weights else one.scores(w) for one, w in zip(parts, each, strict=True)]
    bias, rest = np.zeros(parts[0].n_classes), {}
    at = [i for i, one in enumerate(parts) if one.weighting.has_weights]
    if at:
        heard, known = [parts[i] for i in at], [start[i] if start else None for i in at]
        problem = _TokenWeightProblem(heard, offset + sum(said), weight, max_steps, tolerance)
        mean, bias, strayed, curvature = problem.starting_point(known)
        if problem.v and (problem.strength < _FIXED_STRENGTH).any():
            mean, bias, strayed = problem.solve(mean, bias, strayed, curvature)
        for i, some, first in zip(
            at, problem.split_by_part(mean[problem.tokens.group] + strayed), problem.first_groups, strict=True
        ):
            each[i], said[i] = some, parts[i].scores(some)
            if parts[i].n_groups:
                rest[i] = float(mean[first])  # as rare words, the first group; where none is, naively
    found = []
    for i, one in enumerate(parts):
        keys = (one.letters, one.starts) if one.weighting.has_weights else join_keys([])
        own = each[i] / one.scale if one.weighting.has_weights else np.empty(0)
        words = TokenWeights.from_unsorted(*keys, own, rest.get(i, one.scale) / one.scale, one.weighting)
        found.append(LearnedTokenWeights(words, bias, said[i]))
    return found


class _TokenWeightProblem:
    """The penalised likelihood of means, biases and how far each term strays from its mean."""

    def __init__(self, parts: Sequence[HeldOutTokens], offset: Floats, weight: Floats | None, steps: int, close: float):
        self.parts, self.max_steps, self.tolerance = parts, steps, close
        said, sizes = concatenate_tokens(parts), [len(one.group) for one in parts]
        self.strength = np.repeat([min(one.weighting.strength, _FIXED_STRENGTH) for one in parts], sizes)
        self.ends = np.cumsum(sizes)[:-1]
        self.first_groups = np.cumsum([0, *(one.n_groups for one in parts)])[:-1]  # group of each part
        self.tokens, self.y = said, said.y
        teaches = said.is_informative & (np.diff(said.ends) > 0)
        self.document_weights = np.where(teaches, 1.0 if weight is None else weight, 0.0)
        self.offset = np.broadcast_to(offset, (len(said), said.n_classes))
        self.v, self.g = len(said.group), said.n_groups
        self.unit_weights = np.repeat([one.scale for one in parts], [one.n_groups for one in parts])  # a weight of one

    def split_by_part(self, by_term: Floats) -> list[Floats]:
        """What there is of each term, by part."""
        return np.split(by_term, self.ends)

    def starting_point(self, start: Sequence[TokenWeights | None]) -> tuple[Floats, Floats, Floats, Floats]:
        """The means of the groups and the biases, how far terms stray by weights that are known, and the curvature.

        What the groups say takes much room: it is gone when all weights are learned.
        """
        said = self.tokens
        groups = said.sum_by_group(optimizer.allocate_contributions(len(said), said.n_classes, self.g))
        own = np.arange(self.g)
        base = self.offset + groups @ self.unit_weights
        alike = optimizer.learn_weights(
            [groups], base, self.y, self.document_weights, groups=own, bias_strength=TOKEN_BIAS_STRENGTH
        )  # how far means are from one
        mean = self.unit_weights + alike.weight
        strayed = np.zeros(self.v)
        each = zip(self.parts, start, self.split_by_part(strayed), self.split_by_part(mean[said.group]), strict=True)
        for part, known, away, usual in each:
            if known is not None:
                away[:] = part.scale * known.lookup(part.letters, part.starts) - usual
        small = optimizer.WeightProblem([groups], self.offset, self.y, self.document_weights, own, self.g)
        p = self._posterior(mean[said.group] + strayed, alike.bias)
        return mean, alike.bias, strayed, small.curvature(p)

    def solve(self, mean: Floats, bias: Floats, strayed: Floats, curvature: Floats) -> tuple[Floats, Floats, Floats]:
        p = self._posterior(mean[self.tokens.group] + strayed, bias)
        held = np.append(self.unit_weights**-2, np.full(len(bias), TOKEN_BIAS_STRENGTH))
        usual = np.append(self.unit_weights, np.zeros(len(bias)))
        root = np.linalg.cholesky(curvature + np.diag(held))
        unit = 1.0 / np.sqrt(self.tokens.score_variance(p, self.document_weights) + self.strength)

        def value(q: Floats) -> tuple[float, Floats]:
            few = np.linalg.solve(root.T, q[self.v :])
            away = q[: self.v] * unit
            loss, by_term, by_class = self._loss(few[: self.g][self.tokens.group] + away, few[self.g :])
            slope = np.concatenate([np.bincount(self.tokens.group, by_term, self.g), by_class]) + held * (few - usual)
            penalty = 0.5 * (self.strength * away) @ away + 0.5 * held @ (few - usual) ** 2
            slopes = [(by_term + self.strength * away) * unit, np.linalg.solve(root, slope)]
            return float(loss + penalty), np.concatenate(slopes)

        start = np.concatenate([strayed / unit, root.T @ np.concatenate([mean, bias])])
        with threads.one_blas_thread():
            found = minimize(value, start, max_steps=self.max_steps, tolerance=self.tolerance)
        few = np.linalg.solve(root.T, found[self.v :])
        return few[: self.g], few[self.g :], found[: self.v] * unit

    def _posterior(self, weight: Floats, bias: Floats) -> Floats:
        """(document, class) p(class)."""
        scores = self.tokens.scores(weight) + self.offset + bias
        return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))

    def _loss(self, weight: Floats, bias: Floats) -> tuple[float, Floats, Floats]:
        """The loss, and its slopes by term and by class."""
        from candide import kernels

        base = self.offset + bias

        def work(rows: slice) -> tuple[float, Floats, Floats]:
            loss, by_term, by_class = 0.0, np.zeros(self.v), np.zeros(base.shape[1])
            for some in self.tokens.cached_slices(rows):
                scores = base[some].copy()
                kernels.word_scores(*self.tokens.kernel_arrays(some), weight, scores)
                scores -= scores.max(axis=1, keepdims=True)
                at, mine = np.arange(len(scores)), self.y[some]
                own = scores[at, mine]
                np.exp(scores, out=scores)
                total = scores.sum(axis=1)
                loss += float(self.document_weights[some] @ (np.log(total) - own))
                scores *= (self.document_weights[some] / total)[:, None]
                scores[at, mine] -= self.document_weights[some]
                by_class += scores.sum(axis=0)
                kernels.word_slopes(*self.tokens.kernel_arrays(some), self.tokens.pad_classes(scores), by_term)
            return loss, by_term, by_class

        losses, by_term, by_class = zip(*threads.map_rows(work, len(self.tokens), cost=self.tokens.cost), strict=True)
        return sum(losses), np.sum(by_term, axis=0), np.sum(by_class, axis=0)
