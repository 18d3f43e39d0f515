"""What is kept of a PlacementRevision, and when it cannot be taken back."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.rollout_plan import wishes_of
from skerry.controllers.edge_scheduler.rollouts import is_one_way, lean_revision, revision_owners
from skerry.logic.fleet.revision.manifest import Inputs
from skerry.logic.fleet.revision.objects import read_page
from skerry.logic.fleet.rollout.state import Wishes


def item(name: str, digest: str, **more: Any) -> Object:
    found = {"group": "", "resource": "configmaps", "namespace": "shop", "name": name}
    return {**found, "digest": digest, **more}


def revision(*items: Object) -> Object:
    return {
        "metadata": {
            "name": "web-2",
            "annotations": {"kcp.io/cluster": "c", "edge.kcp.io/cut-sequence": "7"},
            "managedFields": [1],
        },
        "spec": {
            "placement": "web",
            "number": 2,
            "digest": "ab",
            "items": list(items),
            "inputs": {"what": "00"},
            "page": {"number": 1, "of": 1},
        },
    }


def test_a_lean_revision_reads_like_the_whole_one_but_for_its_items() -> None:
    whole = revision(item("a", "01"), item("b", "02", noRollback=True))
    lean = lean_revision(whole)
    assert read_page(lean)._replace(items=(), inputs=Inputs("")) == read_page(whole)._replace(
        items=(), inputs=Inputs(""), verdict="Candidate"
    )
    assert len(lean["binding"]) == 1
    assert revision_owners(lean) == (("c", "web"),)


def test_a_changed_object_that_must_not_be_rolled_back_binds() -> None:
    base = lean_revision(revision(item("b", "01", noRollback=True)))["binding"]
    same = lean_revision(revision(item("a", "09"), item("b", "01", noRollback=True)))["binding"]
    other = lean_revision(revision(item("b", "02", noRollback=True)))["binding"]
    assert not is_one_way(same, base)
    assert is_one_way(other, base)
    assert is_one_way(other, [])


def test_another_storage_version_of_a_definition_binds() -> None:
    base = lean_revision(revision(item("crd", "01", storageVersion="v1")))["binding"]
    same = lean_revision(revision(item("crd", "02", storageVersion="v1")))["binding"]
    other = lean_revision(revision(item("crd", "02", storageVersion="v2")))["binding"]
    assert not is_one_way(same, base)
    assert is_one_way(other, base)


def test_what_an_item_may_leave_out_counts_as_empty() -> None:
    short = {"resource": "namespaces", "name": "shop", "digest": "01", "noRollback": True}
    assert lean_revision(revision(short))["binding"] == [
        ["", "namespaces", "", "shop", "01", "", True]
    ]


def test_malformed_wishes_ask_for_nothing() -> None:
    def wished(**notes: str) -> Wishes:
        annotations = {f"edge.kcp.io/{key}": value for key, value in notes.items()}
        return wishes_of({"metadata": {"name": "web", "annotations": annotations}})

    assert wished(abort="42", accept="42@3", undo="40@42") == Wishes("", 42, (42, 3), (40, 42))
    assert wished(abort="-1", accept="x", undo="40@") == Wishes(undo=(40, 0))
    assert wished(abort="9" * 40, accept="²@1") == Wishes(accept=(0, 1))
