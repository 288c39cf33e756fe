"""Summaries of models, fits, scores, decisions and changes, as records of plain values.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> herbs = summarize_model(FittedModel(garden()))
>>> [(row.label, round(row.proportion, 2)) for row in herbs.classes], herbs.columns[0].column, herbs.rows
([('lavender', 0.33), ('sage', 0.33), ('thyme', 0.33)], 'leaf_mm', 300)
"""

from candide.report.summary.changes import (
    ExportSummary,
    PlotSummary,
    ScoredFileSummary,
    ServerStateSummary,
    summarize_adaptation,
    summarize_diff,
    summarize_merge,
    summarize_plot,
    summarize_reweight,
    summarize_update,
)
from candide.report.summary.fits import HeldOutSummary, summarize_demo, summarize_fit, summarize_settings
from candide.report.summary.models import ModelSummary, summarize_model
from candide.report.summary.monitoring import summarize_check, summarize_drift
from candide.report.summary.page import ReportSummary, summarize_page
from candide.report.summary.rows import DecisionSummary, TextSummary, summarize_rows, summarize_text
from candide.report.summary.scores import summarize_scores

__all__ = [
    "DecisionSummary",
    "ExportSummary",
    "HeldOutSummary",
    "ModelSummary",
    "PlotSummary",
    "ReportSummary",
    "ScoredFileSummary",
    "ServerStateSummary",
    "TextSummary",
    "summarize_adaptation",
    "summarize_check",
    "summarize_demo",
    "summarize_diff",
    "summarize_drift",
    "summarize_fit",
    "summarize_merge",
    "summarize_model",
    "summarize_page",
    "summarize_plot",
    "summarize_reweight",
    "summarize_rows",
    "summarize_scores",
    "summarize_settings",
    "summarize_text",
    "summarize_update",
]
