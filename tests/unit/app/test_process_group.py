"""The supervisor of a group: real processes of a few lines each."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.app.process_group import CALM_SECONDS, Announce, ProcessGroup, next_pause
from skerry.app.process_member import ProcessMember, flow_share, http_share
from skerry.kit.clock import SystemClock
from skerry.server.flow import FlowSettings
from skerry.server.http.settings import HttpSettings

_PATIENCE = 20.0


class QuickClock(SystemClock):
    """Seconds that pass fifty times as fast, so that on a busy machine many may be missed."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 50)


async def beat_until_stopped(member: ProcessMember) -> None:
    stopped = asyncio.Event()
    member.follow(stopped)
    async with asyncio.TaskGroup() as tasks:
        beating = tasks.create_task(member.beat.run(QuickClock()))
        await stopped.wait()
        beating.cancel()


class Supervised:
    """A group in a thread of this process, with a pipe by which its processes report."""

    def __init__(self, count: int, failing: int = -1) -> None:
        self.announced: list[str] = []
        self._ready = threading.Event()
        self._heard, self._said = os.pipe()
        self._stopping, self._stop = os.pipe()
        self.code: int | None = None
        listening = socket.create_server(("127.0.0.1", 0))
        said = self._said

        def serve(member: ProcessMember, ready: Announce) -> int:
            if member.index == failing:
                return 3
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(said, f"{member.index} {os.getpid()}\n".encode())
            ready(f"ready {member.index}")
            asyncio.run(beat_until_stopped(member))
            return 0

        group = ProcessGroup(
            count, [listening], serve, self._announce, SystemClock(),
            look_seconds=0.1, stuck_seconds=2.0,
        )  # fmt: skip

        def run() -> None:
            self.code = group.run(self._stopping, _PATIENCE)
            listening.close()

        # A test that fails must not be waited for.
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def _announce(self, line: str) -> None:
        self.announced.append(line)
        self._ready.set()

    def ready(self) -> None:
        assert self._ready.wait(_PATIENCE)

    def started(self, count: int) -> list[tuple[int, int]]:
        """Return the index and process of the next *count* that started."""
        found: list[tuple[int, int]] = []
        while len(found) < count:
            assert select.select([self._heard], [], [], _PATIENCE)[0], found
            for line in os.read(self._heard, 4096).decode().splitlines():
                index, pid = line.split()
                found.append((int(index), int(pid)))
        return found

    def stop(self) -> int:
        os.write(self._stop, b"x")
        return self.ended()

    def ended(self) -> int:
        self._thread.join(_PATIENCE)
        for descriptor in (self._heard, self._said, self._stopping, self._stop):
            os.close(descriptor)
        assert self.code is not None
        return self.code


@pytest.fixture
def group() -> Iterator[Supervised]:
    supervised = Supervised(3)
    yield supervised
    if supervised.code is None:
        supervised.stop()


def test_a_group_is_ready_once_when_all_its_processes_are(group: Supervised) -> None:
    started = group.started(3)
    group.ready()
    assert group.announced == ["ready 0"]
    # What is made once is made by the first, before the others start.
    assert started[0][0] == 0
    assert sorted(index for index, _ in started) == [0, 1, 2]


def test_a_process_that_dies_is_started_again_and_nothing_is_announced_twice(
    group: Supervised,
) -> None:
    started = group.started(3)
    group.ready()
    index, pid = started[-1]
    os.kill(pid, signal.SIGKILL)
    assert group.started(1)[0][0] == index
    assert group.announced == ["ready 0"]


def test_a_process_that_is_stuck_is_killed_and_started_again(
    group: Supervised, capsys: pytest.CaptureFixture[str]
) -> None:
    started = group.started(3)
    group.ready()
    index, pid = started[-1]
    os.kill(pid, signal.SIGSTOP)
    again, replacement = group.started(1)[0]
    assert (again, replacement != pid) == (index, True)
    # The others were heard of all the time.
    for _, other in started[:-1]:
        os.kill(other, 0)
    assert group.stop() == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "is stuck" in line]
    assert len(lines) == 1
    assert lines[0].endswith(f"process={index} pid={pid}")


def test_stopping_ends_every_process(group: Supervised) -> None:
    started = group.started(3)
    group.ready()
    assert group.stop() == 0
    for _, pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("failing", [0, 2])
def test_a_process_that_cannot_start_ends_the_group_with_its_code(failing: int) -> None:
    supervised = Supervised(3, failing)
    assert supervised.ended() == 3
    assert supervised.announced == []


def test_the_processes_end_with_their_supervisor_even_if_that_is_killed() -> None:
    heard, said = os.pipe()
    never, _ = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:

        def serve(member: ProcessMember, ready: Announce) -> int:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            ready("ready")
            select.select([member.lifeline], [], [])
            return 0

        def announce(_: str) -> None:
            os.write(said, b"ready")

        os._exit(ProcessGroup(2, [], serve, announce, SystemClock()).run(never, _PATIENCE))
    os.close(said)
    assert os.read(heard, 16) == b"ready"
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    # Each of them holds the other end until it ends.
    assert select.select([heard], [], [], _PATIENCE)[0]
    assert os.read(heard, 16) == b""
    os.close(heard)


@given(st.floats(0, 100), st.floats(0, 2 * CALM_SECONDS))
def test_pauses_grow_to_a_bound_and_are_forgotten_after_a_calm_time(
    last: float, lasted: float
) -> None:
    pause = next_pause(last, lasted)
    assert 0 <= pause <= 10
    assert pause == 0 if lasted >= CALM_SECONDS else pause >= min(10, max(0.2, last))


@given(st.integers(1, 64))
def test_the_shares_of_all_processes_make_up_the_limits_of_one_server(count: int) -> None:
    flow, http = FlowSettings(), HttpSettings()
    part, transport = flow_share(flow, count), http_share(http, count)
    for whole, share in (
        (flow.reading.seats, part.reading.seats),
        (flow.mutating.seats, part.mutating.seats),
        (flow.anonymous.seats, part.anonymous.seats),
        (flow.edges.max_waiting, part.edges.max_waiting),
        (flow.watches, part.watches),
        (flow.workspace_watches, part.workspace_watches),
        (http.connections, transport.connections),
        (http.stranger_connections, transport.stranger_connections),
    ):
        assert whole <= share * count < whole + count
    # A body of the largest size is let in by every process, whatever its share.
    assert transport.arriving_bytes // 4 >= http.body_bytes
