"""Learn the weights of terms: leave-one-out contributions of the rows, token weights, term weights, shrinkage.

The best of many noise columns looks good by chance, and so does the best of many pairs: its weight would be nearly that
of a real one. All weights and intercepts are therefore finally multiplied by one factor,

    g^2 / (g^2 + c^2)        c = 2 log(m)

g is the gain in leave-one-out log-likelihood over the class prior, m the number of terms to select from. Twice the gain
of a known term of noise is chi-square with one degree of freedom, and the largest of m of them is about 2 log(m). The
slope of a term that is learned from the same rows has twice the variance (see :mod:`candide.weighted.optimizer`), so
the best of m terms of noise gains about 2 log(m). There the factor is 1/2. Beyond, it approaches 1 with the square of
the ratio, so that scores with a clear gain hardly change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.data.sample import Sample
from candide.distributions.token_weights import TokenWeights
from candide.model.counts import ModelCounts
from candide.model.model import TermWeights, class_log_prior, prior_for
from candide.model.plan import Plan, PlanPart, term_groups
from candide.model.settings import Settings
from candide.weighted import optimizer
from candide.weighted.terms.base import JointTerm, score_test

if TYPE_CHECKING:  # read for text columns only
    from candide.weighted.held_out_tokens import HeldOutTokens

# A term that predicts left-out rows significantly worse than the class prior gets weight 0.
_MIN_JOINT_Z = -2.33  # of a joint term: by chance 1 in 100
_MIN_COLUMN_Z = -5.0  # of a column: its classes are more equal than chance makes them, as in a balanced design
_OVERDISPERSION = 2.0  # variance of the slope of a term learned from noise, over its curvature
_CHUNK_ROWS = 1 << 12  # rows whose summed contributions are computed together


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows as blocks of a plan. Equal rows may be pooled: then a weight is not what leaving the row out takes away."""

    blocks: Sequence[Block]
    y: Codes
    weight: Floats | None = None  # (row,) its frequency
    left_out_weight: Floats | None = None  # (row,) what leaving it out takes from the counts; None: its weight
    fold: Codes | None = None  # (row,) the fold whose rows do not choose the bins that it is scored by

    @classmethod
    def from_sample(cls, sample: Sample, plan: Plan) -> "TrainingRows":
        blocks = plan.blocks(sample.table)
        return cls(blocks, sample.y, sample.weight, sample.left_out_weight, sample.bin_fold)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def removed_weight(self) -> Floats | None:
        """(row,) what leaving it out takes from the counts; None where that is 1."""
        return self.weight if self.left_out_weight is None else self.left_out_weight

    def learning_weight(self, class_weight: Floats) -> Floats | None:
        """(row,) its frequency while weights are learned: 0 where most rows are the only one of their class.

        Such a row, left out, is of an unknown class: weights learned from it would only avoid its own class.
        """
        removed = np.ones(len(self)) if self.removed_weight is None else self.removed_weight
        alone = class_weight[self.y] < 1.5 * removed
        if alone.mean() < 0.5:
            return self.weight
        return np.where(alone, 0.0, 1.0 if self.weight is None else self.weight)

    def take(self, rows: slice) -> "TrainingRows":
        columns = self.y, self.weight, self.left_out_weight, self.fold
        y, *others = (None if column is None else column[rows] for column in columns)
        return TrainingRows([slice_rows(block, rows) for block in self.blocks], y, *others)  # type: ignore[arg-type]


@dataclass(eq=False)
class FurtherRows:
    """Rows that the very many token weights are learned from, and which of them all other weights are learned from."""

    rows: TrainingRows
    term_rows: Codes
    offset: Floats | float = 0.0  # (row, class) the contributions of terms other than tokens

    def score_terms(self, counts: ModelCounts, settings: Settings, weight: Sequence[Floats]) -> None:
        """Sum the contributions of the other terms with these weights, each row left out, a few rows at a time."""
        self.offset, k = np.zeros((len(self.rows), len(counts.labels))), len(counts.labels)
        for i, (part, tally, own) in enumerate(zip(counts.plan.parts, counts.tallies, weight, strict=True)):
            if part.event.weights_tokens or not own.any():
                continue
            part = replace(part, event=part.event.match_classes(counts.labels))
            prior, rows = prior_for(part.event, settings.param_priors), replace(self.rows, blocks=[self.rows.blocks[i]])
            for start in range(0, len(rows), _CHUNK_ROWS):
                chunk = rows.take(slice(start, min(start + _CHUNK_ROWS, len(rows))))
                buffer = optimizer.allocate_contributions(len(chunk), k, len(own))
                terms = _held_out_contributions(part, tally, prior, chunk.blocks[0], chunk, buffer)
                self.offset[start : start + len(chunk)] += optimizer.center_contributions(terms) @ own


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
    """Learn weights for the terms of counts from some of its rows; ``start`` makes it faster.

    Token weights are learned first on their own, then the other weights given these, then both once more, each starting
    from the contributions of the others: together they maximise one likelihood. ``is_counted``: the rows are in the
    counts, and each is left out of them. Token weights are learned from ``further_rows`` where these are given.
    """
    if not has_several_classes(rows.y):
        return unit_term_weights(counts)
    contributions = row_contributions(counts, settings, rows, is_counted=is_counted)
    text_rows = rows if further_rows is None else further_rows.rows
    known = start if further_rows is None else None  # with further rows the text options are chosen again
    texts, learned = collect_tokens(counts, settings, text_rows, known, is_counted=is_counted), start
    weight = rows.learning_weight(counts.class_weight) if is_counted else rows.weight
    for _ in range(2 if 0 < len(texts) < len(contributions) else 1):
        if further_rows is not None and learned is not None:
            further_rows.score_terms(counts, settings, learned.weight)
        tokens = update_token_weights(counts, text_rows.weight, contributions, texts, learned, further_rows)
        learned = learn_non_text_weights(counts, rows.y, weight, contributions, tokens, learned, until_converged)
    assert learned is not None
    return shrink_to_prior(counts, rows.y, weight, contributions, learned)


def has_several_classes(y: Codes) -> bool:
    """Whether weights can be learned from rows: not where all have one class."""
    return not bool((y == y[:1]).all())


def unit_term_weights(counts: ModelCounts) -> TermWeights:
    """Weights of 1 for columns and tokens, as in naive Bayes, and 0 for joint terms; learned from no row."""
    groups = np.array(term_groups(counts.plan), np.intp)
    is_text = [part.event.weights_tokens for part in counts.plan.parts]
    weights = np.split((groups == 0).astype(np.float64), _part_ends(counts.plan))
    weights = [np.ones(1) if text else weight for text, weight in zip(is_text, weights, strict=True)]
    tokens = tuple(TokenWeights.from_tokens([], [], default_weight=1.0) if text else None for text in is_text)
    strength, intercepts = np.ones(1 + max(groups, default=-1)), np.zeros(len(counts.labels))
    return TermWeights(tuple(weights), intercepts, 0, strength, 0, token_weights=tokens if any(is_text) else ())


# Contributions


def row_contributions(
    counts: ModelCounts, settings: Settings, rows: TrainingRows, *, is_counted: bool = True
) -> list[NDArray]:
    """(row, class, term) of each part, its contributions to rows, each left out of the counts if it ``is_counted``.

    The contributions of a column that predicts counted rows significantly worse than the class prior are 0: they show
    little more than that each row was taken out of its class, which a negative weight would turn into evidence.
    """
    out, k = [], len(counts.labels)
    prior_proportions = np.broadcast_to(np.exp(_class_log_prior(counts)), (len(rows), k))
    for part, tally, block in zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True):
        part = replace(part, event=part.event.match_classes(counts.labels))
        event = part.event
        prior = prior_for(event, settings.param_priors)
        if event.weights_tokens:
            out.append(np.zeros((len(rows), k, 1)))  # until its token weights are learned
        elif not is_counted:
            out.append(optimizer.center_contributions(event.estimate(tally, prior).contributions(block)))
        else:
            buffer = optimizer.allocate_contributions(len(rows), k, len(event.term_names(part.columns)))
            terms = optimizer.center_contributions(_held_out_contributions(part, tally, prior, block, rows, buffer))
            if event.has_density or event.is_joint:
                min_z = _MIN_JOINT_Z if event.is_joint else _MIN_COLUMN_Z
                terms[:, :, score_test(terms, rows.y, prior_proportions, rows.weight) < min_z] = 0.0
            out.append(terms)
    return out


def _held_out_contributions(
    part: PlanPart, tally: Any, prior: Any, block: Any, rows: TrainingRows, out: NDArray
) -> NDArray:
    """(row, class, term) contributions of a part to rows without themselves.

    Cuts between bins are chosen where they separate the counted rows best, and separate others less: with many columns
    and few rows most of the apparent separation is that. So the bins of a row are chosen by the other folds.
    """
    y, removed = rows.y, rows.removed_weight
    if not part.event.has_learned_structure or rows.fold is None:
        return part.event.held_out_contributions(tally, prior, "predictive", block, y, removed, out)
    for fold in np.unique(rows.fold).tolist():
        own = np.flatnonzero(rows.fold == fold)
        own_block, own_y = block[own], y[own]
        weight, left_out = (None if a is None else a[own] for a in (rows.weight, removed))
        own_tally = type(tally).from_rows(own_block, own_y, weight, n_classes=len(tally.n), spec=part.spec)
        frozen = part.event.freeze_structure(tally - own_tally)
        out[own] = frozen.held_out_contributions(tally, prior, "predictive", own_block, own_y, left_out)
    return out


def collect_tokens(
    counts: ModelCounts,
    settings: Settings,
    rows: TrainingRows,
    start: TermWeights | None = None,
    *,
    is_counted: bool = True,
) -> "dict[int, HeldOutTokens]":
    """The tokens of each part with token weights, by its index: their contributions to rows, each row left out.

    The text options are those of ``start``, or are chosen.
    """
    from candide.data.documents import Documents
    from candide.weighted.text_options import TextOptionSearch

    out = {}
    for i, (part, tally, block) in enumerate(zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True)):
        if part.event.weights_tokens:
            prior, documents = prior_for(part.event, settings.param_priors), Documents.from_column(block)
            weights = rows.weight, rows.removed_weight
            search = TextOptionSearch(part.event, tally, prior, documents, rows.y, *weights, is_counted)
            known = None if start is None else start.token_weights_by_part[i]
            weighting = search.choose_weighting(_class_log_prior(counts)) if known is None else known.weighting
            out[i] = search.tokens_for(weighting)
    return out


# Weights


def update_token_weights(
    counts: ModelCounts,
    weight: Floats | None,
    contributions: Sequence[NDArray],
    tokens: "Mapping[int, HeldOutTokens]",
    known: TermWeights | None,
    further_rows: FurtherRows | None = None,
) -> tuple[TokenWeights | None, ...]:
    """Learn token weights given the ``known`` weights of other terms; put what they come to in ``contributions``.

    Where the tokens are those of ``further_rows``, ``weight`` is theirs.
    """
    from candide.weighted.token_optimizer import learn_joint_token_weights

    out = list((None,) * len(contributions) if known is None else known.token_weights_by_part)
    offset = _class_log_prior(counts)
    if known is not None:
        parts = enumerate(zip(contributions, known.weight, strict=True))
        others = [part @ w.astype(part.dtype) for j, (part, w) in parts if j not in tokens and further_rows is None]
        further = 0.0 if further_rows is None else further_rows.offset
        offset = offset + known.bias + sum(others, np.zeros((1, 1))) + further
    if tokens:
        learned = learn_joint_token_weights([*tokens.values()], offset, weight, [out[i] for i in tokens])
        for i, part in zip(tokens, learned, strict=True):
            scores = part.contributions if further_rows is None else part.contributions[further_rows.term_rows]
            out[i], contributions[i][:, :, 0] = part.token_weights, scores
    return tuple(out)


def learn_non_text_weights(
    counts: ModelCounts,
    y: Codes,
    weight: Floats | None,
    contributions: Sequence[NDArray],
    token_weights: tuple[TokenWeights | None, ...],
    start: TermWeights | None,
    until_converged: bool = False,
) -> TermWeights:
    """Learn the weights of all other terms, given the token weights: the weight of a text part is 1."""
    from candide.weighted.token_optimizer import TOKEN_BIAS_STRENGTH

    known = None
    if start is not None:
        known = optimizer.LearnedWeights(np.concatenate(start.weight), start.bias, start.strength)
    is_text = [tokens is not None for tokens in token_weights]
    free = [np.zeros_like(part) if text else part for part, text in zip(contributions, is_text, strict=True)]
    texts = [part[:, :, 0] for part, text in zip(contributions, is_text, strict=True) if text]
    if len(texts) == len(contributions):  # rows without known tokens have nothing to balance
        weight = np.where(np.any(texts, axis=(0, 2)), 1.0 if weight is None else weight, 0.0)
    degrees, k = [np.zeros(0)], len(counts.labels)  # interactions have passed a test that allows for theirs
    for plan_part, tally in counts.parts:
        n = len(plan_part.event.term_names(plan_part.columns))
        is_column = plan_part.event.has_density and plan_part.block_kind != "documents"
        degrees.append((k - 1) * plan_part.event.free_parameters(tally, n) if is_column else np.zeros(n))
    learned = optimizer.learn_weights(
        free,
        _class_log_prior(counts) + sum(texts) if texts else _class_log_prior(counts),
        y,
        weight,
        groups=np.array(term_groups(counts.plan), np.intp),
        start=known,
        until_converged=until_converged,
        bias_strength=TOKEN_BIAS_STRENGTH if texts else optimizer.BIAS_STRENGTH,
        term_degrees=np.concatenate(degrees),
    )
    parts = zip(contributions, np.split(learned.weight, _part_ends(counts.plan)), is_text, strict=True)
    weights = tuple(np.ones(1) if text else np.where(part.any(axis=(0, 1)), w, 0.0) for part, w, text in parts)
    tokens = token_weights if texts else ()
    return TermWeights(weights, learned.bias, len(y), learned.strength, counts.n_rows, token_weights=tokens)


def _part_ends(plan: Plan) -> Codes:
    return np.cumsum([len(part.event.term_names(part.columns)) for part in plan.parts])[:-1]


def _class_log_prior(counts: ModelCounts) -> Floats:
    """log p(class) of the rows themselves: under another class prior the intercepts would only undo it."""
    return class_log_prior(counts, "jeffreys", "mean")


def weighted_posterior(counts: ModelCounts, term_weights: TermWeights, contributions: Sequence[NDArray]) -> Floats:
    """(row, class) the probabilities that weighted contributions give."""
    log_prior, y = _class_log_prior(counts) + term_weights.bias, np.zeros(len(contributions[0]), np.intp)
    problem = optimizer.WeightProblem(contributions, log_prior, y, None, y[:0], 0)
    return problem.evaluate(np.concatenate([*term_weights.weight, np.zeros(len(log_prior))])).p


# Shrinkage


def shrink_to_prior(
    counts: ModelCounts, y: Codes, weight: Floats | None, contributions: Sequence[NDArray], learned: TermWeights
) -> TermWeights:
    """Multiply weights and intercepts by the factor that their gain over the class prior supports.

    Token weights have a prior of their own: they stay, and the gain of the other terms is over prior and tokens.
    """
    is_text = [tokens is not None for tokens in learned.token_weights_by_part]
    if all(is_text):
        return learned
    texts = sum(part[:, :, 0] for part, text in zip(contributions, is_text, strict=True) if text)
    before, rows = np.broadcast_to(_class_log_prior(counts) + texts, (len(y), len(counts.labels))), np.arange(len(y))
    before = before[rows, y] - np.logaddexp.reduce(before, axis=1)
    after = np.log(np.maximum(weighted_posterior(counts, learned, contributions)[rows, y], 1e-300))
    gain = float(np.sum((after - before) * (1.0 if weight is None else weight)))
    factor = shrinkage_factor(gain, count_candidates(counts.plan))
    shrunk = tuple(w if text else factor * w for w, text in zip(learned.weight, is_text, strict=True))
    return replace(learned, weight=shrunk, bias=factor * learned.bias)


def shrinkage_factor(gain: float, n_candidates: int) -> float:
    """The factor, from 0 to 1, for a score with this gain that was selected from so many terms."""
    chance = _OVERDISPERSION * log(max(1, n_candidates))
    return 1.0 / (1.0 + (chance / gain) ** 2) if gain > 0 else float(chance == 0)


def count_candidates(plan: Plan) -> int:
    """Count the terms that a plan was selected from; columns with one level are not counted."""
    columns = [part.encodings for part in plan.parts if part.event.has_density]
    n_columns = sum(encoding.n_levels is None or encoding.n_levels > 1 for part in columns for encoding in part)
    n_others = 0
    for part in plan.parts:
        if isinstance(part.event, JointTerm):
            n_others += part.event.n_candidates(part.columns, n_columns)
        elif not part.event.has_density:
            n_others += len(part.event.term_names(part.columns))
    return n_columns + n_others
