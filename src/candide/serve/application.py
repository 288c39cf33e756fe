"""The application: HTTP requests in, responses out, by the ASGI protocol. It holds one model and its metrics.

A request is checked before its body is read (path, method, token, size), then answered: small ones at once, others on a
thread, and changes of the model once they are on disk. No request names a path of this machine, and nothing is
unpickled.
"""

import asyncio
import hmac
import os
import threading
import time
import traceback
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, cast

from candide.errors import CandideError, InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.serve.endpoints import (
    ENDPOINTS,
    HTML,
    LEARNING_PATHS,
    MODEL_PLACEHOLDER,
    Endpoint,
    learning_endpoints,
    pull_endpoint,
)
from candide.serve.formats import encode
from candide.serve.http import Limits, Request, RequestProblem, Response
from candide.serve.learned_state import model_fingerprint
from candide.serve.learner import Learner
from candide.serve.pages import build_openapi, render_docs, render_form
from candide.serve.peers import Peers
from candide.serve.scorer import Scorer, check_names
from candide.store.file import ModelLike, load_fitted, resolve_target

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKET_EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
_MAX_INLINE_BODY = 1 << 14  # bytes: a smaller request is answered sooner than a thread is woken
Log = Callable[[dict[str, Any]], None]


def app(
    model: ModelLike,
    *,
    name: str = "model",
    token: str | None = None,
    private: bool = False,
    journal_path: str | os.PathLike | None = None,
    target: str | None = None,
    allow_new_classes: bool = False,
    window: float | None = None,
    half_life: float | None = None,
    peers: Sequence[str] = (),
    limits: Limits | None = None,
    log: Log | None = None,
) -> "Application":
    """Make an ASGI application that serves a model. If you mount it elsewhere, call its ``close`` in the end.

    Parameters
    ----------
    model : a fitted estimator or the path of a model file
    name : the name of the model in paths of the Open Inference Protocol
    token : required, as ``Authorization: Bearer TOKEN``, by requests that change the model; peers use the same token
    private : whether all requests but probes require the token
    journal_path : a journal file; with it the server learns and forgets
    target : the column of labels, if the model does not name it
    allow_new_classes : whether rows of unknown classes may be learned
    window : seconds after which learned rows are forgotten
    half_life : seconds after which the weight of counts has halved
    peers : addresses of other servers of the same model, whose learned rows count in responses
    limits : the largest request that is accepted
    log : called with a record of each request, without its rows
    """
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise InputError("the token is empty, or not printable ASCII", remedy="choose another, or pass none")
    fitted = load_fitted(model)
    check_names(fitted)
    learner = None
    fingerprint = model_fingerprint(fitted, resolve_target(fitted, target)) if peers else b""
    pulled = Peers(peers, fingerprint, token)
    if journal_path is not None:
        options: dict[str, Any] = {"window": window, "half_life": half_life, "allow_new_classes": allow_new_classes}
        learner = Learner(journal_path, fitted, target=target, **options)
        fitted, pulled.half_life = learner.fitted, half_life
        pulled.own_journal_id, pulled.own_session = learner.journal_id, learner.session
    return Application(fitted, name, token, private, limits or Limits(), log, learner, pulled)


class Metrics:
    """Counters by path for Prometheus: requests by status, seconds, rows. Only one thread adds to them."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._bucket_counts: dict[str, list[int]] = {}
        self.running = 0

    def add(self, path: str, status: int, seconds: float, rows: int = 0) -> None:
        self.requests[path, status] += 1
        self.rows[path] += rows
        self.seconds[path] += seconds
        counts = self._bucket_counts.setdefault(path, [0] * (len(_BUCKET_EDGES) + 1))
        counts[bisect_left(_BUCKET_EDGES, seconds)] += 1

    def to_text(self, **gauges: float) -> str:
        lines = ["# TYPE candide_requests_total counter"]
        for (path, status), n in sorted(self.requests.items()):
            lines.append(f'candide_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += ["# TYPE candide_rows_total counter"]
        lines += [f'candide_rows_total{{path="{path}"}} {n}' for path, n in sorted(self.rows.items())]
        lines += ["# TYPE candide_request_seconds histogram"]
        for path, counts in sorted(self._bucket_counts.items()):
            for edge, n in zip((*_BUCKET_EDGES, "+Inf"), accumulate(counts), strict=True):
                lines.append(f'candide_request_seconds_bucket{{path="{path}",le="{edge}"}} {n}')
            lines.append(f'candide_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}')
            lines.append(f'candide_request_seconds_count{{path="{path}"}} {sum(counts)}')
        for name, value in {"requests_running": self.running, **gauges}.items():
            lines += [f"# TYPE candide_{name} gauge", f"candide_{name} {value:g}"]
        lines += ["# TYPE process_cpu_seconds_total counter", f"process_cpu_seconds_total {time.process_time():.3f}"]
        return "\n".join(lines) + "\n"


class Application:
    """A model behind HTTP."""

    def __init__(
        self,
        fitted: FittedModel,
        name: str,
        token: str | None,
        private: bool,
        limits: Limits,
        log: Log | None,
        learner: Learner | None,
        peers: Peers,
    ):
        self.hosts: frozenset[bytes] | None = None  # the accepted Host names; None: any
        self.scorer, self.name, self.limits, self.metrics = make_scorer(fitted), name, limits, Metrics()
        self._fitted, self._peers, self._model_lock = fitted, peers, threading.RLock()
        self._token = None if token is None else token.encode()
        self._log, self._private, self._learner = log, private, learner
        # As many as can work at once, including those whose response nobody waits for any more.
        self._workers = ThreadPoolExecutor(threads.thread_count(), "candide-request")
        self.endpoints = [*ENDPOINTS, *self._own_endpoints()]
        if learner is not None:
            self.endpoints += learning_endpoints(learner, peers)
            learner.prepare_model = self._prepare_model
        if peers.addresses:
            self.endpoints.append(pull_endpoint(peers, self._apply_peers))
        self.paths: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            methods = self.paths.setdefault(endpoint.path.replace(MODEL_PLACEHOLDER, name), {})
            methods[endpoint.method] = endpoint
            if endpoint.method == "GET":
                methods["HEAD"] = endpoint
        peers.start(self._apply_peers)

    def _own_endpoints(self) -> list[Endpoint]:
        target = None if self._learner is None else self._learner.target

        def metrics(request: Request, scorer: Scorer) -> Response:
            return Response(self.metrics.to_text(model_rows=scorer.fitted.n_rows or 0).encode(), PROMETHEUS_TYPE)

        def openapi(request: Request, scorer: Scorer) -> Response:
            private = None if self._token is None else self._private
            return Response(encode(build_openapi(self.endpoints, scorer, self.name, private, target)))

        def docs(request: Request, scorer: Scorer) -> Response:
            return render_docs(self.endpoints, scorer, self.name, request.header(b"host").decode("latin-1"))

        return [
            Endpoint("GET", "/", "Try the model in a form.", is_slow=True, response_schema=HTML,
                     handler=lambda request, scorer: render_form(scorer, self.name, target)),
            Endpoint("GET", "/metrics", "Report metrics for Prometheus.", metrics, response_schema=PROMETHEUS_TYPE),
            Endpoint("GET", "/openapi.json", "Describe the endpoints in OpenAPI.", openapi),
            Endpoint("GET", "/docs", "List the endpoints.", docs, response_schema=HTML),
        ]  # fmt: skip

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        start, metrics = time.perf_counter(), self.metrics
        metrics.running += 1
        request = Request(b"", scope["headers"], scope.get("query_string", b""), self.limits, self.name)
        endpoint: Endpoint | None = None
        try:
            endpoint = self._endpoint(scope, request)
            if endpoint.method == "POST":
                request.body = await self._read_body(request, receive)
            response = await self._answer(endpoint, request)
        except Exception as error:
            response = _problem_response(error, scope["path"])
        finally:
            metrics.running -= 1
        named = [("content-type", response.media_type), ("content-length", str(len(response.body))), *response.headers]
        headers = [(key.encode(), value.encode()) for key, value in named]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})
        seconds, path = time.perf_counter() - start, endpoint.path if endpoint else "other"
        metrics.add(path, response.status, seconds, request.rows)
        if self._log is not None:
            record = {"time": round(time.time(), 3), "method": scope["method"] if endpoint else "other", "path": path}
            record |= {"status": response.status, "ms": round(1000 * seconds, 3), "rows": request.rows}
            self._log(record | {"bytes_in": len(request.body), "bytes_out": len(response.body)})

    def _endpoint(self, scope: dict[str, Any], request: Request) -> Endpoint:
        """Return the endpoint of a request, if it is allowed; paths start where the application is mounted."""
        path, root = scope["path"], scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :] or "/"
        host, colon, port = request.header(b"host").lower().rpartition(b":")
        name = host if colon and port.isdigit() else host + colon + port  # without the port
        if self.hosts is not None and name not in self.hosts:
            raise RequestProblem(421, "the Host header names another server", remedy="use localhost")
        methods = self.paths.get(path, {})
        endpoint = methods.get(scope["method"])
        if endpoint is None:
            if not methods and path in LEARNING_PATHS:
                remedy = "start it with --learn STATE (journal_path=...)"
                raise RequestProblem(404, "this server does not learn", remedy=remedy)
            if not methods:
                raise RequestProblem(404, "there is nothing at this path", remedy="see /docs")
            allowed = ", ".join(methods)
            raise RequestProblem(405, f"{path} takes {allowed}", headers=(("allow", allowed),), remedy=f"use {allowed}")
        if endpoint.changes_model and not request.is_same_origin:
            what = "a page of another site may not change the model"
            raise RequestProblem(403, what, remedy="use a page of this server")
        if self._token is not None and (endpoint.changes_model or (self._private and not endpoint.is_probe)):
            scheme, _, token = request.header(b"authorization").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
                headers, remedy = (("www-authenticate", "Bearer"),), "send Authorization: Bearer TOKEN"
                raise RequestProblem(401, "the token is missing or wrong", headers=headers, remedy=remedy)
        return endpoint

    async def _read_body(self, request: Request, receive: Any) -> bytes:
        if (encoding := request.header(b"content-encoding").decode("latin-1")) not in ("", "identity"):
            what = f"the body is compressed ({encoding})"
            raise RequestProblem(415, what, value=encoding, remedy="send it without content-encoding")
        length = request.header(b"content-length")
        self.limits.check_body(int(length) if length.isdigit() and len(length) < 20 else 0)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestProblem(400, "the request ended before its body did")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self.limits.check_body(size)
                    if not message.get("more_body", False):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            what = f"the body did not arrive within {self.limits.timeout_seconds:g} seconds"
            raise RequestProblem(408, what) from None

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        scorer = self.scorer
        if scorer is None:
            if not (endpoint.changes_model or endpoint.is_probe):
                raise RequestProblem(503, "this model has no rows left, and so no class", remedy="let it learn some")
            scorer = cast(Scorer, None)  # which these endpoints do not use
        is_small = len(request.body) <= _MAX_INLINE_BODY and not endpoint.is_slow and not request.is_table
        answer = endpoint.handler(request, scorer) if is_small else None
        if isinstance(answer, Response):
            return answer
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                if answer is None:
                    answer = await asyncio.wrap_future(self._workers.submit(endpoint.handler, request, scorer))
                return answer if isinstance(answer, Response) else await asyncio.wrap_future(answer)
        except TimeoutError:
            what = f"no response within {self.limits.timeout_seconds:g} seconds"
            raise RequestProblem(503, what, headers=(("retry-after", "1"),), **request.timeout_fields) from None

    def _prepare_model(self, fitted: FittedModel) -> Callable[[], None]:
        """Estimate a changed model, and return the function that publishes it."""
        peer_counts = self._peers.valid_peer_counts
        scorer = make_scorer(self._peers.add_to(fitted))

        def publish() -> None:
            with self._model_lock:
                self._fitted, self.scorer = fitted, scorer
                if self._peers.valid_peer_counts != peer_counts:
                    self._apply_peers()

        return publish

    def _apply_peers(self) -> None:
        with self._model_lock:
            self.scorer = make_scorer(self._peers.add_to(self._fitted))

    def close(self) -> None:
        """Write what waits for the journal and release it, then wait for requests under way."""
        self._peers.close()
        if self._learner is not None:
            self._learner.close()
        self._workers.shutdown(cancel_futures=True)

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        kind = ""
        while kind != "lifespan.shutdown":
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await asyncio.to_thread(self.close)
            await send({"type": f"{kind}.complete"})


def _problem_response(error: Exception, path: str) -> Response:
    """Return a problem in JSON; clients of the Open Inference Protocol expect it as ``error``."""
    if isinstance(error, RequestProblem):
        problem = error
    elif isinstance(error, CandideError):
        location = {name: getattr(error, name) for name in ("column", "row", "value", "remedy")}
        problem = RequestProblem(422 if isinstance(error, InputError) else 500, str(error), **location)
    else:
        traceback.print_exception(error)
        problem = RequestProblem(500, "internal error; see the server's log")
    members = problem.to_json()
    if "/v2" in path:
        members["error"] = members["detail"]
    return Response(encode(members), "application/problem+json", problem.status, problem.headers)


def make_scorer(fitted: FittedModel) -> Scorer | None:
    """Return the scorer of a model; None if it has no rows left."""
    return Scorer(fitted) if len(fitted.labels) else None
