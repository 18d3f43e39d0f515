"""Probes: is a container started, alive, ready to serve?

One probe is one attempt with a deadline; ``Prober`` repeats it and counts. Results change only
after as many agreeing attempts as the thresholds say.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent import grpc_health
from skerry.edge.agent.network import Backend, Connect
from skerry.kit.clock import Clock
from skerry.kit.text import whole_number
from skerry.wire.http1 import request_head

# kubelet shows as much of a probe's answer.
_OUTPUT_BYTES = 10 * 1024

Dial = Callable[[int], Backend | None]
"""Returns where a port of the pod really is."""
RunCommand = Callable[[Sequence[str], float], Awaitable[tuple[int, str]]]
"""Runs a command in the container for at most some seconds; returns exit code and output."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one attempt found."""

    success: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """How probes and hooks get at a container."""

    dial: Dial
    run: RunCommand
    port_names: Mapping[str, int]
    connect: Connect

    def port(self, value: int | str) -> int:
        """Return the number of a port given by number or name; 0 when the name is unknown."""
        if isinstance(value, int):
            return value
        number = whole_number(value)
        return self.port_names.get(value, 0) if number is None else number


async def attempt(handler: Object, reach: Reach, seconds: float) -> Result:
    """Carry out one probe or hook."""
    try:
        async with asyncio.timeout(seconds):
            return await _attempt(handler, reach, seconds)
    except TimeoutError:
        if "exec" in handler:
            words = " ".join(handler["exec"].get("command") or ())
            return Result(False, f'command "{words}" timed out')
        return Result(False, "context deadline exceeded (Client.Timeout exceeded)")


async def _attempt(handler: Object, reach: Reach, seconds: float) -> Result:
    if "exec" in handler:
        code, output = await reach.run(handler["exec"].get("command") or [], seconds)
        return Result(code == 0, output)
    if "httpGet" in handler:
        return await _http(handler["httpGet"], reach)
    if "tcpSocket" in handler:
        return await _tcp(reach.port(handler["tcpSocket"]["port"]), reach)
    if "grpc" in handler:
        return await _grpc(handler["grpc"], reach)
    return Result(False, "probe has no handler this node knows")


async def _grpc(source: Object, reach: Reach) -> Result:
    port, service = reach.port(source["port"]), str(source.get("service") or "")
    place = reach.dial(port)
    refused = f'error: failed to connect service ":{port}"'
    if place is None:
        return Result(False, f"{refused}: connection refused")
    try:
        reader, writer = await reach.connect(place)
    except OSError as error:
        return Result(False, f"{refused}: {error.strerror or error}")
    try:
        status = await grpc_health.check((reader, writer), service, f"localhost:{port}")
    except (OSError, grpc_health.RpcFailed) as error:
        return Result(False, f"error: health rpc probe failed: {error}")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if status == grpc_health.SERVING:
        return Result(True)
    return Result(False, f'service unhealthy (responded with "{status}")')


async def _tcp(port: int, reach: Reach) -> Result:
    place = reach.dial(port)
    if place is None:
        return Result(False, f"dial tcp :{port}: connect: connection refused")
    try:
        _, writer = await reach.connect(place)
    except OSError as error:
        return Result(False, f"dial tcp :{port}: {error.strerror or error}")
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Result(True)


async def _http(source: Object, reach: Reach) -> Result:
    port = reach.port(source["port"])
    path = source.get("path") or "/"
    host = source.get("host") or ""
    place: Backend | None = (host, port) if host else reach.dial(port)
    url = f'Get "http://{host or "localhost"}:{port}{path}"'
    if place is None:
        return Result(False, f"{url}: dial tcp :{port}: connect: connection refused")
    context = None
    if str(source.get("scheme") or "HTTP").upper() == "HTTPS":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Kubelet skips verification as well: a probe asks whether somebody answers, not who.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        reader, writer = await reach.connect(place)
        if context is not None:
            await writer.start_tls(context, server_hostname=host or "localhost")
    except OSError as error:
        return Result(False, f"{url}: dial tcp :{port}: {error.strerror or error}")
    try:
        writer.write(_request(path, f"{host or 'localhost'}:{port}", source))
        line = await reader.readline()
    except (OSError, ValueError) as error:
        return Result(False, f"{url}: {error}")
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
    return _judged(line, url)


def _request(path: str, host: str, source: Object) -> bytes:
    headers = {"Host": host, "User-Agent": "kube-probe/1.32", "Accept": "*/*"}
    for header in source.get("httpHeaders") or ():
        headers[header["name"]] = header.get("value", "")
    return request_head("GET", path, headers | {"Connection": "close"})


def _judged(line: bytes, url: str) -> Result:
    parts = line.split(None, 2)
    code = whole_number(parts[1].decode("latin-1")) if len(parts) > 1 else None
    if code is None:
        return Result(False, f"{url}: EOF" if not line else f"{url}: malformed HTTP response")
    if 200 <= code < 400:
        return Result(True)
    return Result(False, f"HTTP probe failed with statuscode: {code}")


@dataclass(frozen=True, slots=True)
class Timing:
    """How often a probe is tried, and how many agreeing attempts count."""

    delay: float
    period: float
    deadline: float
    successes: int
    failures: int


def timing_of(probe: Mapping[str, Any]) -> Timing:
    """Return a probe's timing with the API's defaults."""
    return Timing(
        float(probe.get("initialDelaySeconds") or 0),
        float(probe.get("periodSeconds") or 10),
        float(probe.get("timeoutSeconds") or 1),
        int(probe.get("successThreshold") or 1),
        int(probe.get("failureThreshold") or 3),
    )


class Prober:
    """Repeats one probe for as long as its container runs."""

    def __init__(
        self,
        probe: Object,
        reach: Reach,
        clock: Clock,
        *,
        on_result: Callable[[bool], None],
        unhealthy: Callable[[Result], None],
    ) -> None:
        """*on_result* hears of each settled result, *unhealthy* of each failed attempt."""
        self._probe = probe
        self._reach = reach
        self._clock = clock
        self._timing = timing_of(probe)
        self._on_result = on_result
        self._unhealthy = unhealthy

    async def until(self, wanted: bool) -> None:
        """Probe until the settled result is *wanted*."""
        await self.run(stop_at=wanted)

    async def run(self, *, stop_at: bool | None = None) -> None:
        """Probe until cancelled, or until the settled result is *stop_at*."""
        timing = self._timing
        await self._clock.sleep(timing.delay)
        agreeing, last = 0, None
        while True:
            result = await attempt(self._probe, self._reach, timing.deadline)
            agreeing = agreeing + 1 if result.success is last else 1
            last = result.success
            if not result.success:
                self._unhealthy(result)
            threshold = timing.successes if result.success else timing.failures
            if agreeing >= threshold:
                self._on_result(result.success)
                if result.success is stop_at:
                    return
            await self._clock.sleep(timing.period)


def shown(message: str) -> str:
    """Return as much of a probe's output as an event carries."""
    return message.strip()[:_OUTPUT_BYTES]
