"""Reading logs of containers: the part that was asked for, once or as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.logs import LogOptions, read_log
from skerry.edge.agent.process_container import EXIT


def line(second: int, text: str, stream: str = "stdout", tag: str = "F") -> str:
    return f"2030-01-01T00:00:{second:02}.123456789Z {stream} {tag} {text}\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


async def shown(log: Path, **options: object) -> str:
    found = [chunk async for chunk in read_log(log, LogOptions(**options))]  # type: ignore[arg-type]
    return b"".join(found).decode()


async def test_lines_are_shown_as_the_program_wrote_them(log: Path) -> None:
    log.write_text(line(1, "one two") + line(2, "par", tag="P") + line(2, "tial") + line(3, ""))
    assert await shown(log) == "one two\npartial\n\n"
    assert (await shown(log, timestamps=True)).startswith("2030-01-01T00:00:01.123456789Z one")


async def test_a_stream_and_a_time_leave_out_the_others(log: Path) -> None:
    log.write_text(line(1, "a") + line(2, "b", "stderr") + line(3, "c"))
    assert await shown(log, stream="stderr") == "b\n"
    since = datetime(2030, 1, 1, 0, 0, 2, 123456, tzinfo=UTC)
    assert await shown(log, since=since) == "b\nc\n"
    assert await shown(log, since=since.replace(microsecond=123457)) == "c\n"


@given(st.lists(st.text("ab\x00", max_size=4), max_size=8), st.integers(0, 9), st.booleans())
def test_the_last_lines_are_the_last_of_all(texts: list[str], count: int, large: bool) -> None:
    async def check(log: Path) -> None:
        # Larger than what is read at once, so that lines lie on both sides of a block.
        lines = [text * 60_000 if large else text for text in texts]
        log.write_text("".join(line(n, text) for n, text in enumerate(lines)))
        wanted = lines[-count:] if count else []
        assert await shown(log, tail_lines=count) == "".join(f"{each}\n" for each in wanted)

    with TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory) / "log"))


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 100])
async def test_no_more_bytes_are_shown_than_were_asked_for(log: Path, limit: int) -> None:
    log.write_text(line(1, "one") + line(2, "two"))
    assert await shown(log, limit_bytes=limit) == "one\ntwo\n"[:limit]


async def following(log: Path, **options: object) -> AsyncIterator[str]:
    made = LogOptions(follow=True, **options)  # type: ignore[arg-type]
    async with aclosing(read_log(log, made)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            for each in chunk.decode().splitlines():
                yield each


async def test_what_is_written_later_follows_until_the_container_ends(log: Path) -> None:
    log.write_text(line(1, "one"))
    found = []
    async for each in following(log):
        found.append(each)
        if each == "one":
            with log.open("a") as file:
                file.write(line(2, "two"))
        else:
            (log.parent / EXIT).write_text("0")
    assert found == ["one", "two"]


async def test_a_log_that_is_begun_anew_is_followed_from_its_first_line(log: Path) -> None:
    log.write_text(line(1, "old") + line(2, "last"))
    found = []
    async for each in following(log, tail_lines=1):
        found.append(each)
        if each == "last":
            fresh = log.with_name("fresh")
            fresh.write_text(line(3, "a") + line(4, "b") + line(5, "c"))
            fresh.replace(log)
            (log.parent / EXIT).write_text("0")
    # Of the old log the last line was asked for; of what came since, everything.
    assert found == ["last", "a", "b", "c"]
