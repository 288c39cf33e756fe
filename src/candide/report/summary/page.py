"""The page: everything that is shown of a model in one place, and what could not be, with how to add it.

>>> from candide.demo import garden
>>> page = of_page(Fitted(garden()))
>>> page.title, [one.title for one in page.voices][:2], [one.what for one in page.gaps]
('What tells the class', ['leaf_mm', 'height_cm'], ['How good it is'])
>>> page.voices[0].sentence
'Says most for lavender at 71.35 (+40.35 nats), and most against it at 4.429 (-4.37).'
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import wording
from candide.explain.axes import axis
from candide.explain.effects import ColumnEffect, Effects
from candide.explain.voices import Voice, voices
from candide.model.fitted import Fitted
from candide.report.record import Summary
from candide.report.summary.check import CheckSummary
from candide.report.summary.drift import DriftSummary
from candide.report.summary.effects import class_shown, sentence
from candide.report.summary.models import ModelSummary, of_model
from candide.report.summary.rows import DecisionSummary
from candide.report.summary.verdict import Verdict, of_judged
from candide.rows.blocks import Floats
from candide.rows.table import Name
from candide.tasks.judge import Judged
from candide.tasks.models import Model, fitted_of

_LEVELS = 12  # of a category that are told in figures


@dataclass(frozen=True)
class VoiceSummary:
    """A voice along its values, and what it says most, in words. What is not known, or cannot be drawn, is empty."""

    title: str
    columns: tuple[Name, ...]
    kind: str
    weight: float
    strength: float | None
    sentence: str
    shape: str = ""  # "levels" | "steps" | "curve" | "table" | "terms" | ""
    names: tuple[tuple[str, ...], ...] = ()  # of each column its levels, bins or cells
    said: tuple[tuple[float, ...], ...] = ()  # for each class, against the mean of the others: nats of each cell
    often: tuple[float, ...] = ()  # the share of the rows in each
    at: tuple[float, ...] = ()  # the points of a curve, or the edges between steps
    bars: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # the edges of a histogram, and the share in each bar
    terms: tuple[tuple[tuple[str, float], ...], ...] = ()  # for each class its words, and their log-odds
    typical: str | float | None = None  # a value that is often met: a level by its name, or the middle of numbers
    n_terms: int = 1  # that a column is in: what is shown of it is its total effect over all of them

    @property
    def label(self) -> str:
        """What stands beside the title: the weight of a term, or in how many terms a column is."""
        return f"{self.kind}, in {self.n_terms} terms" if self.n_terms > 1 else f"{self.kind}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class SurpriseSummary:
    """A row that the model did not expect: p of its own label, and why it was given another."""

    row: int
    label: Any
    probability: float
    decision: DecisionSummary | None


@dataclass(frozen=True)
class Gap:
    """A part of the page that could not be made, why, and how to add it."""

    what: str
    why: str
    remedy: str


@dataclass(frozen=True, repr=False)
class PageSummary(Summary):
    """What a page shows of a model."""

    title: str
    model: ModelSummary
    shares: tuple[float, ...]
    towards: int  # the class that pictures are of at first
    voices: tuple[VoiceSummary, ...]  # strongest first
    verdict: Verdict | None
    surprises: tuple[SurpriseSummary, ...]
    check: CheckSummary | None
    gaps: tuple[Gap, ...]
    data: str | None = None  # what the model was judged on
    parameters: Mapping[str, Any] | None = None  # all numbers of the model, to score a case by
    policy: str | None = None  # what decides, where that is not the most probable class
    drift: DriftSummary | None = None  # whether the data are like the rows that it was learned from


@dataclass(frozen=True, repr=False)
class ReportSummary(Summary):
    """A page in a file: how large it is, and what is missing in it."""

    model: str
    output: str
    bytes: int
    gaps: tuple[str, ...]


def of_page(
    model: Model,
    judged: Judged | None = None,
    check: CheckSummary | None = None,
    *,
    data: str | None = None,
    drift: DriftSummary | None = None,
    gaps: Sequence[Gap] = (),
) -> PageSummary:
    """The page of a model, with what it scores on some data where it was judged, and what may be wrong with these."""
    fitted = fitted_of(model)
    found, shares = of_model(fitted, _LEVELS), fitted.shares
    towards = class_shown(shares)
    speak = _voices(fitted, towards) if len(shares) > 1 else []
    target = "the class" if fitted.target is None else fitted.target
    return PageSummary(
        f"What tells {target}",
        found,
        tuple(shares.tolist()),
        towards,
        tuple(speak),
        None if judged is None else of_judged(fitted, judged, data),
        () if judged is None else tuple(_surprises(judged)),
        check,
        (*gaps, *_gaps(fitted, judged, bool(gaps))),
        data,
        drift=drift,
        policy=found.policy if fitted.rule is not None else None,
    )


def _gaps(fitted: Fitted, judged: Judged | None, told: bool) -> list[Gap]:
    """What a page of this model lacks."""
    out = []
    if judged is None and not told:
        how = "name a table whose classes are known: candide report MODEL DATA -o report.html (model.report(data))"
        out.append(Gap("How good it is", "the model was not tried on any rows", how))
    if not fitted.has_counts:
        why = "the model keeps no counts, and so not how often values are met, nor which words tell most"
        out.append(Gap("Counts", why, "save it with its counts: model.save(path), detail='tally'"))
    if len(fitted.labels) < 2:
        how = "fit it to rows of two classes or more"
        out.append(Gap("What it listens to", f"it knows {wording.plural(len(fitted.labels), 'class', 'classes')}", how))
    return out


def _surprises(judged: Judged) -> list[SurpriseSummary]:
    why = {one.row: DecisionSummary(*one) for one in judged.explained}
    return [SurpriseSummary(one.row, one.label, float(np.exp(-one.nats)), why.get(one.row)) for one in judged.surprises]


def _voices(fitted: Fitted, c: int) -> list[VoiceSummary]:
    """Every voice, strongest first; a column with its total effect over all terms that it is in."""
    known = voices(fitted)
    effects = {one.column: one for one in Effects(fitted, known).all if one.terms > 1}
    found = [_voice(fitted, one, c, effects.get(one.columns[0]) if one.kind == "column" else None) for one in known]
    return sorted(found, key=lambda one: np.inf if one.strength is None else -one.strength)


def _voice(fitted: Fitted, one: Voice, c: int, total: ColumnEffect | None = None) -> VoiceSummary:
    found = axis(fitted, one) if total is None else total.axis
    every = [] if found.nats is None else [found.against(fitted.shares, k) for k in range(len(fitted.labels))]
    return VoiceSummary(
        one.title,
        one.columns,
        one.kind,
        one.weight,
        one.strength if total is None else total.importance,
        sentence(fitted, found, c),
        found.shape,
        found.names,
        tuple(map(_plain, every)),
        _plain(found.often),
        _plain(found.at),
        ((), ()) if found.bars is None else (_plain(found.bars[0]), _plain(found.bars[1])),
        tuple(tuple((term.term, term.log_odds) for term in some) for some in found.terms),
        found.typical,
        1 if total is None else total.terms,
    )


def _plain(values: Floats | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.ravel().tolist())
