"""``/healthz``, ``/livez`` and ``/readyz``, in the words of kube-apiserver.

A check returns when all is well and raises ``Unhealthy`` with the reason otherwise. Reasons go to
the log and to the check's own path, never into the summary, which anybody may read.

Checks have kube-apiserver's names, by which tools ask for them: ``etcd`` is the store, whichever it
is. What kube-apiserver does in hooks after it has started is done here before the first answer, so
that the checks of all hooks pass together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from skerry.api.errors import PageNotFound
from skerry.kit.log import Logger
from skerry.server.http.message import Answer, Request, Response
from skerry.wire.healthz import TEXT, WITHHELD, Checked, answer

log = Logger("health")

# What follows ``poststarthook/``.
_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)

CheckFunction = Callable[[], Awaitable[None]]


class Unhealthy(Exception):
    """Why a check fails."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named check; ``live``, ``ready`` and ``health`` say which endpoints ask it."""

    name: str
    function: CheckFunction
    live: bool = True
    ready: bool = True
    health: bool = True


async def _ping() -> None:
    """Answering at all is the proof."""


class Health:
    """The checks of a server and the endpoints that ask them."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._stopping = False
        self._started = False
        self._checks = [
            Check("ping", _ping),
            Check("log", _ping),
            *checks,
            *self._hooks(),
            Check("informer-sync", self._check_started, live=False, health=False),
            Check("startup", self._check_started, live=False),
            Check("shutdown", self._check_stopping, live=False, health=False),
        ]

    def _hooks(self) -> Iterator[Check]:
        """Yield the checks of what is done at the start, which may take its time: a server that
        has not finished is alive."""
        for name in (*(f"poststarthook/{hook}" for hook in _HOOKS), "autoregister-completion"):
            yield Check(name, self._check_started, live=False)
            yield Check(name, _ping, ready=False, health=False)

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
        return [check for check in self._checks if check.health]

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
