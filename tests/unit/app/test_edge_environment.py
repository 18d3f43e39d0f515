"""Four roles from one kubeconfig, as the flags of the first controllers had it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest
import yaml

from skerry.api.objects import Object
from skerry.app.edge_environment import (
    ClientFlags,
    EdgeEnvironment,
    HubAccess,
    Role,
    access_by,
    endpoint,
)
from skerry.kit.clock import LoopClock, SystemClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from skerry.wire.kubeconfig import KubeconfigError
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import virtual


def kubeconfig(folder: Path, name: str = "config", **contexts: tuple[str, str]) -> Path:
    """Write a kubeconfig whose contexts have a path and a user; the first is current."""
    named = {key.replace("__", ":"): value for key, value in contexts.items()}
    users = sorted({user for _, user in named.values()})
    document = {
        "current-context": next(iter(named)),
        "contexts": [
            {"name": each, "context": {"cluster": each, "user": user}}
            for each, (_, user) in named.items()
        ],
        "clusters": [
            {"name": each, "cluster": {"server": f"http://127.0.0.1:1{path}"}}
            for each, (path, _) in named.items()
        ],
        "users": [{"name": user, "user": {"token": f"token-{user}"}} for user in users],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return kubeconfig(
        tmp_path,
        current=("/clusters/root:espw", "kcp-admin"),
        root=("/clusters/root", "kcp-admin"),
        base=("", "kcp-admin"),
        system__admin=("", "shard-admin"),
    )


def test_each_role_has_its_context(whole: Path) -> None:
    found = {role: endpoint(role, [whole], ClientFlags()) for role in ("espw", "root", "base")}
    assert {role: each.workspace for role, each in found.items()} == {
        "espw": "root:espw",
        "root": "root",
        "base": "",
    }
    admin = endpoint("admin", [whole], ClientFlags())
    assert admin.config.token == "token-shard-admin"
    assert {each.config.server for each in (*found.values(), admin)} == {"http://127.0.0.1:1"}


def test_flags_count_more_than_custom(whole: Path, tmp_path: Path) -> None:
    other = kubeconfig(tmp_path, "other", elsewhere=("/clusters/root:x", "me"))
    assert endpoint("root", [whole], ClientFlags(context="current")).workspace == "root:espw"
    assert endpoint("root", [whole], ClientFlags(kubeconfig=str(other))).workspace == "root:x"
    chosen = endpoint("root", [whole], ClientFlags(user="shard-admin", cluster="root"))
    assert (chosen.config.token, chosen.workspace) == ("token-shard-admin", "root")


def test_a_kubeconfig_with_the_current_context_only_serves_every_role(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, only=("/clusters/root:espw", "me"))
    for role in ("espw", "root", "base", "admin"):
        assert endpoint(role, [path], ClientFlags()).config.token == "token-me"


def test_a_context_asked_for_must_exist(whole: Path) -> None:
    with pytest.raises(KubeconfigError, match="no context named 'nowhere'"):
        endpoint("root", [whole], ClientFlags(context="nowhere"))


def test_a_path_before_the_workspace_is_kept(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, only=("/proxy/clusters/root:a", "me"))
    found = endpoint("espw", [path], ClientFlags())
    assert (found.config.server, found.workspace) == ("http://127.0.0.1:1/proxy", "root:a")


async def test_roles_that_come_out_the_same_share_connections(whole: Path) -> None:
    roles = ("espw", "root", "base", "admin")
    endpoints = {role: endpoint(role, [whole], ClientFlags()) for role in roles}  # type: ignore[arg-type]
    access, transports = access_by(endpoints, SystemClock(), "test")  # type: ignore[arg-type]
    assert len(transports) == 2
    assert access.clients["espw"].transport is access.clients["base"].transport
    assert access.clients["admin"].transport is not access.clients["base"].transport
    for transport in transports:
        await transport.close()


class Versioned(AnsweringTransport):
    """A hub that says of itself what it is asked to, the first of it first."""

    def __init__(self, *answers: tuple[int, Object] | TransportError) -> None:
        self._answers = list(answers)

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        assert path == "/clusters/root/version", "kcp tells it nobody else without a workspace"
        answer = self._answers.pop(0)
        if isinstance(answer, TransportError):
            raise answer
        return Answer(answer[0], {}, orjson.dumps(answer[1]))


@virtual
async def test_a_hub_is_ours_if_it_says_so_and_is_asked_until_it_answers() -> None:
    async def is_skerry_hub(*answers: tuple[int, Object] | TransportError) -> bool:
        client = Client(Versioned(*answers), clock=LoopClock())
        roles: tuple[Role, ...] = ("espw", "root", "base", "admin")
        async with asyncio.TaskGroup() as tasks:
            access = HubAccess(dict.fromkeys(roles, client), {})
            environment = EdgeEnvironment(access, "root:espw", LoopClock(), SeededIds(1), tasks)
            return await environment.is_skerry_hub()

    ours, theirs = {"goVersion": "python3.11.7"}, {"goVersion": "go1.18.9"}
    assert await is_skerry_hub((200, ours))
    assert await is_skerry_hub(TransportError("nobody listens"), (200, ours))
    assert not await is_skerry_hub((200, theirs))
    assert not await is_skerry_hub((403, {"kind": "Status", "code": 403, "reason": "Forbidden"}))
