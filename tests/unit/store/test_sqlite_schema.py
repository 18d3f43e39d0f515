from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw
import pytest

from skerry.store.base import StoreError, Unavailable
from skerry.store.sqlite_schema import (
    FORMAT,
    NEWEST_AND_COMPACTED,
    FileLock,
    check_format,
    connect,
    connect_read_only,
    create_private,
    prepare,
    rows,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opened(path: Path) -> apsw.Connection:
    return connect(path, cache_kib=256)


# -- the lock --------------------------------------------------------------------------------------


def test_the_second_to_lock_learns_who_was_first(path: Path) -> None:
    first = FileLock(path)
    with pytest.raises(Unavailable, match=rf"in use by process {os.getpid()}: only one server"):
        FileLock(path)
    first.release()
    FileLock(path).release()


def test_the_number_of_a_process_that_is_gone_is_replaced_whole(path: Path) -> None:
    lock_file = path.with_name("store.db.lock")
    lock_file.write_text("9999999999999\n")
    lock = FileLock(path)
    assert lock_file.read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_lock_whose_holder_wrote_nothing_yet_is_still_a_lock(path: Path) -> None:
    lock = FileLock(path)
    path.with_name("store.db.lock").write_text("")
    with pytest.raises(Unavailable, match="in use by process unknown"):
        FileLock(path)
    lock.release()


# -- the file --------------------------------------------------------------------------------------


def test_the_file_and_its_log_are_private_whatever_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "store.db"
    before = os.umask(0)
    try:
        create_private(path)
        connection = opened(path)
        prepare(connection, path, "name")
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == ["store.db", "store.db-shm", "store.db-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    finally:
        os.umask(before)
    connection.close()


def test_a_file_that_is_there_keeps_its_content(path: Path) -> None:
    path.write_bytes(b"content")
    create_private(path)
    assert path.read_bytes() == b"content"


def test_an_acknowledged_commit_is_synced_and_checkpoints_are_ours_to_time(path: Path) -> None:
    connection = opened(path)
    settings = {
        name: rows(connection, f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 0}


def test_a_statement_is_run_to_its_end(path: Path) -> None:
    connection = opened(path)
    rows(connection, "CREATE TABLE t(x)")
    found = rows(connection, "INSERT INTO t VALUES (1), (2), (3) RETURNING x")
    assert found == [(1,), (2,), (3,)]
    # Half-read, it would hold the transaction open.
    other = opened(path)
    assert rows(other, "SELECT count(*) FROM t") == [(3,)]
    rows(other, "INSERT INTO t VALUES (4)")


# -- the tables ------------------------------------------------------------------------------------


def test_a_new_store_begins_at_a_revision_that_was_never_given_out(path: Path) -> None:
    connection = opened(path)
    prepare(connection, path, "first")
    assert rows(connection, NEWEST_AND_COMPACTED) == [(1, 0)]


def test_the_newest_revision_is_used_up_even_where_the_log_has_no_row(path: Path) -> None:
    connection = opened(path)
    prepare(connection, path, "first")
    rows(connection, "INSERT INTO log VALUES (7, 0, '/a', x'')")
    assert rows(connection, NEWEST_AND_COMPACTED) == [(7, 0)]
    rows(connection, "UPDATE meta SET floor = 9, compacted = 9")
    assert rows(connection, NEWEST_AND_COMPACTED) == [(9, 9)]


def test_a_store_keeps_its_identity_when_it_is_opened_again(path: Path) -> None:
    for name in ("first", "second"):
        connection = opened(path)
        prepare(connection, path, name)
        assert rows(connection, "SELECT identity FROM meta") == [("first",)]
        connection.close()


def test_tables_that_could_not_be_made_whole_are_not_made_at_all(path: Path) -> None:
    connection = opened(path)

    def refuse_the_third(operation: int, name: str | None, *_: object) -> int:
        refused = operation == apsw.SQLITE_CREATE_TABLE and name == "past"
        return apsw.SQLITE_DENY if refused else apsw.SQLITE_OK

    connection.authorizer = refuse_the_third
    with pytest.raises(apsw.AuthError):
        prepare(connection, path, "first")
    connection.authorizer = None
    assert rows(connection, "SELECT name FROM sqlite_schema") == []
    prepare(connection, path, "second")
    assert rows(connection, "SELECT identity FROM meta") == [("second",)]


@pytest.mark.parametrize("version", [0, FORMAT + 1])
def test_a_file_of_another_program_or_format_is_refused(path: Path, version: int) -> None:
    connection = opened(path)
    rows(connection, "CREATE TABLE other(x)")
    rows(connection, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"has format {version}; this program reads format 1"):
        prepare(connection, path, "name")
    with pytest.raises(StoreError, match=f"has format {version}"):
        check_format(connection, path)
    assert rows(connection, "SELECT name FROM sqlite_schema") == [("other",)]


def test_who_only_looks_can_change_nothing(path: Path) -> None:
    connection = opened(path)
    prepare(connection, path, "first")
    looking = connect_read_only(path, cache_kib=256)
    assert rows(looking, "SELECT identity FROM meta") == [("first",)]
    with pytest.raises(apsw.ReadOnlyError):
        rows(looking, "UPDATE meta SET identity = 'mine'")
