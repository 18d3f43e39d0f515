from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry

from skerry.runtime.health import HealthEndpoint
from skerry.runtime.http import HttpTransport
from skerry.runtime.metrics import RuntimeMetrics


async def test_probes_and_scrapers_are_answered_over_a_socket() -> None:
    metrics = RuntimeMetrics()
    metrics.adds.labels("q").inc()
    endpoint = HealthEndpoint(metrics.registry, ready={"leading": lambda: "not elected"})
    async with endpoint.serving("127.0.0.1", 0) as port:
        transport = HttpTransport("127.0.0.1", port, None)
        assert (await transport.request("GET", "/healthz")).body == b"ok"
        ready = await transport.request("GET", "/readyz")
        assert ready.status == 500
        assert b"[-]leading failed: not elected" in ready.body
        assert (
            b'workqueue_adds_total{name="q"} 1.0'
            in (await transport.request("GET", "/metrics")).body
        )
        await transport.close()


async def test_what_is_no_probe_is_dropped() -> None:
    async with HealthEndpoint(CollectorRegistry()).serving("127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 20_000)
        assert await reader.read() == b""
        writer.close()


async def test_each_check_is_listed_when_asked_for() -> None:
    endpoint = HealthEndpoint(CollectorRegistry(), alive={"loop": lambda: ""})
    checks = await endpoint.answer(b"GET /livez?verbose HTTP/1.1")
    assert checks.body == b"[+]ping ok\n[+]loop ok\nlivez check passed\n"
    assert (await endpoint.answer(b"GET /other HTTP/1.1")).encoded().startswith(b"HTTP/1.1 404")
    assert (await endpoint.answer(b"POST /healthz HTTP/1.1")).encoded().startswith(b"HTTP/1.1 405")


async def test_what_is_no_request_line_is_a_bad_request() -> None:
    answered = await HealthEndpoint(CollectorRegistry()).answer(b"hello\r\n\r\n")
    assert answered.encoded().startswith(b"HTTP/1.1 400 Bad Request\r\n")
