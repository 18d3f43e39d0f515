"""skerry certificates: the authorities and keys a server is recognised by."""

from __future__ import annotations

import click

from skerry.cli.certificates_rotation import rotate_ca, rotate_signing_key, status
from skerry.cli.revocation import restore, revoke, revoked


@click.group()
def certificates() -> None:
    """Rotate the certificate authority and the key that signs ServiceAccount tokens.

    Also revoke client certificates, by serial number.
    """


for _command in (rotate_ca, rotate_signing_key, status, revoke, restore, revoked):
    certificates.add_command(_command)
