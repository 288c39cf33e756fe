"""Teaching: the endpoints by which a model learns and forgets, and what it has learned is fetched."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote

from candide.errors import NotWithinError
from candide.model.fitted import Fitted
from candide.model.input_columns import unread_columns
from candide.rows.remarks import Remark
from candide.serve import formats
from candide.serve.endpoints import Endpoint
from candide.serve.exchange import Request, Response, noted, warnings_of
from candide.serve.group import Outcome
from candide.serve.learner import Learner, key_of
from candide.serve.peers import BASE, HALF_LIFE, JOURNAL, PATH, VERSION, Peers
from candide.serve.problem import Problem
from candide.serve.scorer import Scorer
from candide.store import dumps

FILE = "application/octet-stream"  # a model file


def endpoints(learner: Learner, together: Callable[[Fitted], Fitted]) -> list[Endpoint]:
    """The endpoints of a model that learns; ``together`` adds what was heard of others."""

    def learn(request: Request, scorer: Scorer) -> "Future[Response]":
        rows = _rows(request)
        return _told(learner.learn(rows, _key(request, "learned")), learner, unread(rows))

    def forget(request: Request, scorer: Scorer) -> "Future[Response]":
        of = request.asked("of", "")
        if of and request.body:
            raise Problem(422, "both rows and a key to forget", remedy="send the rows, or ?of=KEY without a body")
        key = _key(request, "forgotten")
        if of:
            return _told(learner.forget_key(of, key), learner)
        rows = _rows(request)
        return _told(learner.forget(rows, key), learner, unread(rows))

    def unread(rows: formats.Rows) -> list[Remark]:
        return unread_columns("the request", rows.columns, [*learner.fitted.census.plan.columns, learner.target])

    def state(request: Request, scorer: Scorer) -> Response:
        return Response(dumps(together(learner.now())), FILE, headers=(("content-disposition", _named(request.name)),))

    def own(request: Request, scorer: Scorer) -> Response:
        version = learner.version
        said = (
            (BASE, learner.told.hex()),
            (JOURNAL, learner.journal_id),
            (VERSION, version),
            (HALF_LIFE, "" if learner.half_life is None else repr(learner.half_life)),
        )
        if request.asked("unless", "") == version:
            return Response(b"", FILE, headers=said)
        try:
            fitted = learner.own()
        except NotWithinError:
            what = "rows of the model that this server began with were forgotten here: what is new cannot be told apart"
            remedy = "take them out of that model (candide forget), and begin with it at every server"
            raise Problem(409, what, remedy=remedy) from None
        return Response(dumps(fitted) if fitted.rows else b"", FILE, headers=said)

    counted = "Count rows with their labels in; Idempotency-Key (or ?key=) says which request it is."
    forgotten = "Count rows out that were counted in; or, with ?of=KEY, those that came under a key."
    how: dict[str, Any] = {"changes": True, "takes": "Lessons", "rows": True, "gives": "Outcome"}
    return [
        Endpoint("POST", "/learn", counted, learn, query=("key",), **how),
        Endpoint("POST", "/forget", forgotten, forget, query=("of", "key"), **how),
        Endpoint("GET", "/state", "The model as it is now: a model file.", state, changes=True, slow=True, gives=FILE),
        Endpoint(
            "GET",
            PATH,
            "What was learned here, for peers: a model file, or nothing.",
            own,
            changes=True,
            slow=True,
            gives=FILE,
            query=("unless",),
        ),
    ]


def _named(name: str) -> str:
    """The header that names the file, for those that read no other letters, and for those that do (RFC 6266).

    >>> print(_named('my "best"'))
    attachment; filename="my__best_.candide"; filename*=UTF-8''my%20%22best%22.candide
    """
    plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    return f"attachment; filename=\"{plain}.candide\"; filename*=UTF-8''{quote(name, safe='')}.candide"


def pulling(peers: Peers, changed: Callable[[], None]) -> Endpoint:
    """The endpoint that asks peers at once."""

    def pull(request: Request, scorer: Scorer) -> Response:
        peers.pull()
        changed()  # also where another has just asked them: what is told here counts from now on
        return Response(formats.encode(peers.told()))

    about = "Ask the peers now what they have learned; as often as one is asked, it counts once."
    return Endpoint("POST", "/pull", about, pull, changes=True, slow=True, gives="Peers")


def _rows(request: Request) -> formats.Rows:
    rows = formats.read(request.body, request.media, request.limits)
    request.rows = rows.n
    if not rows.n:
        raise Problem(422, "there are no rows", remedy="send one, or more")
    return rows


def _key(request: Request, what: str) -> str:
    """The key of a request, which tells it again where the answer is late: by then it may be done, or be done later."""
    key = key_of(_text(request.header(b"idempotency-key")) or request.asked("key", "") or None)
    remedy = f"send it again with this key: whether it is {what} by then or not, it counts once"
    request.late = {"key": key, "remedy": remedy}
    return key


def _text(header: bytes) -> str:
    """A header as text: as most programs write it, or as the oldest ones do."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _told(outcome: "Future[Outcome]", learner: Learner, remarks: Sequence[Remark] = ()) -> "Future[Response]":
    """The answer, once it is known what came of a request."""
    answer: Future[Response] = Future()

    def tell(done: "Future[Outcome]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        if (error := done.exception()) is not None:
            answer.set_exception(error)
            return
        found = done.result()
        told = {"key": found.key, "rows": found.rows, "again": found.again, "model_rows": learner.fitted.rows}
        answer.set_result(Response(formats.encode(told | warnings_of([*remarks])), headers=noted([*remarks])))

    outcome.add_done_callback(tell)
    return answer
