"""Requests by a kubeconfig's current context, with nothing in between that would mend them."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What a server answered; ``body`` is parsed where it is JSON."""

    status: int
    content_type: str
    raw: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.content_type.startswith(JSON) else None


class Server:
    """A server as a kubeconfig names it; *path* is the workspace's instead of the context's."""

    def __init__(self, kubeconfig: Path, path: str = "") -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        url = urlsplit(cluster["server"])
        self._address = (url.hostname or "", url.port or 443)
        self.prefix = path or url.path.rstrip("/")
        self._tls = _tls(cluster, user)
        self._headers = {"Accept": JSON, "User-Agent": "trace"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request on a connection of its own and return the whole answer."""
        with self._asked(method, path, body, headers) as response:
            return Answer(
                response.status,
                response.headers.get("Content-Type", ""),
                response.read(),
                dict(response.headers.items()),
            )

    def first_event(self, path: str) -> Any:
        """Return the first event of a watch that has something to show."""
        with self._asked("GET", path, None, {}) as response:
            assert response.status == 200, response.read()
            return json.loads(response.readline())

    def opens(self, path: str) -> tuple[int, str]:
        """Open a watch and let it go: status and content type."""
        with self._asked("GET", path, None, {}) as response:
            return response.status, response.headers.get("Content-Type", "")

    @contextmanager
    def _asked(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        sent = {**self._headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        data = None
        if body is not None:
            sent.setdefault("Content-Type", JSON)
            data = json.dumps(body).encode()
        connection = http.client.HTTPSConnection(*self._address, context=self._tls, timeout=60)
        try:
            connection.request(method, f"{self.prefix}{path}", data, sent)
            yield connection.getresponse()
        finally:
            connection.close()


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in items if each["name"] == name)


def _tls(cluster: Mapping[str, str], user: Mapping[str, str]) -> ssl.SSLContext:
    tls = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority"))
    if "client-certificate" in user:
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as both:
            both.write(_pem(user, "client-certificate") + "\n" + _pem(user, "client-key"))
            both.flush()
            tls.load_cert_chain(both.name)
    return tls


def _pem(section: Mapping[str, str], name: str) -> str:
    if f"{name}-data" in section:
        return base64.b64decode(section[f"{name}-data"]).decode()
    return Path(section[name]).read_text()
