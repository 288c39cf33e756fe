"""The application: requests in, answers out, by the ASGI protocol. It holds one model, and what it has done so far.

A request is checked before it is read (path, method, token, size), then answered: small ones at once, others on a
thread, and what changes the model once that is on the disk. What is wrong with one is a problem in JSON. No request
says a path of this machine, and none is unpickled.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> herbs = app(FittedModel(garden()), name="herbs")
>>> sorted(herbs.paths)[:4]
['/', '/columns', '/docs', '/explain']
"""

import asyncio
import hmac
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from candide.errors import CandideError, InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.serve import learning_endpoints
from candide.serve.endpoints import ENDPOINTS, HTML, MODEL_PLACEHOLDER, Endpoint
from candide.serve.formats import encode
from candide.serve.http import Request, Response
from candide.serve.learned_state import model_fingerprint as begun
from candide.serve.learner import Learner
from candide.serve.limits import Limits
from candide.serve.metrics import Metrics
from candide.serve.openapi import build_openapi, render_docs
from candide.serve.page import render_form
from candide.serve.peers import Peers
from candide.serve.problem import RequestProblem, problem_from_error
from candide.serve.scorer import Scorer, check_names
from candide.store.models import ModelLike, load_fitted, resolve_target

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # what Prometheus reads
_MAX_INLINE_BODY = (
    1 << 14
)  # bytes of a body that is answered at once: what it asks for is done sooner than a thread is woken
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
    """An ASGI application that serves a model: a fitted estimator, what is fitted in it, or the path of a model file.

    With ``learn``, the path of a journal, it learns and forgets: ``target`` is the column of the labels, if the model
    does not say; rows older than ``window`` seconds are forgotten, and after each ``half_life`` what was counted weighs
    half as much. ``peers`` are addresses of other servers of the same model, whose rows count in answers.
    A request that changes the model must bring the ``token``, as ``Authorization: Bearer TOKEN``; where the model is
    ``private`` every request but a probe must. Peers have the same token. ``name`` is the model's in paths of the Open
    Inference Protocol; ``log`` is called with the facts of each request, none of its rows. Whoever mounts it elsewhere
    calls its ``close`` in the end.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise InputError("the token is empty, or not of ASCII letters", remedy="choose another, or pass none")
    fitted = load_fitted(model)
    check_names(fitted)
    learner = None
    heard = Peers(peers, begun(fitted, resolve_target(fitted, target)), token) if peers else None
    if journal_path is not None:
        learner = Learner(
            journal_path, fitted, target=target, new_classes=allow_new_classes, window=window, half_life=half_life
        )
        fitted = learner.fitted
        if heard is not None:
            heard.own_journal_id, heard.own_session = learner.journal_id, learner.session
            heard.half_life = learner.half_life
    how: dict[str, Any] = {"private": private, "learner": learner, "peers": heard}
    return Application(fitted, name, token, limits or Limits(), log, **how)


class Application:
    """A model behind HTTP."""

    def __init__(
        self,
        fitted: FittedModel,
        name: str,
        token: str | None,
        limits: Limits,
        log: Log | None,
        *,
        private: bool = False,
        learner: Learner | None = None,
        peers: Peers | None = None,
    ):
        self.hosts: frozenset[bytes] | None = None  # the names by which it may be asked; None: any
        self.scorer, self.name, self.limits, self.metrics = make_scorer(fitted), name, limits, Metrics()
        self._fitted, self._peers, self._model_lock = fitted, peers, threading.RLock()
        self._token = None if token is None else token.encode()
        self._log, self._private, self._learner = log, private, learner
        # As many as may work at once, also of those whose answer nobody waits for any more.
        self._workers = ThreadPoolExecutor(threads.thread_count(), "candide-request")
        own = [
            Endpoint("GET", "/", "A page to try it.", self._page_response, is_slow=True, response_schema=HTML),
            Endpoint(
                "GET",
                "/metrics",
                "What the server has done, for Prometheus.",
                self._metrics_response,
                response_schema=PROMETHEUS_TYPE,
            ),
            Endpoint("GET", "/openapi.json", "This description, for programs.", self._openapi_response),
            Endpoint("GET", "/docs", "This description, for people.", self._docs_response, response_schema=HTML),
        ]
        if learner is not None:
            own += learning_endpoints.learning_endpoints(learner, self._add_peers)
            learner.prepare_model = self._prepare_model
        if peers is not None:
            own.append(learning_endpoints.pull_endpoint(peers, self._apply_peers))
        self.endpoints = [*ENDPOINTS, *own]
        self.paths: dict[str, dict[str, Endpoint]] = {}
        for one in self.endpoints:
            methods = self.paths.setdefault(one.path.replace(MODEL_PLACEHOLDER, name), {})
            methods[one.method] = one
            if one.method == "GET":
                methods["HEAD"] = one
        if peers is not None:
            peers.start(self._apply_peers)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
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
                request.body = await self._body(request, receive)
            response = await self._answer(endpoint, request)
        except RequestProblem as problem:
            response = _problem_response(problem, scope["path"])
        except CandideError as error:
            response = _problem_response(problem_from_error(error), scope["path"])
        except Exception:
            traceback.print_exc()
            response = _problem_response(RequestProblem(500, "the server failed; its log says how"), scope["path"])
        finally:
            metrics.running -= 1
        head = [(b"content-type", response.media_type.encode()), (b"content-length", str(len(response.body)).encode())]
        head += [(key.encode(), value.encode()) for key, value in response.headers]
        await send({"type": "http.response.start", "status": response.status, "headers": head})
        body = b"" if scope["method"] == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})
        seconds, path = time.perf_counter() - start, endpoint.path if endpoint else "other"
        metrics.add(path, response.status, seconds, request.rows)
        if self._log is not None:
            self._log(
                {
                    "time": round(time.time(), 3),
                    "method": scope["method"] if endpoint else "other",
                    "path": path,
                    "status": response.status,
                    "ms": round(1000 * seconds, 3),
                    "rows": request.rows,
                    "bytes_in": len(request.body),
                    "bytes_out": len(response.body),
                }
            )

    def _endpoint(self, scope: dict[str, Any], request: Request) -> Endpoint:
        """The endpoint that is asked for, if whoever asks may; paths start where the application is mounted."""
        path, root = scope["path"], scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :] or "/"
        if self.hosts is not None and _host_name(request.header(b"host")) not in self.hosts:
            raise RequestProblem(421, "this server is asked by another name than its own", remedy="ask localhost")
        methods = self.paths.get(path)
        if methods is None:
            raise RequestProblem(404, "there is nothing at this path", remedy="see /docs")
        endpoint = methods.get(scope["method"])
        if endpoint is None:
            allowed = ", ".join(methods)
            raise RequestProblem(405, f"{path} takes {allowed}", headers=(("allow", allowed),), remedy=f"use {allowed}")
        if endpoint.changes_model and not request.is_same_origin:
            raise RequestProblem(
                403, "a page of another site asks to change the model", remedy="ask from a page of this server"
            )
        if self._token is not None and (endpoint.changes_model or (self._private and not endpoint.is_probe)):
            scheme, _, brought = request.header(b"authorization").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(brought.strip(), self._token):
                asks = (("www-authenticate", "Bearer"),)
                raise RequestProblem(
                    401, "the token is missing or wrong", headers=asks, remedy="send Authorization: Bearer TOKEN"
                )
        return endpoint

    async def _body(self, request: Request, receive: Any) -> bytes:
        """The body, if it is not too long and does not take too long to come."""
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                return await self._read_body(request, receive)
        except TimeoutError:
            raise RequestProblem(408, f"the body did not come within {self.limits.timeout_seconds:g} seconds") from None

    async def _read_body(self, request: Request, receive: Any) -> bytes:
        if (packed := request.header(b"content-encoding")) not in (b"", b"identity"):
            what = f"the body is packed ({packed.decode('latin-1')})"
            raise RequestProblem(415, what, value=packed.decode("latin-1"), remedy="send it without content-encoding")
        said, most = request.header(b"content-length"), self.limits.max_body_bytes
        if said.isdigit() and len(said) < 20 and int(said) > most:
            raise _body_too_long(int(said), most)
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestProblem(400, "the request ended before its body did")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _body_too_long(size, most)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        scorer = self.scorer
        if scorer is None:
            if not (endpoint.changes_model or endpoint.is_probe):
                raise RequestProblem(503, "this model has no rows left, and so no class", remedy="let it learn some")
            scorer = cast(Scorer, None)  # which these do not ask
        small = len(request.body) <= _MAX_INLINE_BODY and not endpoint.is_slow and not request.is_table
        answer = endpoint.handler(request, scorer) if small else None
        if isinstance(answer, Response):
            return answer
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                if answer is None:
                    working = self._workers.submit(endpoint.handler, request, scorer)
                    answer = await asyncio.wrap_future(working)
                return answer if isinstance(answer, Response) else await asyncio.wrap_future(answer)
        except TimeoutError:
            what = f"there was no answer within {self.limits.timeout_seconds:g} seconds"
            raise RequestProblem(503, what, headers=(("retry-after", "1"),), **request.timeout_fields) from None

    def _prepare_model(self, fitted: FittedModel) -> Callable[[], None]:
        """What lets a changed model answer; an error where it cannot be estimated."""
        heard = self._peers.valid_peer_counts if self._peers is not None else ()
        scorer = make_scorer(self._add_peers(fitted))

        def answer() -> None:
            with self._model_lock:
                self._fitted, self.scorer = fitted, scorer
                if self._peers is not None and self._peers.valid_peer_counts != heard:
                    self._apply_peers()

        return answer

    def _apply_peers(self) -> None:
        """Let a model answer that has what peers have learned."""
        with self._model_lock:
            self.scorer = make_scorer(self._add_peers(self._fitted))

    def _add_peers(self, fitted: FittedModel) -> FittedModel:
        return fitted if self._peers is None else self._peers.add_to(fitted)

    def close(self) -> None:
        """Let the journal go, if there is one, once what waits is written; then wait for what is worked at."""
        if self._peers is not None:
            self._peers.close()
        if self._learner is not None:
            self._learner.close()
        self._workers.shutdown(cancel_futures=True)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self.close)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    # What the application tells of itself.

    def _metrics_response(self, request: Request, scorer: Scorer) -> Response:
        text = self.metrics.to_text(model_rows=scorer.fitted.n_rows or 0)
        return Response(text.encode(), PROMETHEUS_TYPE)

    def _openapi_response(self, request: Request, scorer: Scorer) -> Response:
        private = None if self._token is None else self._private
        return Response(encode(build_openapi(self.endpoints, scorer, self.name, private, self._target)))

    def _page_response(self, request: Request, scorer: Scorer) -> Response:
        return render_form(scorer, self.name, self._target)

    @property
    def _target(self) -> str | None:
        return None if self._learner is None else self._learner.target

    def _docs_response(self, request: Request, scorer: Scorer) -> Response:
        host = request.header(b"host").decode("latin-1")
        return Response(render_docs(self.endpoints, scorer, self.name, host), HTML)


def _body_too_long(size: int, max_bytes: int) -> RequestProblem:
    return RequestProblem(413, f"a body of {size:,} bytes", value=size, remedy=f"send at most {max_bytes:,} at a time")


def _problem_response(problem: RequestProblem, path: str) -> Response:
    """A problem in JSON; clients of the Open Inference Protocol look for it under a name of their own."""
    facts = problem.to_json()
    if "/v2" in path:
        facts["error"] = facts["detail"]
    return Response(encode(facts), "application/problem+json", problem.status, problem.headers)


def _host_name(header: bytes) -> bytes:
    """The name in a Host header, without the port.

    >>> _host_name(b"localhost:8000"), _host_name(b"[::1]:8000"), _host_name(b"127.0.0.1")
    (b'localhost', b'[::1]', b'127.0.0.1')
    """
    name, colon, port = header.rpartition(b":")
    return name.lower() if colon and port.isdigit() else header.lower()


def make_scorer(fitted: FittedModel) -> Scorer | None:
    """What answers; None where no rows are left to answer by."""
    return Scorer(fitted) if len(fitted.labels) else None
