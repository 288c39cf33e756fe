"""Provenance: where a model came from, as text by name, kept in its file.

>>> make_provenance("rows.csv", 12, ["--drop", "id"], now=0.0)["date"], make_provenance("-", 12)["source"]
('1970-01-01T00:00:00Z', 'standard input')
"""

import os
import shlex
import time
from collections.abc import Sequence

from candide import __version__
from candide.engines.addresses import redact_address


def make_provenance(source: str, rows: int, options: Sequence[str] = (), *, now: float | None = None) -> dict[str, str]:
    """Source, rows when it was fitted, date, version, and the options that were typed.

    An address of a database is kept without its password. The date is that of ``SOURCE_DATE_EPOCH`` where that is set,
    so that what is built again is the same.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = now if now is not None else float(epoch) if epoch.isdecimal() else time.time()
    return {
        "source": "standard input" if source == "-" else redact_address(source),
        "fitted_rows": str(rows),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
        "version": f"candide {__version__}",
        "options": shlex.join(options),
    }
