"""Key files, edited from outside the server that reads them.

A server never writes to them again once they exist: whoever adds a key must be able to hand it to
every server that shares the store, so that is a person's step and not a server's.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from skerry.kit.ids import SystemIds
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.server.security.encryption import new_key, parse_keys
from skerry.server.security.encryption_start import DEFAULT_FILE

__all__ = [
    "DEFAULT_FILE",
    "KeyFileError",
    "add_encryption_key",
    "encryption_keys",
    "keep_encryption_keys",
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
