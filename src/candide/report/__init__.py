"""Reports: what a model and its scores look like to a person, and the same as plain facts for a program. No maths."""

from candide.report.changes import change_facts, show_changes
from candide.report.layout import notes, say
from candide.report.models import fit_facts, model_facts, shares, show_demo, show_fit, show_model
from candide.report.rows import decision_facts, show_decision, show_text, text_facts
from candide.report.scored import score_facts, show_rows, show_scores

__all__ = [
    "change_facts",
    "decision_facts",
    "fit_facts",
    "model_facts",
    "notes",
    "say",
    "score_facts",
    "shares",
    "show_changes",
    "show_decision",
    "show_demo",
    "show_fit",
    "show_model",
    "show_rows",
    "show_scores",
    "show_text",
    "text_facts",
]
