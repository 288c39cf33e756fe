"""Problems: what was wrong with a request, as JSON that a program can act on (RFC 9457).

>>> from candide.errors import InputError
>>> wrong = problem_from_error(
...     InputError("'forty' is not a number", column="age", row=3, value="forty", remedy="mend it")
... )
>>> wrong.status, wrong.to_json()["column"], wrong.to_json()["value"], wrong.to_json()["remedy"]
(422, 'age', 'forty', 'mend it')
"""

from http import HTTPStatus
from typing import Any

from candide.errors import CandideError, InputError

_MAX_VALUE_LENGTH = 200  # letters of a value that is told


class RequestProblem(Exception):  # noqa: N818  the word of RFC 9457
    """A request that cannot be answered: the status, what is wrong, where, and what to do."""

    def __init__(self, status: int, what: str, *, headers: tuple[tuple[str, str], ...] = (), **place: Any):
        super().__init__(what)
        self.status, self.detail, self.headers, self.location = status, what, headers, place

    def to_json(self) -> dict[str, Any]:
        """The members of the JSON object; those that say nothing are left out."""
        told = {name: _json_value(value) for name, value in self.location.items() if value not in (None, "")}
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail, **told}


def problem_from_error(error: CandideError) -> RequestProblem:
    """The problem that an error is: of a value that was sent, unless it is about something else."""
    names = ("column", "row", "value", "remedy")
    return RequestProblem(
        422 if isinstance(error, InputError) else 500, str(error), **{name: getattr(error, name) for name in names}
    )


def _json_value(value: Any) -> Any:
    """A value that JSON can say, in few letters."""
    if isinstance(value, bool | int | float) and abs(value) < 2**63:
        return value
    if isinstance(value, list | tuple):
        return [_json_value(one) for one in value[:10]]
    text = str(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}..."
