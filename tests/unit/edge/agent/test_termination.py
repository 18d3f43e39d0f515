"""How a container ends, and what it says at the end."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.process_container import LOG
from skerry.edge.agent.runtime import Exit
from skerry.edge.agent.termination import (
    TERMINATION_LOG,
    ended_within,
    last_words,
    restarting,
)

NOW = datetime(2024, 1, 1, tzinfo=UTC)
FAILED, DONE = Exit(1, NOW, NOW), Exit(0, NOW, NOW)
FALLBACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}


def lines(count: int) -> str:
    return "".join(f"2024-01-01T00:00:00Z stdout F line {n}\n" for n in range(count))


def test_the_termination_log_goes_before_the_output(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text(lines(2))
    assert last_words({}, tmp_path, FAILED) == ""
    assert last_words(FALLBACK, tmp_path, DONE) == ""
    assert last_words(FALLBACK, tmp_path, FAILED) == "line 0\nline 1"
    (tmp_path / TERMINATION_LOG).write_text("because")
    assert last_words(FALLBACK, tmp_path, FAILED) == "because"
    assert last_words({}, tmp_path, DONE) == "because"


def test_only_the_end_is_kept(tmp_path: Path) -> None:
    (tmp_path / TERMINATION_LOG).write_text("x" * 5000 + "end")
    found = last_words({}, tmp_path, DONE)
    assert len(found) == 4096
    assert found.endswith("xend")
    (tmp_path / TERMINATION_LOG).unlink()
    (tmp_path / LOG).write_text(lines(500))
    assert len(last_words(FALLBACK, tmp_path, FAILED).splitlines()) <= 80


def test_a_container_cannot_lead_the_reader_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / TERMINATION_LOG).symlink_to(secret)
    assert last_words({}, tmp_path, DONE) == ""
    (tmp_path / TERMINATION_LOG).unlink()
    os.mkfifo(tmp_path / TERMINATION_LOG)
    assert last_words({}, tmp_path, DONE) == ""


class Stubborn:
    """Ends when it gets one of the signals it obeys."""

    def __init__(self, *obeys: int) -> None:
        self._obeys, self.signals = obeys, list[int]()
        self._ended = asyncio.Event()

    def signal(self, number: int) -> None:
        self.signals.append(number)
        if number in self._obeys:
            self._ended.set()

    async def wait(self) -> Exit:
        await self._ended.wait()
        return Exit(128 + self.signals[-1], NOW, NOW)


async def ended(container: Any, grace: float) -> list[int]:
    await ended_within(container, grace)
    return list(container.signals)


async def test_a_container_is_asked_first_and_made_to_then() -> None:
    assert await ended(Stubborn(signal.SIGTERM), 5) == [signal.SIGTERM]
    assert await ended(Stubborn(signal.SIGKILL), 0.01) == [signal.SIGTERM, signal.SIGKILL]


async def test_without_grace_it_is_not_asked() -> None:
    assert await ended(Stubborn(signal.SIGTERM, signal.SIGKILL), 0) == [signal.SIGKILL]


@pytest.mark.parametrize(
    ("policy", "after_failure", "after_success"),
    [("Always", True, True), ("OnFailure", True, False), ("Never", False, False)],
)
def test_restart_policies(policy: str, after_failure: bool, after_success: bool) -> None:
    again = restarting(policy)
    assert (again(FAILED), again(DONE)) == (after_failure, after_success)
