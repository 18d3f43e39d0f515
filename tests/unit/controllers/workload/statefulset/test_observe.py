"""A StatefulSet's claims are those named after its templates and itself."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.events import ORPHANS, OWNER_UID, by_owner, orphans
from skerry.controllers.workload.statefulset.observe import Observer
from skerry.runtime.index import Key
from tests.kit.caches import cache, owned

SETS = GroupVersionResource("apps", "v1", "statefulsets")
PODS = GroupVersionResource("", "v1", "pods")
REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
OWNED = {OWNER_UID: by_owner, ORPHANS: orphans}


async def test_pods_revisions_and_claims_of_one_set_are_seen() -> None:
    templates = [{"metadata": {"name": "data"}}]
    sets = cache(SETS, owned("db", spec={"volumeClaimTemplates": templates}))
    pods = cache(PODS, owned("db-0", "StatefulSet", "db"), indexes=OWNED)
    revisions = cache(REVISIONS, owned("db-r1", "StatefulSet", "db"), indexes=OWNED)
    claims = cache(
        CLAIMS,
        owned("data-db-0"),
        owned("data-dbx-0"),
        owned("logs-db-0"),
        owned("data-db-1", namespace="bank"),
    )
    observer = Observer(sets, pods, revisions, claims)
    found = await observer.observe(Key("", "shop", "db"))
    assert found is not None
    assert [each["metadata"]["name"] for each in found.pods] == ["db-0"]
    assert [each["metadata"]["name"] for each in found.revisions] == ["db-r1"]
    assert [each["metadata"]["name"] for each in found.claims] == ["data-db-0"]
    assert await observer.observe(Key("", "shop", "gone")) is None
