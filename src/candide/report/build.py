"""Making a page: a model judged on data where there are any, and all of it in one file.

>>> from candide.demo import garden, garden_rows
>>> from candide.model.fitted import FittedModel
>>> plants, herbs = garden_rows(300, seed=0)
>>> made = build_report(FittedModel(garden()), {**plants, "herb": herbs}, "herb")
>>> made.page.assessment.sentences[0][:45], made.text.count("<section"), made.page.missing_sections
('On 300 rows it names the right class in 95.3%', 8, ())
"""

import os
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from candide.data.notes import DataWarning
from candide.engines.addresses import redact_address
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions
from candide.errors import InputError, UnlabelledError
from candide.export.javascript import check_javascript, quote_wide_integers
from candide.export.parameters import export_parameters
from candide.model.fitted import FittedModel
from candide.monitoring.data_checks import check_data
from candide.monitoring.drift import detect_drift
from candide.operations.row_errors import evaluate_rows
from candide.report import html
from candide.report.summary.check import CheckSummary, summarize_check
from candide.report.summary.drift import DriftSummary, summarize_drift
from candide.report.summary.page import MissingSection, PageSummary, ReportSummary, summarize_page
from candide.store import outputs
from candide.store.models import ModelLike, load_fitted, make_read_options

_QUALITY_SECTION, _CASE_SECTION = "How good it is", "Try a case"
_MAX_ERRORS = 8  # rows that are told
_MIN_BYTES_PER_NUMBER = 6  # bytes that a number takes at least, however it is packed
_TOO_LARGE = (
    "with the numbers of this model the page would have {}{:,.0f} kB, and one like it should have {:,.0f} at most"
)
_FULL_REMEDY = "pass --whole (whole=True)"


@dataclass(frozen=True)
class RenderedReport:
    """A page as text, and the summary that it shows."""

    text: str
    page: PageSummary


def build_report(
    model: ModelLike,
    data: Any = None,
    target: str | None = None,
    *,
    weight: str | None = None,
    full: bool = False,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> RenderedReport:
    """The page of a model, judged on ``data`` where their labels are known.

    What cannot be made is left out, and the page says so. ``whole``: with every picture, however large it grows.
    """
    fitted = load_fitted(model)
    if isinstance(data, str) and data == "-":
        remedy = "write it to a file first"
        raise InputError("a report reads its data more than once, and standard input ends", value=data, remedy=remedy)
    if data is None:
        page = summarize_page(fitted)
    else:
        name, gap = _target(fitted, data, target, reading)
        judged, found, gaps = None, None, [gap] if gap else []
        if name is not None:
            try:
                judged = evaluate_rows(
                    fitted, data, name, weight=weight, max_errors=_MAX_ERRORS, reading=reading, watch=watch
                )
                found, gaps = _check_summary(fitted, data, name, weight, reading)
            except UnlabelledError as error:
                gaps = [MissingSection(_QUALITY_SECTION, error.problem, error.remedy or "")]
        moved = _drift_summary(fitted, data, reading)
        page = summarize_page(fitted, judged, found, data=_source_name(data), drift=moved, missing_sections=gaps)
    return _with_case(fitted, page, full)


def _with_case(fitted: FittedModel, page: PageSummary, is_full: bool) -> RenderedReport:
    """The page with the numbers of the model, by which it scores a case, where these can be written and have room."""
    if len(fitted.labels) < 2 or not page.terms:  # nothing to decide, or nothing that speaks
        return RenderedReport(html.render_page(page, full=is_full), page)
    try:
        least = sum(map(_min_bytes, fitted.model.distributions))
        if not is_full and least > html.MAX_PAGE_BYTES:
            raise InputError(
                _TOO_LARGE.format("more than ", least / 1e3, html.page_size_limit(page) / 1e3), remedy=_FULL_REMEDY
            )
        found = export_parameters(fitted)
        check_javascript(found)
        full = replace(page, parameters=quote_wide_integers(found))
        text = html.render_page(full, full=is_full)
        size, most = len(text.encode()), html.page_size_limit(full)
        if is_full or size <= most:
            return RenderedReport(text, full)
        raise InputError(_TOO_LARGE.format("", size / 1e3, most / 1e3), remedy=_FULL_REMEDY)
    except InputError as error:
        bare = replace(
            page,
            missing_sections=(
                *page.missing_sections,
                MissingSection(_CASE_SECTION, error.problem, error.remedy or "see candide export"),
            ),
        )
        return RenderedReport(html.render_page(bare, full=is_full), bare)


def _min_bytes(distribution: Any) -> int:
    """Bytes that the numbers of a law take at least on a page, those that are alike once; none where it cannot say."""
    try:
        own = sum(len(np.unique(array)) for array in distribution.arrays().values() if array.dtype.kind == "f")
    except InputError:
        return 0
    return _MIN_BYTES_PER_NUMBER * own + (
        0 if distribution.inner_distribution is None else _min_bytes(distribution.inner_distribution)
    )


def write_report(
    report: RenderedReport, model: Any, path: str | os.PathLike, data: Any = None, *, force: bool = False
) -> ReportSummary:
    """Write a page into a file, which may hold nothing but a page before, unless that is wanted by ``force``."""
    outputs.check_destination(path, model, data, ours=html.is_page, force=force)
    size = html.write_page(report.text, path, force=force)
    return ReportSummary(
        _source_name(model) or "a model",
        os.fspath(path),
        size,
        tuple(f"{one.section}: {one.reason}" for one in report.page.missing_sections),
    )


def _source_name(data: Any) -> str | None:
    """The name of a file, a folder, a query or a database; None of what is in memory."""
    return redact_address(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


def _target(
    fitted: FittedModel, data: Any, target: str | None, reading: ReadOptions | None
) -> tuple[str | None, MissingSection | None]:
    """The column of the labels, or what is missing of it."""
    name = target or fitted.target
    if name is None:
        remedy = "name the column of the labels: --target COL (target=...)"
        return None, MissingSection(_QUALITY_SECTION, "the model does not say which column it learned", remedy)
    with open_source(data, make_read_options(fitted, reading)) as source:
        there = name in source.columns
    if there or target is not None:  # what was named by a person must be there: an error says so
        return name, None
    remedy = f"pass rows whose {name!r} is known, or name the column of the labels: --target COL (target=...)"
    return None, MissingSection(_QUALITY_SECTION, f"{_source_name(data) or 'the table'} has no column {name!r}", remedy)


def _drift_summary(fitted: FittedModel, data: Any, reading: ReadOptions | None) -> DriftSummary | None:
    """Whether the data are like the rows that were learned; None where they are these, or that cannot be told."""
    if not fitted.has_counts or fitted.provenance.get("source", "") == _source_name(data):
        return None
    try:
        with catch_warnings():
            simplefilter("ignore", DataWarning)  # what there is to remark on the rows was told when they were scored
            return summarize_drift(detect_drift(fitted, data, reading=reading))
    except InputError:
        return None


def _check_summary(
    fitted: FittedModel, data: Any, target: str, weight: str | None, reading: ReadOptions | None
) -> tuple[CheckSummary | None, list[MissingSection]]:
    """What may be wrong with a table; where it cannot be looked at, why."""
    try:
        found = check_data(data, target, weight=weight, reading=make_read_options(fitted, reading))
    except InputError as error:
        return None, [
            MissingSection("What may be wrong with the table", error.problem, error.remedy or "see candide check")
        ]
    return summarize_check(_source_name(data) or "the table", target, found), []
