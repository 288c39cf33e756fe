"""Voices: the features of a model's laws, each with a weight that was learned.

A weighted score is a sum, as that of naive Bayes is, and no density: log p(x) and samples are those of the columns' own
laws, unweighted. Weights are learned from some of the rows, against counts of all of them; they come after the
counting, as a prior does, and may be learned again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from candide.model import weights
from candide.model.census import Census
from candide.model.model import Model, class_log_prior, prior_for
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.labels import Labels

_FEW = 5


@dataclass(frozen=True, eq=False)
class Voices:
    """The weight of every feature of every part of a plan, and the bias of every class."""

    weight: tuple[Floats, ...]  # of each part, (feature)
    bias: Floats  # (class)
    rows: int  # from which they were learned
    strength: Floats  # (group) with which weights are held to their common mean

    def weigh(self, model: Model) -> Model:
        """A model whose laws count as these weights say, and whose class prior has the biases in it."""
        laws = tuple(law.weighted(w) for law, w in zip(model.distributions, self.weight, strict=True))
        log_prior = model.log_prior + self.bias
        shares = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=shares, distributions=laws)

    def among(self, mine: Labels, labels: Labels) -> "Voices":
        """The same voices where there are other classes: a class that they have not met has no bias."""
        if mine == labels:
            return self
        known = dict(zip(mine.values, self.bias.tolist(), strict=True))
        return replace(self, bias=np.array([known.get(label, 0.0) for label in labels.values]))


def groups_of(plan: Plan) -> list[int]:
    """The group of each feature: that of all columns, then one for each other part, or each of its features alone."""
    groups, last = [], 0
    for part in plan.parts:
        n = len(part.event.voices(part.columns))
        if part.event.has_density:
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
    """(row, class, voice) of each part what it says of rows that were counted, each without itself."""
    parts = zip(census.plan.parts, census.tallies, blocks, strict=True)
    return [
        weights.kept(part.event.held_out(tally, prior_for(part.event, settings.priors), "predictive", block, y, weight))
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
) -> Voices:
    """Weights for the voices of a census, from ``blocks`` of some of its rows; sooner from ``start``."""
    terms = terms_of(census, settings, blocks, y, weight) if terms is None else terms
    prior = class_log_prior(census, settings.class_prior, "mean")
    known = None if start is None else weights.Learned(np.concatenate(start.weight), start.bias, start.strength)
    learned = weights.learn(
        terms, prior, y, teaching(y, weight, len(prior)), groups=groups_of(census.plan), start=known
    )
    ends = np.cumsum([len(part.event.voices(part.columns)) for part in census.plan.parts])
    return Voices(tuple(np.split(learned.weight, ends[:-1])), learned.bias, len(y), learned.strength)


def teaching(y: Codes, weight: Floats | None, n_classes: int) -> Floats | None:
    """How much each row teaches of the weights: its own weight, but nothing where its class has very few rows.

    Without the row its class would have the laws of the prior, and so would seem to be told wrongly by what is right.
    """
    few = np.bincount(y, minlength=n_classes) <= _FEW
    if few.all() or not few.any():
        return weight
    return np.where(few[y], 0.0, 1.0 if weight is None else weight)


def posterior(census: Census, settings: Settings, voices: Voices, terms: Sequence[NDArray]) -> Floats:
    """(row, class) what weighted voices come to."""
    joint = sum((part @ w for part, w in zip(terms, voices.weight, strict=True)), np.zeros(()))
    joint = joint + class_log_prior(census, settings.class_prior, "mean") + voices.bias
    joint -= joint.max(axis=1, keepdims=True)
    p = np.exp(joint)
    return p / p.sum(axis=1, keepdims=True)
