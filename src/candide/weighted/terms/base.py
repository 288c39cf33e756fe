"""What every kind of joint term is, and the score test that decides whether a term is added to the model.

A kind is one class in this package and one line in ``TERMS``: an event model of several columns, which
also proposes parts for a sample.

The score test of a term f, on rows left out of its counts, given the model's probabilities p so far, is

    z = U / sqrt(I)        U = sum over rows of f(y) - sum_c p_c f(c)        I = sum over rows of Var_p f

z is normal only where f is known well. A term learned from noise follows that noise: with d degrees of freedom, U is
Q - d and I is Q for a chi-square Q, whose tail is much longer. That is the tail used here:

    P(z) = P(Q > q)        (q - d) / sqrt(q) = z        Q ~ chi-square with d degrees of freedom
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.encoding import Encoding
from candide.events.base import EventModel, Support
from candide.model.plan import PlanPart
from candide.registry import Registry

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.weighted.selection import TermSelector

SINGLE_TERM_ERROR_RATE = 0.01  # probability of adding a single term that contributes nothing
UNSEEN_ROWS_Z = 1.645  # of terms scored on rows that they have not seen: 1 in 20 by chance


class JointTerm(EventModel):
    """A kind of term. Its scores are not densities: samples and log p(x) come from the columns' own distributions."""

    has_density: ClassVar[bool] = False
    support: ClassVar[Support | None] = None

    @classmethod
    def distribution_class(cls) -> "type[Distribution]":
        """What it is estimated as; imported here, so that loading a model file does not need it."""
        raise NotImplementedError(f"kind of term {cls.__name__}: give distribution_class()")

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """The parts to add before the first weights are learned."""
        return ()

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        """Propose parts that improve on the terms so far; each is added, and weights are learned, before the next."""
        return ()

    def kept_terms(self, weight: Floats) -> Codes:
        """Which of its terms stay in the model with these weights; the model is learned again without the others."""
        return np.arange(len(weight))

    def n_candidates(self, columns: Sequence[Name], n_columns: int) -> int:
        """How many terms a part of ``columns`` was selected from, in a model of so many columns."""
        return len(self.term_names(columns))

    def select_terms(self, kept: Codes) -> Self:
        """The event model of some of its terms."""
        return self

    # Folds select terms of their own, which are counted together.

    def union_key(self, columns: tuple[Name, ...]) -> Any:
        """What distinguishes parts of this kind that cannot be counted as one part."""
        return self, columns

    @classmethod
    def unite_parts(cls, a: PlanPart, b: PlanPart) -> PlanPart:
        """The part that counts the terms of two parts with the same key."""
        return a.union(b)[0]

    @classmethod
    def select_part(cls, part: PlanPart, united: PlanPart, tally: Any) -> tuple[PlanPart, Any]:
        """The terms of one part, and their tally, of a part that counts those of several."""
        return united, tally

    def information(self, tally: Any) -> None:
        return None

    def association_test(self, tally: Any) -> None:
        return None


def make_part(event: EventModel, columns: Sequence[tuple[Name, Encoding]]) -> PlanPart:
    names, encodings = zip(*columns, strict=True)
    return PlanPart(event, names, encodings)


# The kinds by name, one line each; they are proposed in this order.
TERMS: Registry[JointTerm] = Registry(
    "candide.weighted.terms",
    {
        "discriminant": "Discriminant",
        "prototype": "discriminant.PrototypeTerm",
        "decision_tables": "DecisionTables",
        "interaction": "Interaction",
    },
)


def score_test(contributions: Floats, y: Codes, posterior: Floats, weight: Floats | None = None) -> Floats:
    """(term,) z of adding each term (row, class, term) to a model with this posterior."""
    gain, expected, _ = score_moments(contributions, y, posterior, weight)
    return gain / np.sqrt(np.maximum(expected, 1e-9))


def is_term_needed(
    contributions: Floats, degrees: float, y: Codes, posterior: Floats, weight: Floats | None = None
) -> bool:
    """Whether one term (row, class, 1) with so many degrees of freedom improves on a model with this posterior."""
    z = z_score(*score_moments(contributions, y, posterior, weight))
    return bool(score_test_p_value(z, np.array(degrees))[0] <= SINGLE_TERM_ERROR_RATE)


def score_test_p_value(z: Floats, degrees: Floats) -> Floats:
    """The probability of a score test of at least z for a term with so many degrees of freedom learned from noise."""
    from scipy.special import chdtrc  # the tail of chi-square

    return chdtrc(np.asarray(degrees, float), ((z + np.sqrt(z**2 + 4.0 * degrees)) / 2.0) ** 2)


def benjamini_hochberg(p_values: Floats, false_discovery_rate: float, n_tests: int) -> float:
    """The largest p-value that passes the rule of Benjamini and Hochberg among so many tests; -1: none does."""
    ascending = np.sort(p_values)
    passed = np.flatnonzero(ascending <= false_discovery_rate * np.arange(1, len(ascending) + 1) / n_tests)
    return float(ascending[passed[-1]]) if len(passed) else -1.0


def z_score(gain: Floats, expected: Floats, observed: Floats) -> Floats:
    """z by the observed or the expected variance, whichever is larger: a few rows of a rare class prove nothing."""
    return gain / np.sqrt(np.maximum(np.maximum(expected, observed), 1e-9))


def score_moments(
    contributions: Floats, y: Codes, posterior: Floats, weight: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """(term,) the slope of the likelihood where a term is added, and its expected and observed variance."""
    w = np.ones(len(y)) if weight is None else weight
    mean = np.einsum("nc,ncv->nv", posterior, contributions)
    square = np.einsum("nc,ncv->nv", posterior, contributions**2)
    gain = contributions[np.arange(len(y)), y] - mean
    return w @ gain, w @ (square - mean**2), w @ gain**2
