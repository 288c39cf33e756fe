"""Endpoints: the response of each path of the server, as a function of a request and the current model."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from candide import __version__
from candide.data.notes import Note
from candide.errors import NotCountedError
from candide.model.input_columns import unread_columns
from candide.serve import formats, protocols
from candide.serve.formats import RequestRows
from candide.serve.http import Handler, Limits, Request, RequestProblem, Response, notes_header, warnings_field
from candide.serve.learned_state import RequestOutcome
from candide.serve.learner import Learner, check_key
from candide.serve.peers import LEARNED_PATH, PEER_HEADERS, Peers
from candide.serve.scorer import Scorer
from candide.store import dumps

HTML = "text/html; charset=utf-8"
MODEL_FILE_TYPE = "application/octet-stream"
MODEL_PLACEHOLDER = "{m}"  # in a path: the name of the model


@dataclass(frozen=True)
class Endpoint:
    """A method and a path, a summary, and the function that responds."""

    method: str
    path: str
    summary: str
    handler: Handler
    is_slow: bool = False  # whether it takes long whatever is sent
    is_probe: bool = False  # whether it responds without a token
    changes_model: bool = False  # whether it changes the model or returns it whole: these need a token
    request_schema: str = ""
    accepts_tables: bool = False  # whether the body may also be CSV, JSON lines or Arrow
    response_schema: str = "Object"  # a schema, or a media type
    query_parameters: tuple[str, ...] = ()


def _json_response(value: dict, notes: Sequence[Note] = ()) -> Response:
    return Response(formats.encode(value | warnings_field(notes)), headers=notes_header(notes))


def _read_rows(request: Request, limits: Limits | None = None) -> RequestRows:
    rows = formats.read_rows(request.body, request.media_type, limits or request.limits)
    request.rows = rows.n_rows
    return rows


def predict(request: Request, scorer: Scorer) -> Response:
    rows = _read_rows(request)
    media_type = formats.negotiate_media_type(request.header(b"accept"), formats.find_media_type(request.media_type))
    if rows.single_row is not None and media_type == formats.JSON:
        return _json_response(*scorer.score_row(rows.single_row))
    scored, notes = scorer.score_columns(rows.columns, rows.n_rows)
    body = formats.write_scored(scored, media_type, warnings_field(notes))
    return Response(body, media_type, headers=notes_header(notes))


def explain(request: Request, scorer: Scorer) -> Response:
    from candide.explain.decisions import EXPLANATION_UNITS
    from candide.explain.rows import explain_table
    from candide.report import records, summary

    rows = _read_rows(request, replace(request.limits, max_rows=request.limits.max_explained_rows))
    by = request.query_parameter("by", EXPLANATION_UNITS[0])
    if by not in EXPLANATION_UNITS:
        remedy = f"pass by={' or by='.join(EXPLANATION_UNITS)}"
        raise RequestProblem(422, f"unknown value {by!r} of by", value=by, remedy=remedy)
    table = scorer.reader.read_table(rows.columns, rows.n_rows)
    decisions = explain_table(scorer.fitted, table, by=by) if rows.n_rows else []
    notes = scorer.reader.notes(rows.columns.keys(), scorer.reader.plan.blocks(table)) if rows.n_rows else []
    label = rows.columns.get(str(scorer.fitted.target))
    labels = formats.column_values(label) if label is not None else [None] * rows.n_rows
    explained = [summary.DecisionSummary(i, labels[i], each).to_dict() for i, each in enumerate(decisions)]
    explained[:1] = [first | warnings_field(notes) for first in explained[:1]]
    text = records.dump_json(explained[0] if rows.single_row is not None else explained)
    return Response(text.encode(), headers=notes_header(notes))


def invocations(request: Request, scorer: Scorer) -> Response:
    if formats.find_media_type(request.media_type) == formats.JSON:
        rows = protocols.rows_from_mlflow(request.body, request.limits)
        request.rows = rows.n_rows
    else:
        rows = _read_rows(request)
    scored, notes = scorer.score_columns(rows.columns, rows.n_rows)
    return _json_response({"predictions": scored.columns[0]}, notes)


def infer(request: Request, scorer: Scorer) -> Response:
    length = request.header(b"inference-header-content-length")
    rows, inference = protocols.rows_from_tensors(request.body, length, request.limits)
    request.rows = rows.n_rows
    inference.check_outputs(scorer.names[:-1])
    scored, notes = scorer.score_columns(rows.columns, rows.n_rows)
    body = protocols.write_tensors(scored, request.name, inference, [str(note) for note in notes])
    return Response(body, headers=notes_header(notes))


def _constant(body: dict) -> Handler:
    return lambda request, scorer: Response(formats.encode(body))


_rows_in = partial(Endpoint, "POST", request_schema="Rows", accepts_tables=True)
_probe = partial(Endpoint, "GET", is_probe=True)
_get = partial(Endpoint, "GET")
_is_live, _is_ready = _constant({"live": True}), _constant({"ready": True})
_server = _constant({"name": "candide", "version": __version__, "extensions": ["binary_tensor_data"]})
_MODEL_PATH = f"/v2/models/{MODEL_PLACEHOLDER}"
ENDPOINTS = [
    _rows_in("/predict", "Predict the class of each row, with probabilities.", predict, response_schema="Predictions"),
    _rows_in("/explain", "Explain each prediction, by term or by column.", explain, is_slow=True,
             response_schema="Decisions", query_parameters=("by",)),
    _get("/model", "Describe the model, as candide show --json does.", lambda request, scorer: Response(
        scorer.model_summary), is_slow=True),
    _get("/columns", "List the columns that the model reads.", lambda request, scorer: Response(
        formats.encode(scorer.input_schema.to_dict())), response_schema="Columns"),
    _get("/report", "Show the report of the model.", lambda request, scorer: Response(scorer.report_page, HTML),
         is_slow=True, response_schema=HTML),
    Endpoint("POST", "/invocations", "Predict, in the format of MLflow clients.", invocations,
             request_schema="Invocation", accepts_tables=True, response_schema="Labels"),
    _probe("/ping", "Check that the server runs (MLflow).", _is_live, response_schema="Live"),
    _probe("/health", "Check that the server runs.", _is_live, response_schema="Live"),
    _get("/v2", "Describe the server (Open Inference Protocol).", _server, response_schema="Server"),
    _probe("/v2/health/live", "Check that the server runs.", _is_live, response_schema="Live"),
    _probe("/v2/health/ready", "Check that the server is ready.", _is_ready, response_schema="Ready"),
    _get(_MODEL_PATH, "Describe the inputs and outputs of the model.", lambda request, scorer: Response(
        protocols.model_metadata(scorer, request.name)), response_schema="Metadata"),
    _probe(f"{_MODEL_PATH}/ready", "Check that the model is ready.", _is_ready, response_schema="Ready"),
    Endpoint("POST", f"{_MODEL_PATH}/infer", "Predict, with one tensor per column.", infer,
             request_schema="Inference", response_schema="Inferred"),
]  # fmt: skip


LEARNING_PATHS = ("/learn", "/forget", "/state", LEARNED_PATH)


def learning_endpoints(learner: Learner, peers: Peers) -> list[Endpoint]:
    def learn(request: Request, scorer: Scorer) -> "Future[Response]":
        return change_rows(request, learner.learn)

    def forget(request: Request, scorer: Scorer) -> "Future[Response]":
        learned_key = request.query_parameter("of", "")
        if not learned_key:
            return change_rows(request, learner.forget)
        if request.body:
            remedy = "send the rows, or ?of=KEY without a body"
            raise RequestProblem(422, "both rows and a key to forget", remedy=remedy)
        return _outcome_response(learner.forget_key(learned_key, _request_key(request)), learner)

    def change_rows(request: Request, change: Callable[..., "Future[RequestOutcome]"]) -> "Future[Response]":
        key, rows = _request_key(request), _read_rows(request)
        if not rows.n_rows:
            raise RequestProblem(422, "there are no rows", remedy="send at least one")
        known = [*learner.fitted.counts.plan.columns, learner.target]
        return _outcome_response(change(rows, key), learner, unread_columns("the request", rows.columns, known))

    def state(request: Request, scorer: Scorer) -> Response:
        model = dumps(peers.add_to(learner.current_model()))
        return Response(model, MODEL_FILE_TYPE, headers=(("content-disposition", _content_disposition(request.name)),))

    def learned(request: Request, scorer: Scorer) -> Response:
        version = learner.version
        half_life = "" if learner.half_life is None else repr(learner.half_life)
        values = (learner.fingerprint.hex(), learner.journal_id, version, half_life)
        headers = tuple(zip(PEER_HEADERS, values, strict=True))
        if request.query_parameter("unless", "") == version:
            return Response(b"", MODEL_FILE_TYPE, headers=headers)
        try:
            fitted = learner.learned_model()
        except NotCountedError:
            what = "rows of the model this server started with were forgotten: what was learned cannot be separated"
            remedy = "remove them from that model (candide forget), and start every server with it"
            raise RequestProblem(409, what, remedy=remedy) from None
        return Response(dumps(fitted) if fitted.n_rows else b"", MODEL_FILE_TYPE, headers=headers)

    change = partial(Endpoint, "POST", changes_model=True, request_schema="LabelledRows", accepts_tables=True,
                     response_schema="Outcome")  # fmt: skip
    fetch = partial(Endpoint, "GET", changes_model=True, is_slow=True, response_schema=MODEL_FILE_TYPE)
    return [
        change("/learn", "Learn labelled rows. Idempotency-Key (or ?key=) identifies the request.", learn,
               query_parameters=("key",)),
        change("/forget", "Forget rows that were learned; with ?of=KEY, all rows of that request.", forget,
               query_parameters=("of", "key")),
        fetch("/state", "Download the current model file.", state),
        fetch(LEARNED_PATH, "Download what was learned here, for peers.", learned, query_parameters=("unless",)),
    ]  # fmt: skip


def pull_endpoint(peers: Peers, on_change: Callable[[], None]) -> Endpoint:
    def pull(request: Request, scorer: Scorer) -> Response:
        peers.pull()
        on_change()  # also if another request has just pulled: the response describes the current model
        return Response(formats.encode(peers.status()))

    summary = "Ask the peers now what they have learned."
    return Endpoint("POST", "/pull", summary, pull, changes_model=True, is_slow=True, response_schema="Peers")


def _content_disposition(name: str) -> str:
    """Return the header that names the downloaded file, in ASCII and in UTF-8 (RFC 6266)."""
    plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    return f"attachment; filename=\"{plain}.candide\"; filename*=UTF-8''{quote(name, safe='')}.candide"


def _request_key(request: Request) -> str:
    """Return the key of a request, and add it to the problem of a late response: the request may still be processed."""
    header = request.header(b"idempotency-key")
    try:
        text = header.decode()
    except UnicodeDecodeError:
        text = header.decode("latin-1")
    key = check_key(text or request.query_parameter("key", "") or None)
    request.timeout_fields = {"key": key, "remedy": "send it again with this key: it counts once in any case"}
    return key


def _outcome_response(
    outcome: "Future[RequestOutcome]", learner: Learner, notes: Sequence[Note] = ()
) -> "Future[Response]":
    response: Future[Response] = Future()

    def set_response(done: "Future[RequestOutcome]") -> None:
        if not response.set_running_or_notify_cancel():
            return
        if (error := done.exception()) is not None:
            response.set_exception(error)
            return
        result = done.result()
        body = {"key": result.key, "rows": result.rows, "repeated": result.is_repeat}
        response.set_result(_json_response(body | {"model_rows": learner.fitted.n_rows}, notes))

    outcome.add_done_callback(set_response)
    return response
