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

from candide.conjugate.words import Words
from candide.distributions.hearing import USUAL, Hearing
from candide.encode.tokens import PLAIN, SUBLINEAR, terms_of
from candide.kernels.text_twin import weights_of
from candide.model import words
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.rows.lots import drawn, lots
from candide.tally import Terms, keys

_FEWEST = 100  # documents: fewer tell nothing beyond chance
_MOST = 1000  # documents of which a choice is made unasked
_PART = 5  # one of so many parts is held out
_TIMES = 3  # at most that another part is
_HELD = 1000  # documents in all that are held out, about
_TEACH = 10_000  # documents that teach weights in a trial, at most: of a tenth of them, pairs would seem to say little
_FEW_WORDS = 8  # of a document, in the mean: titles, names, and what is written without spaces have fewer
_GLANCE, _SHORT_ONES = 256, 3000  # documents that tell whether they are short, and on which characters are tried
_SURE = 2.0  # standard errors that a change must gain,
_WORTH = 0.01  # and the share of the log-loss
_STEPS, _CLOSE = 40, 1e-4  # of L-BFGS in a trial, which is after differences of parts in a hundred

CHANGES: tuple[dict[str, Any], ...] = (
    {"longest": 1},
    {"power": 0.0},
    {"power": 1.0},
    {"manner": PLAIN},
    {"strength": 1.0},
    {"strength": 100.0},
    {"strength": np.inf},
    {"weighs": False, "power": 0.0, "longest": 0, "manner": -1},
)


_PLAINLY = Hearing(power=0.0)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Documents that teach, and others that are held out, of counts without these."""

    taught: Words
    often: Floats | None
    held: Words
    offset: Floats

    def loss(self, how: Hearing, *others: "_Trial") -> Floats:
        """(document held out) its log-loss, by weights that the rest taught; ``others`` are heard beside, as usual."""
        parts = [(self, how), *((one, USUAL) for one in others)]
        mine = [hear(one.taught, each) for one, each in parts]
        learned = words.together(mine, self.offset, self.often, steps=_STEPS, close=_CLOSE)
        held = [hear(one.held, each, said.scale) for (one, each), said in zip(parts, mine, strict=True)]
        both = list(zip(held, learned, strict=True))
        said = sum(one.scores(found.words.among(one.letters, one.starts) * one.scale) for one, found in both)
        known = sum(np.diff(one.ends) for one in held)[:, None] > 0  # type: ignore[index]  # else class shares are all
        scores = self.offset + np.where(known, said + learned[0].bias, 0.0)
        return np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), self.held.y]


@dataclass(frozen=True, eq=False)
class Listener:
    """Documents, and a tally that counts them and perhaps more, or them not (``is_counted``)."""

    event: Any
    tally: Any
    prior: Any
    documents: Documents
    y: Codes
    weight: Floats | None = None
    removed: Floats | None = None  # (document,) what leaving it out takes from the counts; None: its weight
    is_counted: bool = True

    def choose(self, offset: Floats) -> Hearing:
        """How the words are best heard; ``offset`` is log p(class)."""
        if len(self.y) < _FEWEST:
            return Hearing(strength=np.inf)  # they cannot tell single words apart
        if self.event.choose is False or (self.event.choose is None and len(self.y) > _MOST):
            return Hearing()
        trials = list(self.trials(offset))
        if not trials:
            return Hearing()
        held, tried = zip(*trials, strict=True)
        often = None if self.weight is None else np.concatenate([self.weight[rows] for rows in held])
        best, found = Hearing(), []
        least = [one.loss(best) for one in tried]
        for change in CHANGES:
            if not self._possible(change):
                continue
            other = replace(best, **change)
            found = [tried[0].loss(other)]
            if found[0].sum() < least[0].sum() or not other.weighs:  # what loses the first time is not tried again
                found += [one.loss(other) for one in tried[1:]]
                if gains(np.concatenate(least), np.concatenate(found), often):
                    best, least = other, found
        loss, naive = (_mean(np.concatenate(each), often) for each in (least, found))  # naive: the last change of all
        return replace(best, loss=loss, naive=naive)

    def _possible(self, change: dict[str, Any]) -> bool:
        """Whether a change is one of such terms: of words without pairs there are no pairs to leave out."""
        tokens = self.event.tokens
        if change.get("longest"):
            return tokens.has_words and tokens.ngrams[0] == 1 and tokens.ngrams[1] > 1
        return change.get("manner", -1) < 0 or tokens.manner == SUBLINEAR

    def trials(self, offset: Floats) -> "Iterator[tuple[Codes, _Trial]]":
        """The rows that are held out, and what is tried on them."""
        n = len(self.y)
        order, size = np.argsort(lots(np.arange(n)), kind="stable"), min(n // _PART, _HELD)
        for time in range(max(1, min(_TIMES, _HELD // size))):
            rows = np.roll(order, -time * size)
            mine, others = np.sort(rows[:size]), np.sort(rows[size : size + _TEACH])
            mine = mine[np.isin(self.y[mine], self.y[others])]  # of a class without others nothing can be known
            if not len(mine):
                continue
            held, rest = self._some(mine), self._some(others)
            if self.is_counted:
                gone = Terms.of(held.documents, held.y, held.weight, n_classes=self.tally.n_classes, spec=self._spec)
                left = self.tally - gone
                held, rest = replace(held, tally=left, is_counted=False), replace(rest, tally=left)
            yield mine, _Trial(rest.words(_PLAINLY), rest.weight, held.words(_PLAINLY), offset)

    @property
    def _spec(self) -> Any:
        return self.event.spec(1)

    def _some(self, rows: Codes) -> "Listener":
        weight, removed = (None if a is None else a[rows] for a in (self.weight, self.removed))
        return replace(self, documents=self.documents.take(rows), y=self.y[rows], weight=weight, removed=removed)

    def words(self, how: Hearing) -> Words:
        """The words of the documents, as they are heard."""
        given = self.tally, self.prior, self.documents, self.y, self.weight if self.removed is None else self.removed
        power = how.power if how.manner < 0 and not how.longest else 0.0
        said = self.event.words(*given, power=power, is_counted=self.is_counted)
        return replace(said, how=how) if power == how.power and not how.longest else hear(said, how)


def characters_help(
    words: Any,
    characters: Any,
    documents: Documents,
    y: Codes,
    weight: Floats | None,
    n_classes: int,
    removed: Floats | None = None,
) -> bool:
    """Whether runs of characters tell more beside the words, by documents held out: tried where these are short.

    ``words`` and ``characters`` are the event models; ``removed`` is what leaving a document out takes from the counts.
    """
    some = drawn(np.arange(len(y)), _SHORT_ONES)
    if len(y) < _FEWEST or not _short(documents.take(some[:_GLANCE]), words.tokens):
        return False
    documents, y = documents.take(some), y[some]
    weight, removed = (None if a is None else a[some] for a in (weight, removed))
    n = np.bincount(y, weight, n_classes)
    offset, each = np.log((n + 0.5) / (n.sum() + 0.5 * n_classes)), []
    for event in (words, characters):
        tally = Terms.of(documents, y, weight, n_classes=n_classes, spec=event.spec(1))
        each.append(Listener(event, tally, None, documents, y, weight, removed).trials(offset))
    before, after, often = [], [], []
    for (held, alone), (_, beside) in zip(*each, strict=True):
        before.append(alone.loss(USUAL))
        after.append(alone.loss(USUAL, beside))
        often.append(np.ones(len(held)) if weight is None else weight[held])
    return bool(before) and gains(*map(np.concatenate, (before, after, often)))


def _short(documents: Documents, tokens: Any) -> bool:
    """Whether documents have few words, or few that spaces divide."""
    alone = replace(tokens, ngrams=(1, 1), bits=0, signed=False)
    texts = [documents.text(row, tokens.errors) for row in range(len(documents))]
    sizes = [len(terms_of(text, alone)) for text in texts if text is not None]
    return sum(sizes) < _FEW_WORDS * len(sizes)


def gains(before: Floats, after: Floats, often: Floats | None = None) -> bool:
    """Whether losses of the same documents fall by more than chance, and by something.

    >>> rng = np.random.default_rng(0)
    >>> before = rng.uniform(0, 1, 400)
    >>> gains(before, before - 0.1), gains(before, before - 0.001), gains(before, before + rng.normal(0, 1, 400))
    (True, False, False)
    """
    w = np.ones(len(before)) if often is None else often
    gain, total = before - after, max(float(w.sum()), 1e-300)
    mean = float(w @ gain) / total
    error = np.sqrt(float(w**2 @ (gain - mean) ** 2)) / total
    return bool(mean > _SURE * error and mean > _WORTH * _mean(before, often))


def _mean(loss: Floats, often: Floats | None) -> float:
    return float(np.average(loss, weights=often)) if often is None or often.any() else float(loss.mean())


def hear(said: Words, how: Hearing, scale: float | None = None) -> Words:
    """Words that were listed with the power 0, as they are heard; ``scale`` where it is known."""
    row = np.repeat(np.arange(len(said), dtype=np.int32), np.diff(said.ends))
    x = said.x.astype(np.float64)
    if how.manner >= 0:  # of counts that are 1 + log n
        x = weights_of(how.manner, np.exp(x - 1.0))
    length = np.bincount(row, x, len(said))
    each = np.where(length > 0, np.maximum(length, 1e-300) ** -how.power, 1.0)
    if scale is None:
        scale = float(each.mean()) if len(said) else 1.0
    x *= (each / scale)[row]
    heard = replace(said, x=x.astype(np.float32), scale=scale, how=how)
    return heard if not how.longest else _only(heard, how.among(keys.blanks(said.letters, said.starts)))


def _only(said: Words, kept: NDArray[np.bool_]) -> Words:
    """The words of some of the terms."""
    there = kept[said.term]
    ends = np.concatenate([[0], np.cumsum(there)])[said.ends].astype(np.int64)
    place = (np.cumsum(kept) - 1).astype(np.int32)
    letters, starts = keys.taken(said.letters, said.starts, np.flatnonzero(kept))
    known, group = np.unique(said.group[kept], return_inverse=True)
    return replace(
        said,
        letters=letters,
        starts=starts,
        ends=ends,
        term=place[said.term[there]],
        x=said.x[there],
        own=said.own[there],
        table=said.table[kept],
        group=group.astype(np.int64),
        n_groups=len(known),
    )
