"""A small client for commands that must start quickly.

The runtime's client is for programs that stay; importing it costs more than a whole
``kubectl ws``. This one asks one question after the other over one connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from skerry.app.kubeconfig_files import home_of
from skerry.wire.kubeconfig import Entry, Kubeconfig, KubeconfigError

_TIMEOUT_SECONDS = 60
# As client-go: an answer of 429 or 503 with Retry-After is asked again, this often.
_RETRIES = 10


class RequestFailed(Exception):
    """An answer that is no success; ``reason`` is Kubernetes' word for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Overrides:
    """What flags say in place of the kubeconfig."""

    context: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    insecure: bool = False
    authority: str = ""
    server_name: str = ""


@dataclass(slots=True)
class Target:
    """Where to go and as whom, out of a kubeconfig."""

    server: str
    cluster: Entry
    user: Entry
    # Paths in a kubeconfig are relative to its folder.
    cluster_folder: Path
    user_folder: Path
    overrides: Overrides = field(default_factory=Overrides)


def target_of(config: Kubeconfig, overrides: Overrides) -> Target:
    """Return where the current context leads."""
    name = overrides.context or config.current
    context = config.contexts.get(name)
    if context is None:
        if overrides.context:
            raise KubeconfigError(f'context "{name}" does not exist')
        context = {}
    cluster = config.clusters.get(context.get("cluster", ""), {})
    user_name = overrides.user or context.get("user", "")
    server = overrides.server or cluster.get("server", "")
    if not server:
        raise KubeconfigError(
            "invalid configuration: no configuration has been provided, try setting "
            "KUBERNETES_MASTER environment variable"
        )
    return Target(
        server,
        cluster,
        config.users.get(user_name, {}),
        home_of(config, "clusters", context.get("cluster", "")).parent,
        home_of(config, "users", user_name).parent,
        overrides,
    )


class HubClient:
    """Asks one server."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._context: ssl.SSLContext | None = None
        self._connections: dict[str, http.client.HTTPConnection] = {}
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "kubectl-ws/skerry",
        }
        self._identified = False

    def close(self) -> None:
        """Give up the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def get(self, url: str) -> dict[str, Any]:
        """Return the object at *url*."""
        return self._ask("GET", url, None)

    def post(self, url: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create *obj* at *url*."""
        return self._ask("POST", url, json.dumps(obj).encode())

    def _ask(self, method: str, url: str, body: bytes | None) -> dict[str, Any]:
        if not self._identified:
            self._identify()
        for attempt in range(_RETRIES + 1):
            code, headers, raw = self._exchange(method, url, body)
            wait = headers.get("retry-after", "")
            if code not in (429, 503) or not wait.isdigit() or attempt == _RETRIES:
                break
            time.sleep(int(wait))
        answer = _parsed(raw)
        if code < 300:
            return answer
        message = answer.get("message") or raw.decode(errors="replace").strip() or f"status {code}"
        raise RequestFailed(code, answer.get("reason", ""), message)

    def _exchange(
        self, method: str, url: str, body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        kept = self._connections.get(parts.netloc)
        try:
            connection = kept or self._connect(parts.scheme, parts.netloc)
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._drop(parts.netloc)
            raise RequestFailed(0, "", f'{method.title()} "{url}": {error}') from error
        found = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close:
            self._drop(parts.netloc)
        return answer.status, found, raw

    def _drop(self, netloc: str) -> None:
        dropped = self._connections.pop(netloc, None)
        if dropped is not None:
            dropped.close()

    def _connect(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if scheme == "https":
            if self._context is None:
                self._context = _tls(self._target)
            connection = _TlsConnection(netloc, self._context, _server_name(self._target))
        else:
            connection = http.client.HTTPConnection(netloc, timeout=_TIMEOUT_SECONDS)
        self._connections[netloc] = connection
        return connection

    def _identify(self) -> None:
        """Find the token or name the user goes by; certificates go with the connection."""
        self._identified = True
        user, overrides = self._target.user, self._target.overrides
        if "exec" in user:
            self._target.user = user = {**user, **_credential(user["exec"])}
        token = overrides.token or user.get("token", "")
        if not token and user.get("tokenFile"):
            token = (self._target.user_folder / user["tokenFile"]).read_text().strip()
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user.get("username"):
            pair = f"{user['username']}:{user.get('password', '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        for option, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
            if user.get(option):
                self._headers[header] = user[option]


class _TlsConnection(http.client.HTTPSConnection):
    """A connection whose certificate may be for another name than the address."""

    def __init__(self, netloc: str, context: ssl.SSLContext, name: str) -> None:
        super().__init__(netloc, timeout=_TIMEOUT_SECONDS, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name or self.host)


def _server_name(target: Target) -> str:
    return target.overrides.server_name or target.cluster.get("tls-server-name", "")


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _credential(command: Entry) -> Entry:
    """Return what a credential plugin says."""
    extra = {item["name"]: item["value"] for item in command.get("env") or []}
    information = {
        "apiVersion": command.get("apiVersion", "client.authentication.k8s.io/v1"),
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    environment = ["env", f"KUBERNETES_EXEC_INFO={json.dumps(information)}"]
    environment += [f"{name}={value}" for name, value in extra.items()]
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig's own command, as kubectl runs it
            [*environment, command["command"], *(command.get("args") or [])],
            check=True,
            stdout=subprocess.PIPE,
        )
        status = json.loads(done.stdout).get("status") or {}
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise KubeconfigError(f"getting credentials: exec: {error}") from error
    found: Entry = {"token": status.get("token", "")}
    if status.get("clientCertificateData"):
        found["client-certificate-data"] = _encoded(status["clientCertificateData"])
        found["client-key-data"] = _encoded(status.get("clientKeyData", ""))
    return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _tls(target: Target) -> ssl.SSLContext:
    cluster, overrides = target.cluster, target.overrides
    context = ssl.create_default_context(cafile=_authority_file(target), cadata=_authority(target))
    if overrides.insecure or cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_certificate(context, target)
    return context


def _authority(target: Target) -> str | None:
    data = target.cluster.get("certificate-authority-data")
    if not data or target.overrides.authority:
        return None
    return base64.b64decode(data).decode()


def _authority_file(target: Target) -> str | None:
    if target.overrides.authority:
        return target.overrides.authority
    path = target.cluster.get("certificate-authority")
    if not path or target.cluster.get("certificate-authority-data"):
        return None
    return str(target.cluster_folder / path)


def _load_certificate(context: ssl.SSLContext, target: Target) -> None:
    user = target.user
    if user.get("client-certificate-data"):
        # OpenSSL reads certificates from files only; this one is gone when the call returns.
        with tempfile.NamedTemporaryFile(prefix="kubectl-ws-") as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user.get(part, "")) + b"\n")
            file.flush()
            context.load_cert_chain(file.name)
    elif user.get("client-certificate"):
        folder = target.user_folder
        context.load_cert_chain(
            folder / user["client-certificate"], folder / user.get("client-key", "")
        )
