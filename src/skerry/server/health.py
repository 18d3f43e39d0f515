"""``/healthz``, ``/livez`` and ``/readyz``, in the words of kube-apiserver.

A check returns when all is well and raises ``Unhealthy`` with the reason otherwise. Reasons go to
the log and to the check's own path, never into the summary, which anybody may read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from skerry.api.errors import PageNotFound
from skerry.kit.log import Logger
from skerry.server.http.message import Answer, Request, Response
from skerry.wire.healthz import TEXT, WITHHELD, Checked, answer

log = Logger("health")

CheckFunction = Callable[[], Awaitable[None]]


class Unhealthy(Exception):
    """Why a check fails."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named check; ``live`` and ``ready`` say which endpoints ask it. All ask for ``healthz``."""

    name: str
    function: CheckFunction
    live: bool = True
    ready: bool = True


async def _ping() -> None:
    """Answering at all is the proof."""


class Health:
    """The checks of a server and the endpoints that ask them."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._stopping = False
        self._started = False
        self._checks = [
            Check("ping", _ping),
            *checks,
            Check("startup", self._check_started, live=False),
            Check("shutdown", self._check_stopping, live=False),
        ]

    def started(self) -> None:
        """Say that requests are answered from now on."""
        self._started = True

    def stopping(self) -> None:
        """Say that the server drains; it is no longer ready, but alive."""
        self._stopping = True

    async def handle(self, request: Request, _: str) -> Answer:
        """Answer one of the endpoints, or the path of a single check below it."""
        endpoint, _, name = request.path.strip("/").partition("/")
        checks = self._asked(endpoint)
        if name:
            return await _single(checks, name)
        return await _summary(endpoint, checks, request.query_string)

    def _asked(self, endpoint: str) -> list[Check]:
        if endpoint == "livez":
            return [check for check in self._checks if check.live]
        if endpoint == "readyz":
            return [check for check in self._checks if check.ready]
        return [check for check in self._checks if check.name != "shutdown"]

    async def _check_started(self) -> None:
        if not self._started:
            raise Unhealthy("not finished starting")

    async def _check_stopping(self) -> None:
        if self._stopping:
            raise Unhealthy("process is shutting down")


async def _single(checks: Sequence[Check], name: str) -> Answer:
    check = next((check for check in checks if check.name == name), None)
    if check is None:
        raise PageNotFound.path()
    try:
        await check.function()
    except Unhealthy as error:
        return _text(500, f"internal server error: {error}\n")
    return _text(200, "ok")


async def _summary(endpoint: str, checks: Sequence[Check], query_string: str) -> Answer:
    query = parse_qsl(query_string, keep_blank_values=True, max_num_fields=200)
    excluded = {value for name, value in query if name == "exclude"}
    found: list[Checked] = []
    for check in checks:
        reason = ""
        if check.name not in excluded:
            try:
                await check.function()
            except Unhealthy as error:
                reason = WITHHELD
                log.info("check failed", v=2, endpoint=endpoint, check=check.name, error=error)
        found.append(Checked(check.name, reason, check.name in excluded))
    warning = ""
    if unknown := excluded - {check.name for check in checks}:
        named = ", ".join(f'"{name}"' for name in sorted(unknown))
        warning = f"warn: some health checks cannot be excluded: no matches for {named}\n"
    verbose = any(name == "verbose" for name, _ in query)
    status, text = answer(endpoint, found, verbose=verbose, warning=warning)
    return Response(status, text, TEXT)


def _text(status: int, text: str) -> Response:
    return Response(status, text.encode(), TEXT)
