"""Sessions on disk, so that a hub which restarts signs nobody out.

One file per session, its owner's alone: a session that begins or ends costs one file, however many
there are. The credential in it is sealed with the secret that the browser holds and the server does
not keep, so the files open nothing by themselves: whoever copies them has neither a session nor a
token. When a session was last used is the time of its file.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skerry.kit.log import Logger
from skerry.kit.secret_files import secret_directory, write_secret

log = Logger("console")

_PURPOSE = b"skerry console session\0"
NONCE_BYTES = 12
# A certificate or a token and some headers; whatever is larger was not written here.
_MAX_FILE_BYTES = 64 * 1024


class SessionRecord(msgspec.Struct, frozen=True):
    """What is kept of a session, without what would open it."""

    id: str
    digest: str
    user: str
    home: str
    address: str
    began: datetime
    ends: datetime
    sealed: str


def sealed(credential: bytes, key: bytes, session: str, nonce: bytes) -> str:
    """Return *credential* as only who holds *key* can read it, and of this session alone."""
    packed = nonce + AESGCM(key).encrypt(nonce, credential, session.encode())
    return base64.b64encode(packed).decode()


def unsealed(record: SessionRecord, key: bytes) -> bytes | None:
    """Return the credential of a record; nothing where it was sealed with another key."""
    packed = base64.b64decode(record.sealed)
    nonce, body = packed[:NONCE_BYTES], packed[NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, body, record.id.encode())
    except InvalidTag:
        return None


def sealing_key(secret: str) -> bytes:
    """Return the key of a session whose browser holds *secret*."""
    return hashlib.sha256(_PURPOSE + secret.encode()).digest()


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """The folder of them."""

    folder: Path

    def put(self, record: SessionRecord, used: datetime) -> None:
        """Keep a session, last *used* then; where there is no room it ends with the server."""
        try:
            secret_directory(self.folder)
            write_secret(self._path(record.id), msgspec.json.encode(record))
            self.use(record.id, used)
        except OSError as error:
            log.warning("a session is not kept", user=record.user, error=str(error))

    def remove(self, session: str) -> None:
        """Forget a session that ended."""
        self._path(session).unlink(missing_ok=True)

    def use(self, session: str, when: datetime) -> None:
        """Note when a session was last used; one that is gone by now has no use."""
        path = self._path(session)
        if path.exists():
            os.utime(path, (when.timestamp(), when.timestamp()))

    def read(self) -> Iterator[tuple[SessionRecord, datetime]]:
        """Yield every session that is kept, with its last use; what cannot be read is removed."""
        for path in sorted(self.folder.glob("*.json")):
            found = path.stat()
            try:
                if found.st_size > _MAX_FILE_BYTES:
                    raise msgspec.DecodeError("too large")
                record = msgspec.json.decode(path.read_bytes(), type=SessionRecord)
                base64.b64decode(record.sealed, validate=True)
                bytes.fromhex(record.digest)
                if path != self._path(record.id):
                    raise msgspec.DecodeError("named after another session")
            except (msgspec.MsgspecError, ValueError) as error:
                log.warning("a kept session is forgotten", file=path.name, error=str(error))
                path.unlink(missing_ok=True)
                continue
            yield record, datetime.fromtimestamp(found.st_mtime, UTC)

    def _path(self, session: str) -> Path:
        return self.folder / f"{session}.json"
