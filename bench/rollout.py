"""What a rollout costs to decide and to judge, for ten thousand destinations.

First decisions and verdicts alone: no hub, no writes. A wave of ``until: 50%`` opens when its gate
is satisfied, a failure returns everybody, and every destination reports at once. What a hub adds is
measured by ``placement`` (slices) and ``translator`` (copies). Times are of the processor: nothing
here waits. Then rollouts on a hub in this process (``rollout_hub``), by the clock on the wall.

    python -m bench rollout
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime

from pyroaring import BitMap

from bench.report import Row
from bench.rollout_hub import restarted, staged, wide
from skerry.logic.fleet.rollout.advance import advance
from skerry.logic.fleet.rollout.assign import Assignment, assign
from skerry.logic.fleet.rollout.judging import Judging, Seen
from skerry.logic.fleet.rollout.spec import RolloutSpec, read_spec
from skerry.logic.fleet.rollout.state import (
    Batch,
    Revision,
    Situation,
    State,
    Verdicts,
    moment,
    written,
)
from skerry.logic.fleet.rollout.verdict import Evidence
from skerry.logic.fleet.rollout.waves import WaveMember

_SUITE = "rollout"
_SLOTS = 10_000
_ROUNDS = 20
_MAX_GATE_SECONDS = 1.0
_MAX_FAILURE_SECONDS = 2.0
_MAX_MEGABYTES = 5.0
_NOW = moment(datetime(2026, 1, 1, tzinfo=UTC))
_REVISIONS = {number: Revision(number, f"digest-{number}") for number in (1, 2)}


def run() -> list[Row]:
    """Measure everything."""
    spec = _spec()
    gate = [_timed(_at_gate(spec)) for _ in range(_ROUNDS)]
    failure = [_timed(_failing(spec)) for _ in range(_ROUNDS)]
    judged, megabytes = _judged(spec)
    slots = f"{_SLOTS:,} slots"
    return [
        _row(f"gate satisfied → assigned, {slots}, p99", _p99(gate), "s", _MAX_GATE_SECONDS),
        _row(f"failure seen → all back, {slots}, p99", _p99(failure), "s", _MAX_FAILURE_SECONDS),
        _row(f"{slots} report at once → verdicts", judged, "s", _MAX_GATE_SECONDS),
        _row(f"memory of the judge, {slots}", megabytes, "MB", _MAX_MEGABYTES),
        staged(),
        wide(),
        *restarted(),
    ]


def _row(name: str, value: float, unit: str, limit: float) -> Row:
    return Row(_SUITE, name, value, unit, f"< {limit:g} {unit}", value < limit)


def _spec() -> RolloutSpec:
    return read_spec(
        {
            "waves": [
                {"name": "canary", "until": "1%", "spreadBy": ["region"]},
                {"name": "half", "until": "50%", "spreadBy": ["region"]},
            ],
            "pace": {"concurrency": "100%", "maxUnavailable": "100%", "per": ["region"]},
            "judge": {"minReady": "0s"},
        }
    )


def _places(revision: int, ahead: int = 0) -> list[WaveMember]:
    return [
        WaveMember(n, f"uid-{n}", {"region": f"r{n % 20}"}, 2 if n <= ahead else revision)
        for n in range(1, _SLOTS + 1)
    ]


def _at_gate(spec: RolloutSpec) -> Situation:
    """Return a rollout whose canaries have just become good."""
    canaries = BitMap(range(1, 101))
    state = State("Progressing", 2, 2, "digest-2", 1, 1, "canary", _NOW, members=canaries)
    verdicts = Verdicts(2, good=canaries)
    places = _places(1, ahead=100)
    return Situation(spec, state, verdicts, places, _REVISIONS, 2, _NOW, lambda _: 0.0)


def _failing(spec: RolloutSpec) -> Situation:
    """Return a rollout that is everywhere and has just become bad."""
    everybody = BitMap(range(1, _SLOTS + 1))
    state = State("Progressing", 2, 2, "digest-2", 1, 3, "", _NOW, members=everybody)
    verdicts = Verdicts(2, good=everybody - BitMap([7]), bad=BitMap([7]))
    places = _places(1, ahead=_SLOTS)
    return Situation(spec, state, verdicts, places, _REVISIONS, 2, _NOW, lambda _: 0.0)


def _timed(given: Situation) -> float:
    """Return the seconds of one step, with the status as it is written."""
    began = time.process_time()
    found: Assignment = assign(given, advance(given))
    written(found.state)
    seconds = time.process_time() - began
    if len(found.revisions) < _SLOTS // 3:
        raise AssertionError(f"the step assigned {len(found.revisions)} only")
    return seconds


def _judged(spec: RolloutSpec) -> tuple[float, float]:
    """Return the seconds that judging everybody takes, and the megabytes that are kept for it."""
    gc.collect()
    tracemalloc.start()
    judging = Judging(lambda _: 0.0)
    flying = Batch(_NOW, BitMap(range(1, _SLOTS + 1)))
    state = State("Progressing", 2, 2, "digest-2", 1, 3, in_flight=(flying,))
    judging.turn(spec, state, Verdicts(2))
    waiting = Evidence(translated=True)
    for slot in range(1, _SLOTS + 1):
        judging.put(slot, Seen(2, f"location-{slot}", waiting))
    judging.step(0.0)
    gc.collect()
    megabytes = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    well = replace(waiting, well=True)
    began = time.process_time()
    for slot in range(1, _SLOTS + 1):
        judging.put(slot, Seen(2, f"location-{slot}", well))
    found = judging.step(1.0)
    seconds = time.process_time() - began
    if len(found.verdicts.good) != _SLOTS:
        raise AssertionError(f"{len(found.verdicts.good)} are good only")
    return seconds, megabytes


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]
