"""A request as an endpoint sees it, its response, the limits of a request, and problems (RFC 9457)."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from candide.data.notes import Note

if TYPE_CHECKING:
    from candide.serve.scorer import Scorer

_MAX_VALUE_LENGTH = 200  # characters of a value in a problem
_MAX_NOTES = 10  # warnings in a response
_MAX_NOTE_COLUMNS = 100  # columns listed by one warning
_MAX_HEADER_LENGTH = 6000  # characters: proxies accept headers of 8 kB


class RequestProblem(Exception):  # noqa: N818  the term of RFC 9457
    """A request that cannot be answered: the status, what is wrong, where, and the remedy."""

    def __init__(self, status: int, detail: str, *, headers: tuple[tuple[str, str], ...] = (), **location: Any):
        super().__init__(detail)
        self.status, self.detail, self.headers, self.location = status, detail, headers, location

    def to_json(self) -> dict[str, Any]:
        members = {name: _json_value(value) for name, value in self.location.items() if value not in (None, "")}
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail, **members}


def _json_value(value: Any) -> Any:
    if isinstance(value, bool | int | float) and abs(value) < 2**63:
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value[:10]]
    text = str(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}..."


@dataclass(frozen=True)
class Limits:
    """The largest request that is accepted; a larger one is rejected with status 413."""

    max_body_bytes: int = 16 << 20  # 100,000 rows of 14 columns as JSON; also bounds repeated text in Arrow columns
    max_rows: int = 100_000
    max_explained_rows: int = 1000
    max_columns: int = 100_000  # a CSV column takes 50 microseconds however few its rows
    max_cells: int = 16 << 20  # rows times names; a body that spells out each cell has no more
    timeout_seconds: float = 30.0  # for a body to arrive, and for a response

    def check(self, rows: int, columns: int) -> None:
        """Reject a table that is too large, before it is built: a short body could fill the memory."""
        _check_size(rows, self.max_rows, f"{rows:,} rows in one request")
        _check_size(columns, self.max_columns, f"{columns:,} columns in one request")
        cells = rows * columns
        _check_size(cells, self.max_cells, f"{cells:,} cells, rows times names, in one request")

    def check_body(self, size: int) -> None:
        _check_size(size, self.max_body_bytes, f"a body of {size:,} bytes")


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise RequestProblem(413, what, value=size, remedy=f"send at most {limit:,} at a time")


@dataclass
class Request:
    """The body of a request, its headers and its query."""

    body: bytes
    headers: list[tuple[bytes, bytes]]
    query: bytes
    limits: Limits
    name: str = "model"  # of the model
    rows: int = 0  # rows in the body, for the metrics
    timeout_fields: dict[str, str] = field(default_factory=lambda: {"remedy": "send fewer rows, or try later"})

    def header(self, name: bytes) -> bytes:
        """Return a header by its lower-case name, the first of several; empty if there is none."""
        return next((value for key, value in self.headers if key == name), b"")

    @cached_property
    def media_type(self) -> str:
        """The content type, which is required: a page of another site cannot set one of those accepted."""
        media_type = self.header(b"content-type").decode("latin-1")
        if not media_type:
            raise RequestProblem(415, "the content type is missing", remedy="send content-type: application/json")
        return media_type

    @property
    def is_same_origin(self) -> bool:
        """Whether it comes from a page of this server, or from no page: browsers set these headers, pages cannot."""
        if site := self.header(b"sec-fetch-site"):
            return site in (b"same-origin", b"none")
        origin = self.header(b"origin").lower()
        return not origin or origin.partition(b"://")[2] == self.header(b"host").lower()

    @property
    def is_table(self) -> bool:
        """Whether the body holds columns: each takes time, and a short body can name thousands."""
        media_type = self.header(b"content-type").lower()
        return b"csv" in media_type or b"arrow" in media_type

    def query_parameter(self, name: str, default: str) -> str:
        if not self.query:
            return default
        try:
            return parse_qs(self.query.decode("latin-1"), errors="strict").get(name, [default])[-1]
        except ValueError:
            raise RequestProblem(422, "the query is not UTF-8", remedy="percent-encode it as UTF-8") from None


class Response(NamedTuple):
    body: bytes
    media_type: str = "application/json"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def warnings_field(notes: Sequence[Note]) -> dict[str, list[dict[str, Any]]]:
    """Return the ``warnings`` field of a JSON response; no field if there are no warnings."""
    warnings = []
    for note in notes[:_MAX_NOTES]:
        columns = [*map(str, note.columns[:_MAX_NOTE_COLUMNS])]
        warnings.append({"code": note.code, "text": str(note)[:500], "column": note.column, "columns": columns})
    return {"warnings": warnings} if warnings else {}


def notes_header(notes: Sequence[Note]) -> tuple[tuple[str, str], ...]:
    """Return the warnings as a header, which is ASCII and short."""
    if not notes:
        return ()
    warnings = warnings_field(notes)["warnings"]
    text = json.dumps(warnings)
    if len(text) > _MAX_HEADER_LENGTH:
        text = json.dumps([{**warning, "text": warning["text"][:80], "columns": []} for warning in warnings])
    return (("candide-notes", text),)


Handler = Callable[[Request, "Scorer"], "Response | Future[Response]"]
