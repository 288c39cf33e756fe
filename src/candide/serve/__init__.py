"""A server of one model: predictions and explanations over HTTP, also in the protocols of other servers.

:func:`app` makes an ASGI application of a model, to run by itself (``candide serve MODEL``) or inside another
application. It needs msgspec (``pip install 'candide[serve]'``).
"""

from candide.serve.application import Application, app
from candide.serve.http import Limits

__all__ = ["Application", "Limits", "app"]
