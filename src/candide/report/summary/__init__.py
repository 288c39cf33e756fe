"""Summaries: what a model, a fit, scores, decisions and changes look like, as records of plain values.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> herbs = of_model(Fitted(garden()))
>>> [(one.label, round(one.share, 2)) for one in herbs.classes], herbs.columns[0].column, herbs.rows
([('lavender', 0.33), ('sage', 0.33), ('thyme', 0.33)], 'leaf_mm', 300)
"""

from candide.report.summary.changes import (
    AdaptSummary,
    ChangeSummary,
    MergeSummary,
    ShareSummary,
    UpdateSummary,
    WeighSummary,
    of_adapted,
    of_changes,
    of_merge,
    of_update,
    of_weigh,
)
from candide.report.summary.check import CheckSummary, of_check
from candide.report.summary.columns import ColumnSummary
from candide.report.summary.compare import CompareSummary, DifferenceSummary, of_compared
from candide.report.summary.drift import DriftSummary, of_drift
from candide.report.summary.models import (
    ClassSummary,
    DemoSummary,
    FitSummary,
    ModelSummary,
    of_demo,
    of_fit,
    of_model,
)
from candide.report.summary.page import Gap, PageSummary, ReportSummary, of_page
from candide.report.summary.rows import (
    DecisionSummary,
    RowsSummary,
    TextSummary,
    of_decision,
    of_rows,
    of_text,
)
from candide.report.summary.scores import (
    CurveSummary,
    DecidedSummary,
    MetricSummary,
    ScoreSummary,
    TrustSummary,
    of_scores,
    of_trust,
)
from candide.report.summary.written import ExportSummary, PictureSummary, StateSummary, WrittenSummary, of_picture

__all__ = [
    "AdaptSummary",
    "ChangeSummary",
    "CheckSummary",
    "ClassSummary",
    "ColumnSummary",
    "CompareSummary",
    "CurveSummary",
    "DecidedSummary",
    "DecisionSummary",
    "DemoSummary",
    "DifferenceSummary",
    "DriftSummary",
    "ExportSummary",
    "FitSummary",
    "Gap",
    "MergeSummary",
    "MetricSummary",
    "ModelSummary",
    "PageSummary",
    "PictureSummary",
    "ReportSummary",
    "RowsSummary",
    "ScoreSummary",
    "ShareSummary",
    "StateSummary",
    "TextSummary",
    "TrustSummary",
    "UpdateSummary",
    "WeighSummary",
    "WrittenSummary",
    "of_adapted",
    "of_changes",
    "of_check",
    "of_compared",
    "of_decision",
    "of_demo",
    "of_drift",
    "of_fit",
    "of_merge",
    "of_model",
    "of_page",
    "of_picture",
    "of_rows",
    "of_scores",
    "of_text",
    "of_trust",
    "of_update",
    "of_weigh",
]
