"""Where an edge's identity is kept."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from skerry.api.errors import Conflict, NotFound
from skerry.edge.syncer.identity.credential_gate import CredentialGate
from skerry.edge.syncer.identity.identity_store import FileStore, SecretStore
from skerry.edge.syncer.identity.keys import NoKey, make_key
from skerry.logic.fleet.syncing.certificates import EdgeIdentity
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.issuing_hub import EDGE

IDENTITY = EdgeIdentity(edge=EDGE.user, certificate="c", key="k")


async def test_a_file_is_its_owners_alone_and_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "hub-identity.json"
    assert await FileStore(path).load() == EdgeIdentity()
    path.touch(mode=0o644)
    await FileStore(path).save(IDENTITY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await FileStore(path).load() == IDENTITY
    assert os.listdir(tmp_path) == [path.name]


async def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "hub-identity.json"
    path.write_text('{"edge": ')
    assert await FileStore(path).load() == EdgeIdentity()


class Secrets(AnsweringTransport):
    """One Secret, changed by merge patches."""

    def __init__(self) -> None:
        self.secret: dict[str, Any] = {"metadata": {"name": "florin-identity"}}
        self.version = 1

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if not path.endswith("/namespaces/here/secrets/florin-identity"):
            return Answer(404, {}, orjson.dumps({"kind": "Status", "reason": "NotFound"}))
        if method == "PATCH":
            patch = orjson.loads(body)
            if patch["metadata"]["resourceVersion"] != str(self.version):
                return Answer(409, {}, orjson.dumps({"kind": "Status", "reason": "Conflict"}))
            self.change(patch["data"])
        shown = {**self.secret["metadata"], "resourceVersion": str(self.version)}
        return Answer(200, {}, orjson.dumps({**self.secret, "metadata": shown}))

    def change(self, data: Mapping[str, str]) -> None:
        self.version += 1
        self.secret["data"] = {**self.secret.get("data", {}), **data}


async def test_a_secret_is_shared_and_nobody_overwrites_anothers_key() -> None:
    secrets = Secrets()
    one, other = (SecretStore(Client(secrets), "here", "florin-identity") for _ in range(2))
    assert await one.load() == await other.load() == EdgeIdentity()
    await one.save(IDENTITY)
    with pytest.raises(Conflict):
        await other.save(EdgeIdentity(edge="another"))
    assert await other.load() == IDENTITY
    # What else people note on the Secret is no conflict.
    secrets.change({"note": base64.b64encode(b"hello").decode()})
    await other.save(EdgeIdentity(edge="next"))
    assert await one.load() == EdgeIdentity(edge="next")
    assert base64.b64decode(secrets.secret["data"]["note"]) == b"hello"
    with pytest.raises(NotFound):
        await SecretStore(Client(secrets), "elsewhere", "florin-identity").load()


async def test_a_key_is_made_by_a_program_apart_and_read_by_nobody_else() -> None:
    one, other = await make_key(EDGE, "certificate"), await make_key(EDGE, "certificate")
    assert one.key != other.key
    assert one.name != other.name
    assert one.credential == "certificate"
    assert "PRIVATE KEY" in one.key
    assert "CERTIFICATE REQUEST" in one.request


async def test_a_program_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(NoKey, match="exit code 1"):
        await make_key(EDGE, "certificate")


def test_a_syncer_does_not_load_the_library_that_makes_keys() -> None:
    text = (
        "import sys, skerry.app.syncer, skerry.cli.syncer\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] == 'cryptography']\n"
        "sys.exit(f'loaded: {loaded[:3]}' if loaded else 0)\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


class Echo(AnsweringTransport):
    def __init__(self, status: int) -> None:
        self.status, self.asked = status, 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked += 1
        return Answer(self.status, {}, b"")


async def test_a_shut_gate_holds_requests_back_until_it_opens() -> None:
    inner = Echo(200)
    gate = CredentialGate(inner)
    waiting = [asyncio.create_task(gate.request("GET", "/")) for _ in range(3)]
    await asyncio.sleep(0)
    assert inner.asked == 0
    waiting.pop().cancel()
    gate.open()
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]
    gate.shut()
    assert not gate.is_open


@pytest.mark.parametrize(
    ("status", "path", "expected"),
    [
        (200, "/x", False),
        (401, "/x", True),
        (500, "/x", False),
        (403, "/apis/apps/v1/deployments", False),
        (403, "/clusters/m/extensions/v1/watch", True),
        (403, "/api/coordination.k8s.io/v1/namespaces/default/leases/syncer-heartbeat", True),
    ],
)
async def test_a_gate_notices_that_the_credential_is_refused(
    status: int, path: str, expected: bool
) -> None:
    gate = CredentialGate(Echo(status))
    gate.open()
    await gate.request("GET", path)
    assert gate.suspicion.suspected.is_set() is expected
