"""Teaching: the endpoints by which a model learns and forgets, and what it has learned is fetched."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote

from candide.data.notes import Note
from candide.errors import NotCountedError
from candide.model.fitted import FittedModel
from candide.model.input_columns import unread_columns
from candide.serve import formats
from candide.serve.endpoints import Endpoint
from candide.serve.group_commit import RequestOutcome
from candide.serve.http import Request, Response, notes_header, warnings_field
from candide.serve.learner import Learner, check_key
from candide.serve.peers import BASE_HEADER, HALF_LIFE_HEADER, JOURNAL_HEADER, LEARNED_PATH, VERSION_HEADER, Peers
from candide.serve.problem import RequestProblem
from candide.serve.scorer import Scorer
from candide.store import dumps

MODEL_FILE_TYPE = "application/octet-stream"  # a model file


def learning_endpoints(learner: Learner, add_peers: Callable[[FittedModel], FittedModel]) -> list[Endpoint]:
    """The endpoints of a model that learns; ``together`` adds what was heard of others."""

    def learn(request: Request, scorer: Scorer) -> "Future[Response]":
        rows = _read_labelled_rows(request)
        return _outcome_response(learner.learn(rows, _request_key(request, "learned")), learner, unread(rows))

    def forget(request: Request, scorer: Scorer) -> "Future[Response]":
        of = request.query_parameter("of", "")
        if of and request.body:
            raise RequestProblem(
                422, "both rows and a key to forget", remedy="send the rows, or ?of=KEY without a body"
            )
        key = _request_key(request, "forgotten")
        if of:
            return _outcome_response(learner.forget_key(of, key), learner)
        rows = _read_labelled_rows(request)
        return _outcome_response(learner.forget(rows, key), learner, unread(rows))

    def unread(rows: formats.RequestRows) -> list[Note]:
        return unread_columns("the request", rows.columns, [*learner.fitted.counts.plan.columns, learner.target])

    def state(request: Request, scorer: Scorer) -> Response:
        return Response(
            dumps(add_peers(learner.current_model())),
            MODEL_FILE_TYPE,
            headers=(("content-disposition", _content_disposition(request.name)),),
        )

    def own(request: Request, scorer: Scorer) -> Response:
        version = learner.version
        said = (
            (BASE_HEADER, learner.fingerprint.hex()),
            (JOURNAL_HEADER, learner.journal_id),
            (VERSION_HEADER, version),
            (HALF_LIFE_HEADER, "" if learner.half_life is None else repr(learner.half_life)),
        )
        if request.query_parameter("unless", "") == version:
            return Response(b"", MODEL_FILE_TYPE, headers=said)
        try:
            fitted = learner.learned_model()
        except NotCountedError:
            what = "rows of the model that this server began with were forgotten here: what is new cannot be told apart"
            remedy = "take them out of that model (candide forget), and begin with it at every server"
            raise RequestProblem(409, what, remedy=remedy) from None
        return Response(dumps(fitted) if fitted.n_rows else b"", MODEL_FILE_TYPE, headers=said)

    counted = "Count rows with their labels in; Idempotency-Key (or ?key=) says which request it is."
    forgotten = "Count rows out that were counted in; or, with ?of=KEY, those that came under a key."
    how: dict[str, Any] = {
        "changes_model": True,
        "request_schema": "Lessons",
        "accepts_tables": True,
        "response_schema": "Outcome",
    }
    return [
        Endpoint("POST", "/learn", counted, learn, query_parameters=("key",), **how),
        Endpoint("POST", "/forget", forgotten, forget, query_parameters=("of", "key"), **how),
        Endpoint(
            "GET",
            "/state",
            "The model as it is now: a model file.",
            state,
            changes_model=True,
            is_slow=True,
            response_schema=MODEL_FILE_TYPE,
        ),
        Endpoint(
            "GET",
            LEARNED_PATH,
            "What was learned here, for peers: a model file, or nothing.",
            own,
            changes_model=True,
            is_slow=True,
            response_schema=MODEL_FILE_TYPE,
            query_parameters=("unless",),
        ),
    ]


def _content_disposition(name: str) -> str:
    """The header that names the file, for those that read no other letters, and for those that do (RFC 6266).

    >>> print(_content_disposition('my "best"'))
    attachment; filename="my__best_.candide"; filename*=UTF-8''my%20%22best%22.candide
    """
    plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    return f"attachment; filename=\"{plain}.candide\"; filename*=UTF-8''{quote(name, safe='')}.candide"


def pull_endpoint(peers: Peers, on_change: Callable[[], None]) -> Endpoint:
    """The endpoint that asks peers at once."""

    def pull(request: Request, scorer: Scorer) -> Response:
        peers.pull()
        on_change()  # also where another has just asked them: what is told here counts from now on
        return Response(formats.encode(peers.status()))

    about = "Ask the peers now what they have learned; as often as one is asked, it counts once."
    return Endpoint("POST", "/pull", about, pull, changes_model=True, is_slow=True, response_schema="Peers")


def _read_labelled_rows(request: Request) -> formats.RequestRows:
    rows = formats.read_rows(request.body, request.media_type, request.limits)
    request.rows = rows.n_rows
    if not rows.n_rows:
        raise RequestProblem(422, "there are no rows", remedy="send one, or more")
    return rows


def _request_key(request: Request, what: str) -> str:
    """The key of a request, which tells it again where the answer is late: by then it may be done, or be done later."""
    key = check_key(_decode_header(request.header(b"idempotency-key")) or request.query_parameter("key", "") or None)
    remedy = f"send it again with this key: whether it is {what} by then or not, it counts once"
    request.timeout_fields = {"key": key, "remedy": remedy}
    return key


def _decode_header(header: bytes) -> str:
    """A header as text: as most programs write it, or as the oldest ones do."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _outcome_response(
    outcome: "Future[RequestOutcome]", learner: Learner, remarks: Sequence[Note] = ()
) -> "Future[Response]":
    """The answer, once it is known what came of a request."""
    answer: Future[Response] = Future()

    def tell(done: "Future[RequestOutcome]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        if (error := done.exception()) is not None:
            answer.set_exception(error)
            return
        found = done.result()
        told = {"key": found.key, "rows": found.rows, "again": found.is_repeat, "model_rows": learner.fitted.n_rows}
        answer.set_result(Response(formats.encode(told | warnings_field([*remarks])), headers=notes_header([*remarks])))

    outcome.add_done_callback(tell)
    return answer
