"""skerry certificates revoke, restore and revoked: client certificates that no longer count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from cryptography import x509

from skerry.cli.columns import print_columns
from skerry.cli.key_client import asking, server_flags
from skerry.cli.printing import show
from skerry.wire.kubeconfig import KubeconfigError

_PATH = "/extensions/v1/certificates"


@click.command(
    epilog="""\b
Examples:
  skerry certificates revoke 5f1c09aa --reason "laptop lost"
  skerry certificates revoke $(openssl x509 -noout -serial -in alice.crt | cut -d= -f2)
  skerry certificates revoke alice.crt
"""
)
@server_flags
@click.option("--reason", default="", help="Why, for whoever reads the list.")
@click.argument("serial")
def revoke(data_dir: Path, kubeconfig: Path | None, reason: str, serial: str) -> None:
    """Revoke a client certificate by its SERIAL number, in hexadecimal, or its file.

    Every server of the store refuses it from then on, and ends its connections at once.
    An edge is revoked with skerry edge revoke, which also closes its mailbox.
    """
    with asking("skerry certificates revoke", data_dir, kubeconfig, _PATH) as client:
        client.step("revoke", serial=_serial(serial), reason=reason)
        show(f"revoked {_serial(serial)}")


@click.command(epilog="\b\nExample:\n  skerry certificates restore 5f1c09aa\n")
@server_flags
@click.argument("serial")
def restore(data_dir: Path, kubeconfig: Path | None, serial: str) -> None:
    """Take the revocation of a certificate back."""
    with asking("skerry certificates restore", data_dir, kubeconfig, _PATH) as client:
        client.step("restore", serial=_serial(serial))
        show(f"restored {_serial(serial)}")


@click.command(epilog="\b\nExample:\n  skerry certificates revoked --data-dir .kcp\n")
@server_flags
def revoked(data_dir: Path, kubeconfig: Path | None) -> None:
    """List the client certificates that are revoked."""
    with asking("skerry certificates revoked", data_dir, kubeconfig, _PATH) as client:
        rows = client.status()["items"]
    if not rows:
        show("no client certificates are revoked", error=True)
        return
    print_columns([("SERIAL", "REVOKED", "BY", "REASON"), *map(_row, rows)])


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(item.get(name) or "") for name in ("serial", "time", "user", "reason"))


def _serial(text: str) -> str:
    """Return a serial number as it was given, or the one of the certificate in a file."""
    path = Path(text)
    if not path.is_file():
        return text.replace(":", "").lower()
    return f"{serial_of(path):x}"


def serial_of(path: Path) -> int:
    """Return the serial number of the first certificate in a PEM or DER file."""
    raw = path.read_bytes()
    try:
        if b"-----BEGIN" in raw:
            return x509.load_pem_x509_certificate(raw).serial_number
        return x509.load_der_x509_certificate(raw).serial_number
    except ValueError as error:
        raise KubeconfigError(f"{path}: want a certificate, PEM or DER") from error
