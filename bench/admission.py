"""What the clients' own rules cost: policies, and webhooks that take their time.

A create is measured with no rule, with ten policies of three expressions that mean it, and with a
webhook that answers in 5 ms; then a thousand creates wait for a webhook while others are measured.

    python -m bench admission
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.kit.machinery.policies import binding, policy
from tests.kit.server.webhooks import Review, allow, configuration, webhook, webhook_server

from bench import load
from bench.load import Outcome, Server
from bench.report import Row
from bench.servers import Measured, ours

_SUITE = "admission"
_MAPS = "/api/v1/namespaces/default/configmaps"
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_ROUNDS = 3
# Of latencies, which neighbours disturb more than processor time.
_TURNS = 8
_SECONDS = 3.0
_POLICIES = 10
_EXPRESSIONS = (
    "object.metadata.name.size() < 100",
    "!('forbidden' in object.data)",
    "has(object.metadata.labels)",
)
_ANSWER_SECONDS = 0.005
_WAITING = 1000
_MAX_POLICIES_US = 150.0
_MAX_WEBHOOK_MS = 7.0


def _config_map(name: str, **labels: str) -> bytes:
    data = {f"key-{i:02d}": "x" * 60 for i in range(18)}
    metadata = {"name": name, "labels": {"app": "bench", **labels}}
    return json.dumps({"metadata": metadata, "data": data}).encode()


async def _once(server: Server, method: str, path: str, obj: Any = None) -> None:
    body = b"" if obj is None else json.dumps(obj).encode()
    request = server.request(method, path, body)
    outcome = await load.run(server, lambda _: request, connections=1, count=1)
    if outcome.failures:
        raise RuntimeError(f"{method} {path} failed")


def _creating(server: Server, mark: str, **labels: str) -> Callable[[int], bytes]:
    return lambda index: server.request("POST", _MAPS, _config_map(f"{mark}-{index}", **labels))


async def _cpu(measured: Measured, mark: str) -> float:
    """Return the processor microseconds of a create."""
    before = measured.cpu_seconds()
    made = await load.run(
        measured.server, _creating(measured.server, mark), connections=8, seconds=_SECONDS
    )
    if made.failures:
        raise RuntimeError(f"{made.failures} creates failed")
    return (measured.cpu_seconds() - before) / made.requests * 1e6


async def _latency(server: Server, mark: str, **labels: str) -> float:
    """Return the median milliseconds of a create, one after the other."""
    made = await load.run(server, _creating(server, mark, **labels), connections=1, count=100)
    if made.failures:
        raise RuntimeError(f"{made.failures} creates failed")
    return statistics.median(made.latencies) * 1000


async def _policies(measured: Measured) -> list[Row]:
    server, plain, judged = measured.server, list[float](), list[float]()
    for number in range(_ROUNDS):
        plain.append(await _cpu(measured, f"plain{number}"))
        for index in range(_POLICIES):
            made = policy(f"p{index}", *_EXPRESSIONS)
            await _once(server, "POST", f"{_GROUP}/validatingadmissionpolicies", made)
            bound = binding(f"b{index}", f"p{index}")
            await _once(server, "POST", f"{_GROUP}/validatingadmissionpolicybindings", bound)
        # Policies are compiled when they are first met, which is not what a create costs.
        first = {"metadata": {"name": f"first{number}", "labels": {"app": "bench"}}, "data": {}}
        await _once(server, "POST", _MAPS, first)
        judged.append(await _cpu(measured, f"judged{number}"))
        for index in range(_POLICIES):
            for kind, name in (("policybindings", f"b{index}"), ("policies", f"p{index}")):
                await _once(server, "DELETE", f"{_GROUP}/validatingadmission{kind}/{name}")
    # The least disturbed of each: neighbours add to what a create costs, and never take away.
    more = min(judged) - min(plain)
    return [
        Row(_SUITE, "create, no policy and no webhook", min(plain), "µs of CPU"),
        Row(
            _SUITE,
            f"{_POLICIES} policies of {len(_EXPRESSIONS)} expressions add",
            more,
            "µs of CPU",
            f"< {_MAX_POLICIES_US:g}",
            more < _MAX_POLICIES_US,
        ),
    ]


async def _webhooks(measured: Measured) -> list[Row]:
    server = measured.server
    released = asyncio.Event()

    took = list[float]()

    async def slow(review: Review) -> Review:
        began = time.perf_counter()
        await asyncio.sleep(_ANSWER_SECONDS)
        took.append(time.perf_counter() - began)
        return allow(review)

    async def held(review: Review) -> Review:
        await released.wait()
        return allow(review)

    async with webhook_server() as hooks:
        chosen = {"objectSelector": {"matchLabels": {"hook": "slow"}}}
        waits = {"objectSelector": {"matchLabels": {"hook": "held"}}, "timeoutSeconds": 30}
        made = configuration(
            webhook(hooks.on("/slow", slow), "slow.example.com", **chosen),
            webhook(hooks.on("/held", held), "held.example.com", **waits),
        )
        await _once(server, "POST", f"{_GROUP}/validatingwebhookconfigurations", made)
        alone, asked, others = await _beside(server, made)
        waiting = await _while_held(server, released, lambda: len(hooks.reviews("/held")))
        await _once(server, "DELETE", f"{_GROUP}/validatingwebhookconfigurations/c")
    return [
        Row(
            _SUITE,
            "a webhook that answers in 5 ms adds",
            asked,
            "ms",
            f"< {_MAX_WEBHOOK_MS:g}",
            asked < _MAX_WEBHOOK_MS,
            note=f"the webhook itself {min(took) * 1000:.3g}",
        ),
        Row(_SUITE, "it adds to creates it does not mean", others, "ms"),
        Row(
            _SUITE,
            f"create while {_WAITING} wait for a webhook",
            waiting,
            "ms",
            note=f"{alone:.3g}",
        ),
    ]


async def _beside(server: Server, configured: Any) -> tuple[float, float, float]:
    """Return what a create takes without webhooks, and what one adds to those that it means and
    to others: the least disturbed of several rounds, in turns."""
    path, name = f"{_GROUP}/validatingwebhookconfigurations", "c"
    rounds = list[tuple[float, float, float]]()
    for number in range(_TURNS):
        asked = await _latency(server, f"asked{number}", hook="slow")
        others = await _latency(server, f"others{number}")
        await _once(server, "DELETE", f"{path}/{name}")
        alone = await _latency(server, f"alone{number}")
        await _once(server, "POST", path, configured)
        rounds.append((alone, asked, others))
    alone, asked, others = (min(column) for column in zip(*rounds, strict=True))
    return alone, asked - alone, others - alone


async def _while_held(server: Server, released: asyncio.Event, asked: Callable[[], int]) -> float:
    """Return the median milliseconds of a create while others wait for their webhook."""
    creating: Awaitable[Outcome] = asyncio.ensure_future(
        load.run(
            server, _creating(server, "held", hook="held"), connections=_WAITING, count=_WAITING
        )
    )
    async with asyncio.timeout(25):
        while asked() < _WAITING:
            await asyncio.sleep(0.05)
    waiting = await _latency(server, "beside")
    released.set()
    outcome = await creating
    if outcome.failures:
        raise RuntimeError(f"{outcome.failures} of those that waited failed")
    return waiting


def run() -> list[Row]:
    """Measure everything."""
    with ours() as measured:
        rows = asyncio.run(_policies(measured))
        return rows + asyncio.run(_webhooks(measured))
