"""Listening: how the words of documents are best heard, chosen by documents that are held out.

Held out of the counts as well as of the weights. What words say of documents that others have counted is not enough: a
word that two documents share says of each the class of the other, so that a weight that one of them teaches has seen
the answer of the other.

From the usual way to hear, one thing at a time is changed: words alone instead of words and pairs; raw counts instead
of logarithms; the power of the length, 0 and 1 instead of 1/2; weights held ten times as loosely or as tightly, or all
of a kind the same; each word once. A change is taken where it lowers the log-loss of the same documents by more than
twice its standard error, by which chance does so once in forty times, and by one part in a hundred: where nothing
speaks for a change, the usual stands. Of more than some thousand documents it is right to a few parts in a hundred, and
a choice takes many times as long as the weights do: then it is made where it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.row_hash import hash_row_numbers
from candide.data.sampling import draw_rows
from candide.distributions.text_weighting import DEFAULT_WEIGHTING, TextWeighting
from candide.encoding.tokens import PLAIN, SUBLINEAR, tokenize
from candide.kernels.text_twin import occurrence_weights
from candide.tally import TokenCounts, sorted_keys
from candide.weighted.text import token_weights
from candide.weighted.text.leave_one_out import HeldOutTokens, held_out_tokens

_MIN_DOCUMENTS = 100  # documents: fewer tell nothing beyond chance
_MAX_DOCUMENTS_BY_DEFAULT = 1000  # documents of which a choice is made unasked
_N_PARTS = 5  # one of so many parts is held out
_MAX_REPEATS = 3  # at most that another part is
_MAX_HELD_OUT = 1000  # documents in all that are held out, about
_MAX_TRAINING_DOCUMENTS = (
    10_000  # documents that teach weights in a trial, at most: of a tenth of them, pairs would seem to say little
)
_SHORT_DOCUMENT_WORDS = 8  # of a document, in the mean: titles, names, and what is written without spaces have fewer
_N_LENGTH_SAMPLE, _N_CHARACTER_SAMPLE = (
    256,
    3000,
)  # documents that tell whether they are short, and on which characters are tried
_MIN_STANDARD_ERRORS = 2.0  # standard errors that a change must gain,
_MIN_RELATIVE_GAIN = 0.01  # and the share of the log-loss
_MAX_STEPS, _TOLERANCE = 40, 1e-4  # of L-BFGS in a trial, which is after differences of parts in a hundred

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
    """Documents that teach, and others that are held out, of counts without these."""

    training_tokens: HeldOutTokens
    document_weights: Floats | None
    held_out_tokens: HeldOutTokens
    offset: Floats

    def loss(self, weighting: TextWeighting, *others: "_Trial") -> Floats:
        """(document held out) its log-loss, by weights that the rest taught; ``others`` are heard beside, as usual."""
        parts = [(self, weighting), *((one, DEFAULT_WEIGHTING) for one in others)]
        mine = [apply_text_weighting(one.training_tokens, each) for one, each in parts]
        learned = token_weights.learn_joint_token_weights(
            mine, self.offset, self.document_weights, max_steps=_MAX_STEPS, tolerance=_TOLERANCE
        )
        held = [
            apply_text_weighting(one.held_out_tokens, each, said.scale)
            for (one, each), said in zip(parts, mine, strict=True)
        ]
        both = list(zip(held, learned, strict=True))
        said = sum(one.scores(found.token_weights.lookup(one.letters, one.starts) * one.scale) for one, found in both)
        known = sum(np.diff(one.ends) for one in held)[:, None] > 0  # type: ignore[index]  # else class shares are all
        scores = self.offset + np.where(known, said + learned[0].bias, 0.0)
        return np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), self.held_out_tokens.y]


@dataclass(frozen=True, eq=False)
class TextOptionSearch:
    """Documents, and a tally that counts them and perhaps more, or them not (``is_counted``)."""

    event: Any
    tally: Any
    prior: Any
    documents: Documents
    y: Codes
    weight: Floats | None = None
    removed_weight: Floats | None = None  # (document,) what leaving it out takes from the counts; None: its weight
    is_counted: bool = True

    def choose_weighting(self, offset: Floats) -> TextWeighting:
        """How the words are best heard; ``offset`` is log p(class)."""
        if len(self.y) < _MIN_DOCUMENTS:
            return TextWeighting(strength=np.inf)  # they cannot tell single words apart
        if self.event.choose_weighting is False or (
            self.event.choose_weighting is None and len(self.y) > _MAX_DOCUMENTS_BY_DEFAULT
        ):
            return TextWeighting()
        trials = list(self.trials(offset))
        if not trials:
            return TextWeighting()
        held, tried = zip(*trials, strict=True)
        often = None if self.weight is None else np.concatenate([self.weight[rows] for rows in held])
        best, found = TextWeighting(), []
        least = [one.loss(best) for one in tried]
        for change in OPTION_CHANGES:
            if not self._is_applicable(change):
                continue
            other = replace(best, **change)
            found = [tried[0].loss(other)]
            if found[0].sum() < least[0].sum() or not other.has_weights:  # what loses the first time is not tried again
                found += [one.loss(other) for one in tried[1:]]
                if is_improvement(np.concatenate(least), np.concatenate(found), often):
                    best, least = other, found
        loss, naive = (
            _weighted_mean(np.concatenate(each), often) for each in (least, found)
        )  # naive: the last change of all
        return replace(best, loss=loss, unweighted_loss=naive)

    def _is_applicable(self, change: dict[str, Any]) -> bool:
        """Whether a change is one of such terms: of words without pairs there are no pairs to leave out."""
        tokens = self.event.tokens
        if change.get("longest"):
            return tokens.is_word_based and tokens.ngrams[0] == 1 and tokens.ngrams[1] > 1
        return change.get("count_mode", -1) < 0 or tokens.count_mode == SUBLINEAR

    def trials(self, offset: Floats) -> "Iterator[tuple[Codes, _Trial]]":
        """The rows that are held out, and what is tried on them."""
        n = len(self.y)
        order, size = np.argsort(hash_row_numbers(np.arange(n)), kind="stable"), min(n // _N_PARTS, _MAX_HELD_OUT)
        for time in range(max(1, min(_MAX_REPEATS, _MAX_HELD_OUT // size))):
            rows = np.roll(order, -time * size)
            mine, others = np.sort(rows[:size]), np.sort(rows[size : size + _MAX_TRAINING_DOCUMENTS])
            mine = mine[np.isin(self.y[mine], self.y[others])]  # of a class without others nothing can be known
            if not len(mine):
                continue
            held, rest = self._take(mine), self._take(others)
            if self.is_counted:
                gone = TokenCounts.from_rows(
                    held.documents, held.y, held.weight, n_classes=self.tally.n_classes, spec=self._spec
                )
                left = self.tally - gone
                held, rest = replace(held, tally=left, is_counted=False), replace(rest, tally=left)
            yield mine, _Trial(rest.tokens_for(_UNNORMALISED), rest.weight, held.tokens_for(_UNNORMALISED), offset)

    @property
    def _spec(self) -> Any:
        return self.event.spec(1)

    def _take(self, rows: Codes) -> "TextOptionSearch":
        weight, removed = (None if a is None else a[rows] for a in (self.weight, self.removed_weight))
        return replace(self, documents=self.documents.take(rows), y=self.y[rows], weight=weight, removed_weight=removed)

    def tokens_for(self, weighting: TextWeighting) -> HeldOutTokens:
        """The words of the documents, as they are heard."""
        given = (
            self.tally,
            self.prior,
            self.documents,
            self.y,
            self.weight if self.removed_weight is None else self.removed_weight,
        )
        power = weighting.power if weighting.count_mode < 0 and not weighting.max_words else 0.0
        said = held_out_tokens(self.event, *given, power=power, is_counted=self.is_counted)
        return (
            replace(said, weighting=weighting)
            if power == weighting.power and not weighting.max_words
            else apply_text_weighting(said, weighting)
        )


def has_character_gain(
    word_event: Any,
    character_event: Any,
    documents: Documents,
    y: Codes,
    weight: Floats | None,
    n_classes: int,
    removed_weight: Floats | None = None,
) -> bool:
    """Whether runs of characters tell more beside the words, by documents held out: tried where these are short.

    ``words`` and ``characters`` are the event models; ``removed`` is what leaving a document out takes from the counts.
    """
    some = draw_rows(np.arange(len(y)), _N_CHARACTER_SAMPLE)
    if len(y) < _MIN_DOCUMENTS or not _is_short(documents.take(some[:_N_LENGTH_SAMPLE]), word_event.tokens):
        return False
    documents, y = documents.take(some), y[some]
    weight, removed_weight = (None if a is None else a[some] for a in (weight, removed_weight))
    n = np.bincount(y, weight, n_classes)
    offset, each = np.log((n + 0.5) / (n.sum() + 0.5 * n_classes)), []
    for event in (word_event, character_event):
        tally = TokenCounts.from_rows(documents, y, weight, n_classes=n_classes, spec=event.spec(1))
        each.append(TextOptionSearch(event, tally, None, documents, y, weight, removed_weight).trials(offset))
    before, after, often = [], [], []
    for (held, alone), (_, beside) in zip(*each, strict=True):
        before.append(alone.loss(DEFAULT_WEIGHTING))
        after.append(alone.loss(DEFAULT_WEIGHTING, beside))
        often.append(np.ones(len(held)) if weight is None else weight[held])
    return bool(before) and is_improvement(*map(np.concatenate, (before, after, often)))


def _is_short(documents: Documents, tokens: Any) -> bool:
    """Whether documents have few words, or few that spaces divide."""
    alone = replace(tokens, ngrams=(1, 1), bits=0, signed=False)
    texts = [documents.text(row, tokens.errors) for row in range(len(documents))]
    sizes = [len(tokenize(text, alone)) for text in texts if text is not None]
    return sum(sizes) < _SHORT_DOCUMENT_WORDS * len(sizes)


def is_improvement(before: Floats, after: Floats, weights: Floats | None = None) -> bool:
    """Whether losses of the same documents fall by more than chance, and by something.

    >>> rng = np.random.default_rng(0)
    >>> before = rng.uniform(0, 1, 400)
    >>> (
    ...     is_improvement(before, before - 0.1),
    ...     is_improvement(before, before - 0.001),
    ...     is_improvement(before, before + rng.normal(0, 1, 400)),
    ... )
    (True, False, False)
    """
    w = np.ones(len(before)) if weights is None else weights
    gain, total = before - after, max(float(w.sum()), 1e-300)
    mean = float(w @ gain) / total
    error = np.sqrt(float(w**2 @ (gain - mean) ** 2)) / total
    return bool(mean > _MIN_STANDARD_ERRORS * error and mean > _MIN_RELATIVE_GAIN * _weighted_mean(before, weights))


def _weighted_mean(loss: Floats, often: Floats | None) -> float:
    return float(np.average(loss, weights=often)) if often is None or often.any() else float(loss.mean())


def apply_text_weighting(tokens: HeldOutTokens, weighting: TextWeighting, scale: float | None = None) -> HeldOutTokens:
    """Words that were listed with the power 0, as they are heard; ``scale`` where it is known."""
    row = np.repeat(np.arange(len(tokens), dtype=np.int32), np.diff(tokens.ends))
    x = tokens.x.astype(np.float64)
    if weighting.count_mode >= 0:  # of counts that are 1 + log n
        x = occurrence_weights(weighting.count_mode, np.exp(x - 1.0))
    length = np.bincount(row, x, len(tokens))
    each = np.where(length > 0, np.maximum(length, 1e-300) ** -weighting.power, 1.0)
    if scale is None:
        scale = float(each.mean()) if len(tokens) else 1.0
    x *= (each / scale)[row]
    heard = replace(tokens, x=x.astype(np.float32), scale=scale, weighting=weighting)
    return (
        heard
        if not weighting.max_words
        else _select_tokens(heard, weighting.select_tokens(sorted_keys.count_blanks(tokens.letters, tokens.starts)))
    )


def _select_tokens(said: HeldOutTokens, kept: NDArray[np.bool_]) -> HeldOutTokens:
    """The words of some of the terms."""
    there = kept[said.token]
    ends = np.concatenate([[0], np.cumsum(there)])[said.ends].astype(np.int64)
    place = (np.cumsum(kept) - 1).astype(np.int32)
    letters, starts = sorted_keys.take_keys(said.letters, said.starts, np.flatnonzero(kept))
    known, group = np.unique(said.group[kept], return_inverse=True)
    return replace(
        said,
        letters=letters,
        starts=starts,
        ends=ends,
        token=place[said.token[there]],
        x=said.x[there],
        own_class_correction=said.own_class_correction[there],
        table=said.table[kept],
        group=group.astype(np.int64),
        n_groups=len(known),
    )
