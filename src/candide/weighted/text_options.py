"""Choose the text options of a column (:class:`TextWeighting`) by the log-loss of held-out documents.

Documents are held out of the counts as well as of the weights. Leave-one-out contributions would not do: a token that
two documents share shows each the class of the other, so a weight learned from one of them has seen the other's class.

Starting from the default, one option at a time is changed: words instead of words and pairs; raw counts instead of
logarithms; the power of the length, 0 and 1 instead of 1/2; weights held ten times as loosely or tightly, or one weight
for each group; every weight 1. A change is kept if it lowers the log-loss of the same documents by more than two
standard errors, which chance does once in forty times, and by one percent. With more than some thousand documents the
default is right to a few percent, and the search takes many times as long as the weights: then it runs only on request.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.equal_rows import hash_row_numbers
from candide.data.sample import draw_rows
from candide.distributions.token_weights import DEFAULT_WEIGHTING, TextWeighting
from candide.encoding.tokens import PLAIN, SUBLINEAR, tokenize
from candide.kernels.text import occurrence_weights
from candide.model.settings import LIMITS
from candide.tally import TokenCounts, sorted_keys
from candide.weighted.held_out_tokens import HeldOutTokens, held_out_tokens
from candide.weighted.token_optimizer import learn_joint_token_weights

_MIN_DOCUMENTS = 100  # fewer show no difference beyond chance
_N_PARTS = 5  # one of so many parts is held out
_MAX_REPEATS = 3  # times that another part is
_SHORT_DOCUMENT_WORDS = 8  # mean of short documents: titles, names, and languages written without spaces
_N_LENGTH_SAMPLE = 256  # documents that show whether they are short
_MIN_STANDARD_ERRORS = 2.0  # that a change must gain,
_MIN_RELATIVE_GAIN = 0.01  # and the fraction of the log-loss
_MAX_STEPS, _TOLERANCE = 40, 1e-4  # of L-BFGS in a trial, in which differences of percents matter

OPTION_CHANGES: tuple[dict[str, Any], ...] = (
    {"max_words": 1},
    {"power": 0.0},
    {"power": 1.0},
    {"count_mode": PLAIN},
    {"strength": 1.0},
    {"strength": 100.0},
    {"strength": np.inf},
    {"has_weights": False, "power": 0.0, "max_words": 0, "count_mode": -1},
)
_UNNORMALISED = TextWeighting(power=0.0)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Training documents and held-out documents, under counts without the latter."""

    training_tokens: HeldOutTokens
    document_weights: Floats | None
    held_out_tokens: HeldOutTokens
    offset: Floats

    def loss(self, weighting: TextWeighting, *others: "_Trial") -> Floats:
        """(held-out document) log loss under learned weights; ``others`` are further parts, with default options."""
        parts = [(self, weighting), *((other, DEFAULT_WEIGHTING) for other in others)]
        training = [apply_text_weighting(part.training_tokens, options) for part, options in parts]
        learned = learn_joint_token_weights(
            training, self.offset, self.document_weights, max_steps=_MAX_STEPS, tolerance=_TOLERANCE
        )
        total, n_tokens = np.zeros(()), np.zeros((), np.int64)
        for (part, options), train, own in zip(parts, training, learned, strict=True):
            tokens = apply_text_weighting(part.held_out_tokens, options, train.scale)
            total = total + tokens.scores(own.token_weights.lookup(tokens.letters, tokens.starts) * tokens.scale)
            n_tokens = n_tokens + np.diff(tokens.ends)
        scores = self.offset + np.where(n_tokens[:, None] > 0, total + learned[0].bias, 0.0)  # else the class prior
        return np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), self.held_out_tokens.y]


@dataclass(frozen=True, eq=False)
class TextOptionSearch:
    """Documents of one column, and a tally that counts them and perhaps others; not them, unless ``is_counted``."""

    event: Any
    tally: Any
    prior: Any
    documents: Documents
    y: Codes
    weight: Floats | None = None
    removed_weight: Floats | None = None  # (document,) what leaving it out takes from the counts; None: its weight
    is_counted: bool = True

    def choose_weighting(self, offset: Floats) -> TextWeighting:
        """The best options; ``offset`` is log p(class)."""
        n, requested = len(self.y), self.event.choose_weighting
        if n < _MIN_DOCUMENTS:
            return TextWeighting(strength=np.inf)  # too few to distinguish single tokens
        if requested is False or (requested is None and n > LIMITS.max_searched_documents):
            return DEFAULT_WEIGHTING
        if not (pairs := list(self.trials(offset))):
            return DEFAULT_WEIGHTING
        held, trials = zip(*pairs, strict=True)
        frequency = None if self.weight is None else np.concatenate([self.weight[rows] for rows in held])
        best, losses = DEFAULT_WEIGHTING, list[Floats]()
        least = [trial.loss(best) for trial in trials]
        for change in OPTION_CHANGES:
            if not self._is_applicable(change):
                continue
            other = replace(best, **change)
            losses = [trials[0].loss(other)]
            if losses[0].sum() < least[0].sum() or not other.has_weights:  # what loses the first time is not repeated
                losses += [trial.loss(other) for trial in trials[1:]]
                if is_improvement(np.concatenate(least), np.concatenate(losses), frequency):
                    best, least = other, losses
        # The last change is that to weights of 1.
        loss, unweighted = (_weighted_mean(np.concatenate(part), frequency) for part in (least, losses))
        return replace(best, loss=loss, unweighted_loss=unweighted)

    def _is_applicable(self, change: dict[str, Any]) -> bool:
        """Whether a change makes a difference: only runs of one word and more have pairs to leave out."""
        tokens = self.event.tokens
        if change.get("max_words"):
            return tokens.is_word_based and tokens.ngrams[0] == 1 and tokens.ngrams[1] > 1
        return change.get("count_mode", -1) < 0 or tokens.count_mode == SUBLINEAR

    def trials(self, offset: Floats) -> "Iterator[tuple[Codes, _Trial]]":
        """Held-out rows, and what is tried on them."""
        n = len(self.y)
        order, limit = np.argsort(hash_row_numbers(np.arange(n)), kind="stable"), LIMITS.max_held_out_documents
        size = min(n // _N_PARTS, limit)
        for repeat in range(max(1, min(_MAX_REPEATS, limit // size))):
            rows = np.roll(order, -repeat * size)
            own, others = np.sort(rows[:size]), np.sort(rows[size : size + LIMITS.max_training_documents])
            own = own[np.isin(self.y[own], self.y[others])]  # nothing is known of a class without others
            if not len(own):
                continue
            held, rest = self._take(own), self._take(others)
            if self.is_counted:
                k, spec = self.tally.n_classes, self.event.spec(1)
                left = self.tally - TokenCounts.from_rows(held.documents, held.y, held.weight, n_classes=k, spec=spec)
                held, rest = replace(held, tally=left, is_counted=False), replace(rest, tally=left)
            yield own, _Trial(rest.tokens_for(_UNNORMALISED), rest.weight, held.tokens_for(_UNNORMALISED), offset)

    def _take(self, rows: Codes) -> "TextOptionSearch":
        weight, removed = (None if a is None else a[rows] for a in (self.weight, self.removed_weight))
        return replace(self, documents=self.documents.take(rows), y=self.y[rows], weight=weight, removed_weight=removed)

    def tokens_for(self, weighting: TextWeighting) -> HeldOutTokens:
        weight = self.weight if self.removed_weight is None else self.removed_weight
        power = weighting.power if weighting.count_mode < 0 and not weighting.max_words else 0.0
        tokens = held_out_tokens(
            self.event, self.tally, self.prior, self.documents, self.y, weight, power=power, is_counted=self.is_counted
        )
        if power == weighting.power and not weighting.max_words:
            return replace(tokens, weighting=weighting)
        return apply_text_weighting(tokens, weighting)


def has_character_gain(
    word_event: Any,
    character_event: Any,
    documents: Documents,
    y: Codes,
    weight: Floats | None,
    n_classes: int,
    removed_weight: Floats | None = None,
) -> bool:
    """Whether runs of characters improve on the words of held-out documents; tried only where these are short.

    ``removed_weight`` is what leaving a document out takes from the counts.
    """
    if len(y) < _MIN_DOCUMENTS:
        return False
    rows = draw_rows(np.arange(len(y)), LIMITS.character_documents)
    first = documents.take(rows[:_N_LENGTH_SAMPLE])
    words = replace(word_event.tokens, ngrams=(1, 1), bits=0, signed=False)
    texts = [first.text(row, words.errors) for row in range(len(first))]
    sizes = [len(tokenize(text, words)) for text in texts if text is not None]
    if sum(sizes) >= _SHORT_DOCUMENT_WORDS * len(sizes):
        return False
    documents, y = documents.take(rows), y[rows]
    weight, removed_weight = (None if a is None else a[rows] for a in (weight, removed_weight))
    n = np.bincount(y, weight, n_classes)
    offset, trials = np.log((n + 0.5) / (n.sum() + 0.5 * n_classes)), []
    for event in (word_event, character_event):
        tally = TokenCounts.from_rows(documents, y, weight, n_classes=n_classes, spec=event.spec(1))
        trials.append(TextOptionSearch(event, tally, None, documents, y, weight, removed_weight).trials(offset))
    before, after, frequency = [], [], []
    for (held, words), (_, characters) in zip(*trials, strict=True):
        before.append(words.loss(DEFAULT_WEIGHTING))
        after.append(words.loss(DEFAULT_WEIGHTING, characters))
        frequency.append(np.ones(len(held)) if weight is None else weight[held])
    return bool(before) and is_improvement(*map(np.concatenate, (before, after, frequency)))


def is_improvement(before: Floats, after: Floats, weights: Floats | None = None) -> bool:
    """Whether losses of the same documents fall by more than chance, and by more than a percent."""
    w = np.ones(len(before)) if weights is None else weights
    gain, total = before - after, max(float(w.sum()), 1e-300)
    mean = float(w @ gain) / total
    error = np.sqrt(float(w**2 @ (gain - mean) ** 2)) / total
    return bool(mean > _MIN_STANDARD_ERRORS * error and mean > _MIN_RELATIVE_GAIN * _weighted_mean(before, weights))


def _weighted_mean(loss: Floats, weights: Floats | None) -> float:
    return float(np.average(loss, weights=weights)) if weights is None or weights.any() else float(loss.mean())


def apply_text_weighting(tokens: HeldOutTokens, weighting: TextWeighting, scale: float | None = None) -> HeldOutTokens:
    """Tokens that were read with the power 0, under other options; ``scale`` where it is known."""
    row = np.repeat(np.arange(len(tokens), dtype=np.int32), np.diff(tokens.ends))
    x = tokens.x.astype(np.float64)
    if weighting.count_mode >= 0:  # counts are 1 + log n
        x = occurrence_weights(weighting.count_mode, np.exp(x - 1.0))
    length = np.bincount(row, x, len(tokens))
    by_length = np.where(length > 0, np.maximum(length, 1e-300) ** -weighting.power, 1.0)
    if scale is None:
        scale = float(by_length.mean()) if len(tokens) else 1.0
    x *= (by_length / scale)[row]
    tokens = replace(tokens, x=x.astype(np.float32), scale=scale, weighting=weighting)
    if not weighting.max_words:
        return tokens
    is_kept = weighting.select_tokens(sorted_keys.count_blanks(tokens.letters, tokens.starts))
    at = is_kept[tokens.token]
    place = (np.cumsum(is_kept) - 1).astype(np.int32)
    letters, starts = sorted_keys.take_keys(tokens.letters, tokens.starts, np.flatnonzero(is_kept))
    groups, group = np.unique(tokens.group[is_kept], return_inverse=True)
    ends = np.concatenate([[0], np.cumsum(at)])[tokens.ends].astype(np.int64)
    tokens = replace(tokens, letters=letters, starts=starts, ends=ends, token=place[tokens.token[at]], x=tokens.x[at])
    tokens = replace(tokens, own_class_correction=tokens.own_class_correction[at], table=tokens.table[is_kept])
    return replace(tokens, group=group.astype(np.int64), n_groups=len(groups))
