"""A DaemonSet, its pods with what was just written on top, and a fresh suffix for each node."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.daemonset.observe import Observed, Observer
from skerry.controllers.workload.events import OWNER_UID, by_owner, index_owned
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.plan import Create, Target
from skerry.runtime.client import Client
from skerry.runtime.execute import Outcome
from skerry.runtime.index import Key
from skerry.runtime.write_overlay import InformerOverlay
from tests.kit.caches import cache, owned
from tests.kit.sim.twin import Twin

SETS = GroupVersionResource("apps", "v1", "daemonsets")
PODS = GroupVersionResource("", "v1", "pods")
REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
NODES = GroupVersionResource("", "v1", "nodes")
KEY = Key("", "shop", "logs")


class Desk:
    def __init__(self, *daemon_sets: Object) -> None:
        sets = cache(SETS, *daemon_sets)
        self.pods = cache(PODS)
        index_owned(self.pods)
        self.revisions = cache(REVISIONS, indexes={OWNER_UID: by_owner})
        self.nodes = cache(NODES)
        self.overlay = InformerOverlay(self.pods)
        informers = (sets, self.revisions, self.nodes)
        self.observer = Observer(Client(Twin()), informers, self.overlay, SeededIds(1))

    async def observe(self) -> Observed:
        found = await self.observer.observe(KEY)
        assert found is not None
        return found


def names(objects: tuple[Object, ...]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)


async def test_a_set_that_is_gone_is_not_observed() -> None:
    assert await Desk().observer.observe(KEY) is None


async def test_its_pods_are_its_own_and_the_orphans_of_its_namespace() -> None:
    desk = Desk(owned("logs"))
    for pod in (
        owned("own", "DaemonSet", "logs"),
        owned("orphan"),
        owned("others", "DaemonSet", "probe"),
        owned("elsewhere", namespace="other"),
    ):
        desk.pods.apply("ADDED", pod)
    assert names((await desk.observe()).pods) == ["orphan", "own"]


async def test_its_revisions_are_its_own() -> None:
    desk = Desk(owned("logs"))
    desk.revisions.apply("ADDED", owned("logs-1", "DaemonSet", "logs"))
    desk.revisions.apply("ADDED", owned("probe-1", "DaemonSet", "probe"))
    assert names((await desk.observe()).revisions) == ["logs-1"]


async def test_a_pod_just_created_counts_before_the_cache_has_it() -> None:
    """Else the next round would create it again."""
    desk = Desk(owned("logs"))
    await desk.observe()
    pod = owned("logs-abcde", "DaemonSet", "logs", metadata={"resourceVersion": "9"})
    create = Create(Target(PODS, "logs-abcde", "shop"), pod, "SuccessfulCreate")
    desk.overlay.begin(create)
    desk.overlay.done(Outcome(create, "created", pod))
    assert names((await desk.observe()).pods) == ["logs-abcde"]


async def test_every_node_has_a_suffix_of_its_own_and_new_ones_each_time() -> None:
    desk = Desk(owned("logs"))
    for name in "abc":
        node = {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}}
        desk.nodes.apply("ADDED", node)
    first, second = await desk.observe(), await desk.observe()
    assert names(first.nodes) == ["a", "b", "c"]
    assert len({*first.suffixes, *second.suffixes}) == 6
