"""Learn the weights of terms: leave-one-out contributions of the rows, token weights, term weights, shrinkage.

Of many noise columns the best looks good by chance, and so does the best of many pairs: its weight would be nearly that
of a real one. All weights and intercepts are therefore multiplied at last by one factor,

    g^2 / (g^2 + c^2)        c = 2 log(m)

g is the gain in leave-one-out log-likelihood over the class prior, m the number of terms to select from. Twice the gain
of a known term of noise is chi-square with one degree of freedom, and the largest of m of them is about 2 log(m). The
slope of a term that is learned from the same rows has twice the variance (see :mod:`candide.weighted.optimizer`), so
the best of m terms of noise gains about 2 log(m). There the factor is 1/2. Beyond, it approaches 1 with the square of
the ratio, so that scores with a clear gain hardly change.

>>> [round(shrinkage_factor(gain, 20), 2) for gain in (0.0, 6.0, 12.0, 60.0)]
[0.0, 0.5, 0.8, 0.99]
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.distributions.token_weights import TokenWeights
from candide.model.counts import ModelCounts
from candide.model.model import class_log_prior, prior_for
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.model.term_weights import TermWeights, term_groups
from candide.weighted import optimizer
from candide.weighted.score_test import score_test
from candide.weighted.terms.base import JointTerm
from candide.weighted.training_rows import FurtherRows, TrainingRows

if TYPE_CHECKING:  # read for text columns only
    from candide.weighted.text.leave_one_out import HeldOutTokens

# A term that predicts left-out rows significantly worse than the class prior gets weight 0.
_MIN_JOINT_Z = -2.33  # of a joint term: by chance 1 in 100
_MIN_COLUMN_Z = -5.0  # of a column: its classes are more equal than chance makes them, as in a balanced design
_OVERDISPERSION = 2.0  # variance of the slope of a term learned from noise, over its curvature


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
    if is_counted:
        contributions = training_contributions(counts, settings, rows)
    else:
        contributions = uncounted_contributions(counts, settings, rows.blocks)
    text_rows = rows if further_rows is None else further_rows.rows
    known = start if further_rows is None else None  # with further rows the text options are chosen again
    texts, learned = collect_tokens(counts, settings, text_rows, known, is_counted=is_counted), start
    weight = rows.learning_weight(counts.class_weight) if is_counted else rows.weight
    for _ in range(2 if 0 < len(texts) < len(contributions) else 1):
        if further_rows is not None and learned is not None:
            further_rows.score_terms(counts, settings, learned.weight, _held_out_contributions)
        tokens = update_token_weights(counts, text_rows.weight, contributions, texts, learned, further_rows)
        learned = learn_non_text_weights(
            counts, rows.y, weight, contributions, tokens, learned, until_converged=until_converged
        )
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
    strength = np.ones(1 + max(groups, default=-1))
    intercepts = np.zeros(len(counts.labels))
    return TermWeights(tuple(weights), intercepts, 0, strength, 0, token_weights=tokens if any(is_text) else ())


# Contributions


def training_contributions(counts: ModelCounts, settings: Settings, rows: TrainingRows) -> list[NDArray]:
    """(row, class, term) of each part, its contributions to rows that were counted, each row left out.

    The contributions of a column that predicts these rows significantly worse than the class prior are 0: they show
    little more than that each row was taken out of its class, which a negative weight would turn into evidence.
    """
    out, k = [], len(counts.labels)
    prior_proportions = np.broadcast_to(np.exp(_class_log_prior(counts)), (len(rows), k))
    for part, tally, block in zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True):
        event = part.event
        if event.weights_tokens:
            out.append(np.zeros((len(rows), k, 1)))  # until its token weights are learned
            continue
        buffer = optimizer.allocate_contributions(len(rows), k, len(event.term_names(part.columns)))
        prior = prior_for(event, settings.param_priors)
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


def uncounted_contributions(counts: ModelCounts, settings: Settings, blocks: Sequence[Block]) -> list[NDArray]:
    """(row, class, term) of each part, its contributions to rows that were never counted: nothing is left out."""
    out = []
    for part, tally, block in zip(counts.plan.parts, counts.tallies, blocks, strict=True):
        if part.event.weights_tokens:
            out.append(np.zeros((block.shape[0], len(counts.labels), 1)))  # until its token weights are learned
            continue
        distribution = part.event.estimate(tally, prior_for(part.event, settings.param_priors))
        out.append(optimizer.center_contributions(distribution.contributions(block)))
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
    from candide.weighted.text.option_search import TextOptionSearch

    out = {}
    for i, (part, tally, block) in enumerate(zip(counts.plan.parts, counts.tallies, rows.blocks, strict=True)):
        if not part.event.weights_tokens:
            continue
        prior, documents = prior_for(part.event, settings.param_priors), Documents.from_column(block)
        removed = rows.removed_weight
        search = TextOptionSearch(part.event, tally, prior, documents, rows.y, rows.weight, removed, is_counted)
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
    from candide.weighted.text.token_weights import learn_joint_token_weights

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
    *,
    until_converged: bool = False,
) -> TermWeights:
    """Learn the weights of all other terms, given the token weights: the weight of a text part is 1."""
    from candide.weighted.text.token_weights import TOKEN_BIAS_STRENGTH

    known = None
    if start is not None:
        known = optimizer.LearnedWeights(np.concatenate(start.weight), start.bias, start.strength)
    is_text = [own is not None for own in token_weights]
    free = [np.zeros_like(part) if text else part for part, text in zip(contributions, is_text, strict=True)]
    texts = [part[:, :, 0] for part, text in zip(contributions, is_text, strict=True) if text]
    if len(texts) == len(contributions):  # rows without known tokens have nothing to balance
        weight = np.where(np.any(texts, axis=(0, 2)), 1.0 if weight is None else weight, 0.0)
    learned = optimizer.learn_weights(
        free,
        _class_log_prior(counts) + sum(texts) if texts else _class_log_prior(counts),
        y,
        weight,
        groups=np.array(term_groups(counts.plan), np.intp),
        start=known,
        until_converged=until_converged,
        bias_strength=TOKEN_BIAS_STRENGTH if texts else optimizer.BIAS_STRENGTH,
        term_degrees=_term_degrees(counts),
    )
    parts = zip(contributions, np.split(learned.weight, _part_ends(counts.plan)), is_text, strict=True)
    weights = tuple(np.ones(1) if text else np.where(part.any(axis=(0, 1)), w, 0.0) for part, w, text in parts)
    own = token_weights if texts else ()
    return TermWeights(weights, learned.bias, len(y), learned.strength, counts.n_rows, token_weights=own)


def _term_degrees(counts: ModelCounts) -> Floats:
    """(term,) the degrees of freedom of column terms; interactions have passed a test that allows for theirs."""
    degrees, k = [np.zeros(0)], len(counts.labels)
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        n = len(part.event.term_names(part.columns))
        is_column = part.event.has_density and part.block_kind != "documents"
        degrees.append((k - 1) * part.event.free_parameters(tally, n) if is_column else np.zeros(n))
    return np.concatenate(degrees)


def _part_ends(plan: Plan) -> Codes:
    return np.cumsum([len(part.event.term_names(part.columns)) for part in plan.parts])[:-1]


def _class_log_prior(counts: ModelCounts) -> Floats:
    """log p(class) of the rows themselves: under another class prior the intercepts would only undo it."""
    return class_log_prior(counts, "jeffreys", "mean")


def weighted_posterior(counts: ModelCounts, term_weights: TermWeights, contributions: Sequence[NDArray]) -> Floats:
    """(row, class) the probabilities that weighted contributions give."""
    log_prior = _class_log_prior(counts) + term_weights.bias
    return optimizer.compute_posterior(contributions, log_prior, np.concatenate(term_weights.weight))


# Shrinkage


def shrink_to_prior(
    counts: ModelCounts, y: Codes, weight: Floats | None, contributions: Sequence[NDArray], learned: TermWeights
) -> TermWeights:
    """Multiply weights and intercepts by the factor that their gain over the class prior supports.

    Token weights have a prior of their own: they stay, and the gain of the other terms is over prior and tokens.
    """
    is_text = [own is not None for own in learned.token_weights_by_part]
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
