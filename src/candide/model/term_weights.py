"""The weights of a model's terms, as they are stored, merged and applied.

The score of a weighted model is a sum of terms, as in naive Bayes, but not a density: log p(x) and samples come from
the unweighted distributions of the columns. Weights are learned (:mod:`candide.weighted.learning`) from a sample of the
rows, against counts of all of them, and may be learned again without counting again.

Adding two models averages their weights by the rows that each was learned from. Removing rows from the counts does not
undo their effect on the weights; the summary notes this.

>>> north = TermWeights((np.array([1.0, 0.0]),), np.zeros(2), 300, strength=np.ones(1), n_counted_rows=300)
>>> south = TermWeights((np.array([0.0, 1.0]),), np.zeros(2), 100, strength=np.ones(1), n_counted_rows=5000)
>>> (north + south).weight[0].tolist(), (north + south).training_summary(5300)
([0.75, 0.25], 'weights learned on 400 of 5,300 rows')
>>> south.with_removed_rows(7).training_summary(4993), south.is_stale(9000), south.is_stale(10_000)
('weights learned on 100 rows, before 7 rows were forgotten; the counts now hold 4,993 rows', False, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from candide import formatting
from candide.data import value_matching
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.model.calibration import IsotonicCalibrator, LogisticCalibrator
from candide.model.counts import ModelCounts
from candide.model.model import Model
from candide.model.plan import Plan
from candide.tally import Tally

if TYPE_CHECKING:
    from candide.distributions.token_weights import TokenWeights


@dataclass(frozen=True, eq=False)
class TermWeights:
    """The weight of every term of every part of a plan, and the intercept of every class."""

    weight: tuple[Floats, ...]  # of each part, (term)
    bias: Floats  # (class) added to the log prior
    n_learned_rows: int  # that the weights were learned from
    strength: Floats  # (group) precision with which weights are held to the mean of their group
    n_counted_rows: int  # in the counts when the weights were learned
    n_removed_rows: int = 0  # removed from the counts since then
    n_uncounted_rows: int = 0  # that the weights were learned from and that were not counted
    calibrator: IsotonicCalibrator | None = None  # applied to the probabilities at last; a sum of models has none
    token_weights: "tuple[TokenWeights | None, ...]" = ()  # of each part; (): no part has token weights
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where rows repeat; None: 1

    def apply_to(self, model: Model) -> Model:
        """The model with weighted distributions, and the intercepts added to its class prior."""
        # A model of one text column predicts the class prior for a document without known tokens: its intercepts are
        # part of what tokens contribute.
        only_text = self.token_weights and len(self.token_weights) == 1 and self.weight[0][0] != 0
        unknown = -self.bias / self.weight[0][0] if only_text else None
        distributions = tuple(
            (part if tokens is None else part.with_token_weights(tokens, unknown)).with_feature_weights(w)
            for part, w, tokens in zip(model.distributions, self.weight, self.token_weights_by_part, strict=True)
        )
        log_prior = model.log_prior + self.bias
        log_prior = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=log_prior, distributions=distributions, calibrator=self.calibrator)

    @property
    def token_weights_by_part(self) -> "tuple[TokenWeights | None, ...]":
        """The token weights of each part; None where it has none."""
        return self.token_weights or (None,) * len(self.weight)

    def calibrate(self, calibrator: LogisticCalibrator | IsotonicCalibrator, log_prior: Floats) -> "TermWeights":
        """These weights with calibrated scores; ``log_prior`` is the class prior of the model."""
        if isinstance(calibrator, IsotonicCalibrator):
            return replace(self, calibrator=calibrator)
        bias = (calibrator.scale - 1.0) * log_prior + calibrator.scale * self.bias + calibrator.bias
        return replace(self, weight=tuple(calibrator.scale * w for w in self.weight), bias=bias)

    def with_labels(self, own_labels: Labels, labels: Labels) -> "TermWeights":
        """The same weights for other classes: a class that they were not learned with has an intercept of 0."""
        if own_labels == labels:
            return self
        at = [value_matching.find_code(label, own_labels) for label in labels.values]
        bias = np.array([0.0 if c is None else self.bias[c] for c in at])
        copies = None if self.copies is None else np.array([1.0 if c is None else self.copies[c] for c in at])
        return replace(self, bias=bias, copies=copies, calibrator=None)

    def effective_counts(self, counts: ModelCounts) -> ModelCounts:
        """Counts of independent draws: those of each class divided by how often its rows were copied."""
        return counts if self.copies is None else counts.scale(1.0 / self.copies)

    def first_parts(self, n: int) -> "TermWeights":
        """The weights of the first n parts; each of the others must be a text, and so a group of its own."""
        n_groups = len(self.strength) - len(self.weight[n:])
        kept = self.weight[:n], self.token_weights[:n], self.strength[:n_groups]
        return replace(self, weight=kept[0], token_weights=kept[1], strength=kept[2])

    @property
    def n_remaining_rows(self) -> int:
        """How many of the rows that they were learned from must still be counted."""
        return max(self.n_learned_rows - self.n_removed_rows, 0)

    def __add__(self, other: "TermWeights") -> "TermWeights":
        """The means of both, by the rows that each was learned from and that are still counted."""
        if not other.n_remaining_rows:
            return self
        if not self.n_remaining_rows:
            return other
        share = other.n_remaining_rows / (self.n_remaining_rows + other.n_remaining_rows)
        parts = zip(self.token_weights_by_part, other.token_weights_by_part, strict=True)
        tokens = tuple(a if b is None else b if a is None else a.average(b, share) for a, b in parts)
        has_copies = self.copies is not None or other.copies is not None
        return TermWeights(
            tuple((1 - share) * a + share * b for a, b in zip(self.weight, other.weight, strict=True)),
            (1 - share) * self.bias + share * other.bias,
            self.n_learned_rows + other.n_learned_rows,
            np.exp((1 - share) * np.log(self.strength) + share * np.log(other.strength)),
            max(self.n_counted_rows, other.n_counted_rows),
            self.n_removed_rows + other.n_removed_rows,
            self.n_uncounted_rows + other.n_uncounted_rows,
            token_weights=tokens,
            copies=(1 - share) * self._copies + share * other._copies if has_copies else None,
        )

    @property
    def _copies(self) -> Floats:
        return np.ones(len(self.bias)) if self.copies is None else self.copies

    def with_removed_rows(self, rows: int, remaining_tallies: Sequence[Tally] = ()) -> "TermWeights":
        """The same weights after rows were removed from the counts; tokens that no longer occur lose their weight."""
        tokens = self.token_weights
        if remaining_tallies:
            parts = zip(tokens, remaining_tallies, strict=True) if tokens else ()
            tokens = tuple(own and own.restrict(tally.letters, tally.starts) for own, tally in parts)  # type: ignore[attr-defined]
        return replace(self, n_removed_rows=self.n_removed_rows + rows, token_weights=tokens)

    def is_stale(self, n_counted: int) -> bool:
        """Whether rows were removed since the weights were learned, or have doubled."""
        return self.n_removed_rows > 0 or n_counted >= 2 * self.n_counted_rows

    def is_relearning_due(self, n_counted: int, n_available: int) -> bool:
        """Whether stale weights should be learned again from so many rows.

        Not from fewer rows than they were learned from, nor from fewer than there are weights.
        """
        n_weights = len(self.bias) + sum(map(len, self.weight))
        return self.is_stale(n_counted) and n_available >= max(self.n_learned_rows, n_weights)

    def training_summary(self, n_counted: int) -> str:
        """A phrase that says which rows the weights were learned on.

        >>> weights = TermWeights((np.ones(2),), np.zeros(2), 300, strength=np.ones(1), n_counted_rows=900)
        >>> weights.training_summary(900), replace(weights, n_uncounted_rows=300).training_summary(900)
        ('weights learned on 300 of 900 rows', 'weights learned on 300 rows that were not counted')
        """
        n_own, plural = self.n_learned_rows - self.n_uncounted_rows, formatting.format_count
        is_part = not self.n_removed_rows and n_own <= n_counted  # weights may have been learned on removed rows
        learned = []
        if n_own or not self.n_uncounted_rows:
            learned.append(f"{n_own:,} of {plural(n_counted)}" if is_part else plural(n_own))
        if self.n_uncounted_rows:
            learned.append(f"{plural(self.n_uncounted_rows)} that were not counted")
        text = f"weights learned on {' and '.join(learned)}"
        if self.n_removed_rows:
            verb = "was" if self.n_removed_rows == 1 else "were"
            text += f", before {plural(self.n_removed_rows)} {verb} forgotten"
        return text if is_part else f"{text}; the counts now hold {plural(n_counted)}"


def term_groups(plan: Plan) -> list[int]:
    """The group of each term, whose weights have a common prior: 0 for all columns.

    Every other part is a group; where the event model is of joint columns, each of its terms is.
    """
    groups, last = [], 0
    for part in plan.parts:
        n = len(part.event.term_names(part.columns))
        if part.event.has_density and part.block_kind != "documents":
            groups += [0] * n
        elif part.event.is_joint:
            groups += range(last + 1, last + 1 + n)
            last += n
        else:
            groups += [last + 1] * n
            last += 1
    return groups
