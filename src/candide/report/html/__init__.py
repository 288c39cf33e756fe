"""HTML: a page that needs nothing else, no network and no file beside it. Nothing is worked out here."""

from candide.report.html.page import MOST, PageText, is_page, render, room, write

__all__ = ["MOST", "PageText", "is_page", "render", "room", "write"]
