"""Voices: the features of a model's laws, each with a weight that was learned.

A weighted score is a sum, as that of naive Bayes is, and no density: log p(x) and samples are those of the columns' own
laws, unweighted. Weights are learned from some of the rows, against counts of all of them; they come after the
counting, as a prior does, and may be learned again.

Those of two models with the same voices add up to their means, each by the rows that it was learned from. Nothing is
taken away again with rows that are: what was learned with them stays learned, and is told.

>>> north = Voices((np.array([1.0, 0.0]),), np.zeros(2), rows=300, strength=np.ones(1), counted=300)
>>> south = Voices((np.array([0.0, 1.0]),), np.zeros(2), rows=100, strength=np.ones(1), counted=5000)
>>> (north + south).weight[0].tolist(), (north + south).said(5300)
([0.75, 0.25], 'weights learned on 400 of 5,300 rows')
>>> south.without(7).said(4993), south.stale(9000), south.stale(10_000)
('weights learned on 100 of 4,993 rows, before 7 rows were taken out', False, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.model import weights
from candide.model.admission import score_test
from candide.model.calibration import Isotonic, Logistic
from candide.model.census import Census
from candide.model.model import Model, class_log_prior, prior_for
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.rows import matching
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.labels import Labels

_WORSE = -2.33  # z by which a column tells worse than the class shares, and is silent: by chance one in a hundred


@dataclass(frozen=True, eq=False)
class Voices:
    """The weight of every feature of every part of a plan, and the bias of every class."""

    weight: tuple[Floats, ...]  # of each part, (feature)
    bias: Floats  # (class)
    rows: int  # from which they were learned
    strength: Floats  # (group) with which weights are held to their common mean
    counted: int  # rows that had been counted when they were learned
    gone: int = 0  # rows that were taken out since
    fresh: int = 0  # rows from which they were learned, and that were not counted then
    curve: Isotonic | None = None  # what bends the probabilities at last; a sum of models has none

    def weigh(self, model: Model) -> Model:
        """A model whose laws count as these weights say, and whose class prior has the biases in it."""
        laws = tuple(law.weighted(w) for law, w in zip(model.distributions, self.weight, strict=True))
        log_prior = model.log_prior + self.bias
        shares = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=shares, distributions=laws, curve=self.curve)

    def calibrated(self, bent: Logistic | Isotonic, log_prior: Floats) -> "Voices":
        """The voices of scores that are multiplied and moved, or bent: ``log_prior`` is what the scores begin with."""
        if isinstance(bent, Isotonic):
            return replace(self, curve=bent)
        weight = tuple(bent.scale * w for w in self.weight)
        return replace(self, weight=weight, bias=(bent.scale - 1.0) * log_prior + bent.scale * self.bias + bent.bias)

    def among(self, mine: Labels, labels: Labels) -> "Voices":
        """The same voices where there are other classes: a class that they have not met has no bias."""
        if mine == labels:
            return self
        at = [matching.place(label, mine) for label in labels.values]
        return replace(self, bias=np.array([0.0 if c is None else self.bias[c] for c in at]), curve=None)

    @property
    def left(self) -> int:
        """How many of the rows that they were learned from must still be counted."""
        return max(self.rows - self.gone, 0)

    def __add__(self, other: "Voices") -> "Voices":
        """The voices of both: means, by the rows that each was learned from and that are still counted."""
        if not other.left:
            return self
        if not self.left:
            return other
        part = other.left / (self.left + other.left)
        return Voices(
            tuple((1 - part) * a + part * b for a, b in zip(self.weight, other.weight, strict=True)),
            (1 - part) * self.bias + part * other.bias,
            self.rows + other.rows,
            np.exp((1 - part) * np.log(self.strength) + part * np.log(other.strength)),
            max(self.counted, other.counted),
            self.gone + other.gone,
            self.fresh + other.fresh,
        )

    def without(self, rows: int) -> "Voices":
        """The same voices, and word of rows that were taken out of the counts: they may have been learned from."""
        return replace(self, gone=self.gone + rows)

    def stale(self, counted: int) -> bool:
        """Whether rows were taken out since they were learned, or have doubled."""
        return self.gone > 0 or counted >= 2 * self.counted

    def due(self, counted: int, at_hand: int) -> bool:
        """Whether to learn again, from so many rows at hand: where they are stale.

        Not from fewer rows than they were learned from, nor from fewer than there are weights.

        >>> voices = Voices((np.ones(2),), np.zeros(2), rows=300, strength=np.ones(1), counted=300)
        >>> voices.due(600, 300), voices.due(600, 50), voices.due(500, 300)
        (True, False, False)
        """
        return self.stale(counted) and at_hand >= max(self.rows, len(self.bias) + sum(map(len, self.weight)))

    def said(self, counted: int) -> str:
        """On which rows they were learned, in words.

        >>> voices = Voices((np.ones(2),), np.zeros(2), rows=300, strength=np.ones(1), counted=900)
        >>> voices.said(900), replace(voices, fresh=300).said(900)
        ('weights learned on 300 of 900 rows', 'weights learned on 300 rows that were not counted')
        """
        own, of = self.rows - self.fresh, wording.plural(counted)
        learned = [f"{own:,} of {of}"] if own or not self.fresh else []
        learned += [f"{wording.plural(self.fresh)} that were not counted"] if self.fresh else []
        gone = f", before {wording.plural(self.gone)} {'was' if self.gone == 1 else 'were'} taken out"
        return f"weights learned on {' and '.join(learned)}{gone if self.gone else ''}"


def groups_of(plan: Plan) -> list[int]:
    """The group of each feature: that of all columns, then one for each other part, or each of its features alone."""
    groups, last = [], 0
    for part in plan.parts:
        n = len(part.event.voices(part.columns))
        if part.event.has_density and part.holds != "documents":
            groups += [0] * n
        elif part.event.joint:
            groups += range(last + 1, last + 1 + n)
            last += n
        else:
            groups += [last + 1] * n
            last += 1
    return groups


def terms_of(
    census: Census, settings: Settings, blocks: Sequence[Block], y: Codes, weight: Floats | None = None
) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were counted, each without itself.

    A column that tells them worse than the class shares do is silent, as one of one bin is. What it says of a row is
    then little more than that the row was taken from its class, which a weight below 0 would turn into knowledge.
    """
    out = []
    shares = np.broadcast_to(np.exp(_shares(census)), (len(y), len(census.labels)))
    for part, tally, block in zip(census.plan.parts, census.tallies, blocks, strict=True):
        terms = weights.room(len(y), len(census.labels), len(part.event.voices(part.columns)))
        prior = prior_for(part.event, settings.priors)
        terms = weights.kept(part.event.held_out(tally, prior, "predictive", block, y, weight, terms))
        if part.event.has_density or part.event.joint:
            terms[:, :, score_test(terms, y, shares, weight) < _WORSE] = 0.0
        out.append(terms)
    return out


def fresh_terms(census: Census, settings: Settings, blocks: Sequence[Block]) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were never counted: nothing is left out."""
    parts = zip(census.plan.parts, census.tallies, blocks, strict=True)
    return [
        weights.kept(part.event.estimate(tally, prior_for(part.event, settings.priors)).terms(block))
        for part, tally, block in parts
    ]


def learn(
    census: Census,
    settings: Settings,
    blocks: Sequence[Block],
    y: Codes,
    weight: Floats | None = None,
    terms: Sequence[NDArray] | None = None,
    start: Voices | None = None,
    *,
    patient: bool = False,
) -> Voices:
    """Weights for the voices of a census, from ``blocks`` of some of its rows; sooner from ``start``.

    Rows of one class tell nothing: then each column counts once, as in naive Bayes, and was learned from no row.
    """
    groups = np.array(groups_of(census.plan), np.intp)
    ends = np.cumsum([len(part.event.voices(part.columns)) for part in census.plan.parts])
    if (y == y[:1]).all():
        once = tuple(np.split((groups == 0).astype(np.float64), ends[:-1]))
        return Voices(once, np.zeros(len(census.labels)), 0, np.ones(1 + max(groups, default=-1)), 0)
    terms = terms_of(census, settings, blocks, y, weight) if terms is None else terms
    prior, taught = _shares(census), None if weight is None else weights.relative(weight)
    known = None if start is None else weights.Learned(np.concatenate(start.weight), start.bias, start.strength)
    learned = weights.learn(terms, prior, y, taught, groups=groups, start=known, patient=patient)
    each = zip(terms, np.split(learned.weight, ends[:-1]), strict=True)
    heard = tuple(np.where(part.any(axis=(0, 1)), w, 0.0) for part, w in each)
    return Voices(heard, learned.bias, len(y), learned.strength, census.n_rows)


def _shares(census: Census) -> Floats:
    """log p(class) of the rows themselves: under another class prior the biases would only take it away again."""
    return class_log_prior(census, "jeffreys", "mean")


def posterior(census: Census, voices: Voices, terms: Sequence[NDArray]) -> Floats:
    """(row, class) what weighted voices come to."""
    return weights.posterior(terms, _shares(census) + voices.bias, np.concatenate(voices.weight))
