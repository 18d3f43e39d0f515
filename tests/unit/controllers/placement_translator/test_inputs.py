"""What is kept of a kind is what the tables read."""

from __future__ import annotations

from skerry.controllers.placement_translator.inputs import lean_revision, lean_rollout
from tests.kit.chain.translator_world import cluster_object


def test_of_a_rollout_remains_what_settles_and_what_it_names() -> None:
    spec = {"settle": {"quiet": "1s"}, "waves": [1], "force": {"revision": 2}}
    status = {"target": 3, "stable": 2, "verdicts": {"good": "x"}, "phase": "Soaking"}
    found = lean_rollout(cluster_object("c", "web", spec=spec, status=status))
    assert found["spec"] == {"settle": {"quiet": "1s"}, "force": {"revision": 2}}
    assert found["status"] == {"target": 3, "stable": 2}


def test_of_a_revision_remains_all_but_who_wrote_it() -> None:
    obj = cluster_object("c", "web-1", spec={"number": 1})
    obj["metadata"]["managedFields"] = [{}]
    found = lean_revision(obj)
    assert found["spec"] == {"number": 1}
    assert "managedFields" not in found["metadata"]
