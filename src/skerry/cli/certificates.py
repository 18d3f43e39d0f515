"""skerry certificates: the authorities and keys a server is recognised by."""

from __future__ import annotations

import click

from skerry.cli.certificates_rotation import rotate_ca, rotate_signing_key, status


@click.group()
def certificates() -> None:
    """Rotate the certificate authority and the key that signs ServiceAccount tokens."""


for _command in (rotate_ca, rotate_signing_key, status):
    certificates.add_command(_command)
