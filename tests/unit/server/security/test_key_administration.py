"""The path by which keys are rotated: for administrators of the hub, and in no workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.server.hub import Hub, HubPlace, in_hub

PATH = "/extensions/v1/keys"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


@in_hub
async def test_only_administrators_of_the_hub_see_and_rotate_its_keys(hub: Hub) -> None:
    cluster = await hub.workspace("root", "hers", admin="alice")
    step = {"operation": "reload"}
    for user in ("alice", "bob", ""):
        for method, body in (("GET", None), ("POST", step)):
            assert (await hub.ask(user, method, PATH, body)).status == 403, user
    # An administrator of a workspace may post to any path in it; this one is not in it.
    for where in (cluster, "root:hers"):
        for method, body in (("GET", None), ("POST", step)):
            assert (await hub.ask("alice", method, f"/clusters/{where}{PATH}", body)).status == 403
    for user in ("kcp-admin", "shard-admin"):
        found = await hub.ask(user, "GET", PATH)
        assert found.status == 200
        assert found.body["encryption"]["current"].startswith("key-")


@in_hub
async def test_no_key_is_ever_reported(hub: Hub) -> None:
    (directory,) = {hub.running.kubeconfig.parent / "pki"}
    texts = [line.split(": ", 1)[1] for line in
             (directory / "encryption.keys").read_text().splitlines() if ": " in line]  # fmt: skip
    for method, body in (("GET", None), ("POST", {"operation": "reload"})):
        answer = await hub.ask("shard-admin", method, PATH, body)
        assert texts
        assert not any(text.encode() in answer.raw for text in texts)


@pytest.mark.parametrize(
    ("body", "status", "wanted"),
    [
        ({}, 400, "operation: None: want one of"),
        ({"operation": "sail"}, 400, "operation: 'sail'"),
        ({"operation": ["use"]}, 400, "operation: ['use']"),
        ({"operation": "use", "kind": "encryption"}, 400, "name: None: want a string"),
        ({"operation": "use", "kind": "paper", "name": "x"}, 400, "kind: 'paper': want one of"),
        ({"operation": "use", "kind": "encryption", "name": "x"}, 409, "no encryption key 'x'"),
        ({"operation": "rewrite", "after": 7}, 400, "after: 7: want a string"),
    ],
)
async def test_a_step_that_makes_no_sense_is_refused_in_a_sentence(
    tmp_path: Path, body: dict[str, object], status: int, wanted: str
) -> None:
    @in_hub
    async def asked(hub: Hub) -> None:
        reply = await hub.ask("shard-admin", "POST", PATH, body)
        assert reply.status == status
        assert wanted in reply.body["message"]

    await asked(HubPlace(tmp_path))


@in_hub
async def test_a_body_that_is_no_object_and_other_methods_are_refused(hub: Hub) -> None:
    assert (await hub.ask("shard-admin", "POST", PATH, [])).status == 400
    assert (await hub.ask("shard-admin", "POST", PATH)).status == 400
    for method in ("PUT", "DELETE", "PATCH"):
        assert (await hub.ask("shard-admin", method, PATH, {})).status == 405
