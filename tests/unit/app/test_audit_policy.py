"""The audit log of a whole server under a policy: how much is in it, and that no secret is."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, StartError, serving
from skerry.kit import log
from skerry.server.http.message import Answer, Peer, Request, Response, Stream
from skerry.server.security.audit_objects import OMITTED
from skerry.server.user import User
from tests.kit.server.harness import MemorySender

ADMIN = Peer(user=User("admin", groups=("system:masters",)))
SECRETS = "/api/v1/namespaces/default/secrets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PASSWORD = "swordfish"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()
EVERYTHING = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, nonResourceURLs: ["/version"]}
- {level: None, verbs: [get]}
- {level: Metadata, verbs: [list]}
- {level: Request, omitManagedFields: true}
"""


@dataclass
class Audited:
    """A server with an audit log."""

    running: Running
    file: Path

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> int:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        bare, _, query = path.partition("?")
        sent = {"content-type": content_type, **headers}
        peer = Peer() if "authorization" in headers else ADMIN
        answer: Answer = await self.running.api.engine.handle(
            Request(method, bare, query, sent, raw, peer)
        )
        if isinstance(answer, Stream):
            await answer.run(MemorySender())
            return answer.status
        assert isinstance(answer, Response)
        return answer.status

    def events(self) -> list[dict[str, Any]]:
        """Return the events that were written of clients; after the server has ended."""
        found = [json.loads(line) for line in self.file.read_bytes().splitlines()]
        return [event for event in found if event["user"].get("username") != "system:apiserver"]


@contextlib.asynccontextmanager
async def audited(folder: Path, policy: str | None = EVERYTHING) -> AsyncIterator[Audited]:
    log.configure(verbosity=4)
    file = None
    if policy is not None:
        file = folder / "policy.yaml"
        file.write_text(policy)
    settings = ServerSettings(
        data_dir=folder / "data",
        port=0,
        store=StoreSettings(kind="memory"),
        audit_log=folder / "audit.log",
        audit_policy_file=file,
        controllers="none",
    )
    try:
        async with serving(settings, PLAIN_SERVER) as running:
            yield Audited(running, folder / "audit.log")
    finally:
        log.configure(verbosity=0)


def secret(name: str = "s", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"password": PASSWORD},
        "data": {"other": ENCODED},
        **more,
    }


def config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_levels_say_how_much_is_written(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        assert await server.ask("POST", CONFIG_MAPS, config_map(color="red")) == 201
        assert await server.ask("GET", f"{CONFIG_MAPS}/c") == 200
        assert await server.ask("GET", CONFIG_MAPS) == 200
        assert await server.ask("GET", "/version") == 200
        patch = {"data": {"color": "blue"}}
        merge = "application/merge-patch+json"
        assert await server.ask("PATCH", f"{CONFIG_MAPS}/c", patch, merge) == 200
        yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {color: green}\n"
        apply = "application/apply-patch+yaml"
        path = f"{CONFIG_MAPS}/c?fieldManager=me&force=true"
        assert await server.ask("PATCH", path, yaml, apply) == 200
        assert await server.ask("DELETE", f"{CONFIG_MAPS}/c", {"gracePeriodSeconds": 0}) == 200
    created, listed, patched, applied, deleted = server.events()
    assert (created["level"], created["verb"]) == ("Request", "create")
    assert created["requestObject"] == config_map(color="red")
    assert (listed["level"], listed["verb"]) == ("Metadata", "list")
    assert "requestObject" not in listed
    assert patched["requestObject"] == patch
    assert applied["requestObject"]["data"] == {"color": "green"}
    assert deleted["requestObject"] == {"gracePeriodSeconds": 0}


async def test_without_a_policy_the_metadata_of_everything_is_written(tmp_path: Path) -> None:
    async with audited(tmp_path, None) as server:
        assert await server.ask("POST", CONFIG_MAPS, config_map(color="red")) == 201
        assert await server.ask("GET", "/version") == 200
    events = server.events()
    assert [event["level"] for event in events] == ["Metadata", "Metadata"]
    assert not any("requestObject" in event for event in events)


async def test_no_secret_is_written_whichever_way_it_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merge, strategic, json_patch, apply = (
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
    )
    async with audited(tmp_path) as server:
        ask = server.ask
        assert await ask("POST", SECRETS, secret()) == 201
        assert await ask("PUT", f"{SECRETS}/s", secret(immutable=False)) == 200
        patch = {"stringData": {"password": PASSWORD}}
        assert await ask("PATCH", f"{SECRETS}/s", patch, merge) == 200
        assert await ask("PATCH", f"{SECRETS}/s", patch, strategic) == 200
        change = [{"op": "add", "path": "/data/x", "value": ENCODED}]
        assert await ask("PATCH", f"{SECRETS}/s", change, json_patch) == 200
        applied = f"{SECRETS}/s?fieldManager=me&force=true"
        assert await ask("PATCH", applied, secret(), apply) == 200
        yaml = f"kind: Secret\napiVersion: v1\nstringData: {{a: {PASSWORD}}}\n".encode()
        await ask("POST", SECRETS, yaml, "application/yaml")
        # To the wrong address, wrapped, or malformed.
        await ask("POST", CONFIG_MAPS, secret())
        await ask("POST", CONFIG_MAPS, {"kind": "List", "items": [secret(), config_map()]})
        await ask("POST", CONFIG_MAPS, {"kind": "List", "items": [{"items": [secret()]}]})
        await ask("POST", CONFIG_MAPS, f'{{"kind":"Secret","data":"{ENCODED}"'.encode())
        part = {"method": "POST", "path": SECRETS, "body": secret("t")}
        for media in ("application/json", "application/vnd.skerry.batch+json"):
            await ask("POST", "/extensions/v1/batch", {"requests": [part]}, media)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        assert await ask("POST", accounts, account) == 201
        token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                 "spec": {"audiences": [PASSWORD]}}  # fmt: skip
        assert await ask("POST", f"{accounts}/robot/token", token) == 201
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                  "spec": {"token": PASSWORD}}  # fmt: skip
        assert await ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review) == 201
        assert await ask("GET", CONFIG_MAPS, authorization=f"Bearer {PASSWORD}") == 401
        await asyncio.sleep(0)
    text = server.file.read_text() + capsys.readouterr().err
    assert PASSWORD not in text
    assert ENCODED not in text
    events = server.events()
    reasons = {event["annotations"].get(OMITTED) for event in events}
    assert "secret" in reasons
    stored = [event for event in events if event.get("objectRef", {}).get("resource") == "secrets"]
    assert len(stored) >= 7
    assert not any("requestObject" in event for event in stored)


async def test_an_event_stays_bounded_and_says_what_it_lacks(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        assert await server.ask("POST", CONFIG_MAPS, config_map("large", x="x" * 70_000)) == 201
        lines = "".join(f"  k{n}: {'x' * 50}\n" for n in range(200))
        yaml = (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: blocks}}\ndata:\n{lines}".encode()
        )
        assert await server.ask("POST", CONFIG_MAPS, yaml, "application/yaml") == 201
        await server.ask("POST", CONFIG_MAPS, b"{", "application/json")
        await server.ask("POST", CONFIG_MAPS, b"what", "text/plain")
    large, blocks, half, *_ = server.events()
    assert "are more than 65536" in large["annotations"][OMITTED]
    assert "are more than 8192" in blocks["annotations"][OMITTED]
    assert half["annotations"][OMITTED] == "not understood"
    assert not any("requestObject" in event for event in server.events())


async def test_bodies_of_refused_requests_are_not_written(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        binding = "authorization"
        headers = {binding: "Bearer nobody"}
        assert await server.ask("POST", CONFIG_MAPS, config_map(a="b"), **headers) == 401
    (event,) = server.events()
    assert event["level"] == "Request"
    assert "requestObject" not in event


async def test_managed_fields_are_left_out_where_the_policy_says_so(tmp_path: Path) -> None:
    fields = [{"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
               "fieldsV1": {"f:data": {}}}]  # fmt: skip
    for omit in (True, False):
        policy = EVERYTHING.replace("true", str(omit).lower())
        folder = tmp_path / str(omit)
        folder.mkdir()
        async with audited(folder, policy) as server:
            sent = config_map(color="red")
            sent["metadata"]["managedFields"] = fields
            assert await server.ask("POST", CONFIG_MAPS, sent) == 201
        (event,) = server.events()
        assert ("managedFields" in event["requestObject"]["metadata"]) == (not omit)


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("rules: [", "--audit-policy-file"),
        (EVERYTHING.replace("Request,", "RequestResponse,"), r"rules\[3\].level: RequestResponse"),
        (EVERYTHING.replace("verbs", "verb"), r"rules\[1\]: unknown field 'verb'"),
    ],
)
async def test_a_policy_that_makes_no_sense_stops_the_start(
    tmp_path: Path, policy: str, wanted: str
) -> None:
    with pytest.raises(StartError, match=wanted):
        async with audited(tmp_path, policy):
            pass


async def test_a_policy_without_a_log_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(EVERYTHING)
    settings = ServerSettings(
        data_dir=tmp_path / "data",
        port=0,
        store=StoreSettings(kind="memory"),
        audit_policy_file=tmp_path / "policy.yaml",
    )
    with pytest.raises(StartError, match="--audit-log"):
        async with serving(settings, PLAIN_SERVER):
            pass
