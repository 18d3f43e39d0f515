"""Every setting of a server, in one tree.

Commands fill it from their flags; nothing else reads flags or the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from skerry.api.edge_identity import CERTIFICATE_LIFETIME
from skerry.logic.machinery.front_proxy import FrontProxySettings
from skerry.logic.machinery.oidc import OidcSettings
from skerry.logic.machinery.workspaces.limits import (
    MAILBOX_LIMITS,
    TREE_LIMITS,
    WORKSPACE_LIMITS,
    Limits,
)
from skerry.store.open import StoreSettings

__all__ = ["MAX_TOKEN_LIFETIME", "OidcSettings", "ServerSettings", "StoreSettings"]

# The most that ``max_token_lifetime`` may be: a token that nobody renews for a year is forgotten.
MAX_TOKEN_LIFETIME = timedelta(days=365)


Controllers = Literal["all", "core", "none"]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How one API server runs."""

    data_dir: Path = Path(".skerry")
    """Where everything of this server is kept: store, certificates, kubeconfig. Mode 0700."""

    bind_address: str = "127.0.0.1"
    """Address to listen on. The default is reached from this machine only."""

    port: int = 6443
    """Port to listen on; 0 takes any free one."""

    external_hostname: str = ""
    """Name or address clients use, in certificates and URLs; default the bind address."""

    tls_sans: tuple[str, ...] = ()
    """Further names and addresses the server certificate is good for."""

    tls_cert_file: Path | None = None
    """Certificate, PEM, shown to clients that ask for one of its names; read again when it
    changes. Self-signed authorities that follow it in the file are named in kubeconfigs."""

    tls_private_key_file: Path | None = None
    """Key of ``tls_cert_file``."""

    tls_cert_to_all: bool = False
    """Whether everybody is shown that certificate, as by kube-apiserver, not only who asks for one
    of its names; the administrator's kubeconfig asks for the server's own one."""

    client_ca_file: Path | None = None
    """Authorities, PEM, RSA or EC, whose client certificates are accepted besides those of the
    server's own; read again when it changes. The common name is the user, organizations are the
    groups, so whoever has the key of one can be anybody, administrators included."""

    front_proxy: FrontProxySettings | None = None
    """Proxies before a plain server that say in headers who asks; absent, nobody is believed."""

    store: StoreSettings = field(default_factory=StoreSettings)
    """Where objects are kept."""

    token_auth_file: Path | None = None
    """CSV of static tokens, as kube-apiserver reads it: token,user,uid,"group1,group2"."""

    max_token_lifetime: timedelta = timedelta(hours=24)
    """Longest life of a token that TokenRequest issues; longer requests are shortened, as in
    kube-apiserver. At most a year."""

    edge_certificate_lifetime: timedelta = CERTIFICATE_LIFETIME
    """How long certificates of edges are valid; an edge requests the next after two thirds."""

    oidc: OidcSettings | None = None
    """Issuer of ID tokens by which people are recognised; absent, nobody is."""

    oidc_ca_file: Path | None = None
    """Authorities, PEM, that vouch for the issuer; default those of the system."""

    workspace_limits: Limits = WORKSPACE_LIMITS
    """How many objects and bytes a workspace may hold; 0 is no limit."""

    mailbox_limits: Limits = MAILBOX_LIMITS
    """The same of a mailbox, for what its edge writes there."""

    tree_limits: Limits = TREE_LIMITS
    """How many objects, bytes and workspaces a workspace directly below root, or a home, may hold
    together with all workspaces below it; 0 is no limit."""

    anonymous: bool = True
    """Whether requests without credentials are let in as system:anonymous."""

    service_network: str = "10.96.0.0/16"
    """Range that Services' cluster addresses are taken from."""

    webhook_networks: tuple[str, ...] = ()
    """Networks in which webhooks of admission and conversion may be called. With none, a plain
    server calls them anywhere, and a hub, whose tenants configure them, nowhere."""

    encryption_key_file: Path | None = None
    """Keys that encrypt Secrets at rest, one ``name: base64 key`` a line. Default
    ``DATA_DIR/pki/encryption.keys``, made at the first start; servers on one etcd share it."""

    disabled_admission: tuple[str, ...] = ()
    """Rules of admission that are left out, by Kubernetes' names, e.g. ``ServiceAccount``."""

    admission_control_config_file: Path | None = None
    """Defaults and exemptions of PodSecurity, as kube-apiserver reads them; absent, a Namespace
    without labels lets every pod in and nobody is exempt."""

    audit_log: Path | None = None
    """File for audit events, one JSON object a line; absent, none are written."""

    audit_policy_file: Path | None = None
    """Policy (``audit.k8s.io/v1``) that says how much is written of which request, of the levels
    None, Metadata and Request; absent, the metadata of every request."""

    tunnel: bool = False
    """Whether a hub takes the tunnels that syncers dial, and lets people with a right to it ask for
    logs, commands and ports of pods through them. Needs ``audit_log``: every session is there."""

    console_port: int | None = None
    """Port on which a hub serves its console to browsers; 0 takes any free one, absent there is no
    console. It listens where the hub does, and asks browsers for no certificate."""

    console_process: bool = False
    """Whether the console runs in a process of its own, which the hub starts and keeps going, so
    that what people look at costs the hub's loop nothing but the requests behind it."""

    console_optional: bool = False
    """Whether the hub starts without its console when that port cannot be had; for who did not ask
    for a port in particular."""

    console_cert_file: Path | None = None
    """Certificate, PEM, that the console shows; default the hub's own."""

    console_key_file: Path | None = None
    """Key of ``console_cert_file``."""

    console_oidc_secret_file: Path | None = None
    """File with the secret by which the issuer of ``oidc`` knows the console; absent, it is a
    client without one, and proves itself by PKCE alone."""

    console_oidc_scopes: tuple[str, ...] = ("profile", "email")
    """Scopes besides ``openid`` that the console asks the issuer of ``oidc`` for: whatever has the
    claims that users and groups are named by, and refresh tokens where they need one."""

    compaction_minutes: float = 10.0
    """How much history a watch may resume from, in minutes; etcd's usual is 5 to 10."""

    compaction_revisions: int = 1_000_000
    """How much history is kept at the most, in revisions, so that a busy store stays small."""

    compaction_mib: int = 1024
    """How much history is kept at the most, in MiB of keys and values, so that large objects that
    are written often do not fill the disk; 0 is no limit."""

    event_minutes: float = 60.0
    """How long Events are kept, as in kube-apiserver."""

    controllers: Controllers = "core"
    """Which controllers run in this process: ``core`` are garbage, namespaces, accounts, quota,
    protection of volumes and availability of aggregated servers; ``all`` adds those of Deployments
    and other workloads to a plain server; ``none`` is none."""

    max_body_bytes: int = 3 << 20
    """Largest request body, as in kube-apiserver."""

    workers: int = 2
    """Max processes that work on large bodies and objects, beside the one that serves. They start
    when needed and end when idle; 0 works on everything in the serving process, where a large
    body keeps everybody waiting."""

    drain_seconds: float = 10.0
    """How long a stopping server waits for requests in flight."""

    log_format: Literal["text", "json"] = "text"
    """Form of log lines: klog's, or JSON."""

    verbosity: int = 2
    """klog verbosity."""
