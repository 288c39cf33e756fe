"""HTML: a page that needs nothing else, no network and no file beside it."""

from candide.report.html.page import MAX_PAGE_BYTES, PageText, is_page, page_size_limit, render_page

__all__ = ["MAX_PAGE_BYTES", "PageText", "is_page", "page_size_limit", "render_page"]
