"""Voices: the features of a model's laws, each with a weight that was learned.

A weighted score is a sum, as that of naive Bayes is, and no density: log p(x) and samples are those of the columns' own
laws, unweighted. Weights are learned from some of the rows, against counts of all of them; they come after the
counting, as a prior does, and may be learned again.

Those of two models with the same voices add up to their means, each by the rows that it was learned from. Nothing is
taken away again with rows that are: what was learned with them stays learned, and is told.

>>> north = Voices((np.array([1.0, 0.0]),), np.zeros(2), rows=300, strength=np.ones(1), counted=300)
>>> south = Voices((np.array([0.0, 1.0]),), np.zeros(2), rows=100, strength=np.ones(1), counted=5000)
>>> (north + south).weight[0].tolist(), (north + south).said(5300)
([0.75, 0.25], 'weights learned on 400 of 5,300 rows')
>>> south.without(7).said(4993), south.stale(9000), south.stale(10_000)
('weights learned on 100 rows, before 7 rows were forgotten; the counts now hold 4,993 rows', False, True)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.model import weights
from candide.model.admission import score_test
from candide.model.calibration import Isotonic, Logistic
from candide.model.census import Census
from candide.model.model import Model, class_log_prior, prior_for
from candide.model.plan import Part, Plan
from candide.model.settings import Settings
from candide.model.training_rows import FurtherRows, TrainingRows
from candide.rows import matching
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.labels import Labels
from candide.tally import Tally

if TYPE_CHECKING:
    from candide.conjugate.words import Words
    from candide.distributions.word_weights import WordWeights

_WORSE = -2.33  # z by which a joint term predicts worse than the class shares, and has weight 0: by chance 1 in 100
_FLAT = -5.0  # the same of a column: its classes are more alike than chance makes them, as in a full design


@dataclass(frozen=True, eq=False)
class Voices:
    """The weight of every feature of every part of a plan, and the bias of every class."""

    weight: tuple[Floats, ...]  # of each part, (feature)
    bias: Floats  # (class)
    rows: int  # from which they were learned
    strength: Floats  # (group) with which weights are held to their common mean
    counted: int  # rows that had been counted when they were learned
    gone: int = 0  # rows that were taken out since
    fresh: int = 0  # rows from which they were learned, and that were not counted then
    curve: Isotonic | None = None  # what bends the probabilities at last; a sum of models has none
    words: "tuple[WordWeights | None, ...]" = ()  # of each part, where every word has a weight of its own
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where rows repeat; None: 1

    def weigh(self, model: Model) -> Model:
        """A model whose laws count as these weights say, and whose class prior has the biases in it."""
        each = zip(model.distributions, self.weight, self._words, strict=True)
        # Words that are all there is leave the class shares where none is known: the biases go with what they say.
        alone = self.words and len(self.words) == 1 and self.weight[0][0] != 0
        silent = -self.bias / self.weight[0][0] if alone else None
        laws = tuple((law if words is None else law.heard(words, silent)).weighted(w) for law, w, words in each)
        log_prior = model.log_prior + self.bias
        shares = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=shares, distributions=laws, curve=self.curve)

    @property
    def _words(self) -> "tuple[WordWeights | None, ...]":
        return self.words or (None,) * len(self.weight)

    def calibrated(self, bent: Logistic | Isotonic, log_prior: Floats) -> "Voices":
        """The voices of scores that are multiplied and moved, or bent: ``log_prior`` is what the scores begin with."""
        if isinstance(bent, Isotonic):
            return replace(self, curve=bent)
        weight = tuple(bent.scale * w for w in self.weight)
        return replace(self, weight=weight, bias=(bent.scale - 1.0) * log_prior + bent.scale * self.bias + bent.bias)

    def among(self, mine: Labels, labels: Labels) -> "Voices":
        """The same voices where there are other classes: a class that they have not met has no bias."""
        if mine == labels:
            return self
        at = [matching.place(label, mine) for label in labels.values]
        copies = None if self.copies is None else np.array([1.0 if c is None else self.copies[c] for c in at])
        return replace(self, bias=np.array([0.0 if c is None else self.bias[c] for c in at]), copies=copies, curve=None)

    def effective(self, census: Census) -> Census:
        """Counts of independent draws: those of each class divided by how often its rows were copied."""
        return census if self.copies is None else census.scale(1.0 / self.copies)

    def first(self, n: int) -> "Voices":
        """The voices of the first parts of the plan; each of the others is a text, and a group of its own."""
        groups = len(self.strength) - len(self.weight[n:])
        return replace(self, weight=self.weight[:n], words=self.words[:n], strength=self.strength[:groups])

    @property
    def left(self) -> int:
        """How many of the rows that they were learned from must still be counted."""
        return max(self.rows - self.gone, 0)

    def __add__(self, other: "Voices") -> "Voices":
        """The voices of both: means, by the rows that each was learned from and that are still counted."""
        if not other.left:
            return self
        if not self.left:
            return other
        part = other.left / (self.left + other.left)
        return Voices(
            tuple((1 - part) * a + part * b for a, b in zip(self.weight, other.weight, strict=True)),
            (1 - part) * self.bias + part * other.bias,
            self.rows + other.rows,
            np.exp((1 - part) * np.log(self.strength) + part * np.log(other.strength)),
            max(self.counted, other.counted),
            self.gone + other.gone,
            self.fresh + other.fresh,
            words=tuple(
                a if b is None else b if a is None else a.mixed(b, part)
                for a, b in zip(self._words, other._words, strict=True)
            ),
            copies=None
            if self.copies is None and other.copies is None
            else (1 - part) * self._copies + part * other._copies,
        )

    @property
    def _copies(self) -> Floats:
        return np.ones(len(self.bias)) if self.copies is None else self.copies

    def without(self, rows: int, left: Sequence[Tally] = ()) -> "Voices":
        """The same voices, and word of rows that were taken out of the counts: they may have been learned from.

        ``left`` are the counts without them: terms of which nothing is left have no weight any more.
        """
        words = self.words
        if left:
            each = zip(words, left, strict=True) if words else ()
            words = tuple(one and one.only(tally.letters, tally.starts) for one, tally in each)  # type: ignore[attr-defined]
        return replace(self, gone=self.gone + rows, words=words)

    def stale(self, counted: int) -> bool:
        """Whether rows were taken out since they were learned, or have doubled."""
        return self.gone > 0 or counted >= 2 * self.counted

    def due(self, counted: int, at_hand: int) -> bool:
        """Whether to learn again, from so many rows at hand: where they are stale.

        Not from fewer rows than they were learned from, nor from fewer than there are weights.

        >>> voices = Voices((np.ones(2),), np.zeros(2), rows=300, strength=np.ones(1), counted=300)
        >>> voices.due(600, 300), voices.due(600, 50), voices.due(500, 300)
        (True, False, False)
        """
        return self.stale(counted) and at_hand >= max(self.rows, len(self.bias) + sum(map(len, self.weight)))

    def said(self, counted: int) -> str:
        """On which rows they were learned, in words.

        >>> voices = Voices((np.ones(2),), np.zeros(2), rows=300, strength=np.ones(1), counted=900)
        >>> voices.said(900), replace(voices, fresh=300).said(900)
        ('weights learned on 300 of 900 rows', 'weights learned on 300 rows that were not counted')
        """
        own, plural = self.rows - self.fresh, wording.plural
        is_part = not self.gone and own <= counted  # some of the rows that were forgotten may have been learned on
        learned = [plural(own) if not is_part else f"{own:,} of {plural(counted)}"] if own or not self.fresh else []
        learned += [f"{plural(self.fresh)} that were not counted"] if self.fresh else []
        gone = f", before {plural(self.gone)} {'was' if self.gone == 1 else 'were'} forgotten" if self.gone else ""
        now = "" if is_part else f"; the counts now hold {plural(counted)}"
        return f"weights learned on {' and '.join(learned)}{gone}{now}"


def groups_of(plan: Plan) -> list[int]:
    """The group of each feature: that of all columns, then one for each other part, or each of its features alone."""
    groups, last = [], 0
    for part in plan.parts:
        n = len(part.event.voices(part.columns))
        if part.event.has_density and part.holds != "documents":
            groups += [0] * n
        elif part.event.joint:
            groups += range(last + 1, last + 1 + n)
            last += n
        else:
            groups += [last + 1] * n
            last += 1
    return groups


def terms_of(census: Census, settings: Settings, rows: TrainingRows) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were counted, each without itself.

    A column that tells them worse than the class shares do is silent, as one of one bin is. What it says of a row is
    then little more than that the row was taken from its class, which a weight below 0 would turn into knowledge.
    """
    out = []
    shares = np.broadcast_to(np.exp(_shares(census)), (len(rows), len(census.labels)))
    for part, tally, block in zip(census.plan.parts, census.tallies, rows.blocks, strict=True):
        if part.event.hears_words:
            out.append(np.zeros((len(rows), len(census.labels), 1)))  # until its words are heard
            continue
        terms = weights.room(len(rows), len(census.labels), len(part.event.voices(part.columns)))
        prior = prior_for(part.event, settings.priors)
        terms = weights.kept(_held_out(part, tally, prior, block, rows, terms))
        if part.event.has_density or part.event.joint:
            worst = _WORSE if part.event.joint else _FLAT
            terms[:, :, score_test(terms, rows.y, shares, rows.weight) < worst] = 0.0
        out.append(terms)
    return out


def _held_out(part: Part, tally: Any, prior: Any, block: Any, rows: TrainingRows, out: NDArray) -> NDArray:
    """(row, class, voice) what a part says of rows without themselves.

    Cuts between bins lie where they tell most of the rows that were counted, and tell less of others: of many columns
    and few rows most of what they seem to tell is that. So those that a row is judged by are chosen by other folds.
    """
    y, removed = rows.y, rows.removed
    if not part.event.chooses or rows.fold is None:
        return part.event.held_out(tally, prior, "predictive", block, y, removed, out)
    for f in np.unique(rows.fold).tolist():
        own = np.flatnonzero(rows.fold == f)
        mine, classes = block[own], y[own]
        weight, left_out = (None if a is None else a[own] for a in (rows.weight, removed))
        gone = type(tally).of(mine, classes, weight, n_classes=len(tally.n), spec=part.spec)
        chosen = part.event.held_at(tally - gone)
        out[own] = chosen.held_out(tally, prior, "predictive", mine, classes, left_out)
    return out


def fresh_terms(census: Census, settings: Settings, blocks: Sequence[Block]) -> list[NDArray]:
    """(row, class, voice) of each part what it says of rows that were never counted: nothing is left out."""
    parts = zip(census.plan.parts, census.tallies, blocks, strict=True)
    return [
        np.zeros((block.shape[0], len(census.labels), 1))  # until its words are heard
        if part.event.hears_words
        else weights.kept(part.event.estimate(tally, prior_for(part.event, settings.priors)).terms(block))
        for part, tally, block in parts
    ]


def spoken(
    census: Census,
    settings: Settings,
    rows: TrainingRows,
    start: Voices | None = None,
    *,
    is_counted: bool = True,
) -> "dict[int, Words]":
    """The words of each part whose words are heard, by its place: what they say of rows, each without itself.

    How they are heard is chosen, unless ``start`` knows it.
    """
    from candide.model import listening
    from candide.rows.documents import Documents

    parts = enumerate(zip(census.plan.parts, census.tallies, rows.blocks, strict=True))
    found = {}
    for i, (part, tally, block) in parts:
        if part.event.hears_words:
            prior, known = prior_for(part.event, settings.priors), None if start is None else start._words[i]
            given = rows.y, rows.weight, rows.removed, is_counted
            listener = listening.Listener(part.event, tally, prior, Documents.of(block), *given)
            found[i] = listener.words(listener.choose(_shares(census)) if known is None else known.how)
    return found


def learn(
    census: Census,
    settings: Settings,
    rows: TrainingRows,
    start: Voices | None = None,
    *,
    is_counted: bool = True,
    patient: bool = False,
    more: FurtherRows | None = None,
) -> Voices:
    """Weights for the voices of a census, from some of its rows; sooner from ``start``.

    Words are heard first as if they were alone, then the other voices beside them, then both once more: each time what
    the others say is where they begin, so that all weights are those that make the rows likeliest together.
    ``is_counted`` says that the rows were counted, and each is to be left out while it teaches. Words learn from
    ``more`` of them.
    """
    from candide.model.shrinkage import shrink_to_prior

    if not teaches(rows.y):
        return untaught(census)
    terms = terms_of(census, settings, rows) if is_counted else fresh_terms(census, settings, rows.blocks)
    of_words = rows if more is None else more.rows
    known = start if more is None else None  # more rows choose again how words are heard
    texts, found = spoken(census, settings, of_words, known, is_counted=is_counted), start
    for _ in range(2 if 0 < len(texts) < len(terms) else 1):
        if more is not None and found is not None:
            more.score_terms(census, settings, found.weight, _held_out)
        heard = hear(census, of_words.weight, terms, texts, found, more)
        weight = rows.teaching(census.class_weight) if is_counted else rows.weight
        found = balance(census, rows.y, weight, terms, heard, found, patient=patient)
    assert found is not None
    return shrink_to_prior(census, rows.y, weight, terms, found)


def teaches(y: Codes) -> bool:
    """Whether rows can tell how much a voice counts: those of one class tell nothing."""
    return not bool((y == y[:1]).all())


def untaught(census: Census) -> Voices:
    """Each column counts once, as in naive Bayes, and each word: that was learned from no row."""
    from candide.distributions.word_weights import WordWeights

    groups = np.array(groups_of(census.plan), np.intp)
    heard = [part.event.hears_words for part in census.plan.parts]
    once = np.split((groups == 0).astype(np.float64), _ends(census.plan))
    each = tuple(np.ones(1) if words else own for words, own in zip(heard, once, strict=True))
    words = tuple(WordWeights.of([], [], rest=1.0) if one else None for one in heard) if any(heard) else ()
    return Voices(each, np.zeros(len(census.labels)), 0, np.ones(1 + max(groups, default=-1)), 0, words=words)


def hear(
    census: Census,
    weight: Floats | None,
    terms: Sequence[NDArray],
    texts: "Mapping[int, Words]",
    found: Voices | None,
    more: FurtherRows | None = None,
) -> "tuple[WordWeights | None, ...]":
    """The weights of words, given the voices ``found`` so far; what they come to is put among the ``terms``.

    Where the words are those of ``more`` rows, ``weight`` is theirs.
    """
    from candide.model import words

    out = list(found._words if found is not None else (None,) * len(terms))
    offset = _shares(census)
    if found is not None:
        each = zip(terms, found.weight, strict=True)
        others = [one @ w.astype(one.dtype) for j, (one, w) in enumerate(each) if j not in texts and more is None]
        offset = offset + found.bias + sum(others, np.zeros((1, 1))) + (0.0 if more is None else more.offset)
    learned = words.together([*texts.values()], offset, weight, [out[i] for i in texts]) if texts else []
    for i, one in zip(texts, learned, strict=True):
        out[i], terms[i][:, :, 0] = one.words, one.said if more is None else one.said[more.at]
    return tuple(out)


def balance(
    census: Census,
    y: Codes,
    weight: Floats | None,
    terms: Sequence[NDArray],
    heard: "tuple[WordWeights | None, ...]",
    start: Voices | None,
    *,
    patient: bool = False,
) -> Voices:
    """The weights of all other voices, beside words that have theirs: these are neither more nor less than they say."""
    from candide.model import words

    groups = np.array(groups_of(census.plan), np.intp)
    known = None if start is None else weights.Learned(np.concatenate(start.weight), start.bias, start.strength)
    free = [one if w is None else np.zeros_like(one) for one, w in zip(terms, heard, strict=True)]
    said = [one[:, :, 0] for one, w in zip(terms, heard, strict=True) if w is not None]
    offset, hold = _shares(census) + sum(said) if said else _shares(census), words.BIAS if said else weights.BIAS
    if len(said) == len(terms):  # where none of the words is known there is nothing to balance
        weight = np.where(np.any(said, axis=(0, 2)), 1.0 if weight is None else weight, 0.0)
    learned = weights.learn(
        free, offset, y, weight, groups=groups, start=known, patient=patient, hold=hold, noise=_noise(census)
    )
    each = zip(terms, np.split(learned.weight, _ends(census.plan)), heard, strict=True)
    weight_of = tuple(
        np.ones(1) if own is not None else np.where(part.any(axis=(0, 1)), w, 0.0) for part, w, own in each
    )
    own = tuple(heard) if said else ()
    return Voices(weight_of, learned.bias, len(y), learned.strength, census.n_rows, words=own)


def _noise(census: Census) -> Floats:
    """(term,) the degrees of freedom of column terms; interactions have passed a test that allows for theirs."""
    found, k = [np.zeros(0)], len(census.labels)
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        n = len(part.event.voices(part.columns))
        is_column = part.event.has_density and part.holds != "documents"
        found.append((k - 1) * part.event.free_parameters(tally, n) if is_column else np.zeros(n))
    return np.concatenate(found)


def _ends(plan: Plan) -> Codes:
    return np.cumsum([len(part.event.voices(part.columns)) for part in plan.parts])[:-1]


def _shares(census: Census) -> Floats:
    """log p(class) of the rows themselves: under another class prior the biases would only take it away again."""
    return class_log_prior(census, "jeffreys", "mean")


def posterior(census: Census, voices: Voices, terms: Sequence[NDArray]) -> Floats:
    """(row, class) what weighted voices come to."""
    return weights.posterior(terms, _shares(census) + voices.bias, np.concatenate(voices.weight))
