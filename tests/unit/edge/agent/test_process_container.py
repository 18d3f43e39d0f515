"""Containers by their records: real processes, and records of processes that are gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.process_container import (
    EXIT,
    LOG,
    LOST,
    RECORD,
    ProcessContainer,
    end_recorded,
    read_json,
)
from skerry.edge.agent.processes import start_time

NOBODY = {"shim": 2**22 - 1, "shim_start": 1, "began_ns": 1_000_000_000}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, ended at the latest with the test."""
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def started(process: subprocess.Popen[bytes]) -> dict[str, int]:
    began = start_time(process.pid)
    assert began is not None
    return {"pid": process.pid, "pid_start": began}


def exited(directory: Path, **more: Any) -> None:
    ends = {"code": 3, "signal": 0, "began_ns": 10**9, "ended_ns": 5 * 10**9}
    (directory / EXIT).write_text(json.dumps({**ends, **more}))


async def test_how_a_container_ended_is_what_its_shim_wrote(tmp_path: Path) -> None:
    exited(tmp_path)
    found = await ProcessContainer(tmp_path, NOBODY).wait()
    assert (found.code, found.reason) == (3, "")
    assert (found.ended - found.began).total_seconds() == 4


@pytest.mark.parametrize(
    ("more", "reason"), [({"failure": "no such program"}, "StartError"), ({"lost": True}, LOST)]
)
async def test_an_end_has_the_reason_its_record_says(
    tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    exited(tmp_path, **more)
    found = await ProcessContainer(tmp_path, NOBODY).wait()
    assert found.reason == reason
    assert found.message


async def test_a_container_is_waited_for_as_long_as_its_shim_lives(tmp_path: Path) -> None:
    code = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write(sys.argv[2])"
    text = json.dumps({"code": 0, "signal": 0, "began_ns": 0, "ended_ns": 10**9})
    shim = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(tmp_path / EXIT), text], stdin=subprocess.PIPE
    )
    record = started(shim)
    container = ProcessContainer(
        tmp_path, {"shim": shim.pid, "shim_start": record["pid_start"], "began_ns": 0}
    )
    assert shim.stdin is not None
    shim.stdin.close()
    assert (await container.wait()).code == 0
    shim.returncode = 0  # reaped by the container


async def test_a_program_whose_shim_was_killed_does_not_go_on_unwatched(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    (tmp_path / LOG).write_text("")
    os.utime(tmp_path / LOG, (1000, 1000))
    container = ProcessContainer(tmp_path, {**NOBODY, **started(sleeper)})
    found = await container.wait()
    assert sleeper.wait() == -signal.SIGKILL
    assert (found.code, found.reason) == (137, LOST)
    assert found.ended.timestamp() == 1000  # the last sign there was of it
    # Whoever asks later gets the same answer, whatever is left by then.
    (tmp_path / LOG).unlink()
    assert (await ProcessContainer(tmp_path, NOBODY).wait()) == found


async def test_a_signal_reaches_the_program_and_not_one_that_has_its_number_now(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = started(sleeper)
    another = {**NOBODY, "pid": sleeper.pid, "pid_start": record["pid_start"] - 1}
    ProcessContainer(tmp_path, another).signal(signal.SIGTERM)
    assert sleeper.poll() is None
    ProcessContainer(tmp_path, {**NOBODY, **record}).signal(signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_what_is_recorded_can_be_ended_without_an_agent(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    assert not end_recorded(tmp_path)
    (tmp_path / RECORD).write_text(json.dumps({**NOBODY, **started(sleeper)}))
    assert end_recorded(tmp_path)
    assert sleeper.wait() == -signal.SIGKILL
    assert not end_recorded(tmp_path)


def test_a_container_is_known_by_pod_name_and_attempt_wherever_the_edge_lies() -> None:
    def identity(path: str) -> str:
        return ProcessContainer(Path(path), NOBODY).identity

    one = identity("/edge/one/u1/containers/c/0")
    assert one == identity("/edge/moved/u1/containers/c/0")
    assert len({one, identity("/e/u1/containers/c/1"), identity("/e/u2/containers/c/0")}) == 3


@pytest.mark.parametrize("text", [None, b"", b'{"shim": 1', b"\x00\x00\x00\x00", b"\xff\xfe\xfa"])
def test_half_a_record_is_none(tmp_path: Path, text: bytes | None) -> None:
    if text is not None:
        (tmp_path / RECORD).write_bytes(text)
    assert read_json(tmp_path / RECORD) is None


def test_the_process_namespace_is_the_containers_own_or_its_programs() -> None:
    program = {**NOBODY, "pid": 77, "pid_start": 1}
    assert ProcessContainer(Path("/x"), program).processes == "/proc/77/ns/pid"
    entered = ProcessContainer(Path("/x"), {**program, "namespaces": ["/proc/1/ns/user"]})
    assert entered.processes == f"/proc/{NOBODY['shim']}/ns/pid_for_children"
