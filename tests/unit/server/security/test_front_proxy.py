"""A proxy in front of a real server: believed by its certificate alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.kit.clock import SystemClock
from skerry.logic.machinery.front_proxy import FrontProxySettings
from skerry.server.security.pki import Authority, Credential, new_ca
from tests.kit.server.certificates import client_context

PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JANE = {
    "X-Remote-User": "jane",
    # Twice, as proxies send it.
    "X-Remote-Group": "readers\r\nX-Remote-Group: a, b",
    "X-Remote-Extra-Scope": "all",
}


class Proxied:
    """Asks a server who one is, with a certificate and headers."""

    def __init__(self, port: int, trusted: bytes, authority: Credential, own: Credential) -> None:
        self.proxies = Authority(authority, SystemClock())
        self.own = own
        self._port, self._trusted = port, trusted

    async def __call__(self, shown: Credential | None, headers: dict[str, str]) -> tuple[int, Any]:
        tls = client_context(self._trusted, shown)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=tls)
        body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        lines = {"Host": "x", "Content-Length": str(len(body)), "Connection": "close", **headers}
        head = "\r\n".join(f"{name}: {value}" for name, value in lines.items())
        writer.write(f"POST {PATH} HTTP/1.1\r\n{head}\r\n\r\n{body}".encode())
        answer = await reader.read()
        writer.close()
        top, _, rest = answer.partition(b"\r\n\r\n")
        return int(top.split()[1]), json.loads(rest)


@asynccontextmanager
async def proxied(folder: Path, *names: str) -> AsyncIterator[Proxied]:
    authority = new_ca("front-proxy", SystemClock())
    file = folder / "front-proxy.crt"
    file.write_bytes(authority.certificate)
    settings = ServerSettings(
        data_dir=folder / "data",
        port=0,
        store=StoreSettings(kind="memory"),
        controllers="none",
        workers=0,
        front_proxy=FrontProxySettings(file, frozenset(names)),
    )
    async with serving(settings, PLAIN_SERVER) as running:
        pki = folder / "data" / "pki"
        port = int(running.url.rpartition(":")[2])
        ca = Credential((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
        own = Authority(ca, SystemClock()).client("somebody", ["staff"])
        yield Proxied(port, ca.certificate, authority, own)


async def test_a_proxy_says_who_asks(tmp_path: Path) -> None:
    async with proxied(tmp_path, "front-proxy-client") as ask:
        status, found = await ask(ask.proxies.client("front-proxy-client"), JANE)
        assert status == 201
        user = found["status"]["userInfo"]
        assert user["username"] == "jane"
        assert user["groups"] == ["readers", "a, b", "system:authenticated"]
        assert user["extra"] == {"scope": ["all"]}


async def test_headers_of_anybody_else_mean_nothing(tmp_path: Path) -> None:
    masters = {**JANE, "X-Remote-Group": "system:masters"}
    async with proxied(tmp_path, "front-proxy-client") as ask:
        _, found = await ask(ask.own, masters)
        assert found["status"]["userInfo"]["username"] == "somebody"
        status, _ = await ask(None, masters)
        assert status == 403, "nobody in particular may not even ask who it is"


@pytest.mark.parametrize(
    ("name", "headers"),
    [("other", JANE), ("front-proxy-client", {}), ("front-proxy-client", {"X-Remote-User": ""})],
)
async def test_a_certificate_of_proxies_makes_nobody_a_user(
    tmp_path: Path, name: str, headers: dict[str, str]
) -> None:
    async with proxied(tmp_path, "front-proxy-client") as ask:
        assert (await ask(ask.proxies.client(name, ["system:masters"]), headers))[0] == 401


async def test_without_allowed_names_any_certificate_of_its_authority_will_do(
    tmp_path: Path,
) -> None:
    async with proxied(tmp_path) as ask:
        _, found = await ask(ask.proxies.client("whoever"), JANE)
        assert found["status"]["userInfo"]["username"] == "jane"
