"""What may be deleted after a compaction, and how the log file is kept short."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.store.base import Write
from skerry.store.sqlite_schema import rows
from skerry.store.sqlite_upkeep import Checkpoints, Sweep, WalBounds
from tests.kit.store.sqlite_files import connection, prepared, written

KEYS = ("/a", "/b", "/c")
_WRITES = st.builds(Write, st.sampled_from(KEYS), st.sampled_from([None, b"1", b"2"]))


def seen(opened: apsw.Connection, at: int) -> list[tuple[str, bytes]]:
    """Return what the log says there was at revision *at*, read in the plainest way."""
    found = rows(
        opened,
        "SELECT k, rv, v FROM log WHERE rv <= ?1 AND NOT EXISTS"
        " (SELECT 1 FROM log AS later WHERE later.prev_rv = log.rv AND later.rv <= ?1)"
        " AND v IS NOT NULL ORDER BY k",
        (at,),
    )
    return [(key, value) for key, _, value in found]


@given(
    writes=st.lists(_WRITES, min_size=1, max_size=12), cut=st.integers(1, 14), busy=st.booleans()
)
@settings(max_examples=40)
def test_a_sweep_changes_nothing_that_can_still_be_asked_for(
    writes: list[Write], cut: int, *, busy: bool
) -> None:
    opened = prepared(Path(":memory:"))
    events = written(opened, [[write] for write in writes])
    newest = events[-1].revision if events else 1
    revision = min(cut, newest)
    kept = {at: seen(opened, at) for at in range(revision, newest + 1)}
    sweep = Sweep(opened, revision)
    while not sweep.step(busy):
        pass
    assert {at: seen(opened, at) for at in kept} == kept
    # Nothing is left that no revision shows: neither replaced rows nor deletes.
    replaced = "SELECT 1 FROM log JOIN log AS later ON later.prev_rv = log.rv WHERE later.rv <= ?"
    assert rows(opened, replaced, (revision,)) == []
    assert rows(opened, "SELECT 1 FROM log WHERE rv <= ? AND v IS NULL", (revision,)) == []
    assert rows(opened, "SELECT 1 FROM past WHERE until <= ?", (revision,)) == []
    opened.close()


def test_a_sweep_takes_small_steps_and_goes_on_where_another_stopped(tmp_path: Path) -> None:
    opened = prepared(tmp_path / "store.db")
    events = written(opened, [[Write("/a", b"1")]] * 500)
    newest = events[-1].revision
    first = Sweep(opened, newest)
    # The mark comes first, so that nobody reads what is about to be deleted; then 200 rows each.
    assert [first.step(busy=True) for _ in range(2)] == [False, False]
    assert rows(opened, "SELECT compacted, count(*) FROM meta, log") == [(newest, 301)]
    after_a_crash = Sweep(opened, newest)
    assert [after_a_crash.step(busy=True) for _ in range(3)] == [False, False, True]
    assert rows(opened, "SELECT swept, count(*) FROM meta, log") == [(newest, 1)]


def test_a_compaction_never_goes_back(tmp_path: Path) -> None:
    opened = prepared(tmp_path / "store.db")
    written(opened, [[Write("/a", b"1")]] * 9)
    for revision in (8, 3):
        sweep = Sweep(opened, revision)
        while not sweep.step(busy=False):
            pass
    assert rows(opened, "SELECT compacted, swept FROM meta") == [(8, 8)]


# -- checkpoints -----------------------------------------------------------------------------------


class Bench:
    """A file, the connection that writes it, and its checkpoints."""

    def __init__(self, path: Path, bounds: WalBounds) -> None:
        self.path = path
        self.wal = path.with_name(path.name + "-wal")
        self.writing = prepared(path)
        self.checkpoints = Checkpoints(self.writing, partial(connection, path), bounds)

    def grow(self, pages: int) -> None:
        """Commit about as many pages, one each."""
        for _ in range(pages):
            rows(self.writing, "UPDATE meta SET floor = floor + 1")

    def copied(self) -> None:
        """Let a checkpoint begin and its copying end."""
        self.checkpoints.between_batches()
        copying = self.checkpoints._copying
        assert copying is not None
        copying.join()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "store.db", WalBounds(wanted_pages=20, max_pages=100))
    yield made
    made.checkpoints.close()


def test_a_short_log_is_left_alone(bench: Bench) -> None:
    bench.grow(2)
    assert not bench.checkpoints.due
    bench.checkpoints.between_batches()
    assert not bench.checkpoints.due


def test_a_long_log_is_copied_beside_the_commits_and_begun_anew_between_them(bench: Bench) -> None:
    bench.grow(20)
    assert bench.checkpoints.due
    bench.copied()
    size = bench.wal.stat().st_size
    bench.checkpoints.in_a_lull()
    assert not bench.checkpoints.due
    # From its beginning: the file does not grow, and stays as long as it is wanted.
    bench.grow(5)
    assert bench.wal.stat().st_size == size


def test_a_reader_puts_the_new_beginning_off_and_not_for_ever(bench: Bench) -> None:
    reading = connection(bench.path)
    rows(reading, "BEGIN")
    rows(reading, "SELECT * FROM meta")
    bench.grow(20)
    bench.copied()
    bench.checkpoints.between_batches()
    # Tried again only when it has grown by a quarter of what is wanted.
    assert not bench.checkpoints.due
    bench.grow(5)
    assert bench.checkpoints.due
    rows(reading, "ROLLBACK")
    reading.close()
    bench.copied()
    bench.checkpoints.between_batches()
    assert not bench.checkpoints.due


def test_a_log_far_too_long_gives_its_space_back(bench: Bench) -> None:
    bench.grow(120)
    bench.checkpoints.between_batches()
    assert bench.wal.stat().st_size == 0
    assert not bench.checkpoints.due


def test_closing_leaves_a_file_without_a_log(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "store.db", WalBounds())
    bench.grow(3)
    bench.checkpoints.close()
    assert not bench.wal.exists() or bench.wal.stat().st_size == 0
    assert rows(connection(bench.path), "SELECT floor FROM meta") == [(4,)]
