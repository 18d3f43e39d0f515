"""The keys a server is recognised by, as files: carried in a backup, compared in a restore.

A server whose certificate authority differs is one its edges and kubeconfigs do not trust; with
another signing key it refuses every token it ever issued; without its encryption keys it cannot
read its Secrets. Certificates for serving are made anew from the authority.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from skerry.kit.secret_files import secret_directory, write_secret
from skerry.server.security.encryption import check_value, parse_keys
from skerry.server.security.encryption_start import DEFAULT_FILE
from skerry.server.security.pem import blocks, key_id

# No file of a server's keys is larger than a few KiB.
_MAX_FILE_BYTES = 1 << 20
_KINDS = {
    "authority": "the certificate authority (ca.crt, ca.key)",
    "signing": "the ServiceAccount signing key (sa.key)",
    "encryption": f"the key that Secrets are encrypted with ({DEFAULT_FILE})",
}

Fingerprints = dict[str, dict[str, str]]


class KeysError(Exception):
    """Why keys cannot be taken along or put in place, in a sentence."""


def read_files(data_dir: Path, encryption_key_file: Path | None) -> dict[str, bytes]:
    """Return a server's key files by name; those of ``DATA_DIR/pki``."""
    folder = data_dir / "pki"
    try:
        found = {
            path.name: path.read_bytes()
            for path in sorted(folder.iterdir() if folder.is_dir() else ())
            if path.is_file() and not path.name.startswith(".")
        }
        if encryption_key_file is not None:
            found[DEFAULT_FILE] = encryption_key_file.read_bytes()
    except OSError as error:
        raise KeysError(f"keys cannot be read: {error}") from error
    return found


def fingerprints(files: Mapping[str, bytes]) -> Fingerprints:
    """Return identifiers of the keys in *files* that reveal nothing of the keys."""
    try:
        keys = {key_id(key.public_key()) for key in _private(files.get("ca.key", b""))}
        names = {key_id(c.public_key()) for c in _certificates(files.get("ca.crt", b""))}
        signing = {key_id(key.public_key()) for key in _private(files.get("sa.key", b""))}
        text = files.get(DEFAULT_FILE, b"").decode()
        encryption = {n: check_value(key) for n, key in parse_keys(text).items()} if text else {}
    except (ValueError, TypeError) as error:
        raise KeysError(f"keys cannot be understood: {error}") from error
    return {
        "authority": dict.fromkeys(sorted(keys & names), ""),
        "signing": dict.fromkeys(sorted(signing), ""),
        "encryption": encryption,
    }


def lacking(wanted: Fingerprints, there: Fingerprints) -> list[str]:
    """Return, in words, which kinds of keys of *wanted* are not all *there*."""
    return [
        text
        for kind, text in _KINDS.items()
        if not wanted.get(kind, {}).items() <= there.get(kind, {}).items()
    ]


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return *files* as text."""
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def decoded(found: Any) -> dict[str, bytes]:
    """Return the files that ``encoded`` made into text; their names lead into no other folder."""
    if not isinstance(found, Mapping):
        raise KeysError("the backup's keys cannot be understood")
    files: dict[str, bytes] = {}
    for name, text in found.items():
        if name in ("", ".", "..") or Path(name).name != name or len(text) > 2 * _MAX_FILE_BYTES:
            raise KeysError(f"the backup has keys in a file named {name!r}")
        try:
            files[name] = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise KeysError(f"the backup's file {name!r} cannot be understood") from error
    return files


def refuse_others(data_dir: Path, files: Mapping[str, bytes]) -> None:
    """Raise when ``DATA_DIR/pki`` has other keys than *files*."""
    there = read_files(data_dir, None)
    other = sorted(name for name in files if there.get(name, files[name]) != files[name])
    if other:
        raise KeysError(
            f"{data_dir / 'pki'} already has other keys ({', '.join(other)}); "
            "restore into an empty folder"
        )


def write_files(data_dir: Path, files: Mapping[str, bytes]) -> None:
    """Put *files* into ``DATA_DIR/pki``, for their owner's eyes only."""
    try:
        secret_directory(data_dir)
        folder = secret_directory(data_dir / "pki")
        for name, content in files.items():
            write_secret(folder / name, content)
    except OSError as error:
        raise KeysError(f"keys cannot be written: {error}") from error


def _private(pem: bytes) -> list[Any]:
    return [serialization.load_pem_private_key(each, None) for each in blocks(pem, "PRIVATE KEY")]


def _certificates(pem: bytes) -> list[x509.Certificate]:
    return [x509.load_pem_x509_certificate(each) for each in blocks(pem, "CERTIFICATE")]
