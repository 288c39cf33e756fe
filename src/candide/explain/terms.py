"""Terms of a column of text: those that speak most for a class, and those of a document that decided."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import wording
from candide.encode.tokens import shown
from candide.errors import InputError, unknown
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.documents import Documents
from candide.rows.table import Name


@dataclass(frozen=True)
class TopTerm:
    """A term that speaks for a class: log-odds against all other classes, and how often it occurs in both.

    Where words have weights these are in the log-odds; where repeats count less, it is the documents that are counted.
    """

    term: str
    log_odds: float
    count: float
    others: float


def top_terms(fitted: Fitted, column: Name | None, label: Any, n: int = 10) -> list[TopTerm]:
    """The terms of a column of text that speak most for a class; of equals the more frequent, then by name."""
    i, part = text_part(fitted, column)
    if label not in fitted.labels.values:
        raise unknown("class", label, fitted.labels.values)
    event, c = part.event, fitted.labels.values.index(label)
    odds, tally = event.log_odds(fitted.chosen.tallies[i], c)  # type: ignore[attr-defined]
    law: Any = fitted.model.distributions[i].unweighted[0]
    odds = odds * law.heard_as(tally.letters, tally.starts)
    mine = tally.class_of_cell == c
    names, tokens = tally.keys(), event.tokens  # type: ignore[attr-defined]
    often = tally.documents if tokens.sublinear else tally.total
    count = np.bincount(tally.word[mine], often[mine], tally.n_terms)
    others = np.bincount(tally.word[~mine], often[~mine], tally.n_terms)
    best = np.flatnonzero(odds >= np.sort(odds)[-n:][0]) if 0 < n < len(odds) else np.arange(len(odds))
    order = sorted(best.tolist(), key=lambda i: (-odds[i], -count[i], names[i]))[: max(n, 0)]
    terms = [shown(names[i], tokens) for i in order]
    rows = zip(terms, odds[order].tolist(), count[order].tolist(), others[order].tolist(), strict=True)
    return [TopTerm(*row) for row in rows]


@dataclass(frozen=True)
class DocumentTerm:
    """A term of a document: how often it occurs, and its log-odds for the class predicted over the next likely one."""

    term: str
    count: float
    weight: float


def document_terms(fitted: Fitted, text: str, column: Name | None = None, n: int = 10) -> list[DocumentTerm]:
    """The terms of a document that decided, strongest first, whichever of the two classes they speak for."""
    i, _ = text_part(fitted, column)
    if fitted.model.n_classes < 2:
        return []  # where there is one class only, nothing was decided
    return list(terms_of(fitted.model.distributions[i], Documents.of([text]), *rivals(fitted, text, column))[:n])


def rivals(fitted: Fitted, text: str, column: Name | None = None) -> tuple[int, int]:
    """The codes of the two classes between which a document decides: the likeliest, and the next."""
    i, _ = text_part(fitted, column)
    law: Any = fitted.model.distributions[i]
    score = law.log_prob(Documents.of([text]))[0] + fitted.model.log_prior
    first, second = np.argsort(-score, kind="stable")[:2].tolist()
    return first, second


def terms_of(law: Any, document: Documents, first: int, second: int) -> tuple[DocumentTerm, ...]:
    """The terms of one document that a law knows, and what each says for one class against another, strongest first.

    What else the law says of a document is of its length, or of terms that it does not have.
    """
    law, [counts] = law.unweighted
    times, place, _ = law.rows(document)
    weight = counts * law.said(place, times)
    gain = weight[:, first] - weight[:, second]
    order = np.argsort(-np.abs(gain), kind="stable")
    keys = [shown(law.cells.key(i), law.tokens) for i in place[order].tolist()]
    return tuple(DocumentTerm(*row) for row in zip(keys, times[order].tolist(), gain[order].tolist(), strict=True))


def text_part(fitted: Fitted, column: Name | None = None) -> tuple[int, Part]:
    """The part of a column of text; of the only one where none is named."""
    found: dict[Name, tuple[int, Part]] = {}
    for i, part in enumerate(fitted.plan.parts):
        if part.holds == "documents":
            found.setdefault(part.columns[0], (i, part))  # of a column with several voices, the first
    if column is None and len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise _no_text(fitted)
    if column not in found:
        raise unknown("column of text", column, found)
    return found[column]


def _no_text(fitted: Fitted) -> InputError:
    """The error of a model that counts no text, with the column whose levels have most words where there are any."""
    words = {
        name: sum(len(str(one).split()) for one in labels.values) / len(labels)
        for part in fitted.plan.parts
        for name, labels in zip(part.columns, part.levels, strict=False)
        if len(labels) and all(isinstance(one, str) for one in labels.values)
    }
    what = f"this model has no column of text; it was fitted on {wording.listing(fitted.plan.columns)}"
    if not words:
        return InputError(what)
    name = max(words, key=words.__getitem__)
    remedy = f"fit it with --event {name}=text (events={{...}}) if that is its text"
    return InputError(f"{what}, of which {name!r} is counted as categories", value=name, remedy=remedy)
