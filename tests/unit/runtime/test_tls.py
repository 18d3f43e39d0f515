"""From a kubeconfig to an answer over mutual TLS."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.kit.clock import SystemClock
from skerry.runtime.kubeconfig import connect, load
from skerry.runtime.transport import TransportError
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.tls import server_context
from skerry.server.security.pki import Authority, Pki, open_pki


@asynccontextmanager
async def serving(pki: Pki) -> AsyncIterator[int]:
    async def handle(request: Request) -> Answer:
        known = b"known" if request.peer.certificate else b"unknown"
        return Response(body=known + b" " + request.headers.get("authorization", "").encode())

    listening = HttpServer(handle)
    port = await listening.start(tls=server_context(pki))
    yield port
    await listening.stop(0.1)


def written(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(json.dumps(document))
    return path


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_both_sides_know_each_other_by_certificate(tmp_path: Path) -> None:
    pki = open_pki(tmp_path / "pki", ["127.0.0.1", "localhost"])
    me = Authority(pki.ca, SystemClock()).client("alice")
    async with serving(pki) as port:
        cluster = {
            "server": f"https://127.0.0.1:{port}/some/prefix",
            "certificate-authority-data": encoded(pki.ca.certificate),
        }
        certificate = {
            "client-certificate-data": encoded(me.certificate),
            "client-key-data": encoded(me.key),
        }
        path = written(tmp_path / "one", cluster, certificate)
        transport = connect(load([path]))
        assert (await transport.request("GET", "/x")).body == b"known "
        await transport.close()
        path = written(tmp_path / "two", cluster, {"token": "secret"})
        transport = connect(load([path]))
        assert (await transport.request("GET", "/x")).body == b"unknown Bearer secret"
        await transport.close()


async def test_a_server_nobody_vouches_for_is_refused_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    pki = open_pki(tmp_path / "pki", ["elsewhere.example"])
    other = open_pki(tmp_path / "other", ["127.0.0.1"])
    async with serving(pki) as port:
        server = f"https://127.0.0.1:{port}"
        trusted = {"certificate-authority-data": encoded(pki.ca.certificate)}
        refused: tuple[dict[str, Any], ...] = (
            {"certificate-authority-data": encoded(other.ca.certificate)},
            trusted,  # the right authority, but a certificate for another name
        )
        for cluster in refused:
            path = written(tmp_path / "config", {"server": server, **cluster}, {})
            transport = connect(load([path]))
            with pytest.raises(TransportError, match="certificate verify failed"):
                await transport.request("GET", "/")
            await transport.close()
        accepted: tuple[dict[str, Any], ...] = (
            {"insecure-skip-tls-verify": True},
            {**trusted, "tls-server-name": "elsewhere.example"},
        )
        for cluster in accepted:
            path = written(tmp_path / "config", {"server": server, **cluster}, {})
            transport = connect(load([path]))
            assert (await transport.request("GET", "/")).status == 200
            await transport.close()
