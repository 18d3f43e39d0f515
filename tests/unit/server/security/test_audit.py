from __future__ import annotations

import asyncio
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from skerry.server.http.message import Request
from skerry.server.request.info import RequestInfo
from skerry.server.security.audit import (
    WORKSPACE_ANNOTATION,
    AuditLog,
    AuditSettings,
    audit_event,
)
from tests.kit.server.clock import HandClock


def lines(path: Path) -> list[dict[str, int]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


async def test_events_are_written_in_order_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(AuditSettings(path), HandClock())
    for number in range(10):
        log.record({"number": number})
        if number == 4:
            await log.flush()
    log.close()
    assert lines(path) == [{"number": number} for number in range(10)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_file_is_put_aside_when_it_is_full_and_old_ones_go(tmp_path: Path) -> None:
    path, clock = tmp_path / "audit.log", HandClock()
    log = AuditLog(AuditSettings(path, max_bytes=50, backups=2), clock)
    for number in range(6):
        clock.advance(1)
        log.record({"number": number, "filling": "x" * 30})
        await log.flush()
    kept = sorted(tmp_path.glob("audit-*.log"))
    assert len(kept) == 2
    assert [line["number"] for file in (*kept, path) for line in lines(file)] == [3, 4, 5]


async def test_events_beyond_the_bound_are_dropped_and_counted(tmp_path: Path) -> None:
    log = AuditLog(AuditSettings(tmp_path / "a.log", waiting_bytes=30), HandClock())
    for number in range(5):
        log.record({"number": number})
    assert log.dropped == 2
    log.close()
    assert len(lines(tmp_path / "a.log")) == 3


async def test_a_disk_that_refuses_is_reported_and_does_not_stop_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    log = AuditLog(AuditSettings(tmp_path / "file" / "audit.log"), HandClock())
    log.record({"number": 1})
    await log.flush()
    assert log.dropped == 1
    assert "audit events were not written" in capsys.readouterr().err


async def test_who_closes_while_a_thread_is_about_to_write_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(AuditSettings(path), HandClock())
    free = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as busy:
        # The only thread has other work when the time to write has come.
        asyncio.get_running_loop().set_default_executor(busy)
        occupied = busy.submit(free.wait)
        log.record({"number": 1})
        log._begin_writing()
        log.record({"number": 2})
        log.close()
        assert lines(path) == [{"number": 1}, {"number": 2}]
        free.set()
        occupied.result()
        await log.flush()
    assert lines(path) == [{"number": 1}, {"number": 2}], "nothing is written twice"


def test_what_admission_notes_does_not_replace_what_the_server_says() -> None:
    request = Request("POST", "/clusters/c1/api/v1/namespaces/ns/configmaps")
    request.audit_annotations = {
        WORKSPACE_ANNOTATION: "root:other",
        "authorization.k8s.io/decision": "forbid",
        "policy.example.io/why": "because",
    }
    info = RequestInfo(request.path, "create", cluster="c1")
    now = datetime(2030, 1, 1, tzinfo=UTC)
    event = audit_event("id", request, info, None, 201, now, now)
    assert event["annotations"] == {
        WORKSPACE_ANNOTATION: "c1",
        "authorization.k8s.io/decision": "allow",
        "policy.example.io/why": "because",
    }
