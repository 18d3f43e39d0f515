"""Where the server is and who we are: kubeconfig files and in-cluster service accounts.

Several files merge as kubectl merges them (``wire.kubeconfig``); one that does not exist is passed
over. Relative paths inside a file are relative to that file. Secrets stay in memory; only the TLS
library's need for files makes client keys touch the disk, for a moment and with mode 0600.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from skerry.kit.clock import Clock, SystemClock
from skerry.kit.timestamps import parse_rfc3339
from skerry.kit.trust import trusting
from skerry.runtime.http import LIMITS, Authorization, HttpTransport, Limits
from skerry.runtime.transport import TransportError
from skerry.wire import kubeconfig
from skerry.wire.kubeconfig import KubeconfigError

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class CredentialError(KubeconfigError, TransportError):
    """Why there is no credential just now: a person's mistake, or something that passes.

    Whoever goes on trying a server goes on trying this as well.
    """


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints an ExecCredential."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Everything needed to reach a server. PEM texts; empty where there is none."""

    server: str
    ca: bytes = b""
    insecure: bool = False
    tls_server_name: str = ""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    namespace: str = "default"
    user_extensions: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the user entry says beyond kubectl's own fields, by the extension's name."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says instead of the files; empty means what the files say."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    namespace: str = ""
    token: str = field(default="", repr=False)


def load(paths: Sequence[Path], overrides: Overrides = Overrides()) -> ClientConfig:  # noqa: B008
    """Return what the merged files say of one context."""
    merged = kubeconfig.merged(paths, [(p, _document(p)) for p in paths if p.exists()])
    shown = ", ".join(str(path) for path in paths)
    if not overrides.server and not any(path.exists() for path in paths):
        raise KubeconfigError(
            f"kubeconfig {shown}: there is no such file; name one with --kubeconfig"
        )
    name = overrides.context or merged.current
    if not name and not (overrides.cluster or overrides.server):
        raise KubeconfigError(f"kubeconfig {shown}: no current-context and none was asked for")
    context = _member(merged.contexts, "context", name, shown) if name else {}
    cluster_name = overrides.cluster or str(context.get("cluster", ""))
    user_name = overrides.user or str(context.get("user", ""))
    cluster = _member(merged.clusters, "cluster", cluster_name, shown) if cluster_name else {}
    user = _member(merged.users, "user", user_name, shown) if user_name else {}
    cluster_folder = merged.origins.get(("clusters", cluster_name), Path()).parent
    user_folder = merged.origins.get(("users", user_name), Path()).parent
    server = overrides.server or str(cluster.get("server", ""))
    if not server:
        raise KubeconfigError(f"kubeconfig {shown}: cluster {cluster_name!r} has no server")
    token_file = str(user.get("tokenFile") or "")
    return ClientConfig(
        server=server,
        ca=_pem(cluster, "certificate-authority", cluster_folder),
        insecure=bool(cluster.get("insecure-skip-tls-verify", False)),
        tls_server_name=str(cluster.get("tls-server-name", "")),
        certificate=_pem(user, "client-certificate", user_folder),
        key=_pem(user, "client-key", user_folder),
        token=overrides.token or str(user.get("token", "")),
        token_file=_beside(user_folder, token_file) if token_file and not overrides.token else None,
        username=str(user.get("username", "")),
        password=str(user.get("password", "")),
        exec_plugin=_exec_plugin(user.get("exec")),
        namespace=overrides.namespace or str(context.get("namespace", "")) or "default",
        user_extensions=_extensions(user),
    )


def in_cluster(environment: Mapping[str, str], root: Path = _SERVICE_ACCOUNT) -> ClientConfig:
    """Return how a pod reaches its own cluster; the token is read again as it is renewed."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    token_file = root / "token"
    if not host or not port or not token_file.exists():
        raise KubeconfigError("not inside a cluster: no service host or service account token")
    namespace = root / "namespace"
    return ClientConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=(root / "ca.crt").read_bytes(),
        token_file=token_file,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def connect(
    config: ClientConfig,
    *,
    clock: Clock | None = None,
    limits: Limits = LIMITS,
    gzip: bool = False,
) -> HttpTransport:
    """Return a transport to the server *config* names."""
    url, port = _address(config.server)
    secure = url.scheme == "https"
    return HttpTransport(
        url.hostname or "",
        port or (443 if secure else 80),
        _trust(config) if secure else None,
        server_name=config.tls_server_name,
        prefix=url.path,
        authorization=_authorization(config, clock or SystemClock()),
        limits=limits,
        gzip=gzip,
    )


def identify(transport: HttpTransport, config: ClientConfig, clock: Clock | None = None) -> None:
    """Let *transport* come with the credentials of *config* from its next connection on."""
    secure = config.server.startswith("https:")
    transport.identify(
        tls_context(config) if secure else None, _authorization(config, clock or SystemClock())
    )


def _address(server: str) -> tuple[SplitResult, int | None]:
    """Return the parts of a server's URL, and its port if it names one."""
    try:
        url = urlsplit(server)
        port = url.port
    except ValueError as error:
        raise KubeconfigError(f"server {server!r}: {error}") from error
    if url.scheme not in ("https", "http") or not url.hostname:
        raise KubeconfigError(f"server {server!r}: want a URL such as https://host:6443")
    return url, port


def tls_context(config: ClientConfig) -> ssl.SSLContext:
    """Return the TLS settings *config* asks for."""
    context = trusting(config.ca or b"")
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if config.certificate:
        with tempfile.TemporaryDirectory(prefix="skerry-") as folder:
            path = Path(folder) / "client.pem"
            path.touch(mode=0o600)
            path.write_bytes(config.certificate.rstrip() + b"\n" + config.key)
            context.load_cert_chain(path)
    return context


def _trust(config: ClientConfig) -> ssl.SSLContext:
    """Return the TLS settings of a file that people write, so that what is wrong is named."""
    try:
        tls_context(replace(config, certificate=b"", key=b""))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise KubeconfigError(
            f"kubeconfig field certificate-authority: want certificates in PEM form: {error}"
        ) from error
    try:
        return tls_context(config)
    except ssl.SSLError as error:
        raise KubeconfigError(
            "kubeconfig fields client-certificate and client-key: want a certificate and its key "
            f"in PEM form: {error}"
        ) from error


def _authorization(config: ClientConfig, clock: Clock) -> Authorization | str:
    if config.token_file is not None:
        return _TokenFile(config.token_file).authorization
    if config.token:
        return _bearer(config.token, "kubeconfig field token")
    if config.username:
        pair = f"{config.username}:{config.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    if config.exec_plugin is not None:
        return _ExecToken(config.exec_plugin, clock).authorization
    return ""


def _bearer(token: str, where: str) -> str:
    """Return the header's value; a token that fits into no header is not repeated in the error."""
    if not token.isascii() or not token.isprintable():
        raise CredentialError(f"{where}: want one line of ASCII characters")
    return f"Bearer {token}"


class _TokenFile:
    """A token in a file that somebody renews; read again whenever the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] = (0, 0)
        self._value = ""

    async def authorization(self) -> str:
        try:
            stat = os.stat(self._path)
            version = (stat.st_mtime_ns, stat.st_ino)
            token = None if version == self._seen else self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialError(f"kubeconfig field tokenFile: {error}") from error
        if token is not None:
            self._value = _bearer(token, f"token file {self._path}")
            self._seen = version
        return self._value


class _ExecToken:
    """A token a command prints; asked for again when it has expired."""

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._value = ""
        self._expires: str = ""
        self._running = asyncio.Lock()

    async def authorization(self) -> str:
        async with self._running:
            expired = self._expires and parse_rfc3339(self._expires) <= self._clock.now()
            if not self._value or expired:
                await self._ask()
            return self._value

    async def _ask(self) -> None:
        plugin = self._plugin
        info = {
            "apiVersion": plugin.api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        process = await asyncio.create_subprocess_exec(
            "env",
            *(f"{name}={value}" for name, value in plugin.env),
            f"KUBERNETES_EXEC_INFO={orjson.dumps(info).decode()}",
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        printed, _ = await process.communicate()
        if process.returncode:
            raise CredentialError(f"exec plugin {plugin.command}: exit code {process.returncode}")
        try:
            status = orjson.loads(printed)["status"]
            token = str(status["token"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise CredentialError(
                f"exec plugin {plugin.command}: want an ExecCredential with a token"
            ) from error
        self._value = _bearer(token, f"token of exec plugin {plugin.command}")
        self._expires = status.get("expirationTimestamp", "")


def _document(path: Path) -> kubeconfig.Entry:
    try:
        return kubeconfig.document_of(path.read_text())
    except (OSError, UnicodeDecodeError, KubeconfigError) as error:
        raise KubeconfigError(f"kubeconfig {path}: {error}") from error


def _member(
    section: Mapping[str, dict[str, Any]], kind: str, name: str, shown: str
) -> dict[str, Any]:
    if name not in section:
        known = ", ".join(sorted(section)) or "none"
        raise KubeconfigError(f"kubeconfig {shown}: no {kind} named {name!r} (there are: {known})")
    return section[name]


def _pem(section: Mapping[str, Any], name: str, folder: Path) -> bytes:
    """Return a PEM text given inline (which wins) or by file."""
    inline = section.get(f"{name}-data")
    try:
        if inline:
            return base64.b64decode(str(inline), validate=True)
        path = section.get(name)
        return _beside(folder, str(path)).read_bytes() if path else b""
    except (ValueError, OSError) as error:
        raise KubeconfigError(f"kubeconfig field {name}: {error}") from error


def _beside(folder: Path, path: str) -> Path:
    return folder / Path(path).expanduser()


def _extensions(user: Mapping[str, Any]) -> dict[str, Any]:
    entries = _mappings(user.get("extensions"), "extensions")
    return {str(entry.get("name", "")): entry.get("extension") for entry in entries}


def _mappings(found: object, name: str) -> list[Mapping[str, Any]]:
    """Return a list of mappings, empty where there is none."""
    entries = found or []
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise KubeconfigError(f"kubeconfig field {name}: want a list of mappings")
    return entries


def _exec_plugin(raw: object) -> ExecPlugin | None:
    if not raw:
        return None
    if not isinstance(raw, dict) or not raw.get("command"):
        raise KubeconfigError("kubeconfig field exec: want a mapping with a command")
    env = _mappings(raw.get("env"), "exec.env")
    return ExecPlugin(
        command=str(raw["command"]),
        args=tuple(str(arg) for arg in raw.get("args") or ()),
        env=tuple((str(item.get("name", "")), str(item.get("value", ""))) for item in env),
        api_version=str(raw.get("apiVersion", "client.authentication.k8s.io/v1")),
    )
