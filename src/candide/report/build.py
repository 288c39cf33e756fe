"""Building a report: a model, evaluated on data where there are any, as one HTML file.

>>> from candide.demo import garden, garden_rows
>>> from candide.model.fitted import FittedModel
>>> plants, herbs = garden_rows(300, seed=0)
>>> report = build_report(FittedModel(garden()), {**plants, "herb": herbs}, "herb")
>>> report.page.assessment.sentences[0][:27], report.text.count("<section"), report.page.missing_sections
('Accuracy 95.3% on 300 rows;', 8, ())
"""

import os
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from candide.data.notes import DataWarning
from candide.engines.addresses import redact_address
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.errors import InputError, UnlabelledError
from candide.export.modules import check_javascript, quote_wide_integers
from candide.export.parameters import export_parameters
from candide.files import check_output
from candide.model.fitted import FittedModel
from candide.monitoring.data_checks import check_data
from candide.monitoring.drift import detect_drift
from candide.report import html
from candide.report.summary.monitoring import CheckSummary, DriftSummary, summarize_check, summarize_drift
from candide.report.summary.page import (
    DATA_WARNINGS,
    PERFORMANCE,
    WHAT_IF,
    MissingSection,
    PageSummary,
    ReportSummary,
    summarize_page,
)
from candide.store.models import ModelLike, load_fitted
from candide.validation.row_errors import evaluate_rows

_MAX_ERRORS = 8  # rows with the largest errors
_MIN_BYTES_PER_NUMBER = 6  # bytes that a number takes at least
_TOO_LARGE = "with the parameters of this model the page would have {}{:,.0f} kB; the limit is {:,.0f} kB"
_FULL_REMEDY = "pass --full (full=True)"


@dataclass(frozen=True)
class RenderedReport:
    """A page as text, and its summary."""

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
    """Build the report of a model, evaluated on ``data`` where the labels are known.

    What cannot be made is left out, and the report lists it. ``full`` draws every chart, however large the page grows.
    """
    fitted = load_fitted(model)
    if isinstance(data, str) and data == "-":
        remedy = "write it to a file first"
        raise InputError(
            "a report reads its data more than once, so not from standard input", value=data, remedy=remedy
        )
    if data is None:
        return _add_parameters(fitted, summarize_page(fitted), full)
    name, gap = _target(fitted, data, target, reading)
    evaluation, check, missing = None, None, [gap] if gap else []
    if name is not None:
        try:
            evaluation = evaluate_rows(
                fitted, data, name, weight=weight, max_errors=_MAX_ERRORS, reading=reading, watch=watch
            )
            check, missing = _check_summary(fitted, data, name, weight, reading)
        except UnlabelledError as error:
            missing = [MissingSection(PERFORMANCE, error.problem, error.remedy or "")]
    drift = _drift_summary(fitted, data, reading)
    page = summarize_page(fitted, evaluation, check, data=_source_name(data), drift=drift, missing_sections=missing)
    return _add_parameters(fitted, page, full)


def _add_parameters(fitted: FittedModel, page: PageSummary, full: bool) -> RenderedReport:
    """Render the page with the parameters of the model, where these can be written and fit, to score rows in it."""
    if len(fitted.labels) < 2 or not page.terms:
        return RenderedReport(html.render_page(page, full=full), page)
    try:
        least = sum(map(_min_bytes, fitted.model.distributions))
        if not full and least > html.MAX_PAGE_BYTES:
            limit = html.page_size_limit(page) / 1e3
            raise InputError(_TOO_LARGE.format("more than ", least / 1e3, limit), remedy=_FULL_REMEDY)
        parameters = export_parameters(fitted)
        check_javascript(parameters)
        whole = replace(page, parameters=quote_wide_integers(parameters))
        text = html.render_page(whole, full=full)
        size, limit = len(text.encode()), html.page_size_limit(whole)
        if full or size <= limit:
            return RenderedReport(text, whole)
        raise InputError(_TOO_LARGE.format("", size / 1e3, limit / 1e3), remedy=_FULL_REMEDY)
    except InputError as error:
        missing = MissingSection(WHAT_IF, error.problem, error.remedy or "see candide export")
        page = replace(page, missing_sections=(*page.missing_sections, missing))
        return RenderedReport(html.render_page(page, full=full), page)


def _min_bytes(distribution: Any) -> int:
    """Return how many bytes the numbers of a distribution take at least, equal ones once; 0 where that is not known."""
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
    """Write a report into a file; a file that is not a report is overwritten only with ``force``."""
    check_output(path, model, data, is_own_file=html.is_page, force=force)
    size = html.write_page(report.text, path, force=force)
    return ReportSummary(
        _source_name(model) or "a model",
        os.fspath(path),
        size,
        tuple(f"{one.section}: {one.reason}" for one in report.page.missing_sections),
    )


def _source_name(data: Any) -> str | None:
    """Return the name of a file, a folder, a query or a database; None for data in memory."""
    return redact_address(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


def _target(
    fitted: FittedModel, data: Any, target: str | None, reading: ReadOptions | None
) -> tuple[str | None, MissingSection | None]:
    """Return the column of the labels, or why there is none."""
    name = target or fitted.target
    if name is None:
        remedy = "name the column of the labels: --target COL (target=...)"
        return None, MissingSection(PERFORMANCE, "the model has no target column", remedy)
    with open_source(data, make_read_options(fitted, reading)) as source:
        is_there = name in source.columns
    if is_there or target is not None:  # evaluation raises an error for a named column that is not there
        return name, None
    remedy = f"pass rows with {name!r}, or name the column of the labels: --target COL (target=...)"
    return None, MissingSection(PERFORMANCE, f"{_source_name(data) or 'the table'} has no column {name!r}", remedy)


def _drift_summary(fitted: FittedModel, data: Any, reading: ReadOptions | None) -> DriftSummary | None:
    """Return the drift of the data from the training rows; None where they are the same, or it cannot be tested."""
    if not fitted.has_counts or fitted.provenance.get("source", "") == _source_name(data):
        return None
    try:
        with catch_warnings():
            simplefilter("ignore", DataWarning)  # the evaluation has issued the warnings about the rows
            return summarize_drift(detect_drift(fitted, data, reading=reading))
    except InputError:
        return None


def _check_summary(
    fitted: FittedModel, data: Any, target: str, weight: str | None, reading: ReadOptions | None
) -> tuple[CheckSummary | None, list[MissingSection]]:
    """Return the data check of a table, or why it cannot be checked."""
    try:
        found = check_data(data, target, weight=weight, reading=make_read_options(fitted, reading))
    except InputError as error:
        return None, [MissingSection(DATA_WARNINGS, error.problem, error.remedy or "see candide check")]
    return summarize_check(_source_name(data) or "the table", target, found), []
