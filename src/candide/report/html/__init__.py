"""HTML: a page that needs nothing else, no network and no file beside it."""
