"""JSON: records as values for a program. Keys are the names of fields; they are part of the documented interface.

>>> from candide.report.summary import ScoredFileSummary
>>> dumps(ScoredFileSummary(12, "scored.csv"))
'{"rows": 12, "output": "scored.csv"}'
"""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any


def dumps(record: Any) -> str:
    """Write a record, or plain values, as one line of JSON."""
    return json.dumps(to_plain(record), allow_nan=False, default=str)


def to_plain(value: Any) -> Any:
    """Return records as dictionaries, sequences as lists; NaN and the infinities, which JSON lacks, are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        return [to_plain(item) for item in value]
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    return to_plain_fields(value) if is_dataclass(value) else value


def to_plain_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record, without those that are internal."""
    shown = (one.name for one in fields(record) if not one.metadata.get("internal"))
    return {name: to_plain(getattr(record, name)) for name in shown}
