"""Client certificates that are revoked by serial number, on every server of a store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, serving
from skerry.cli.main import main
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig, connect, load
from skerry.runtime.transport import TransportError
from skerry.server.http.message import Peer, Request, Response
from skerry.server.security.client_certificates import has_serial
from skerry.server.security.pki import Authority, Credential, new_ca
from skerry.server.security.revoked_certificates import RevokedCertificates, parse_serial
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from tests.kit.server.edges import EdgeHub, in_edge_hub

ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
PATH = "/extensions/v1/certificates"
NAMESPACES = "/api/v1/namespaces"


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    log.configure(verbosity=0, format="text")
    settings = ServerSettings(
        data_dir=folder, port=0, store=StoreSettings(kind="memory"), controllers="none"
    )
    async with serving(settings, PLAIN_SERVER) as server:
        yield server


def issued(folder: Path, name: str) -> Credential:
    pki = folder / "pki"
    ca = Credential((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
    return Authority(ca, SystemClock()).client(name, ("system:masters",))


def client_of(server: Running, credential: Credential) -> Client:
    config = load([server.kubeconfig])
    return Client(
        connect(
            ClientConfig(
                server=config.server,
                ca=config.ca,
                certificate=credential.certificate,
                key=credential.key,
            )
        )
    )


async def post(server: Running, body: Any, user: User = ADMIN, path: str = PATH) -> tuple[int, Any]:
    request = Request("POST", path, "", {}, orjson.dumps(body), Peer(user=user))
    answer = await server.api.engine.handle(request)
    assert isinstance(answer, Response)
    raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return answer.status, orjson.loads(raw)


async def test_a_revoked_certificate_is_refused_and_its_streams_end_at_once(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as server:
        lost, other = issued(tmp_path, "lost"), issued(tmp_path, "other")
        theirs, ours = client_of(server, lost), client_of(server, other)
        serial = f"{lost.x509.serial_number:x}"
        async with (
            theirs.transport.stream("GET", NAMESPACES, "watch=true") as watched,
            ours.transport.stream("GET", NAMESPACES, "watch=true") as spared,
        ):
            assert (watched.status, spared.status) == (200, 200)
            assert (await post(server, {"operation": "revoke", "serial": serial}))[0] == 200
            with contextlib.suppress(TransportError):
                async with asyncio.timeout(60):
                    async for _ in watched:
                        pass
            assert (await ours.transport.request("GET", NAMESPACES)).status == 200
        assert (await theirs.transport.request("GET", NAMESPACES)).status == 401
        status, body = await post(server, {"operation": "restore", "serial": serial})
        assert (status, body["items"]) == (200, [])
        assert (await theirs.transport.request("GET", NAMESPACES)).status == 200
        await theirs.transport.close()
        await ours.transport.close()


async def test_only_administrators_revoke_and_bad_input_is_reported(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        somebody = User("jane", groups=("system:authenticated",))
        assert (await post(server, {"operation": "revoke", "serial": "1"}, somebody))[0] == 403
        for body in (
            {"operation": "revoke"},
            {"operation": "revoke", "serial": 7},
            {"operation": "revoke", "serial": "xyz"},
            {"operation": "revoke", "serial": "f" * 41},
            {"operation": "revoke", "serial": "1", "reason": "x" * 300},
            {"operation": "forget", "serial": "1"},
        ):
            status, status_body = await post(server, body)
            assert status == 400, body
            assert status_body["message"]
        assert (await post(server, {"operation": "restore", "serial": "1"}))[0] == 404


@in_edge_hub
async def test_a_hub_revokes_for_itself_and_not_below_a_workspace(hub: EdgeHub) -> None:
    server = hub.running
    edge = await (await hub.edge()).join()
    other = await (await hub.edge("guilder")).join()
    assert edge.certificate is not None
    serial = f"{x509.load_der_x509_certificate(edge.certificate).serial_number:x}"
    for user in ("alice", "bob"):
        for path in (PATH, f"/clusters/root{PATH}", f"/clusters/{edge.mailbox}{PATH}"):
            reply = await hub.ask(user, "POST", path, {"operation": "revoke", "serial": serial})
            assert reply.status == 403, (user, path)
    reply = await edge.ask("POST", PATH, {"operation": "revoke", "serial": serial}, "")
    assert reply.status == 403
    assert (await post(server, {"operation": "revoke", "serial": serial, "reason": "lost"}))[
        0
    ] == 200
    assert (await edge.ask("GET", "/api")).status == 401
    assert (await edge.request()).status == 401, "nor may it ask for a successor"
    assert (await other.ask("GET", "/api")).status == 200


def test_a_serial_is_read_as_openssl_prints_it() -> None:
    assert parse_serial("5F:1C:09") == parse_serial("0x5f1c09") == parse_serial("5f1c09")
    for text in ("", "0x", "g", "-1", "1" * 41, "1 2"):
        with pytest.raises(ValueError, match="hexadecimal"):
            parse_serial(text)


def test_a_certificate_is_found_by_its_serial() -> None:
    clock = SystemClock()
    made = Authority(new_ca("ca", clock), clock).client("x").x509
    der = made.public_bytes(Encoding.DER)
    assert has_serial(der, made.serial_number)
    assert not has_serial(der, made.serial_number + 1)
    assert not has_serial(der, int.from_bytes(der[:8], "big"))
    assert not has_serial(None, 1)
    assert not has_serial(b"garbage\x01", 1)


async def test_the_command_revokes_lists_and_restores(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        lost = issued(tmp_path, "lost")
        serial = f"{lost.x509.serial_number:x}"
        (tmp_path / "lost.crt").write_bytes(lost.certificate)
        flags = ["--data-dir", str(tmp_path), "--kubeconfig", str(server.kubeconfig)]

        async def run(*words: str) -> str:
            result = await asyncio.to_thread(
                CliRunner().invoke, main, ["certificates", *words, *flags]
            )
            assert result.exit_code == 0, result.output
            return result.output

        assert f"revoked {serial}" in await run(
            "revoke", str(tmp_path / "lost.crt"), "--reason", "left in a taxi"
        )
        shown = await run("revoked")
        assert serial in shown
        assert "left in a taxi" in shown
        assert f"restored {serial}" in await run("restore", serial.upper())
        assert serial not in await run("revoked")


async def test_servers_of_one_store_agree(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        store = server.api.store
        other, dispatcher = RevokedCertificates(store, SystemClock()), Dispatcher(store)
        changed: list[int] = []
        other.changed = changed.append
        await dispatcher.start()
        await other.follow(dispatcher)
        async with asyncio.TaskGroup() as tasks:
            running_dispatcher = tasks.create_task(dispatcher.run())
            await post(server, {"operation": "revoke", "serial": "5f"})
            await dispatcher.reached(await store.revision())
            running_dispatcher.cancel()
        assert 0x5F in other
        assert changed == [0x5F]
        late = RevokedCertificates(store, SystemClock())
        await late.follow(Dispatcher(store))
        assert 0x5F in late
