"""The terminal: summaries for a person, on a screen of any width. Nothing is worked out here."""

from candide.report.terminal import changes, check, compare, drift, models, rows, scores, written  # noqa: F401  each adds its records to `parts`
from candide.report.terminal.layout import print_summary, render_parts, render_text

__all__ = ["print_summary", "render_parts", "render_text"]
