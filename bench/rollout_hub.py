"""Rollouts on a hub in this process: every edge controller is real, syncers are played.

What a socket and real edges add is not in it; every cached object is checked for mutation, which
a production process does not do.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial

import uvloop
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_chain import CHAIN, ChainHub
from tests.kit.chain.rollout_hub import WORKLOAD, RolloutHub

from bench.report import Row
from skerry.api.edge import PLACEMENT_REVISIONS, ROLLOUTS, SINGLE_PLACEMENT_SLICES
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.kit import log

_SUITE = "rollout"
_EDGES = 100
_ROUNDS = 5
_MAX_STAGED_SECONDS = 10.0
_ROLLOUTS, _SLOTS = 100, 1_000
_MAX_RESTART_SECONDS = 10.0
_PATIENCE_SECONDS = 300.0
# The placement that is made to see the end: itself, its record, its slice, its status.
_OWN_WRITES = 5
_WIDE = 10_000
_MAX_WIDE_SECONDS = 20.0
_WAVES = [{"name": name, "until": until} for name, until in
          (("one", "1%"), ("ten", "10%"), ("half", "50%"))]  # fmt: skip
_STAGES = [{"name": "first", "until": "20%"}, {"name": "second", "until": "50%"}]


def staged() -> Row:
    """Measure a change of one object until everybody has it: stages of 20, 30 and 50 edges."""
    processor = time.process_time()
    seconds = uvloop.run(_staged())
    processor = (time.process_time() - processor) / (_ROUNDS + 1)
    name = f"{_EDGES} edges, stages 20/30/50, 50 % at once, no gates, p90"
    value = statistics.quantiles(seconds, n=10)[8]
    note = f"{processor:.1f} s of the processor each, syncers and server included"
    return _row(name, value, _MAX_STAGED_SECONDS, note)


def wide() -> Row:
    """Measure how long the scheduler takes to bring a revision everywhere in four waves.

    Mailboxes and edges are not in it, which work side by side: whoever was assigned is found good
    as soon as the slices say so. What the translator takes is in its own suite.
    """
    seconds, processor = uvloop.run(_wide())
    name = f"{_WIDE:,} edges, 4 waves, no soak: slices"
    note = f"{processor:.1f} s of the processor, server included; verdicts at once"
    return _row(name, seconds, _MAX_WIDE_SECONDS, note)


def restarted() -> list[Row]:
    """Measure a scheduler that starts with many rollouts at rest, until it has looked at all."""
    seconds, processor, writes = uvloop.run(_restarted())
    name = f"restart, {_ROLLOUTS} rollouts of {_SLOTS:,} slots"
    wanted = Row(_SUITE, f"{name}: needless writes", writes, "writes", "0 writes", writes == 0)
    note = f"{processor:.1f} s of the processor, server included"
    return [_row(name, seconds, _MAX_RESTART_SECONDS, note), wanted]


def _row(name: str, value: float, limit: float, note: str) -> Row:
    return Row(_SUITE, name, value, "s", f"< {limit:g} s", value < limit, note)


async def _staged() -> list[float]:
    log.configure(verbosity=-1)
    hub = ChainHub()
    hub.every_seconds = 0.05
    found: list[float] = []
    async with hub.running("shop", "imw"), hub.synced(), hub.controlled(*CHAIN):
        await hub.fleet(_EDGES)
        await hub.write("0")
        await hub.roll_out(
            settle={"quiet": "0s"},
            waves=_STAGES,
            pace={"concurrency": "50%", "maxUnavailable": "100%"},
            judge={"minReady": "0s", "deadline": "5m"},
            joining={"concurrency": "100%"},
        )
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        await _until(lambda: _is_at(hub, 1))
        for number in range(2, _ROUNDS + 2):
            began = time.monotonic()
            await hub.write(str(number))
            await _until(partial(_is_at, hub, number))
            found.append(time.monotonic() - began)
    return found


async def _wide() -> tuple[float, float]:
    log.configure(verbosity=-1)
    hub = RolloutHub()
    async with hub.running("shop", "imw"):
        await hub.fleet(_WIDE)
        await hub.roll_out(waves=_WAVES, joining={"concurrency": "100%"})
        await hub.cut(1)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        async with hub.controlled("edge-scheduler"):
            await _until(partial(_is_spread, hub, 1))
            began, processor = time.monotonic(), time.process_time()
            await hub.cut(2)
            await _until(partial(_is_spread, hub, 2))
            return time.monotonic() - began, time.process_time() - processor


async def _is_spread(hub: RolloutHub, stable: int) -> bool:
    """Tell whether everybody has a revision; find those good that were given it by now."""
    status = (await hub.rollout()).get("status") or {}
    counts = status.get("counts") or {}
    if (status.get("phase"), status.get("stable")) == ("Completed", stable):
        if counts.get("target") == _WIDE:
            return True
        waiting = status.get("joining")
    else:
        waiting = status.get("phase") == "Progressing" and counts.get("waiting")
    if waiting:
        await hub.judge(pause_seconds=0)
    return False


async def _is_at(hub: RolloutHub, stable: int) -> bool:
    status = (await hub.rollout()).get("status") or {}
    done = (status.get("phase"), status.get("stable")) == ("Completed", stable)
    return done and (status.get("counts") or {}).get("target") == _EDGES


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not await holds():
            await asyncio.sleep(0.02)


async def _rest(hub: RolloutHub, name: str) -> None:
    """Have a placement with a Rollout and its first revision."""
    spec = {"joining": {"concurrency": "100%"}}
    await hub.shop.create(ROLLOUTS, _named("Rollout", name, spec))
    revision = {
        "placement": name,
        "number": 1,
        "digest": "01",
        "items": [],
        "inputs": {"what": "00"},
        "page": {"number": 1, "of": 1},
    }
    await hub.shop.create(PLACEMENT_REVISIONS, _named("PlacementRevision", f"{name}-1", revision))
    await hub.place(WORKLOAD, name, equal(env="prod"))


def _named(kind: str, name: str, spec: Object) -> Object:
    api = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": kind}
    return {**api, "metadata": {"name": name}, "spec": spec}


async def _restarted() -> tuple[float, float, float]:
    """Return the seconds until everything was looked at, those of the processor, and writes."""
    log.configure(verbosity=-1)
    hub = RolloutHub()
    async with hub.running("shop", "imw"):
        await hub.fleet(_SLOTS)
        async with hub.controlled("edge-scheduler"):
            for number in range(_ROLLOUTS):
                await _rest(hub, f"web{number:03d}")
            await _until(lambda: _are_there(hub))
            await _until(lambda: _is_quiet(hub))
        before = await hub.store.revision()
        began, processor = time.monotonic(), time.process_time()
        async with hub.controlled("edge-scheduler"):
            # What is changed meanwhile takes its turn after everything that was there.
            await hub.place(WORKLOAD, "zz", equal(ring="canary"))
            await _until(lambda: _has_slice(hub, "zz"))
            seconds = time.monotonic() - began
            processor = time.process_time() - processor
            await _until(lambda: _is_quiet(hub))
            writes = await hub.store.revision() - before
    return seconds, processor, max(0.0, float(writes) - _OWN_WRITES)


async def _are_there(hub: RolloutHub) -> bool:
    await asyncio.sleep(0.5)
    found = (await hub.shop.list(ROLLOUTS)).items
    counts = [
        ((each.get("status") or {}).get("counts") or {}).get("destinations") for each in found
    ]
    return counts == [_SLOTS] * _ROLLOUTS


async def _is_quiet(hub: RolloutHub) -> bool:
    before = await hub.store.revision()
    await asyncio.sleep(2.0)
    return await hub.store.revision() == before


async def _has_slice(hub: RolloutHub, name: str) -> bool:
    try:
        return bool((await hub.shop.get(SINGLE_PLACEMENT_SLICES, name))["destinations"])
    except NotFound:
        return False
