"""A Deployment with its ReplicaSets, and which of them still have pods that run."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.deployment.observe import Observer
from skerry.controllers.workload.events import ORPHANS, OWNER_UID, by_owner, orphans
from skerry.runtime.index import Key
from tests.kit.caches import cache, owned

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
SETS = GroupVersionResource("apps", "v1", "replicasets")
PODS = GroupVersionResource("", "v1", "pods")
OWNED = {OWNER_UID: by_owner, ORPHANS: orphans}


async def test_replica_sets_run_while_a_pod_of_theirs_has_not_ended() -> None:
    sets = cache(
        SETS,
        owned("old", "Deployment", "web"),
        owned("new", "Deployment", "web"),
        owned("orphan"),
        indexes=OWNED,
    )
    pods = cache(
        PODS,
        owned("a", "ReplicaSet", "old", status={"phase": "Succeeded"}),
        owned("b", "ReplicaSet", "new", status={"phase": "Running"}),
        indexes=OWNED,
    )
    observer = Observer(cache(DEPLOYMENTS, owned("web")), sets, pods)
    found = await observer.observe(Key("", "shop", "web"))
    assert found is not None
    assert [each["metadata"]["name"] for each in found.replica_sets] == ["old", "new", "orphan"]
    assert found.running == {"u-new"}
    assert await observer.observe(Key("", "shop", "gone")) is None
