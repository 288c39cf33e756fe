"""Words: how much each term of a text counts, learned from what the terms say of documents that they have not counted.

    score(c | document) = offset(c) + b_c + sum_v w_v t_v(document, c)        w_v ~ Normal(mean_g, 1 / strength)
                                                                           mean_g ~ Normal(1, 1)

Terms of as many words that are about as rare are a group with a mean of its own: so rare terms, pairs of words and very
common words are heard as much as their kind deserves, and single terms more or less where the documents say so. The
means are found first, by Newton's method; then all weights together, by L-BFGS, in units in which every weight is
about as well determined as the others. Where no document teaches, every word counts once: naive Bayes, but for the
length of documents.

>>> from candide.conjugate import terms
>>> from candide.conjugate.words import Documents, Terms, words_of
>>> from candide.encode.tokens import Tokens
>>> from candide.tally.base import Spec
>>> texts, y = ["free prize now", "see you now", "free call now", "call you now"] * 5, np.array([0, 1, 0, 1] * 5)
>>> tally = Terms.of(Documents.of(texts), y, n_classes=2, spec=Spec("terms", (Tokens(),)))
>>> said = words_of(terms.Weighed(tally, Tokens()), 0.5, Documents.of(texts), y, power=0.5)
>>> learned = learn(said, np.log([0.5, 0.5]))
>>> dict(zip(learned.words.keys(), (learned.words.weight > 0.3).tolist(), strict=True))[b"free"]
True
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from candide.conjugate.words import Words, beside
from candide.distributions.word_weights import WordWeights
from candide.kernels import threads
from candide.kernels.text_twin import joined
from candide.model import weights
from candide.model.descent import least
from candide.rows.blocks import Floats

# The bias of a class is held at 0 as the means are: that of a class of one document, of which all others speak ill,
# would run away, and take every document of which little is known.
BIAS = 1.0
_RIGID = 1e9  # a strength with which weights do not stray
_STEPS = 200  # of L-BFGS, at most
_CLOSE = 1e-6  # a step that gains less than this share is the last


@dataclass(frozen=True, eq=False)
class Learned:
    """The weights of the terms, the biases of the classes, and (document, class) what the terms come to."""

    words: WordWeights
    bias: Floats
    said: Floats


def learn(
    said: Words,
    offset: Floats,
    weight: Floats | None = None,
    start: WordWeights | None = None,
    *,
    steps: int = _STEPS,
    close: float = _CLOSE,
) -> Learned:
    """The weights of the terms of documents; ``offset`` (class) or (document, class) is what is known beside them.

    ``weight`` says how often each document counts; ``start`` is where to begin.
    """
    return together([said], offset, weight, [start], steps=steps, close=close)[0]


def together(
    parts: Sequence[Words],
    offset: Floats,
    weight: Floats | None = None,
    start: Sequence[WordWeights | None] = (),
    *,
    steps: int = _STEPS,
    close: float = _CLOSE,
) -> list[Learned]:
    """The weights of the terms of several parts of the same documents, which are learned as one."""
    each = [np.full(len(one.group), one.scale) for one in parts]
    nothing = np.zeros((len(parts[0]), parts[0].n_classes))
    said = [nothing if one.how.weighs else one.scores(w) for one, w in zip(parts, each, strict=True)]
    bias, rest = np.zeros(parts[0].n_classes), {}
    at = [i for i, one in enumerate(parts) if one.how.weighs]
    if at:
        heard, known = [parts[i] for i in at], [start[i] if start else None for i in at]
        problem = _Problem(heard, offset + sum(said), weight, steps, close)
        mean, bias, strayed, curvature = problem.begin(known)
        if problem.v and (problem.strength < _RIGID).any():
            mean, bias, strayed = problem.solve(mean, bias, strayed, curvature)
        for i, some, first in zip(at, problem.split(mean[problem.said.group] + strayed), problem.firsts, strict=True):
            each[i], said[i] = some, parts[i].scores(some)
            if parts[i].n_groups:
                rest[i] = float(mean[first])  # as rare words, the first group; where none is, naively
    found = []
    for i, one in enumerate(parts):
        keys = (one.letters, one.starts) if one.how.weighs else joined([])
        own = each[i] / one.scale if one.how.weighs else np.empty(0)
        words = WordWeights.sorted(*keys, own, rest.get(i, one.scale) / one.scale, one.how)
        found.append(Learned(words, bias, said[i]))
    return found


class _Problem:
    """The penalised likelihood of means, biases and how far each term strays from its mean."""

    def __init__(self, parts: Sequence[Words], offset: Floats, weight: Floats | None, steps: int, close: float):
        self.parts, self.steps, self.close = parts, steps, close
        said, sizes = beside(parts), [len(one.group) for one in parts]
        self.strength = np.repeat([min(one.how.strength, _RIGID) for one in parts], sizes)
        self.ends = np.cumsum(sizes)[:-1]
        self.firsts = np.cumsum([0, *(one.n_groups for one in parts)])[:-1]  # group of each part
        self.said, self.y = said, said.y
        teaches = said.teaches & (np.diff(said.ends) > 0)
        self.often = np.where(teaches, 1.0 if weight is None else weight, 0.0)
        self.offset = np.broadcast_to(offset, (len(said), said.n_classes))
        self.v, self.g = len(said.group), said.n_groups
        self.usual = np.repeat([one.scale for one in parts], [one.n_groups for one in parts])  # a weight of one

    def split(self, by_term: Floats) -> list[Floats]:
        """What there is of each term, by part."""
        return np.split(by_term, self.ends)

    def begin(self, start: Sequence[WordWeights | None]) -> tuple[Floats, Floats, Floats, Floats]:
        """The means of the groups and the biases, how far terms stray by weights that are known, and the curvature.

        What the groups say takes much room: it is gone when all weights are learned.
        """
        said = self.said
        groups = said.by_group(weights.room(len(said), said.n_classes, self.g))
        own = np.arange(self.g)
        base = self.offset + groups @ self.usual
        alike = weights.learn([groups], base, self.y, self.often, groups=own, hold=BIAS)  # how far means are from one
        mean = self.usual + alike.weight
        strayed = np.zeros(self.v)
        each = zip(self.parts, start, self.split(strayed), self.split(mean[said.group]), strict=True)
        for part, known, away, usual in each:
            if known is not None:
                away[:] = part.scale * known.among(part.letters, part.starts) - usual
        small = weights.Problem([groups], self.offset, self.y, self.often, own, self.g)
        p = self._shares(mean[said.group] + strayed, alike.bias)
        return mean, alike.bias, strayed, small.curvature(p)

    def solve(self, mean: Floats, bias: Floats, strayed: Floats, curvature: Floats) -> tuple[Floats, Floats, Floats]:
        p = self._shares(mean[self.said.group] + strayed, bias)
        held = np.append(self.usual**-2, np.full(len(bias), BIAS))
        usual = np.append(self.usual, np.zeros(len(bias)))
        root = np.linalg.cholesky(curvature + np.diag(held))
        unit = 1.0 / np.sqrt(self.said.spread(p, self.often) + self.strength)

        def value(q: Floats) -> tuple[float, Floats]:
            few = np.linalg.solve(root.T, q[self.v :])
            away = q[: self.v] * unit
            loss, by_term, by_class = self._loss(few[: self.g][self.said.group] + away, few[self.g :])
            slope = np.concatenate([np.bincount(self.said.group, by_term, self.g), by_class]) + held * (few - usual)
            penalty = 0.5 * (self.strength * away) @ away + 0.5 * held @ (few - usual) ** 2
            slopes = [(by_term + self.strength * away) * unit, np.linalg.solve(root, slope)]
            return float(loss + penalty), np.concatenate(slopes)

        start = np.concatenate([strayed / unit, root.T @ np.concatenate([mean, bias])])
        with threads.one_blas_thread():
            found = least(value, start, steps=self.steps, close=self.close)
        few = np.linalg.solve(root.T, found[self.v :])
        return few[: self.g], few[self.g :], found[: self.v] * unit

    def _shares(self, weight: Floats, bias: Floats) -> Floats:
        """(document, class) p(class)."""
        scores = self.said.scores(weight) + self.offset + bias
        return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))

    def _loss(self, weight: Floats, bias: Floats) -> tuple[float, Floats, Floats]:
        """The loss, and its slopes by term and by class."""
        from candide import kernels

        base = self.offset + bias

        def work(rows: slice) -> tuple[float, Floats, Floats]:
            loss, by_term, by_class = 0.0, np.zeros(self.v), np.zeros(base.shape[1])
            for some in self.said.pieces(rows):
                scores = base[some].copy()
                kernels.word_scores(*self.said.of(some), weight, scores)
                scores -= scores.max(axis=1, keepdims=True)
                at, mine = np.arange(len(scores)), self.y[some]
                own = scores[at, mine]
                np.exp(scores, out=scores)
                total = scores.sum(axis=1)
                loss += float(self.often[some] @ (np.log(total) - own))
                scores *= (self.often[some] / total)[:, None]
                scores[at, mine] -= self.often[some]
                by_class += scores.sum(axis=0)
                kernels.word_slopes(*self.said.of(some), self.said.padded(scores), by_term)
            return loss, by_term, by_class

        losses, by_term, by_class = zip(*threads.over_rows(work, len(self.said), cost=self.said.cost), strict=True)
        return sum(losses), np.sum(by_term, axis=0), np.sum(by_class, axis=0)
