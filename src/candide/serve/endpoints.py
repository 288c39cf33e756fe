"""Endpoints: what each path of the server answers. Every one is a function of a request and the model of the moment.

>>> [(one.method, one.path) for one in ENDPOINTS][:2]
[('POST', '/predict'), ('POST', '/explain')]
"""

from dataclasses import dataclass, replace

from candide import __version__
from candide.serve import formats, protocols
from candide.serve.exchange import Request, Response, Work, noted, warnings_of
from candide.serve.limits import Limits
from candide.serve.problem import Problem
from candide.serve.scorer import Scorer

HTML = "text/html; charset=utf-8"
NAME = "{m}"  # in a path: the name of the model


@dataclass(frozen=True)
class Endpoint:
    """A path and a method, what it does in a sentence, and the function that does it."""

    method: str
    path: str
    about: str
    work: Work  # what it does; where that takes others to be done, a promise
    slow: bool = False  # whether it takes long whatever was sent
    probe: bool = False  # whether it answers to anyone
    changes: bool = False  # whether it changes the model, or gives it away: a token is for that
    takes: str = ""  # the schema of a body
    rows: bool = False  # whether the body may be CSV, JSON lines or Arrow too
    gives: str = "Object"  # the schema of the answer, or its media type
    query: tuple[str, ...] = ()  # parameters


def predict(request: Request, scorer: Scorer) -> Response:
    """Of an object, which is one row, the answer is an object."""
    rows = _rows(request)
    kind = formats.answer_type(request.header(b"accept"), formats.kind_of(request.media))
    if rows.single is not None and kind == formats.JSON:
        answer, remarks = scorer.one(rows.single)
        return Response(formats.encode(answer | warnings_of(remarks)), headers=noted(remarks))
    scored, remarks = scorer.many(rows.columns, rows.n)
    return Response(formats.write(scored, kind, warnings_of(remarks)), kind, headers=noted(remarks))


def explain(request: Request, scorer: Scorer) -> Response:
    """Of an object, which is one row, the answer is an object."""
    from candide.explain.rows import explain as why
    from candide.report import json, summary

    rows = _rows(request, replace(request.limits, rows=request.limits.explained))
    by = request.asked("by", "voice")
    if by not in ("voice", "column"):
        raise Problem(422, f"by is {by!r}", value=by, remedy="ask for by=voice or by=column")
    table = scorer.reader.table(rows.columns, rows.n)
    decisions = why(scorer.fitted, table, by=by) if rows.n else []
    remarks = scorer.reader.remarks(rows.columns.keys(), scorer.reader.plan.blocks(table)) if rows.n else []
    label = rows.columns.get(str(scorer.fitted.target))
    labels = formats.values(label) if label is not None else [None] * rows.n
    told = [json.facts(summary.of_decision(i, labels[i], one)) for i, one in enumerate(decisions)]
    told[:1] = [first | warnings_of(remarks) for first in told[:1]]
    text = json.dumps(told[0] if rows.single is not None else told)
    return Response(text.encode(), headers=noted(remarks))


def invocations(request: Request, scorer: Scorer) -> Response:
    if formats.kind_of(request.media) == formats.JSON:
        rows = protocols.of_mlflow(request.body, request.limits)
        request.rows = rows.n
    else:
        rows = _rows(request)
    scored, remarks = scorer.many(rows.columns, rows.n)
    return Response(protocols.predictions(scored, warnings_of(remarks)), headers=noted(remarks))


def infer(request: Request, scorer: Scorer) -> Response:
    length = request.header(b"inference-header-content-length")
    rows, asked = protocols.of_tensors(request.body, length, request.limits)
    request.rows = rows.n
    asked.check(scorer.names[:-1])
    scored, remarks = scorer.many(rows.columns, rows.n)
    answer = protocols.tensors(scored, request.name, asked, [str(one) for one in remarks])
    return Response(answer, headers=noted(remarks))


def _rows(request: Request, limits: Limits | None = None) -> formats.Rows:
    rows = formats.read(request.body, request.media, limits or request.limits)
    request.rows = rows.n
    return rows


def model(request: Request, scorer: Scorer) -> Response:
    return Response(scorer.summary)


def columns(request: Request, scorer: Scorer) -> Response:
    return Response(formats.encode(scorer.wanted.facts()))


def report(request: Request, scorer: Scorer) -> Response:
    return Response(scorer.page, HTML)


def live(request: Request, scorer: Scorer) -> Response:
    return Response(b'{"live":true}')


def ready(request: Request, scorer: Scorer) -> Response:
    return Response(b'{"ready":true}')


def server(request: Request, scorer: Scorer) -> Response:
    return Response(formats.encode({"name": "candide", "version": __version__, "extensions": ["binary_tensor_data"]}))


def metadata(request: Request, scorer: Scorer) -> Response:
    return Response(protocols.metadata(scorer, request.name))


ENDPOINTS = [
    Endpoint(
        "POST",
        "/predict",
        "The class of each row, and how probable each class is.",
        predict,
        takes="Rows",
        rows=True,
        gives="Predictions",
    ),
    Endpoint(
        "POST",
        "/explain",
        "Why each row is given its class (?by=column).",
        explain,
        slow=True,
        takes="Rows",
        rows=True,
        gives="Decisions",
        query=("by",),
    ),
    Endpoint("GET", "/model", "What the model knows, as candide show --json.", model, slow=True),
    Endpoint("GET", "/columns", "The columns that the model reads, and how.", columns, gives="Columns"),
    Endpoint("GET", "/report", "The page of the model.", report, slow=True, gives=HTML),
    Endpoint(
        "POST",
        "/invocations",
        "Predictions as MLflow's clients ask for them.",
        invocations,
        takes="Invocation",
        rows=True,
        gives="Labels",
    ),
    Endpoint("GET", "/ping", "Whether the server runs, for MLflow's clients.", live, probe=True, gives="Live"),
    Endpoint("GET", "/health", "The same.", live, probe=True, gives="Live"),
    Endpoint("GET", "/v2", "What this server is (Open Inference Protocol).", server, gives="Server"),
    Endpoint("GET", "/v2/health/live", "Whether the server runs.", live, probe=True, gives="Live"),
    Endpoint("GET", "/v2/health/ready", "Whether it answers.", ready, probe=True, gives="Ready"),
    Endpoint("GET", f"/v2/models/{NAME}", "The columns of the model and its answers.", metadata, gives="Metadata"),
    Endpoint("GET", f"/v2/models/{NAME}/ready", "Whether the model answers.", ready, probe=True, gives="Ready"),
    Endpoint(
        "POST",
        f"/v2/models/{NAME}/infer",
        "Predictions, one tensor a column.",
        infer,
        takes="Inference",
        gives="Inferred",
    ),
]
