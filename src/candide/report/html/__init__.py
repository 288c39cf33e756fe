"""HTML: a page that needs nothing else, no network and no file beside it. Nothing is worked out here."""

from candide.report.html.page import is_page, render, write

__all__ = ["is_page", "render", "write"]
