"""Logs, exec and attach of an embedded edge: the server's requests answered by the node's agent.

The agent knows nothing of HTTP and the server nothing of processes; here the two meet.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import parse_qsl

from skerry.api.errors import ApiError, BadRequest, NotFound, ServiceUnavailable
from skerry.api.objects import Object
from skerry.edge.agent.agent import NodeAgent
from skerry.edge.agent.attach import Listener, attached
from skerry.edge.agent.container import ContainerLife
from skerry.edge.agent.execute import session
from skerry.edge.agent.logs import LogOptions, read_log
from skerry.edge.agent.network import Network, Streams
from skerry.edge.agent.runtime import CannotStart, ContainerRuntime, ContainerSpec
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339
from skerry.server.http.message import Answer, Sender, Stream
from skerry.server.request.call import Call
from skerry.server.streaming.http_proxy import proxied
from skerry.server.streaming.port_forward import Dial, forwarding
from skerry.server.streaming.remote_command import (
    Begin,
    CommandError,
    RemoteCommand,
    remote_command,
)


class AgentConnection:
    """Answers requests that end at one node; registered with the server's connections."""

    def __init__(
        self, agent: NodeAgent, runtime: ContainerRuntime, network: Network, clock: Clock
    ) -> None:
        self._agent = agent
        self._runtime = runtime
        self._network = network
        self._clock = clock

    async def connect(self, call: Call, pod: Object | None, part: str) -> Answer:
        """Answer a request about a pod; nodes themselves answer none."""
        kind = call.info.subresource
        if pod is None:
            raise ServiceUnavailable(f"{kind} is not supported by the agent of an embedded node")
        if kind == "portforward":
            return forwarding(call.request, self._dialling(pod))
        if kind == "proxy":
            return await proxied(
                call.request, call.info.rest, partial(self._dialling(pod), int(part))
            )
        life = self._agent.life(pod["metadata"]["uid"], part)
        if kind == "log":
            return self._log(call, pod, part, life)
        if life is None or life.running is None or life.run_spec is None:
            name = pod["metadata"]["name"]
            raise BadRequest(f'container {part} of pod "{name}" is not running')
        if kind == "attach":
            return remote_command(call.request, _attaching(life))
        return self._exec(call, life.run_spec)

    def _dialling(self, pod: Object) -> Dial:
        if (pod.get("status") or {}).get("phase") != "Running":
            phase = (pod.get("status") or {}).get("phase", "Pending")
            raise BadRequest(f"unable to forward port because pod is not running. Status={phase}")

        async def dial(port: int) -> Streams:
            place = self._network.pod_port(pod["metadata"]["uid"], port)
            if place is None:
                raise ConnectionRefusedError("the pod is not on this node any more")
            return await self._network.connect(place)

        return dial

    # Logs.

    def _log(self, call: Call, pod: Object, container: str, life: ContainerLife | None) -> Answer:
        query = call.request.query
        options = log_options(query, self._clock.now())
        previous = query.get("previous") == "true"
        path = None if life is None else life.log_path(previous=previous)
        if path is None:
            raise _no_log(pod, container, previous=previous)

        async def run(sender: Sender) -> None:
            async for chunk in read_log(path, options):
                sender.write(chunk)
                await sender.drain()

        return Stream(run, content_type="text/plain")

    # Exec.

    def _exec(self, call: Call, spec: ContainerSpec) -> Answer:
        request = call.request
        pairs = parse_qsl(request.query_string, keep_blank_values=True)
        argv = [value for name, value in pairs if name == "command"]
        if not argv:
            raise BadRequest("you must specify at least 1 command")
        flags = {name: request.query.get(name) in ("true", "1") for name in ("stdin", "tty")}

        @asynccontextmanager
        async def begin() -> AsyncIterator[RemoteCommand]:
            started = session(self._runtime, spec, argv, stdin=flags["stdin"], tty=flags["tty"])
            with _as_command_error():
                async with started as running:
                    yield running

        return remote_command(request, begin)


@contextlib.contextmanager
def _as_command_error() -> Iterator[None]:
    """Say in the server's words that a command cannot start."""
    try:
        yield
    except CannotStart as error:
        raise CommandError(str(error)) from error


def _attaching(life: ContainerLife) -> Begin:
    """Return what attaches to a container that runs."""

    @asynccontextmanager
    async def begin() -> AsyncIterator[RemoteCommand]:
        spec, log = life.run_spec, life.log_path()
        if spec is not None and (spec.input.stdin or spec.input.tty):
            with _as_command_error():
                async with attached(spec.directory) as found:
                    yield found
        elif log is not None:
            yield Listener(log)
        else:
            raise CommandError("the container has ended")

    return begin


def log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Return what part of a log a request wants; raises ``BadRequest``."""
    since = None
    try:
        if query.get("sinceSeconds"):
            since = now - timedelta(seconds=int(query["sinceSeconds"]))
        elif query.get("sinceTime"):
            since = parse_rfc3339(query["sinceTime"])
        return LogOptions(
            follow=query.get("follow") == "true",
            timestamps=query.get("timestamps") == "true",
            since=since,
            tail_lines=_number(query, "tailLines"),
            limit_bytes=_number(query, "limitBytes"),
            stream={"Stdout": "stdout", "Stderr": "stderr"}.get(query.get("stream", ""), ""),
        )
    except ValueError as error:
        raise BadRequest(f"log options: {error}") from error


def _number(query: Mapping[str, str], name: str) -> int | None:
    if not query.get(name):
        return None
    number = int(query[name])
    if number < 0:
        raise ValueError(f"{name}: must be greater than or equal to 0")
    return number


def _no_log(pod: Object, container: str, *, previous: bool) -> ApiError:
    name = pod["metadata"]["name"]
    if previous:
        return BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    found = next((item for item in statuses if item["name"] == container), None)
    waiting = ((found or {}).get("state") or {}).get("waiting")
    if waiting is None:
        return NotFound(f'the log of container "{container}" in pod "{name}" is gone')
    return BadRequest(
        f'container "{container}" in pod "{name}" is waiting to start: {waiting["reason"]}'
    )
