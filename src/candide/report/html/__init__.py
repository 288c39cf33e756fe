"""HTML: a page that needs nothing else, no network and no file beside it. Nothing is worked out here."""

from candide.report.html.page import fits, is_page, render, write

__all__ = ["fits", "is_page", "render", "write"]
