"""Summaries of models, fits, scores, decisions and changes, as records of plain values.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> herbs = summarize_model(FittedModel(garden()))
>>> [(one.label, round(one.proportion, 2)) for one in herbs.classes], herbs.columns[0].column, herbs.rows
([('lavender', 0.33), ('sage', 0.33), ('thyme', 0.33)], 'leaf_mm', 300)
"""

from candide.report.summary.changes import (
    AdaptSummary,
    ClassProportionSummary,
    DiffSummary,
    ExportSummary,
    MergeSummary,
    PlotSummary,
    ReweightSummary,
    ScoredFileSummary,
    ServerStateSummary,
    UpdateSummary,
    summarize_adaptation,
    summarize_diff,
    summarize_merge,
    summarize_plot,
    summarize_reweight,
    summarize_update,
)
from candide.report.summary.columns import ClassSummary, ColumnSummary
from candide.report.summary.models import (
    DemoSummary,
    FitSummary,
    ModelSummary,
    summarize_demo,
    summarize_fit,
    summarize_model,
)
from candide.report.summary.monitoring import CheckSummary, DriftSummary, summarize_check, summarize_drift
from candide.report.summary.page import MissingSection, PageSummary, ReportSummary, summarize_page
from candide.report.summary.rows import (
    DecisionSummary,
    RowsSummary,
    TextSummary,
    summarize_decision,
    summarize_rows,
    summarize_text,
)
from candide.report.summary.scores import (
    CurveSummary,
    MetricSummary,
    PolicySummary,
    ScoreSummary,
    summarize_scores,
)
from candide.report.summary.validation import (
    CompareSummary,
    DifferenceSummary,
    HeldOutSummary,
    summarize_held_out,
    summarize_settings,
)

__all__ = [
    "AdaptSummary",
    "CheckSummary",
    "ClassProportionSummary",
    "ClassSummary",
    "ColumnSummary",
    "CompareSummary",
    "CurveSummary",
    "DecisionSummary",
    "DemoSummary",
    "DiffSummary",
    "DifferenceSummary",
    "DriftSummary",
    "ExportSummary",
    "FitSummary",
    "HeldOutSummary",
    "MergeSummary",
    "MetricSummary",
    "MissingSection",
    "ModelSummary",
    "PageSummary",
    "PlotSummary",
    "PolicySummary",
    "ReportSummary",
    "ReweightSummary",
    "RowsSummary",
    "ScoreSummary",
    "ScoredFileSummary",
    "ServerStateSummary",
    "TextSummary",
    "UpdateSummary",
    "summarize_adaptation",
    "summarize_check",
    "summarize_decision",
    "summarize_demo",
    "summarize_diff",
    "summarize_drift",
    "summarize_fit",
    "summarize_held_out",
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
