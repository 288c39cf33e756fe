"""A server of one model: it predicts and explains over HTTP, in the words of clients that exist.

:func:`app` makes an ASGI application of a model, to run by itself (``candide serve MODEL``) or inside another
application. It needs msgspec (``pip install 'candide[serve]'``).
"""

from candide.serve.application import Application, app
from candide.serve.limits import Limits

__all__ = ["Application", "Limits", "app"]
