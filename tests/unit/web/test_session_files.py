"""What is kept of sessions: private files that only the browser's secret opens."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from skerry.web.session_files import SessionFiles, SessionRecord, sealed, sealing_key, unsealed

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
TOKEN = b"Bearer a-token-nobody-may-read"


def record(session: str = "one", secret: str = "s" * 43) -> SessionRecord:
    packed = sealed(TOKEN, sealing_key(secret), session, b"n" * 12)
    ends = BEGAN + timedelta(hours=8)
    return SessionRecord(session, "00ff", "alice", "", "127.0.0.1", BEGAN, ends, packed)


def test_a_session_is_read_as_it_was_kept_with_its_last_use(tmp_path: Path) -> None:
    files = SessionFiles(tmp_path / "sessions")
    files.put(record(), BEGAN)
    files.use("one", BEGAN + timedelta(minutes=7))
    assert list(files.read()) == [(record(), BEGAN + timedelta(minutes=7))]
    files.remove("one")
    files.remove("one")
    files.use("one", BEGAN)
    assert list(files.read()) == []


def test_files_are_their_owners_alone_and_have_no_credential_to_read(tmp_path: Path) -> None:
    files = SessionFiles(tmp_path / "sessions")
    files.put(record(), BEGAN)
    (file,) = files.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert b"token" not in file.read_bytes()


def test_a_credential_opens_with_its_own_secret_in_its_own_session() -> None:
    assert unsealed(record(), sealing_key("s" * 43)) == TOKEN
    assert unsealed(record(), sealing_key("t" * 43)) is None
    assert unsealed(msgspec.structs.replace(record(), id="other"), sealing_key("s" * 43)) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        msgspec.json.encode(record("another")),
        msgspec.json.encode(msgspec.structs.replace(record(), digest="no digits")),
        msgspec.json.encode(msgspec.structs.replace(record(), sealed="\u00e9")),
    ],
)
def test_what_cannot_be_read_is_forgotten(tmp_path: Path, content: bytes) -> None:
    files = SessionFiles(tmp_path)
    (tmp_path / "one.json").write_bytes(content)
    assert list(files.read()) == []
    assert list(tmp_path.iterdir()) == []


def test_without_room_a_session_is_not_kept_and_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("in the way")
    SessionFiles(tmp_path / "sessions").put(record(), BEGAN)
    assert (tmp_path / "sessions").read_text() == "in the way"
