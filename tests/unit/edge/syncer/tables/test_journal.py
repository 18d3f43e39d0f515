"""The journal forgets nothing it acknowledged and believes nothing that is damaged."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.edge.syncer.tables.journal import Journal
from tests.kit.chain.inline import inline

keys = st.sampled_from(["a", "b", "c", "é"])
steps = st.lists(
    st.tuples(keys, st.none() | st.dictionaries(keys, st.integers(0, 9), max_size=2)), max_size=12
)


def contents(journal: Journal) -> dict[str, Any]:
    return {key: journal.get(key) for key in journal.keys("")}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps, st.integers(0, 200))
async def test_what_was_flushed_is_there_after_a_crash_at_any_byte(
    tmp_path: Path, changes: list[tuple[str, Any]], torn: int
) -> None:
    path = tmp_path / "journal"
    path.unlink(missing_ok=True)
    journal = Journal(path, offload=inline)
    for key, value in changes:
        journal.put(key, value)
        if value is None:
            await journal.flush()
    await journal.flush()
    flushed = contents(journal)
    size = path.stat().st_size if path.exists() else 0
    journal.put("later", {"x": 1})
    await journal.flush()
    journal.close()
    # A crash in the middle of the last write leaves any part of it.
    path.write_bytes(path.read_bytes()[: size + torn])
    again = Journal(path, offload=inline)
    found = contents(again)
    found.pop("later", None)
    assert found == flushed
    again.put("after", 1)
    await again.flush()
    again.close()
    assert contents(Journal(path, offload=inline))["after"] == 1


async def test_a_damaged_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, offload=inline)
    for key in "abc":
        journal.put(key, {"of": key})
        await journal.flush()
    journal.close()
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"of", b"oF")
    path.write_bytes(b"\n".join(lines))
    again = Journal(path, offload=inline)
    assert contents(again) == {"a": {"of": "a"}, "c": {"of": "c"}}
    assert again.damaged == 1


async def test_history_does_not_grow_without_bound(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, offload=inline, min_history=20)
    for number in range(100):
        journal.put("a", number)
        await journal.flush()
    journal.close()
    assert path.read_bytes().count(b"\n") < 25
    assert Journal(path, offload=inline).get("a") == 99


async def test_a_full_disk_keeps_what_is_pending_and_writes_it_later(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    full = True

    async def disk(work: Callable[[], None]) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        work()

    journal = Journal(path, offload=disk)
    journal.put("a", 1)
    await journal.flush()
    assert "No space left" in journal.failure
    journal.put("b", 2)
    full = False
    await journal.flush()
    journal.close()
    assert journal.failure == ""
    assert contents(Journal(path, offload=inline)) == {"a": 1, "b": 2}


def test_nobody_else_may_read_what_is_placed(tmp_path: Path) -> None:
    import asyncio

    path = tmp_path / "journal"
    journal = Journal(path, offload=inline)
    journal.put("secret", "x")
    asyncio.run(journal.flush())
    journal.close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", [b"not a journal", b"zzzzzzzz [1]", b"1 []", b"00000000 []"])
async def test_a_line_that_no_journal_wrote_is_damage_and_is_gone_with_the_next_write(
    tmp_path: Path, line: bytes
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, offload=inline)
    journal.put("a", 1)
    await journal.flush()
    journal.close()
    path.write_bytes(line + b"\n" + path.read_bytes())
    again = Journal(path, offload=inline)
    assert (again.damaged, contents(again)) == (1, {"a": 1})
    again.put("b", 2)
    await again.flush()
    again.close()
    assert line not in path.read_bytes()
    assert contents(Journal(path, offload=inline)) == {"a": 1, "b": 2}


async def test_a_journal_is_written_in_a_thread_where_nothing_else_is_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.put("a", 1)
    await journal.flush()
    journal.close()
    assert contents(Journal(path)) == {"a": 1}
