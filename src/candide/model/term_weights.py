"""Voices: the features of a model's laws, each with a weight that was learned.

A weighted score is a sum, as that of naive Bayes is, and no density: log p(x) and samples are those of the columns' own
laws, unweighted. Weights are learned from some of the rows, against counts of all of them; they come after the
counting, as a prior does, and may be learned again.

Those of two models with the same voices add up to their means, each by the rows that it was learned from. Nothing is
taken away again with rows that are: what was learned with them stays learned, and is told.

>>> north = TermWeights(
...     (np.array([1.0, 0.0]),), np.zeros(2), n_learned_rows=300, strength=np.ones(1), n_counted_rows=300
... )
>>> south = TermWeights(
...     (np.array([0.0, 1.0]),), np.zeros(2), n_learned_rows=100, strength=np.ones(1), n_counted_rows=5000
... )
>>> (north + south).weight[0].tolist(), (north + south).training_summary(5300)
([0.75, 0.25], 'weights learned on 400 of 5,300 rows')
>>> south.with_removed_rows(7).training_summary(4993), south.is_stale(9000), south.is_stale(10_000)
('weights learned on 100 rows, before 7 rows were forgotten; the counts now hold 4,993 rows', False, True)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data import value_matching
from candide.data.blocks import Block, Codes, Floats
from candide.data.labels import Labels
from candide.model import optimizer
from candide.model.admission import score_test
from candide.model.calibration import IsotonicCalibrator, LogisticCalibrator
from candide.model.counts import ModelCounts
from candide.model.model import Model, class_log_prior, prior_for
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.model.training_rows import FurtherRows, TrainingRows
from candide.tally import Tally

if TYPE_CHECKING:
    from candide.conjugate.held_out_tokens import HeldOutTokens
    from candide.distributions.token_weights import TokenWeights

_MIN_JOINT_Z = (
    -2.33
)  # z by which a joint term predicts worse than the class shares, and has weight 0: by chance 1 in 100
_MIN_COLUMN_Z = -5.0  # the same of a column: its classes are more alike than chance makes them, as in a full design


@dataclass(frozen=True, eq=False)
class TermWeights:
    """The weight of every feature of every part of a plan, and the bias of every class."""

    weight: tuple[Floats, ...]  # of each part, (feature)
    bias: Floats  # (class)
    n_learned_rows: int  # from which they were learned
    strength: Floats  # (group) with which weights are held to their common mean
    n_counted_rows: int  # rows that had been counted when they were learned
    n_removed_rows: int = 0  # rows that were taken out since
    n_uncounted_rows: int = 0  # rows from which they were learned, and that were not counted then
    calibrator: IsotonicCalibrator | None = None  # what bends the probabilities at last; a sum of models has none
    token_weights: "tuple[TokenWeights | None, ...]" = ()  # of each part, where every word has a weight of its own
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where rows repeat; None: 1

    def apply_to(self, model: Model) -> Model:
        """A model whose laws count as these weights say, and whose class prior has the biases in it."""
        each = zip(model.distributions, self.weight, self._token_weights, strict=True)
        # Words that are all there is leave the class shares where none is known: the biases go with what they say.
        alone = self.token_weights and len(self.token_weights) == 1 and self.weight[0][0] != 0
        silent = -self.bias / self.weight[0][0] if alone else None
        laws = tuple(
            (law if words is None else law.with_token_weights(words, silent)).with_feature_weights(w)
            for law, w, words in each
        )
        log_prior = model.log_prior + self.bias
        shares = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=shares, distributions=laws, calibrator=self.calibrator)

    @property
    def _token_weights(self) -> "tuple[TokenWeights | None, ...]":
        return self.token_weights or (None,) * len(self.weight)

    def calibrate(self, calibrator: LogisticCalibrator | IsotonicCalibrator, log_prior: Floats) -> "TermWeights":
        """The voices of scores that are multiplied and moved, or bent: ``log_prior`` is what the scores begin with."""
        if isinstance(calibrator, IsotonicCalibrator):
            return replace(self, calibrator=calibrator)
        weight = tuple(calibrator.scale * w for w in self.weight)
        return replace(
            self,
            weight=weight,
            bias=(calibrator.scale - 1.0) * log_prior + calibrator.scale * self.bias + calibrator.bias,
        )

    def with_labels(self, own_labels: Labels, labels: Labels) -> "TermWeights":
        """The same voices where there are other classes: a class that they have not met has no bias."""
        if own_labels == labels:
            return self
        at = [value_matching.find_code(label, own_labels) for label in labels.values]
        copies = None if self.copies is None else np.array([1.0 if c is None else self.copies[c] for c in at])
        return replace(
            self, bias=np.array([0.0 if c is None else self.bias[c] for c in at]), copies=copies, calibrator=None
        )

    def effective_counts(self, counts: ModelCounts) -> ModelCounts:
        """Counts of independent draws: those of each class divided by how often its rows were copied."""
        return counts if self.copies is None else counts.scale(1.0 / self.copies)

    def first_parts(self, n: int) -> "TermWeights":
        """The voices of the first parts of the plan; each of the others is a text, and a group of its own."""
        groups = len(self.strength) - len(self.weight[n:])
        return replace(
            self, weight=self.weight[:n], token_weights=self.token_weights[:n], strength=self.strength[:groups]
        )

    @property
    def n_remaining_rows(self) -> int:
        """How many of the rows that they were learned from must still be counted."""
        return max(self.n_learned_rows - self.n_removed_rows, 0)

    def __add__(self, other: "TermWeights") -> "TermWeights":
        """The voices of both: means, by the rows that each was learned from and that are still counted."""
        if not other.n_remaining_rows:
            return self
        if not self.n_remaining_rows:
            return other
        part = other.n_remaining_rows / (self.n_remaining_rows + other.n_remaining_rows)
        return TermWeights(
            tuple((1 - part) * a + part * b for a, b in zip(self.weight, other.weight, strict=True)),
            (1 - part) * self.bias + part * other.bias,
            self.n_learned_rows + other.n_learned_rows,
            np.exp((1 - part) * np.log(self.strength) + part * np.log(other.strength)),
            max(self.n_counted_rows, other.n_counted_rows),
            self.n_removed_rows + other.n_removed_rows,
            self.n_uncounted_rows + other.n_uncounted_rows,
            token_weights=tuple(
                a if b is None else b if a is None else a.average(b, part)
                for a, b in zip(self._token_weights, other._token_weights, strict=True)
            ),
            copies=None
            if self.copies is None and other.copies is None
            else (1 - part) * self._copies + part * other._copies,
        )

    @property
    def _copies(self) -> Floats:
        return np.ones(len(self.bias)) if self.copies is None else self.copies

    def with_removed_rows(self, rows: int, remaining_tallies: Sequence[Tally] = ()) -> "TermWeights":
        """The same voices, and word of rows that were taken out of the counts: they may have been learned from.

        ``left`` are the counts without them: terms of which nothing is left have no weight any more.
        """
        words = self.token_weights
        if remaining_tallies:
            each = zip(words, remaining_tallies, strict=True) if words else ()
            words = tuple(one and one.restrict(tally.letters, tally.starts) for one, tally in each)  # type: ignore[attr-defined]
        return replace(self, n_removed_rows=self.n_removed_rows + rows, token_weights=words)

    def is_stale(self, n_counted: int) -> bool:
        """Whether rows were taken out since they were learned, or have doubled."""
        return self.n_removed_rows > 0 or n_counted >= 2 * self.n_counted_rows

    def is_relearning_due(self, n_counted: int, n_available: int) -> bool:
        """Whether to learn again, from so many rows at hand: where they are stale.

        Not from fewer rows than they were learned from, nor from fewer than there are weights.

        >>> voices = TermWeights(
        ...     (np.ones(2),), np.zeros(2), n_learned_rows=300, strength=np.ones(1), n_counted_rows=300
        ... )
        >>> voices.is_relearning_due(600, 300), voices.is_relearning_due(600, 50), voices.is_relearning_due(500, 300)
        (True, False, False)
        """
        return self.is_stale(n_counted) and n_available >= max(
            self.n_learned_rows, len(self.bias) + sum(map(len, self.weight))
        )

    def training_summary(self, n_counted: int) -> str:
        """On which rows they were learned, in words.

        >>> voices = TermWeights(
        ...     (np.ones(2),), np.zeros(2), n_learned_rows=300, strength=np.ones(1), n_counted_rows=900
        ... )
        >>> voices.training_summary(900), replace(voices, n_uncounted_rows=300).training_summary(900)
        ('weights learned on 300 of 900 rows', 'weights learned on 300 rows that were not counted')
        """
        own, plural = self.n_learned_rows - self.n_uncounted_rows, formatting.format_count
        is_part = (
            not self.n_removed_rows and own <= n_counted
        )  # some of the rows that were forgotten may have been learned on
        learned = (
            [plural(own) if not is_part else f"{own:,} of {plural(n_counted)}"]
            if own or not self.n_uncounted_rows
            else []
        )
        learned += [f"{plural(self.n_uncounted_rows)} that were not counted"] if self.n_uncounted_rows else []
        gone = (
            f", before {plural(self.n_removed_rows)} {'was' if self.n_removed_rows == 1 else 'were'} forgotten"
            if self.n_removed_rows
            else ""
        )
        now = "" if is_part else f"; the counts now hold {plural(n_counted)}"
        return f"weights learned on {' and '.join(learned)}{gone}{now}"


def term_groups(plan: Plan) -> list[int]:
    """The group of each feature: that of all columns, then one for each other part, or each of its features alone."""
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


def training_contributions(counts: ModelCounts, settings: Settings, rows: TrainingRows) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were counted, each without itself.

    A column that tells them worse than the class shares do is silent, as one of one bin is. What it says of a row is
    then little more than that the row was taken from its class, which a weight below 0 would turn into knowledge.
    """
    out = []
    shares = np.broadcast_to(np.exp(_class_log_prior(counts)), (len(rows), len(counts.labels)))
    for part, tally, block in zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True):
        if part.event.weights_tokens:
            out.append(np.zeros((len(rows), len(counts.labels), 1)))  # until its words are heard
            continue
        terms = optimizer.allocate_contributions(
            len(rows), len(counts.labels), len(part.event.term_names(part.columns))
        )
        prior = prior_for(part.event, settings.param_priors)
        terms = optimizer.center_contributions(_held_out_contributions(part, tally, prior, block, rows, terms))
        if part.event.has_density or part.event.is_joint:
            worst = _MIN_JOINT_Z if part.event.is_joint else _MIN_COLUMN_Z
            terms[:, :, score_test(terms, rows.y, shares, rows.weight) < worst] = 0.0
        out.append(terms)
    return out


def _held_out_contributions(
    part: PlanPart, tally: Any, prior: Any, block: Any, rows: TrainingRows, out: NDArray
) -> NDArray:
    """(row, class, voice) what a part says of rows without themselves.

    Cuts between bins lie where they tell most of the rows that were counted, and tell less of others: of many columns
    and few rows most of what they seem to tell is that. So those that a row is judged by are chosen by other folds.
    """
    y, removed = rows.y, rows.removed_weight
    if not part.event.has_learned_structure or rows.fold is None:
        return part.event.held_out_contributions(tally, prior, "predictive", block, y, removed, out)
    for f in np.unique(rows.fold).tolist():
        own = np.flatnonzero(rows.fold == f)
        mine, classes = block[own], y[own]
        weight, left_out = (None if a is None else a[own] for a in (rows.weight, removed))
        gone = type(tally).from_rows(mine, classes, weight, n_classes=len(tally.n), spec=part.spec)
        chosen = part.event.freeze_structure(tally - gone)
        out[own] = chosen.held_out_contributions(tally, prior, "predictive", mine, classes, left_out)
    return out


def uncounted_contributions(counts: ModelCounts, settings: Settings, blocks: Sequence[Block]) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were never counted: nothing is left out."""
    parts = zip(counts.plan.parts, counts.tallies, blocks, strict=True)
    return [
        np.zeros((block.shape[0], len(counts.labels), 1))  # until its words are heard
        if part.event.weights_tokens
        else optimizer.center_contributions(
            part.event.estimate(tally, prior_for(part.event, settings.param_priors)).contributions(block)
        )
        for part, tally, block in parts
    ]


def collect_tokens(
    counts: ModelCounts,
    settings: Settings,
    rows: TrainingRows,
    start: TermWeights | None = None,
    *,
    is_counted: bool = True,
) -> "dict[int, HeldOutTokens]":
    """The words of each part whose words are heard, by its place: what they say of rows, each without itself.

    How they are heard is chosen, unless ``start`` knows it.
    """
    from candide.data.documents import Documents
    from candide.model import text_options

    parts = enumerate(zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True))
    found = {}
    for i, (part, tally, block) in parts:
        if part.event.weights_tokens:
            prior, known = (
                prior_for(part.event, settings.param_priors),
                None if start is None else start._token_weights[i],
            )
            given = rows.y, rows.weight, rows.removed_weight, is_counted
            listener = text_options.TextOptionSearch(part.event, tally, prior, Documents.from_column(block), *given)
            found[i] = listener.tokens_for(
                listener.choose_weighting(_class_log_prior(counts)) if known is None else known.weighting
            )
    return found


def learn_term_weights(
    counts: ModelCounts,
    settings: Settings,
    rows: TrainingRows,
    start: TermWeights | None = None,
    *,
    is_counted: bool = True,
    until_converged: bool = False,
    further_rows: FurtherRows | None = None,
) -> TermWeights:
    """Weights for the voices of a census, from some of its rows; sooner from ``start``.

    Words are heard first as if they were alone, then the other voices beside them, then both once more: each time what
    the others say is where they begin, so that all weights are those that make the rows likeliest together.
    ``is_counted`` says that the rows were counted, and each is to be left out while it teaches. Words learn from
    ``more`` of them.
    """
    from candide.model.shrinkage import shrink_to_prior

    if not has_several_classes(rows.y):
        return unit_term_weights(counts)
    terms = (
        training_contributions(counts, settings, rows)
        if is_counted
        else uncounted_contributions(counts, settings, rows.blocks)
    )
    of_words = rows if further_rows is None else further_rows.rows
    known = start if further_rows is None else None  # more rows choose again how words are heard
    texts, found = collect_tokens(counts, settings, of_words, known, is_counted=is_counted), start
    for _ in range(2 if 0 < len(texts) < len(terms) else 1):
        if further_rows is not None and found is not None:
            further_rows.score_terms(counts, settings, found.weight, _held_out_contributions)
        heard = update_token_weights(counts, of_words.weight, terms, texts, found, further_rows)
        weight = rows.learning_weight(counts.class_weight) if is_counted else rows.weight
        found = learn_non_text_weights(counts, rows.y, weight, terms, heard, found, until_converged=until_converged)
    assert found is not None
    return shrink_to_prior(counts, rows.y, weight, terms, found)


def has_several_classes(y: Codes) -> bool:
    """Whether rows can tell how much a voice counts: those of one class tell nothing."""
    return not bool((y == y[:1]).all())


def unit_term_weights(counts: ModelCounts) -> TermWeights:
    """Each column counts once, as in naive Bayes, and each word: that was learned from no row."""
    from candide.distributions.token_weights import TokenWeights

    groups = np.array(term_groups(counts.plan), np.intp)
    heard = [part.event.weights_tokens for part in counts.plan.parts]
    once = np.split((groups == 0).astype(np.float64), _part_ends(counts.plan))
    each = tuple(np.ones(1) if words else own for words, own in zip(heard, once, strict=True))
    words = (
        tuple(TokenWeights.from_tokens([], [], default_weight=1.0) if one else None for one in heard)
        if any(heard)
        else ()
    )
    return TermWeights(
        each, np.zeros(len(counts.labels)), 0, np.ones(1 + max(groups, default=-1)), 0, token_weights=words
    )


def update_token_weights(
    counts: ModelCounts,
    weight: Floats | None,
    contributions: Sequence[NDArray],
    tokens: "Mapping[int, HeldOutTokens]",
    known_weights: TermWeights | None,
    further_rows: FurtherRows | None = None,
) -> "tuple[TokenWeights | None, ...]":
    """The weights of words, given the voices ``found`` so far; what they come to is put among the ``terms``.

    Where the words are those of ``more`` rows, ``weight`` is theirs.
    """
    from candide.model import token_weights

    out = list(known_weights._token_weights if known_weights is not None else (None,) * len(contributions))
    offset = _class_log_prior(counts)
    if known_weights is not None:
        each = zip(contributions, known_weights.weight, strict=True)
        others = [
            one @ w.astype(one.dtype) for j, (one, w) in enumerate(each) if j not in tokens and further_rows is None
        ]
        offset = (
            offset
            + known_weights.bias
            + sum(others, np.zeros((1, 1)))
            + (0.0 if further_rows is None else further_rows.offset)
        )
    learned = (
        token_weights.learn_joint_token_weights([*tokens.values()], offset, weight, [out[i] for i in tokens])
        if tokens
        else []
    )
    for i, one in zip(tokens, learned, strict=True):
        out[i], contributions[i][:, :, 0] = (
            one.token_weights,
            one.contributions if further_rows is None else one.contributions[further_rows.term_rows],
        )
    return tuple(out)


def learn_non_text_weights(
    counts: ModelCounts,
    y: Codes,
    weight: Floats | None,
    contributions: Sequence[NDArray],
    text_weights: "tuple[TokenWeights | None, ...]",
    start: TermWeights | None,
    *,
    until_converged: bool = False,
) -> TermWeights:
    """The weights of all other voices, beside words that have theirs: these are neither more nor less than they say."""
    from candide.model import token_weights

    groups = np.array(term_groups(counts.plan), np.intp)
    known = (
        None if start is None else optimizer.LearnedWeights(np.concatenate(start.weight), start.bias, start.strength)
    )
    free = [one if w is None else np.zeros_like(one) for one, w in zip(contributions, text_weights, strict=True)]
    said = [one[:, :, 0] for one, w in zip(contributions, text_weights, strict=True) if w is not None]
    offset, hold = (
        _class_log_prior(counts) + sum(said) if said else _class_log_prior(counts),
        token_weights.TOKEN_BIAS_STRENGTH if said else optimizer.BIAS_STRENGTH,
    )
    if len(said) == len(contributions):  # where none of the words is known there is nothing to balance
        weight = np.where(np.any(said, axis=(0, 2)), 1.0 if weight is None else weight, 0.0)
    learned = optimizer.learn_weights(
        free,
        offset,
        y,
        weight,
        groups=groups,
        start=known,
        until_converged=until_converged,
        bias_strength=hold,
        term_degrees=_term_degrees(counts),
    )
    each = zip(contributions, np.split(learned.weight, _part_ends(counts.plan)), text_weights, strict=True)
    weight_of = tuple(
        np.ones(1) if own is not None else np.where(part.any(axis=(0, 1)), w, 0.0) for part, w, own in each
    )
    own = tuple(text_weights) if said else ()
    return TermWeights(weight_of, learned.bias, len(y), learned.strength, counts.n_rows, token_weights=own)


def _term_degrees(counts: ModelCounts) -> Floats:
    """(term,) the degrees of freedom of column terms; interactions have passed a test that allows for theirs."""
    found, k = [np.zeros(0)], len(counts.labels)
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        n = len(part.event.term_names(part.columns))
        is_column = part.event.has_density and part.block_kind != "documents"
        found.append((k - 1) * part.event.free_parameters(tally, n) if is_column else np.zeros(n))
    return np.concatenate(found)


def _part_ends(plan: Plan) -> Codes:
    return np.cumsum([len(part.event.term_names(part.columns)) for part in plan.parts])[:-1]


def _class_log_prior(counts: ModelCounts) -> Floats:
    """log p(class) of the rows themselves: under another class prior the biases would only take it away again."""
    return class_log_prior(counts, "jeffreys", "mean")


def weighted_posterior(counts: ModelCounts, term_weights: TermWeights, contributions: Sequence[NDArray]) -> Floats:
    """(row, class) what weighted voices come to."""
    return optimizer.compute_posterior(
        contributions, _class_log_prior(counts) + term_weights.bias, np.concatenate(term_weights.weight)
    )
