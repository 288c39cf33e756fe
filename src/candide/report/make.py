"""Making a page: a model judged on data where there are any, and all of it in one file.

>>> from candide.demo import garden, rows
>>> from candide.model.fitted import Fitted
>>> plants, herbs = rows(300, seed=0)
>>> made = make(Fitted(garden()), {**plants, "herb": herbs}, "herb")
>>> made.page.verdict.sentences[0][:45], made.text.count("<section"), made.page.gaps
('On 300 rows it names the right class in 95.3%', 8, ())
"""

import os
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from candide.engines.addresses import shown
from candide.engines.base import Watch, open_source, silent
from candide.engines.reading import Reading
from candide.errors import InputError, UnlabelledError
from candide.export.javascript import check as check_javascript
from candide.export.javascript import exact
from candide.export.parameters import parameters
from candide.model.fitted import Fitted
from candide.report import html
from candide.report.summary.check import CheckSummary, of_check
from candide.report.summary.drift import DriftSummary, of_drift
from candide.report.summary.page import Gap, PageSummary, ReportSummary, of_page
from candide.rows.remarks import RemarkWarning
from candide.tasks import outputs
from candide.tasks.check import check
from candide.tasks.drift import drift
from candide.tasks.judge import judge
from candide.tasks.models import Model, fitted_of, reading_of

_QUALITY, _CASE = "How good it is", "Try a case"
_SURPRISES = 8  # rows that are told
_PACKED = 6  # bytes that a number takes at least, however it is packed
_LARGE = "with the numbers of this model the page would have {}{:,.0f} kB, and one like it should have {:,.0f} at most"
_WHOLE = "pass --whole (whole=True)"


@dataclass(frozen=True)
class Made:
    """A page as text, and the summary that it shows."""

    text: str
    page: PageSummary


def make(
    model: Model,
    data: Any = None,
    target: str | None = None,
    *,
    weight: str | None = None,
    whole: bool = False,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Made:
    """The page of a model, judged on ``data`` where their labels are known.

    What cannot be made is left out, and the page says so. ``whole``: with every picture, however large it grows.
    """
    fitted = fitted_of(model)
    if isinstance(data, str) and data == "-":
        remedy = "write it to a file first"
        raise InputError("a report reads its data more than once, and standard input ends", value=data, remedy=remedy)
    if data is None:
        page = of_page(fitted)
    else:
        name, gap = _target(fitted, data, target, reading)
        judged, found, gaps = None, None, [gap] if gap else []
        if name is not None:
            try:
                judged = judge(fitted, data, name, weight=weight, most=_SURPRISES, reading=reading, watch=watch)
                found, gaps = _checked(fitted, data, name, weight, reading)
            except UnlabelledError as error:
                gaps = [Gap(_QUALITY, error.what, error.remedy or "")]
        moved = _moved(fitted, data, reading)
        page = of_page(fitted, judged, found, data=_named(data), drift=moved, gaps=gaps)
    return _with_case(fitted, page, whole)


def _with_case(fitted: Fitted, page: PageSummary, whole: bool) -> Made:
    """The page with the numbers of the model, by which it scores a case, where these can be written and have room."""
    if len(fitted.labels) < 2 or not page.voices:  # nothing to decide, or nothing that speaks
        return Made(html.render(page, whole=whole), page)
    try:
        least = sum(map(_least, fitted.model.distributions))
        if not whole and least > html.MOST:
            raise InputError(_LARGE.format("more than ", least / 1e3, html.room(page) / 1e3), remedy=_WHOLE)
        found = parameters(fitted)
        check_javascript(found)
        full = replace(page, parameters=exact(found))
        text = html.render(full, whole=whole)
        size, most = len(text.encode()), html.room(full)
        if whole or size <= most:
            return Made(text, full)
        raise InputError(_LARGE.format("", size / 1e3, most / 1e3), remedy=_WHOLE)
    except InputError as error:
        bare = replace(page, gaps=(*page.gaps, Gap(_CASE, error.what, error.remedy or "see candide export")))
        return Made(html.render(bare, whole=whole), bare)


def _least(law: Any) -> int:
    """Bytes that the numbers of a law take at least on a page, those that are alike once; none where it cannot say."""
    try:
        own = sum(len(np.unique(array)) for array in law.arrays().values() if array.dtype.kind == "f")
    except InputError:
        return 0
    return _PACKED * own + (0 if law.inner is None else _least(law.inner))


def write(made: Made, model: Any, path: str | os.PathLike, data: Any = None, *, force: bool = False) -> ReportSummary:
    """Write a page into a file, which may hold nothing but a page before, unless that is wanted by ``force``."""
    outputs.check(path, model, data, ours=html.is_page, force=force)
    size = html.write(made.text, path, force=force)
    return ReportSummary(
        _named(model) or "a model", os.fspath(path), size, tuple(f"{one.what}: {one.why}" for one in made.page.gaps)
    )


def _named(data: Any) -> str | None:
    """The name of a file, a folder, a query or a database; None of what is in memory."""
    return shown(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


def _target(fitted: Fitted, data: Any, target: str | None, reading: Reading | None) -> tuple[str | None, Gap | None]:
    """The column of the labels, or what is missing of it."""
    name = target or fitted.target
    if name is None:
        remedy = "name the column of the labels: --target COL (target=...)"
        return None, Gap(_QUALITY, "the model does not say which column it learned", remedy)
    with open_source(data, reading_of(fitted, reading)) as source:
        there = name in source.columns
    if there or target is not None:  # what was named by a person must be there: an error says so
        return name, None
    remedy = f"pass rows whose {name!r} is known, or name the column of the labels: --target COL (target=...)"
    return None, Gap(_QUALITY, f"{_named(data) or 'the table'} has no column {name!r}", remedy)


def _moved(fitted: Fitted, data: Any, reading: Reading | None) -> DriftSummary | None:
    """Whether the data are like the rows that were learned; None where they are these, or that cannot be told."""
    if not fitted.has_counts or fitted.provenance.get("source", "") == _named(data):
        return None
    try:
        with catch_warnings():
            simplefilter("ignore", RemarkWarning)  # what there is to remark on the rows was told when they were scored
            return of_drift(drift(fitted, data, reading=reading))
    except InputError:
        return None


def _checked(
    fitted: Fitted, data: Any, target: str, weight: str | None, reading: Reading | None
) -> tuple[CheckSummary | None, list[Gap]]:
    """What may be wrong with a table; where it cannot be looked at, why."""
    try:
        found = check(data, target, weight=weight, reading=reading_of(fitted, reading))
    except InputError as error:
        return None, [Gap("What may be wrong with the table", error.what, error.remedy or "see candide check")]
    return of_check(_named(data) or "the table", target, found), []
