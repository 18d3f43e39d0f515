"""The flags for OpenID Connect, named as kube-apiserver's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from skerry.app.settings import OidcSettings

OIDC_FLAGS: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
    click.option(
        "--oidc-issuer-url",
        default="",
        help="https URL of the OpenID Connect issuer that vouches for people, for example "
        "https://login.example.org/realms/ops.",
    ),
    click.option(
        "--oidc-client-id",
        multiple=True,
        help="Audience that ID tokens must be for; repeatable, one of them is enough.",
    ),
    click.option(
        "--oidc-username-claim", default="sub", show_default=True, help="Claim with the user name."
    ),
    click.option(
        "--oidc-username-prefix",
        default="",
        help="Prefix of user names; '-' for none  [default: the issuer URL and '#', none for the "
        "claim email]",
    ),
    click.option("--oidc-groups-claim", default="", help="Claim with the user's groups."),
    click.option("--oidc-groups-prefix", default="", help="Prefix of groups, for example 'oidc:'."),
    click.option(
        "--oidc-required-claim",
        multiple=True,
        help="KEY=VALUE that an ID token must claim; repeatable.",
    ),
    click.option(
        "--oidc-signing-algs",
        default="RS256",
        show_default=True,
        help="Comma-separated algorithms that ID tokens may be signed with.",
    ),
    click.option(
        "--oidc-ca-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Authorities that vouch for the issuer  [default: those of the system]",
    ),
]


def taken_oidc(flags: dict[str, Any]) -> OidcSettings | None:
    """Take the flags of OpenID Connect out of *flags*; return what they say."""
    issuer: str = flags.pop("oidc_issuer_url")
    client_ids: tuple[str, ...] = flags.pop("oidc_client_id")
    required = [each.partition("=") for each in flags.pop("oidc_required_claim")]
    settings = OidcSettings(
        issuer,
        client_ids,
        username_claim=flags.pop("oidc_username_claim"),
        username_prefix=flags.pop("oidc_username_prefix"),
        groups_claim=flags.pop("oidc_groups_claim"),
        groups_prefix=flags.pop("oidc_groups_prefix"),
        required_claims={name: value for name, _, value in required},
        signing_algs=tuple(filter(None, flags.pop("oidc_signing_algs").split(","))),
    )
    if any(not name or not equals for name, equals, _ in required):
        raise click.UsageError("--oidc-required-claim: want KEY=VALUE")
    if not issuer and client_ids:
        raise click.UsageError("--oidc-client-id: needs --oidc-issuer-url")
    return settings if issuer else None
