"""Who is enqueued when something owned changes, and what an owner may take up."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.events import (
    ORPHANS,
    OWNER_UID,
    by_owner,
    candidates,
    enqueue_owner,
    enqueue_self,
    index_owned,
    orphans,
    selector_of,
)
from tests.kit.caches import cache, drained, owned, queue_of_keys

PODS = GroupVersionResource("", "v1", "pods")
SETS = GroupVersionResource("apps", "v1", "replicasets")


def replica_set(name: str, namespace: str = "shop", **labels: str) -> Object:
    return owned(name, namespace=namespace, spec={"selector": {"matchLabels": labels}})


def test_objects_are_found_by_their_owner_or_as_nobodys() -> None:
    mine, nobodys = owned("p", "ReplicaSet", "web"), owned("q")
    assert (list(by_owner(mine)), list(orphans(mine))) == (["u-web"], [])
    assert (list(by_owner(nobodys)), list(orphans(nobodys))) == ([], [("", "shop")])


def test_candidates_are_what_is_owned_and_what_nobody_owns_here() -> None:
    pods = cache(
        PODS,
        owned("mine", "ReplicaSet", "web"),
        owned("nobodys"),
        owned("elsewhere", namespace="bank"),
        owned("others", "ReplicaSet", "other"),
        indexes={OWNER_UID: by_owner, ORPHANS: orphans},
    )
    found = candidates(pods.index, replica_set("web"))
    assert [each["metadata"]["name"] for each in found] == ["mine", "nobodys"]


def test_indexing_twice_is_once() -> None:
    pods = cache(PODS, owned("mine", "ReplicaSet", "web"))
    index_owned(pods)
    index_owned(pods)
    assert len(pods.index.by(OWNER_UID, "u-web")) == 1


async def test_a_change_enqueues_the_owner_of_before_and_of_now() -> None:
    queue = queue_of_keys()
    handle = enqueue_owner("ReplicaSet", cache(SETS), queue.add)
    handle(owned("p", "ReplicaSet", "old"), owned("p", "ReplicaSet", "new"))
    assert await drained(queue) == ["shop/old", "shop/new"]
    handle(None, owned("p", "Job", "another kind"))
    assert await drained(queue) == []


async def test_an_orphan_enqueues_whoever_would_select_it() -> None:
    sets = cache(
        SETS,
        replica_set("web", app="web"),
        replica_set("db", app="db"),
        replica_set("far", "bank", app="web"),
        replica_set("all"),
    )
    queue = queue_of_keys()
    handle = enqueue_owner("ReplicaSet", sets, queue.add)
    orphan = owned("p", metadata={"labels": {"app": "web"}})
    handle(None, orphan)
    assert await drained(queue) == ["shop/web"], "an empty selector takes nothing up"
    handle(orphan, None)
    handle(None, owned("without labels"))
    assert await drained(queue) == []


async def test_an_object_enqueues_itself_also_when_it_goes() -> None:
    queue = queue_of_keys()
    handle = enqueue_self(queue.add)
    handle(None, owned("web"))
    handle(owned("gone"), None)
    assert await drained(queue) == ["shop/web", "shop/gone"]


def test_a_set_selects_by_its_label_selector() -> None:
    assert selector_of(replica_set("web", app="web")).matches({"app": "web"})
