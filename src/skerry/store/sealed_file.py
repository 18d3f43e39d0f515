"""A file that only a passphrase opens, written and read as a stream.

Two lines of text, then chunks. The first line names the format, the second is JSON with the
parameters of scrypt, which makes two keys of the passphrase: one authenticates the two lines
(its HMAC follows them as a third), to distinguish a wrong passphrase from a damaged file; the
other encrypts. A chunk is 64 KiB of content under AES-256-GCM. Its nonce is its number and
whether it is the last one, so that chunks can neither be exchanged nor left out nor cut off. The
salt is fresh for every file, hence so is the key, and no nonce is ever used twice.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from dataclasses import dataclass
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from skerry.kit.ids import IdSource

CHUNK_BYTES = 64 * 1024
_TAG_BYTES = 16
_KEY_BYTES = 32
_SALT_BYTES = 16
_COUNTER_BYTES = 11
# Longer than any header that was ever written.
_MAX_LINE_BYTES = 4096
# What reading may cost, whoever wrote the header: half a GiB of memory, some seconds.
_MAX_SCRYPT_BYTES = 512 << 20
_MAX_SCRYPT_P = 4


class WrongPassphrase(Exception):
    """The passphrase is not the one the file was written with."""


class Damaged(Exception):
    """The file is not whole, or was changed."""


@dataclass(frozen=True, slots=True)
class ScryptCost:
    """How dear a guess at the passphrase is: memory is 128 · n · r bytes."""

    n: int = 1 << 17
    r: int = 8
    p: int = 1


class SealedWriter(io.RawIOBase):
    """Encrypts what is written to it; ``finish`` must be called for the file to be whole."""

    def __init__(
        self, file: BinaryIO, magic: bytes, passphrase: bytes, ids: IdSource, cost: ScryptCost
    ) -> None:
        salt = ids.bytes(_SALT_BYTES)
        parameters = {"kdf": "scrypt", "n": cost.n, "r": cost.r, "p": cost.p, "salt": salt.hex()}
        head = magic + json.dumps(parameters).encode() + b"\n"
        mac_key, key = _derived(passphrase, salt, cost)
        file.write(head + _mac(mac_key, head) + b"\n")
        self._file = file
        self._cipher = AESGCM(key)
        self._pending = bytearray()
        self._number = 0

    def write(self, content: bytes) -> int:  # type: ignore[override]  # bytes only
        self._pending += content
        # One chunk is kept back: the last one is sealed differently.
        while len(self._pending) > CHUNK_BYTES:
            self._seal(bytes(self._pending[:CHUNK_BYTES]), last=False)
            del self._pending[:CHUNK_BYTES]
        return len(content)

    def finish(self) -> None:
        """Write the last chunk."""
        self._seal(bytes(self._pending), last=True)
        self._pending.clear()

    def _seal(self, content: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last=last), content, None))
        self._number += 1


@dataclass(frozen=True, slots=True)
class Opener:
    """The key of one sealed file, and where its chunks begin."""

    key: bytes
    start: int

    def reading(self, file: BinaryIO) -> BinaryIO:
        """Return the content of *file* as a stream; reading raises ``Damaged``."""
        file.seek(self.start)
        return io.BufferedReader(_SealedReader(file, AESGCM(self.key)), CHUNK_BYTES)


def open_sealed(file: BinaryIO, magic: bytes, passphrase: bytes) -> Opener:
    """Return what opens *file*, whose first line must be *magic*."""
    if file.readline(_MAX_LINE_BYTES) != magic:
        raise Damaged("its first line is not what it should be")
    line = file.readline(_MAX_LINE_BYTES)
    salt, cost = _parameters(line)
    mac = file.readline(_MAX_LINE_BYTES).removesuffix(b"\n")
    mac_key, key = _derived(passphrase, salt, cost)
    if not hmac.compare_digest(mac, _mac(mac_key, magic + line)):
        raise WrongPassphrase
    return Opener(key, file.tell())


class _SealedReader(io.RawIOBase):
    """Decrypts chunk after chunk; nothing is given out that was not authenticated."""

    def __init__(self, file: BinaryIO, cipher: AESGCM) -> None:
        self._file = file
        self._cipher = cipher
        self._number = 0
        self._next = file.read(CHUNK_BYTES + _TAG_BYTES)
        self._content = b""
        self._done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of the C base
        while not self._content and not self._done:
            self._open_chunk()
        taken = self._content[: len(buffer)]
        buffer[: len(taken)] = taken
        self._content = self._content[len(taken) :]
        return len(taken)

    def _open_chunk(self) -> None:
        chunk, self._next = self._next, self._file.read(CHUNK_BYTES + _TAG_BYTES)
        self._done = not self._next
        try:
            nonce = _nonce(self._number, last=self._done)
            self._content = self._cipher.decrypt(nonce, chunk, None)
        except (InvalidTag, ValueError) as error:
            raise Damaged(f"chunk {self._number} was changed or cut off") from error
        self._number += 1


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(_COUNTER_BYTES, "big") + bytes([last])


def _derived(passphrase: bytes, salt: bytes, cost: ScryptCost) -> tuple[bytes, bytes]:
    kdf = Scrypt(salt=salt, length=2 * _KEY_BYTES, n=cost.n, r=cost.r, p=cost.p)
    both = kdf.derive(passphrase)
    return both[:_KEY_BYTES], both[_KEY_BYTES:]


def _mac(key: bytes, head: bytes) -> bytes:
    return hmac.new(key, head, hashlib.sha256).hexdigest().encode()


def _parameters(line: bytes) -> tuple[bytes, ScryptCost]:
    try:
        found = json.loads(line)
        cost = ScryptCost(int(found["n"]), int(found["r"]), int(found["p"]))
        salt = bytes.fromhex(found["salt"])
        known = found["kdf"] == "scrypt"
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged("its parameters cannot be read") from error
    power_of_two = cost.n > 1 and cost.n & (cost.n - 1) == 0
    affordable = cost.r > 0 and 128 * cost.n * cost.r <= _MAX_SCRYPT_BYTES
    if not (known and power_of_two and affordable and 0 < cost.p <= _MAX_SCRYPT_P):
        raise Damaged("its parameters are none that were ever written")
    return salt, cost
