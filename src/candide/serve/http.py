"""Exchange: a request as an endpoint sees it, and what it answers."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from candide.data.notes import Note
from candide.serve.limits import Limits
from candide.serve.problem import RequestProblem

if TYPE_CHECKING:
    from candide.serve.scorer import Scorer

Headers = list[tuple[bytes, bytes]]
_MAX_NOTES = 10  # warnings of an answer
_MAX_NOTE_COLUMNS = 100  # columns that a warning lists
_MAX_HEADER_LENGTH = 6000  # letters of it: proxies take 8 kB


def _default_timeout_remedy() -> dict[str, str]:
    return {"remedy": "send fewer rows, or try later"}


@dataclass
class Request:
    """What was asked: the body, and what the headers and the path say of it."""

    body: bytes
    headers: Headers
    query: bytes
    limits: Limits
    name: str = "model"  # of the model
    rows: int = 0  # that are answered
    timeout_fields: dict[str, str] = field(
        default_factory=_default_timeout_remedy
    )  # what is told where there is no answer in time

    def header(self, name: bytes) -> bytes:
        """A header by its name in small letters; empty where there is none."""
        return self._by_name.get(name, b"")

    @cached_property
    def _by_name(self) -> dict[bytes, bytes]:
        return dict(reversed([*self.headers]))  # the first of several counts

    @cached_property
    def media_type(self) -> str:
        """The content type of the body, which must be said: a page of another site cannot say one of these."""
        found = self.header(b"content-type").decode("latin-1")
        if not found:
            raise RequestProblem(
                415, "the request does not say its content type", remedy="send content-type: application/json"
            )
        return found

    @property
    def is_same_origin(self) -> bool:
        """Whether it comes from a page of this server, or of none: browsers say which, and pages cannot say another."""
        if site := self.header(b"sec-fetch-site"):
            return site in (b"same-origin", b"none")
        origin = self.header(b"origin").lower()
        return not origin or origin.partition(b"://")[2] == self.header(b"host").lower()

    @property
    def is_table(self) -> bool:
        """Whether the body is of columns: to begin one takes long, and a short body can name thousands."""
        said = self.header(b"content-type").lower()
        return b"csv" in said or b"arrow" in said

    def query_parameter(self, name: str, default: str) -> str:
        """A parameter of the query."""
        if not self.query:
            return default
        try:
            return parse_qs(self.query.decode("latin-1"), errors="strict").get(name, [default])[-1]
        except ValueError:
            raise RequestProblem(422, "the query is not UTF-8", remedy="percent-encode its letters as UTF-8") from None


class Response(NamedTuple):
    """What is answered."""

    body: bytes
    media_type: str = "application/json"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def warnings_field(notes: list[Note]) -> dict[str, list[dict[str, Any]]]:
    """Return the ``warnings`` field of a JSON answer; no field where there is nothing to warn of."""
    told = [
        {
            "code": one.code,
            "text": str(one)[:500],
            "column": one.column,
            "columns": [*map(str, one.columns[:_MAX_NOTE_COLUMNS])],
        }
        for one in notes[:_MAX_NOTES]
    ]
    return {"warnings": told} if told else {}


def notes_header(notes: list[Note]) -> tuple[tuple[str, str], ...]:
    """Remarks as a header, which is ASCII: what ``predict`` warns of."""
    if not notes:
        return ()
    told = warnings_field(notes)["warnings"]
    text = json.dumps(told)
    if len(text) > _MAX_HEADER_LENGTH:
        text = json.dumps([{**one, "text": one["text"][:80], "columns": []} for one in told])
    return (("candide-notes", text),)


Handler = Callable[[Request, "Scorer"], "Response | Future[Response]"]
