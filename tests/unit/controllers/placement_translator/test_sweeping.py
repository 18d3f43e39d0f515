"""What slots and Rollouts name is used, and deletions are of exactly what was listed."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.controllers.placement_translator.sweeping import sweep_actions, used_numbers
from skerry.logic.fleet.revision.retention import SweepPlan
from skerry.logic.machinery.plan import Delete
from tests.kit.chain.revisions import manifest, pages
from tests.kit.chain.translator_world import cluster_object


def test_slots_and_everything_a_rollout_says_name_revisions() -> None:
    piece = cluster_object("c", "web", destinations=[{"revision": 4}, {"revision": 5}, {}])
    more = cluster_object("c", "web-2", destinations=[{"revision": 9}])
    more["metadata"]["labels"] = {"edge.kcp.io/source-placement": "web"}
    rollout: Object = {
        "spec": {"force": {"revision": 2}},
        "status": {"target": 7, "stable": 6, "failure": {"revision": 3}},
    }
    other = cluster_object("c", "new", spec={}, status={})
    found = used_numbers([piece, more], [cluster_object("c", "web", **rollout), other])
    assert found == {("c", "web"): {2, 3, 4, 5, 6, 7, 9}, ("c", "new"): set()}


def test_revisions_go_before_contents_and_each_as_it_was_seen() -> None:
    [page] = pages(manifest({"a": b"1"}), 1)
    plan = SweepPlan((("c", page),), (("c", "ab"),), {})
    first, second = sweep_actions(plan, {("c", "ab"): "uid-ab"})
    assert isinstance(first, Delete)
    assert isinstance(second, Delete)
    assert (first.target.name, first.uid) == ("web-1", "uid-web-1")
    assert (second.target.name, second.uid, second.target.cluster) == ("ab", "uid-ab", "c")
