"""Endpoints: what each path of the server answers. Every one is a function of a request and the model of the moment.

>>> [(one.method, one.path) for one in ENDPOINTS][:2]
[('POST', '/predict'), ('POST', '/explain')]
"""

from dataclasses import dataclass, replace

from candide import __version__
from candide.serve import formats, protocols
from candide.serve.http import Handler, Request, Response, notes_header, warnings_field
from candide.serve.limits import Limits
from candide.serve.problem import RequestProblem
from candide.serve.scorer import Scorer

HTML = "text/html; charset=utf-8"
MODEL_PLACEHOLDER = "{m}"  # in a path: the name of the model


@dataclass(frozen=True)
class Endpoint:
    """A path and a method, what it does in a sentence, and the function that does it."""

    method: str
    path: str
    summary: str
    handler: Handler  # what it does; where that takes others to be done, a promise
    is_slow: bool = False  # whether it takes long whatever was sent
    is_probe: bool = False  # whether it answers to anyone
    changes_model: bool = False  # whether it changes the model, or gives it away: a token is for that
    request_schema: str = ""  # the schema of a body
    accepts_tables: bool = False  # whether the body may be CSV, JSON lines or Arrow too
    response_schema: str = "Object"  # the schema of the answer, or its media type
    query_parameters: tuple[str, ...] = ()  # parameters


def predict(request: Request, scorer: Scorer) -> Response:
    """Of an object, which is one row, the answer is an object."""
    rows = _read_rows(request)
    kind = formats.negotiate_media_type(request.header(b"accept"), formats.find_media_type(request.media_type))
    if rows.single_row is not None and kind == formats.JSON:
        answer, remarks = scorer.score_row(rows.single_row)
        return Response(formats.encode(answer | warnings_field(remarks)), headers=notes_header(remarks))
    scored, remarks = scorer.score_columns(rows.columns, rows.n_rows)
    return Response(formats.write_scored(scored, kind, warnings_field(remarks)), kind, headers=notes_header(remarks))


def explain(request: Request, scorer: Scorer) -> Response:
    """Of an object, which is one row, the answer is an object."""
    from candide.explain.decisions import explain_table as why
    from candide.report import json, summary

    rows = _read_rows(request, replace(request.limits, max_rows=request.limits.max_explained_rows))
    by = request.query_parameter("by", "voice")
    if by not in ("voice", "column"):
        raise RequestProblem(422, f"by is {by!r}", value=by, remedy="ask for by=voice or by=column")
    table = scorer.reader.read_table(rows.columns, rows.n_rows)
    decisions = why(scorer.fitted, table, by=by) if rows.n_rows else []
    remarks = scorer.reader.notes(rows.columns.keys(), scorer.reader.plan.blocks(table)) if rows.n_rows else []
    label = rows.columns.get(str(scorer.fitted.target))
    labels = formats.column_values(label) if label is not None else [None] * rows.n_rows
    told = [json.to_facts(summary.summarize_decision(i, labels[i], one)) for i, one in enumerate(decisions)]
    told[:1] = [first | warnings_field(remarks) for first in told[:1]]
    text = json.dumps(told[0] if rows.single_row is not None else told)
    return Response(text.encode(), headers=notes_header(remarks))


def invocations(request: Request, scorer: Scorer) -> Response:
    if formats.find_media_type(request.media_type) == formats.JSON:
        rows = protocols.rows_from_mlflow(request.body, request.limits)
        request.rows = rows.n_rows
    else:
        rows = _read_rows(request)
    scored, remarks = scorer.score_columns(rows.columns, rows.n_rows)
    return Response(protocols.write_mlflow(scored, warnings_field(remarks)), headers=notes_header(remarks))


def infer(request: Request, scorer: Scorer) -> Response:
    length = request.header(b"inference-header-content-length")
    rows, asked = protocols.rows_from_tensors(request.body, length, request.limits)
    request.rows = rows.n_rows
    asked.check_outputs(scorer.names[:-1])
    scored, remarks = scorer.score_columns(rows.columns, rows.n_rows)
    answer = protocols.write_tensors(scored, request.name, asked, [str(one) for one in remarks])
    return Response(answer, headers=notes_header(remarks))


def _read_rows(request: Request, limits: Limits | None = None) -> formats.RequestRows:
    rows = formats.read_rows(request.body, request.media_type, limits or request.limits)
    request.rows = rows.n_rows
    return rows


def model(request: Request, scorer: Scorer) -> Response:
    return Response(scorer.model_summary)


def columns(request: Request, scorer: Scorer) -> Response:
    return Response(formats.encode(scorer.input_schema.to_dict()))


def report(request: Request, scorer: Scorer) -> Response:
    return Response(scorer.report_page, HTML)


def check_live(request: Request, scorer: Scorer) -> Response:
    return Response(b'{"live":true}')


def check_ready(request: Request, scorer: Scorer) -> Response:
    return Response(b'{"ready":true}')


def server(request: Request, scorer: Scorer) -> Response:
    return Response(formats.encode({"name": "candide", "version": __version__, "extensions": ["binary_tensor_data"]}))


def metadata(request: Request, scorer: Scorer) -> Response:
    return Response(protocols.model_metadata(scorer, request.name))


ENDPOINTS = [
    Endpoint(
        "POST",
        "/predict",
        "The class of each row, and how probable each class is.",
        predict,
        request_schema="Rows",
        accepts_tables=True,
        response_schema="Predictions",
    ),
    Endpoint(
        "POST",
        "/explain",
        "Why each row is given its class (?by=column).",
        explain,
        is_slow=True,
        request_schema="Rows",
        accepts_tables=True,
        response_schema="Decisions",
        query_parameters=("by",),
    ),
    Endpoint("GET", "/model", "What the model knows, as candide show --json.", model, is_slow=True),
    Endpoint("GET", "/columns", "The columns that the model reads, and how.", columns, response_schema="Columns"),
    Endpoint("GET", "/report", "The page of the model.", report, is_slow=True, response_schema=HTML),
    Endpoint(
        "POST",
        "/invocations",
        "Predictions as MLflow's clients ask for them.",
        invocations,
        request_schema="Invocation",
        accepts_tables=True,
        response_schema="Labels",
    ),
    Endpoint(
        "GET",
        "/ping",
        "Whether the server runs, for MLflow's clients.",
        check_live,
        is_probe=True,
        response_schema="Live",
    ),
    Endpoint("GET", "/health", "The same.", check_live, is_probe=True, response_schema="Live"),
    Endpoint("GET", "/v2", "What this server is (Open Inference Protocol).", server, response_schema="Server"),
    Endpoint("GET", "/v2/health/live", "Whether the server runs.", check_live, is_probe=True, response_schema="Live"),
    Endpoint("GET", "/v2/health/ready", "Whether it answers.", check_ready, is_probe=True, response_schema="Ready"),
    Endpoint(
        "GET",
        f"/v2/models/{MODEL_PLACEHOLDER}",
        "The columns of the model and its answers.",
        metadata,
        response_schema="Metadata",
    ),
    Endpoint(
        "GET",
        f"/v2/models/{MODEL_PLACEHOLDER}/ready",
        "Whether the model answers.",
        check_ready,
        is_probe=True,
        response_schema="Ready",
    ),
    Endpoint(
        "POST",
        f"/v2/models/{MODEL_PLACEHOLDER}/infer",
        "Predictions, one tensor a column.",
        infer,
        request_schema="Inference",
        response_schema="Inferred",
    ),
]
