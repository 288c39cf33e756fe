"""Building a report: a model, evaluated on data where there are any, as one HTML file."""

import os
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from candide.data.notes import DataWarning
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.reading import ReadOptions, make_read_options, redact_address
from candide.errors import InputError, UnlabelledError
from candide.export.parameters import export_parameters
from candide.export.targets import check_javascript, quote_wide_integers
from candide.files import check_output, write_atomically
from candide.model.fitted import FittedModel
from candide.monitoring.data_checks import check_data
from candide.monitoring.drift import detect_drift
from candide.report.html import page as html
from candide.report.summary import page as pages
from candide.report.summary.monitoring import DriftSummary, summarize_check, summarize_drift
from candide.report.summary.page import MissingSection, PageSummary, ReportSummary
from candide.store.file import ModelLike, load_fitted
from candide.validation.evaluation import evaluate_rows

_MAX_ERRORS = 8  # rows with the largest errors
_MIN_BYTES_PER_NUMBER = 6  # bytes that a number takes at least
_TOO_LARGE = "with the parameters of this model the page would have {}{:,.0f} kB; the limit is {:,.0f} kB"
_FULL_REMEDY = "pass --full (full=True)"


@dataclass(frozen=True)
class RenderedReport:
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
        problem = "a report reads its data more than once, so not from standard input"
        raise InputError(problem, value=data, remedy="write it to a file first")
    if data is None:
        return _add_parameters(fitted, pages.summarize_page(fitted), full)
    name, gap = _target(fitted, data, target, reading)
    evaluation, check, missing, source = None, None, [gap] if gap else [], _source_name(data)
    if name is not None:
        how: Any = {"weight": weight, "reading": reading, "watch": watch}
        try:
            evaluation = evaluate_rows(fitted, data, name, max_errors=_MAX_ERRORS, **how)
        except UnlabelledError as error:
            missing = [MissingSection(pages.PERFORMANCE, error.problem, error.remedy or "")]
        else:
            try:
                result = check_data(data, name, weight=weight, reading=make_read_options(fitted, reading))
                check = summarize_check(source or "the table", name, result)
            except InputError as error:
                missing = [MissingSection(pages.DATA_WARNINGS, error.problem, error.remedy or "see candide check")]
    drift = _drift_summary(fitted, data, reading)
    page = pages.summarize_page(fitted, evaluation, check, data=source, drift=drift, missing_sections=missing)
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
        missing = MissingSection(pages.WHAT_IF, error.problem, error.remedy or "see candide export")
        page = replace(page, missing_sections=(*page.missing_sections, missing))
        return RenderedReport(html.render_page(page, full=full), page)


def _min_bytes(distribution: Any) -> int:
    """Return how many bytes the numbers of a distribution take at least, equal ones once; 0 where that is not known."""
    try:
        n = sum(len(np.unique(array)) for array in distribution.arrays().values() if array.dtype.kind == "f")
    except InputError:
        return 0
    inner = distribution.inner_distribution
    return _MIN_BYTES_PER_NUMBER * n + (0 if inner is None else _min_bytes(inner))


def write_report(
    report: RenderedReport, model: Any, path: str | os.PathLike, data: Any = None, *, force: bool = False
) -> ReportSummary:
    """Write a report into a file; a file that is not a report is overwritten only with ``force``."""
    check_output(path, model, data, is_own_file=html.is_page, force=force)
    raw, missing = report.text.encode(), tuple(map(str, report.page.missing_sections))
    write_atomically(path, [raw])
    return ReportSummary(_source_name(model) or "a model", os.fspath(path), len(raw), missing)


def _source_name(data: Any) -> str | None:
    """Return the name of a file, a folder, a query or a database; None for data in memory."""
    return redact_address(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


def _target(
    fitted: FittedModel, data: Any, target: str | None, reading: ReadOptions | None
) -> tuple[str | None, MissingSection | None]:
    name = target or fitted.target
    if name is None:
        remedy = "name the column of the labels: --target COL (target=...)"
        return None, MissingSection(pages.PERFORMANCE, "the model has no target column", remedy)
    with open_source(data, make_read_options(fitted, reading)) as source:
        is_known = name in source.columns
    if is_known or target is not None:  # evaluation raises an error for a named column that is not there
        return name, None
    remedy = f"pass rows with {name!r}, or name the column of the labels: --target COL (target=...)"
    reason = f"{_source_name(data) or 'the table'} has no column {name!r}"
    return None, MissingSection(pages.PERFORMANCE, reason, remedy)


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
