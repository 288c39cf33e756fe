"""Shrinkage: draw the score of a weighted model towards the class prior where its gain may be due to chance.

Of many columns of noise the best looks good by chance, and so does the best of many pairs: its weight would be nearly
that of a real one. All weights and biases are therefore multiplied by one factor,

    g^2 / (g^2 + c^2)        c = 2 log(m)

g is the gain in leave-one-out log-likelihood over the class prior, m the number of terms to choose from. Twice the gain
of a known term of noise is chi-square with one degree of freedom, and the largest of m of them is about 2 log(m). The
slope of a term that is learned from the same rows has twice the variance (see :mod:`candide.model.optimizer`), so the
best of m terms of noise gains about 2 log(m). There the factor is 1/2. Beyond, it approaches 1 with the square of the
ratio, so that scores with a clear gain hardly change.

>>> [round(shrinkage_factor(gain, 20), 2) for gain in (0.0, 6.0, 12.0, 60.0)]
[0.0, 0.5, 0.8, 0.99]
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.model.counts import ModelCounts
from candide.model.model import class_log_prior
from candide.model.plan import Plan
from candide.model.term_weights import TermWeights, weighted_posterior

_OVERDISPERSION = 2.0  # the variance of the slope of a term learned from noise, over its curvature


def shrink_to_prior(
    census: ModelCounts, y: Codes, weight: Floats | None, terms: Sequence[NDArray], learned: TermWeights
) -> TermWeights:
    """Multiply weights and biases by the factor that their gain over the class prior supports.

    ``terms`` are the leave-one-out terms from which the weights were learned. Word weights have a prior of their own:
    they stay, and the gain of the other terms is over the class prior and the words.
    """
    words = learned.token_weights or (None,) * len(terms)
    if all(part is not None for part in words):
        return learned
    base = class_log_prior(census, "jeffreys", "mean") + sum(
        part[:, :, 0] for part, own in zip(terms, words, strict=True) if own is not None
    )
    before, rows = np.broadcast_to(base, (len(y), len(census.labels))), np.arange(len(y))
    before = before[rows, y] - np.logaddexp.reduce(before, axis=1)
    after = np.log(np.maximum(weighted_posterior(census, learned, terms)[rows, y], 1e-300))
    gain = float(np.sum((after - before) * (1.0 if weight is None else weight)))
    factor = shrinkage_factor(gain, count_candidates(census.plan))
    shrunk = tuple(factor * w if own is None else w for w, own in zip(learned.weight, words, strict=True))
    return replace(learned, weight=shrunk, bias=factor * learned.bias)


def shrinkage_factor(gain: float, n_candidates: int) -> float:
    """Return the factor, from 0 to 1, for a score with this gain that was chosen from so many terms.

    >>> shrinkage_factor(0.1, 1)  # nothing was chosen
    1.0
    """
    chance = _OVERDISPERSION * log(max(1, n_candidates))
    return 1.0 / (1.0 + (chance / gain) ** 2) if gain > 0 else float(chance == 0)


def count_candidates(plan: Plan) -> int:
    """Count the terms that a plan was chosen from: columns, joint terms, and every set of an order that it has.

    Columns with one level are not counted: they cannot contribute.
    """
    columns, joint, orders = 0, 0, set()
    for part in plan.parts:
        if part.spec.sets:
            orders |= {len(columns_of_set) for columns_of_set in part.spec.sets}
        elif part.event.has_density:
            columns += sum(encoding.n_levels is None or encoding.n_levels > 1 for encoding in part.encodings)
        else:
            joint += len(part.event.term_names(part.columns))
    return columns + joint + sum(comb(columns, order) for order in orders)
