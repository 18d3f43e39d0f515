"""A hub's first objects: all of root or nothing, once, and never over somebody's changes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, SYSTEM_ADMIN
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.codec import decode, encode
from skerry.server.seeding import Seeder
from skerry.server.workspaces.bootstrap import (
    Bootstrap,
    bootstrap_policy,
    root_definitions,
    tenancy_identity,
)
from skerry.server.workspaces.root_policies import POLICIES
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.clock import HandClock

ROOT_KEY = ObjectKey("core.kcp.io", "logicalclusters", "root", "", "cluster").path()
EXPORTS = type_prefix("apis.kcp.io", "apiexports")


class Watched(MemoryStore):
    """Tells in which commit root was written, and may have another server be first."""

    def __init__(self, identity: str) -> None:
        super().__init__(identity)
        self.roots: list[list[str]] = []
        self.rival: Bootstrap | None = None

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        keys = [write.key for write in writes]
        if ROOT_KEY in keys:
            rival, self.rival = self.rival, None
            if rival is not None:
                await rival.ensure_root()
            self.roots.append(keys)
        return await super().commit(writes)


def bootstrap(store: MemoryStore, seed: int = 1) -> Bootstrap:
    clock, ids = HandClock(), SeededIds(seed)
    seeder = Seeder(store, clock, ids, ClusterStamp())
    return Bootstrap(store, seeder, clock, ids, "https://hub.example")


async def stored(store: MemoryStore, prefix: str = "/") -> dict[str, Object]:
    entries = (await store.range(prefix)).entries
    return {entry.key: decode(entry.value, entry.revision) for entry in entries}


async def exports(store: MemoryStore) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in (await stored(store, EXPORTS)).values()}


async def test_root_is_written_whole_in_one_transaction_and_once() -> None:
    store = Watched("test")
    await bootstrap(store).ensure_root()
    [keys] = store.roots
    assert sum(key.startswith(EXPORTS) for key in keys) == len(root_definitions())
    assert any("apibindings" in key for key in keys)
    revision = await store.revision()
    await bootstrap(store, 2).ensure_root()
    assert await store.revision() == revision


async def test_of_two_servers_one_writes_root_and_both_find_the_same() -> None:
    store = Watched("test")
    store.rival = bootstrap(store, 2)
    await bootstrap(store, 1).ensure_root()
    identities = {obj["status"]["identityHash"] for obj in (await exports(store)).values()}
    assert len(identities) == len(root_definitions())
    assert await tenancy_identity(store) in identities


async def test_every_schema_that_an_export_offers_is_there_and_bound_in_root() -> None:
    store = MemoryStore("test")
    await bootstrap(store).ensure_root()
    everything = await stored(store)
    schemas = {
        o["metadata"]["name"]: o for o in everything.values() if o["kind"] == "APIResourceSchema"
    }
    offered = await exports(store)
    for export in offered.values():
        assert set(export["spec"]["latestResourceSchemas"]) <= schemas.keys()
    bound = [obj for obj in everything.values() if obj["kind"] == "APIBinding"]
    assert {each["spec"]["reference"]["export"]["name"] for each in bound} == offered.keys()
    for each in bound:
        for kind in each["status"]["boundResources"]:
            assert kind["schema"]["UID"] == schemas[kind["schema"]["name"]]["metadata"]["uid"]


async def test_no_identity_can_be_had_from_what_is_not_secret() -> None:
    store = MemoryStore("test")
    await bootstrap(store).ensure_root()
    keys = [obj for obj in (await stored(store)).values() if obj["kind"] == "Secret"]
    assert len(keys) == len(root_definitions())
    assert {each["metadata"]["namespace"] for each in keys} == {"kcp-system"}


async def test_exports_that_an_earlier_version_made_get_their_policies_once() -> None:
    store = MemoryStore("test")
    await bootstrap(store).ensure_root()
    # As the earlier version left it: neither policies nor their roles.
    for key, obj in (await stored(store)).items():
        kind, name = obj["kind"], obj["metadata"]["name"]
        if kind == "APIExport":
            obj["spec"].pop("maximalPermissionPolicy", None)
            await store.commit([Write(key, encode(obj))])
        elif "maximal-permission-policy" in name:
            await store.commit([Write(key, None)])
    await bootstrap(store, 2).ensure_root()
    found = await exports(store)
    assert {name for name, obj in found.items() if "maximalPermissionPolicy" in obj["spec"]} == set(
        POLICIES
    )
    # What an administrator takes away afterwards stays away.
    changed = found[next(iter(POLICIES))]
    del changed["spec"]["maximalPermissionPolicy"]
    key = ObjectKey("apis.kcp.io", "apiexports", "root", "", changed["metadata"]["name"]).path()
    await store.commit([Write(key, encode(changed))])
    await bootstrap(store, 3).ensure_root()
    assert (
        "maximalPermissionPolicy" not in (await exports(store))[changed["metadata"]["name"]]["spec"]
    )


async def test_only_a_hubs_store_has_a_root() -> None:
    with pytest.raises(LookupError, match="no root"):
        await tenancy_identity(MemoryStore("test"))


def test_the_policy_of_all_clusters_makes_nobody_an_administrator_but_the_hubs() -> None:
    bound = [
        (subject["name"], obj["roleRef"]["name"])
        for obj in bootstrap_policy()
        if obj["kind"] == "ClusterRoleBinding"
        for subject in obj.get("subjects") or []
    ]
    assert {who for who, role in bound if role == "cluster-admin"} == {
        ADMIN_GROUP,
        "system:masters",
    }


async def test_the_policy_of_all_clusters_lies_where_no_workspace_is() -> None:
    store = MemoryStore("test")
    await bootstrap(store).ensure_root()
    role = ObjectKey("rbac.authorization.k8s.io", "clusterroles", SYSTEM_ADMIN, "", "cluster-admin")
    assert await store.get(role.path()) is not None


async def test_what_everybody_may_do_in_root_is_to_look_and_to_bind_what_it_offers() -> None:
    store = MemoryStore("test")
    await bootstrap(store).ensure_root()
    key = ObjectKey(
        "rbac.authorization.k8s.io", "clusterroles", "root", "", "system:kcp:authenticated"
    )
    rules = (await stored(store, key.path()))[key.path()]["rules"]
    verbs = {verb for rule in rules for verb in rule["verbs"]}
    assert verbs == {"access", "get", "list", "watch", "use", "create", "bind"}
    [creating] = [rule for rule in rules if "create" in rule["verbs"]]
    assert creating["resourceNames"] == ["~"]
    assert all(rule.get("resourceNames") for rule in rules if {"use", "bind"} & set(rule["verbs"]))
