"""Key files, edited from outside the server that reads them.

A server never writes to them again once they exist: whoever adds a key must be able to hand it to
every server that shares the store, so that is a person's step and not a server's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.server.security.encryption import new_key, parse_keys
from skerry.server.security.encryption_start import DEFAULT_FILE
from skerry.server.security.pem import blocks
from skerry.server.security.pki import (
    certificate_name,
    cross_signed,
    new_ca,
    private_key_name,
    read_authorities,
)
from skerry.server.security.tokens import new_signing_key, read_signing_keys

__all__ = [
    "DEFAULT_FILE",
    "KeyFileError",
    "add_authority",
    "add_encryption_key",
    "add_signing_key",
    "authorities",
    "encryption_keys",
    "keep_authorities",
    "keep_encryption_keys",
    "keep_signing_keys",
    "signing_keys",
]


class KeyFileError(Exception):
    """Why a key file cannot be used, in a sentence."""


def encryption_keys(file: Path) -> list[str]:
    """Return the names of the keys in *file*; none when it is not there."""
    try:
        return list(parse_keys(file.read_text()))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{file}: {error}") from error


def add_encryption_key(file: Path) -> str:
    """Add a fresh key to *file*, making it if need be; return the key's name."""
    encryption_keys(file)
    name, line = new_key(SystemIds())
    try:
        text = file.read_text() if file.exists() else ""
        if text and not text.endswith("\n"):
            text += "\n"
        secret_directory(file.parent)
        write_secret(file.resolve(), (text + line).encode())
    except OSError as error:
        raise KeyFileError(f"{file}: {error}") from error
    return name


def keep_encryption_keys(file: Path, names: Collection[str]) -> list[str]:
    """Remove every key but *names* from *file*; return the names of those that went."""
    removed = [name for name in encryption_keys(file) if name not in names]
    if not removed:
        return []
    kept = [
        line
        for line in file.read_text().splitlines(keepends=True)
        if line.split("#", 1)[0].partition(":")[0].strip() not in removed
    ]
    try:
        write_secret(file.resolve(), "".join(kept).encode())
    except OSError as error:
        raise KeyFileError(f"{file}: {error}") from error
    return removed


# Authorities and signing keys: PEM files in the folder ``pki``, each key named by its hash.


def authorities(folder: Path) -> list[str]:
    """Return the names of the certificate authorities in *folder*, with their keys."""
    with _explained(folder):
        return list(read_authorities(folder).credentials)


def add_authority(folder: Path) -> str:
    """Add a fresh authority, for which those there vouch; return its name."""
    clock = SystemClock()
    with _explained(folder):
        there = read_authorities(folder).credentials
        # A name of its own, by which people and certificates tell it from the one before.
        made = new_ca(f"skerry-ca-{clock.now():%Y%m%d%H%M%S}", clock)
        name = certificate_name(made.certificate)
        vouched = [cross_signed(made, old, clock) for old in there.values()]
        # The key first: a certificate without its key is trusted and cannot sign.
        _append(folder / "ca.key", made.key)
        _append(folder / "ca.crt", made.certificate + b"".join(vouched))
    return name


def keep_authorities(folder: Path, names: Collection[str]) -> list[str]:
    """Remove every authority but *names*; return the names of those that went."""
    before = authorities(folder)
    with _explained(folder):
        # Nor is there a need any more for one that went to vouch for one that stays.
        roots = {pem for name, pem in read_authorities(folder).roots.items() if name in names}
        _keep(folder / "ca.crt", "CERTIFICATE", lambda pem: pem in roots)
        _keep(folder / "ca.key", "PRIVATE KEY", lambda pem: private_key_name(pem) in names)
    return [name for name in before if name not in names]


def signing_keys(folder: Path) -> list[str]:
    """Return the names of the ServiceAccount signing keys in *folder*."""
    file = folder / "sa.key"
    with _explained(folder):
        return [key.id for key in read_signing_keys(file)] if file.exists() else []


def add_signing_key(folder: Path) -> str:
    """Add a fresh signing key; return its name."""
    made = new_signing_key()
    with _explained(folder):
        _append(folder / "sa.key", made)
        return private_key_name(made)


def keep_signing_keys(folder: Path, names: Collection[str]) -> list[str]:
    """Remove every signing key but *names*; return the names of those that went."""
    before = signing_keys(folder)
    with _explained(folder):
        _keep(folder / "sa.key", "PRIVATE KEY", lambda pem: private_key_name(pem) in names)
    return [name for name in before if name not in names]


def _append(file: Path, pem: bytes) -> None:
    text = file.read_bytes()
    write_secret(file.resolve(), text + (b"" if text.endswith(b"\n") else b"\n") + pem)


def _keep(file: Path, label: str, wanted: Callable[[bytes], bool]) -> None:
    kept = [pem for pem in blocks(file.read_bytes(), label) if wanted(pem)]
    write_secret(file.resolve(), b"".join(kept))


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError) as error:
        raise KeyFileError(f"{folder}: {error}") from error
