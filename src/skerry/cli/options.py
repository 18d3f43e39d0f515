"""Flags that every server command takes."""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from skerry.app.settings import MAX_TOKEN_LIFETIME, ServerSettings, StoreSettings
from skerry.cli.common_flags import Command, Flag, with_flags
from skerry.cli.durations import DurationRange
from skerry.cli.oidc_flags import OIDC_FLAGS, taken_oidc
from skerry.logic.machinery.workspaces.limits import (
    MAILBOX_LIMITS,
    TREE_LIMITS,
    WORKSPACE_LIMITS,
    Limits,
)

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def _networks(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no network, before anything is made."""
    for text in given:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise click.BadParameter(f"{error}: want a network such as 10.1.0.0/16") from error
    return given


def log_flags(format_flag: str = "--log-format", verbosity: int = 2) -> list[Flag]:
    """Return the flags for log lines; the command gets ``log_format`` and ``verbosity``."""
    return [
        click.option(
            format_flag,
            "log_format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Form of log lines.",
        ),
        click.option(
            "-v",
            "--v",
            "verbosity",
            type=int,
            default=verbosity,
            show_default=True,
            help="Log verbosity, as klog counts it.",
        ),
    ]


def bind_address_flag(default: str) -> Flag:
    """Return the flag for where to listen."""
    return click.option(
        "--bind-address", default=default, show_default=True, help="Address to listen on."
    )


_STORE_FLAGS: list[Flag] = [
    click.option(
        "--data-dir",
        type=FOLDER,
        default=Path(".skerry"),
        show_default=True,
        help="Folder for the store, certificates and kubeconfig.",
    ),
    click.option(
        "--store",
        "store_kind",
        type=click.Choice(["sqlite", "memory", "etcd"]),
        default="sqlite",
        show_default=True,
        help="Where objects are kept.",
    ),
    click.option(
        "--etcd-servers",
        default="http://127.0.0.1:2379",
        show_default=True,
        help="Comma-separated client URLs of etcd, for --store etcd.",
    ),
    click.option(
        "--etcd-prefix", default="/skerry/", show_default=True, help="Key prefix in etcd."
    ),
    click.option("--etcd-cafile", type=EXISTING_FILE, help="CA that vouches for etcd."),
    click.option("--etcd-certfile", type=EXISTING_FILE, help="Client certificate shown to etcd."),
    click.option("--etcd-keyfile", type=EXISTING_FILE, help="Key of --etcd-certfile."),
    click.option("--etcd-user", default="", help="User at etcd."),
    click.option("--etcd-password-file", type=EXISTING_FILE, help="Password of --etcd-user."),
]
_SERVER_FLAGS: list[Flag] = [
    bind_address_flag("127.0.0.1"),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=6443,
        show_default=True,
        help="Port to listen on; 0 takes any free one.",
    ),
    click.option(
        "--external-hostname", default="", help="Name clients use, in certificates and URLs."
    ),
    click.option(
        "--tls-san", multiple=True, help="Further name the certificate is good for; repeatable."
    ),
    click.option(
        "--webhook-network",
        multiple=True,
        metavar="CIDR",
        callback=_networks,
        help="Network in which webhooks may be called; repeatable. By default a plain server calls "
        "them anywhere, a hub nowhere.",
    ),
    click.option(
        "--tls-cert-file",
        type=EXISTING_FILE,
        help="Certificate shown to clients that ask for one of its names; read when it changes.",
    ),
    click.option("--tls-private-key-file", type=EXISTING_FILE, help="Key of --tls-cert-file."),
    click.option(
        "--client-ca-file",
        type=EXISTING_FILE,
        help="Authorities, PEM, whose client certificates are accepted besides the server's own.",
    ),
    click.option(
        "--token-auth-file", type=EXISTING_FILE, help="CSV of static tokens: token,user,uid,groups."
    ),
    *OIDC_FLAGS,
    click.option(
        "--anonymous-auth/--no-anonymous-auth",
        "anonymous",
        default=True,
        show_default=True,
        help="Let requests without credentials in as system:anonymous.",
    ),
    click.option(
        "--service-account-max-token-expiration",
        type=DurationRange(timedelta(minutes=10), MAX_TOKEN_LIFETIME),
        default="24h",
        show_default=True,
        help="Longest life of a ServiceAccount's token, e.g. 1h; a request for a longer one is "
        "shortened. At most 8760h.",
    ),
    click.option(
        "--edge-certificate-lifetime",
        type=DurationRange(timedelta(seconds=1), timedelta(days=90)),
        default="168h",
        show_default=True,
        help="Life of the certificates that a hub issues to edges, e.g. 24h.",
    ),
    click.option(
        "--workspace-max-objects",
        type=click.IntRange(min=0),
        default=WORKSPACE_LIMITS.objects,
        show_default=True,
        help="Objects that a workspace of a hub may hold, e.g. 5000; 0: any number.",
    ),
    click.option(
        "--workspace-max-mib",
        type=click.IntRange(min=0),
        default=WORKSPACE_LIMITS.bytes >> 20,
        show_default=True,
        help="MiB that a workspace of a hub may hold; 0: any amount.",
    ),
    click.option(
        "--mailbox-max-objects",
        type=click.IntRange(min=0),
        default=MAILBOX_LIMITS.objects,
        show_default=True,
        help="Objects up to which an edge may write to its mailbox; 0: any number.",
    ),
    click.option(
        "--mailbox-max-mib",
        type=click.IntRange(min=0),
        default=MAILBOX_LIMITS.bytes >> 20,
        show_default=True,
        help="MiB up to which an edge may write to its mailbox; 0: any amount.",
    ),
    click.option(
        "--tree-max-objects",
        type=click.IntRange(min=0),
        default=TREE_LIMITS.objects,
        show_default=True,
        help="Objects that a workspace below root and all workspaces below it may hold together.",
    ),
    click.option(
        "--tree-max-mib",
        type=click.IntRange(min=0),
        default=TREE_LIMITS.bytes >> 20,
        show_default=True,
        help="MiB that such a tree of workspaces may hold; 0: any amount.",
    ),
    click.option(
        "--tree-max-workspaces",
        type=click.IntRange(min=0),
        default=TREE_LIMITS.workspaces,
        show_default=True,
        help="Workspaces that such a tree may have, e.g. 50; 0: any number.",
    ),
    click.option(
        "--encryption-key-file",
        type=EXISTING_FILE,
        help="Keys that encrypt Secrets at rest  [default: DATA-DIR/pki/encryption.keys, made at "
        "the first start]",
    ),
    click.option(
        "--admission-control-config-file",
        type=EXISTING_FILE,
        help="AdmissionConfiguration with defaults and exemptions of PodSecurity, e.g. "
        "/etc/skerry/admission.yaml.",
    ),
    click.option("--audit-log", type=FILE, help="Write audit events to this file."),
    click.option(
        "--audit-policy-file",
        type=EXISTING_FILE,
        help="Policy (audit.k8s.io/v1) with levels None, Metadata and Request for --audit-log  "
        "[default: the metadata of every request]",
    ),
    click.option(
        "--controllers",
        type=click.Choice(("all", "core", "none")),
        default="core",
        show_default=True,
        help="Controllers in this process: core (garbage, namespaces, accounts, quota), or all, "
        "which adds those of Deployments and other workloads to a plain server.",
    ),
    *log_flags(),
]
_CONSOLE_FLAGS: list[Flag] = [
    click.option(
        "--console-port",
        type=click.IntRange(0, 65535),
        default=None,
        help="Also serve the console to browsers on this port; 0 takes any free one.",
    ),
    click.option(
        "--console-process",
        is_flag=True,
        help="Run the console in a process of its own, at the same address.",
    ),
    click.option("--console-optional", is_flag=True, hidden=True),
    click.option(
        "--console-cert",
        type=EXISTING_FILE,
        help="Certificate that the console shows  [default: the hub's own]",
    ),
    click.option("--console-key", type=EXISTING_FILE, help="Key of --console-cert."),
    click.option(
        "--console-oidc-secret-file",
        type=EXISTING_FILE,
        help="Secret of the first --oidc-client-id, for people who sign in to the console at the "
        "issuer  [default: none, PKCE alone]",
    ),
    click.option(
        "--console-oidc-scope",
        multiple=True,
        default=("profile", "email"),
        show_default=True,
        help="Scope besides openid that the console asks the issuer for; repeatable.",
    ),
]


def console_flags(command: Command) -> Command:
    """Add the flags of a hub's console to a command that gets ``settings``."""

    @functools.wraps(command)
    def wrapped(settings: ServerSettings, **flags: Any) -> Any:
        settings = replace(
            settings,
            console_port=flags.pop("console_port"),
            console_optional=flags.pop("console_optional"),
            console_process=flags.pop("console_process"),
            console_cert_file=flags.pop("console_cert"),
            console_key_file=flags.pop("console_key"),
            console_oidc_secret_file=flags.pop("console_oidc_secret_file"),
            console_oidc_scopes=tuple(flags.pop("console_oidc_scope")),
        )
        return command(settings=settings, **flags)

    return with_flags(wrapped, _CONSOLE_FLAGS)


def store_flags(command: Command) -> Command:
    """Add the flags that name a store; the command gets ``data_dir`` and ``store``."""

    @functools.wraps(command)
    def wrapped(**flags: Any) -> Any:
        data_dir, store = _store_settings(flags)
        return command(data_dir=data_dir, store=store, **flags)

    return with_flags(wrapped, _STORE_FLAGS)


def server_flags(command: Command) -> Command:
    """Add the flags of a server; the command gets ``settings``."""

    @functools.wraps(command)
    def wrapped(**flags: Any) -> Any:
        data_dir, store = _store_settings(flags)
        settings = ServerSettings(
            data_dir=data_dir,
            store=store,
            bind_address=flags.pop("bind_address"),
            port=flags.pop("port"),
            external_hostname=flags.pop("external_hostname"),
            tls_sans=tuple(flags.pop("tls_san")),
            webhook_networks=tuple(flags.pop("webhook_network")),
            tls_cert_file=flags.pop("tls_cert_file"),
            tls_private_key_file=flags.pop("tls_private_key_file"),
            client_ca_file=flags.pop("client_ca_file"),
            token_auth_file=flags.pop("token_auth_file"),
            oidc=taken_oidc(flags),
            oidc_ca_file=flags.pop("oidc_ca_file"),
            anonymous=flags.pop("anonymous"),
            max_token_lifetime=flags.pop("service_account_max_token_expiration"),
            edge_certificate_lifetime=flags.pop("edge_certificate_lifetime"),
            workspace_limits=_limits(flags, "workspace"),
            mailbox_limits=_limits(flags, "mailbox"),
            tree_limits=_tree_limits(flags),
            encryption_key_file=flags.pop("encryption_key_file"),
            admission_control_config_file=flags.pop("admission_control_config_file"),
            audit_log=flags.pop("audit_log"),
            audit_policy_file=flags.pop("audit_policy_file"),
            controllers=flags.pop("controllers"),
            log_format=flags.pop("log_format"),
            verbosity=flags.pop("verbosity"),
        )
        return command(settings=settings, **flags)

    return with_flags(wrapped, [*_STORE_FLAGS, *_SERVER_FLAGS])


def _limits(flags: dict[str, Any], of: str) -> Limits:
    return Limits(flags.pop(f"{of}_max_objects"), flags.pop(f"{of}_max_mib") << 20)


def _tree_limits(flags: dict[str, Any]) -> Limits:
    held = _limits(flags, "tree")
    return Limits(held.objects, held.bytes, flags.pop("tree_max_workspaces"))


def _store_settings(flags: dict[str, Any]) -> tuple[Path, StoreSettings]:
    data_dir: Path = flags.pop("data_dir")
    password_file: Path | None = flags.pop("etcd_password_file")
    servers = tuple(filter(None, flags.pop("etcd_servers").split(",")))
    store = StoreSettings(
        kind=flags.pop("store_kind"),
        path=data_dir / "store.db",
        etcd_servers=servers,
        etcd_prefix=flags.pop("etcd_prefix"),
        etcd_ca=flags.pop("etcd_cafile"),
        etcd_cert=flags.pop("etcd_certfile"),
        etcd_key=flags.pop("etcd_keyfile"),
        etcd_user=flags.pop("etcd_user"),
        etcd_password=password_file.read_text().strip() if password_file else "",
    )
    return data_dir, store
