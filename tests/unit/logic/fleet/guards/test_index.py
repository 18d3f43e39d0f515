"""Guards of the provider workspace are for all placements, others for those beside them."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import PLACEMENT_GUARDS, edge_placement_ref
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import Guard, guard_of


def guard(cluster: str, name: str, **spec: Any) -> Guard:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}}
    return guard_of({"metadata": metadata, "spec": spec})


def names(index: GuardIndex, cluster: str, **labels: str) -> list[str]:
    return [each.name for each in index.of(edge_placement_ref(cluster, "web"), {}, labels)]


def test_a_guard_concerns_all_placements_or_those_beside_it() -> None:
    index = GuardIndex("espw")
    assert not index
    index.put(guard("espw", "fleet"))
    index.put(guard("shop", "own"))
    assert names(index, "shop") == ["./own", "fleet"]
    assert names(index, "blog") == ["fleet"]
    assert names(index, "espw") == ["fleet"]
    assert len(list(index)) == 2


def test_selectors_narrow_a_guard() -> None:
    index = GuardIndex("espw")
    index.put(guard("espw", "web", placements={"selector": {"matchLabels": {"app": "web"}}}))
    assert names(index, "shop") == []
    assert names(index, "shop", app="web") == ["web"]


def test_a_guard_that_was_removed_concerns_nobody() -> None:
    index = GuardIndex("espw")
    ref = ObjectRef("espw", *PLACEMENT_GUARDS.group_resource, "", "fleet")
    index.remove(ref)
    index.put(guard("espw", "fleet"))
    assert index.get(ref) is not None
    index.remove(ref)
    assert index.get(ref) is None
    assert not index
    assert names(index, "shop") == []


def test_a_guard_reaches_everything_from_the_provider_and_its_own_from_elsewhere() -> None:
    index = GuardIndex("espw")
    group = PLACEMENT_GUARDS.group_resource
    web = edge_placement_ref("shop", "web")
    assert index.reaches(ObjectRef("espw", *group, "", "g"), web)
    assert index.reaches(ObjectRef("shop", *group, "", "g"), web)
    assert not index.reaches(ObjectRef("blog", *group, "", "g"), web)
