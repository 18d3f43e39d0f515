"""What is observed of Rollouts: revisions, when they cannot be taken back, and gates of waves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from skerry.api.edge import ROLLOUTS, SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observe import BY_PLACEMENT
from skerry.controllers.edge_scheduler.observed import Observed, ObservedRollout, Result
from skerry.controllers.edge_scheduler.rollout_plan import wishes_of
from skerry.controllers.edge_scheduler.rollouts import (
    RolloutInformers,
    RolloutState,
    is_one_way,
    lean_revision,
    revision_owners,
)
from skerry.logic.fleet.revision.manifest import Inputs
from skerry.logic.fleet.revision.objects import read_page, revision_name
from skerry.logic.fleet.rollout.clocks import Elapsed
from skerry.logic.fleet.rollout.state import Gate, Wishes
from skerry.runtime.index import Index, Key
from skerry.runtime.informer import Informer

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WEB = edge_placement_ref("c", "web")
Handler = Callable[[Object | None, Object | None], None]


class Held:
    """Stands in for an informer: an index that a test fills, and handlers of its changes."""

    gvr = ROLLOUTS
    resource_version = 0

    def __init__(self, *objects: Object) -> None:
        self.index = Index()
        self.index.add_index(BY_PLACEMENT, revision_owners)
        self.handlers: list[Handler] = []
        for obj in objects:
            self.put(obj)

    def add_handler(self, handler: Handler) -> None:
        self.handlers.append(handler)

    def put(self, obj: Object) -> None:
        old = self.index.put(Key("c", "", obj["metadata"]["name"]), obj)
        for handler in self.handlers:
            handler(old, obj)


def named(name: str, cluster: str = "c", **more: Any) -> Object:
    return {"metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}}, **more}


class Town:
    """A placement with a Rollout, and what the scheduler has read of it."""

    def __init__(self, rollout: Object, *revisions: Object, queries: Held | None = None) -> None:
        self.rollouts, self.revisions = Held(rollout), Held(*map(lean_revision, revisions))
        self.approvals, self.queries = Held(), queries
        informers = RolloutInformers(
            cast("Informer", self.rollouts),
            cast("Informer", self.revisions),
            cast("Informer", self.approvals),
            cast("Informer | None", queries),
        )
        elapsed = Elapsed(lambda: NOW, lambda: 0.0)
        self.state = RolloutState(informers, elapsed, lambda: NOW, lambda _: {}, lambda _: None)

    def observe(self) -> ObservedRollout:
        found = self.state.observe(Observed(WEB, SliceOwner("web", "u"), Result(1)))
        assert found is not None
        return found


def item(name: str, digest: str, **more: Any) -> Object:
    found = {"group": "", "resource": "configmaps", "namespace": "shop", "name": name}
    return {**found, "digest": digest, **more}


def revision(*items: Object, number: int = 2, page: int = 1, of: int = 1) -> Object:
    return {
        "metadata": {
            "name": revision_name("web", number, page),
            "annotations": {"kcp.io/cluster": "c", "edge.kcp.io/cut-sequence": "7"},
            "managedFields": [1],
        },
        "spec": {
            "placement": "web",
            "number": number,
            "digest": "ab",
            "items": list(items),
            "inputs": {"what": "00"},
            "page": {"number": page, "of": of},
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


@pytest.mark.parametrize("page", [1, 2, 3])
def test_an_object_that_must_not_be_rolled_back_binds_on_whatever_page_it_is(page: int) -> None:
    pages = [
        revision(*([item("job", "02", noRollback=True)] if n == page else []), page=n, of=3)
        for n in (1, 2, 3)
    ]
    first = revision(item("a", "01"), number=1)
    found = Town(named("web", spec={}, status={"stable": 1}), first, *pages).observe()
    assert (found.revisions[1].one_way, found.revisions[2].one_way) == (False, True)


def test_an_object_that_moves_to_another_page_has_not_changed() -> None:
    job = item("job", "01", noRollback=True)
    first = [revision(number=1, page=1, of=2), revision(job, number=1, page=2, of=2)]
    found = Town(named("web", spec={}, status={"stable": 1}), *first, revision(job)).observe()
    assert not found.revisions[2].one_way


def test_a_revision_that_lacks_a_page_may_hold_what_binds() -> None:
    found = Town(named("web", spec={}), revision(number=1), revision(page=1, of=2)).observe()
    assert (found.revisions[1].one_way, found.revisions[2].one_way) == (False, True)


def test_a_placement_without_a_rollout_has_nothing_to_observe() -> None:
    town = Town(named("other", spec={}))
    assert town.state.observe(Observed(WEB, SliceOwner("web", "u"), Result(1))) is None
    assert town.state.orphaned(WEB) == ()


def query(
    complete: str = "True", whole: str = "True", answered: int = 3, rate: object = 0.0
) -> Object:
    """A query whose third spec is answered by one row of one column, ``rate``."""
    conditions = {"Complete": complete, "WithinLimits": whole}
    status = {
        "observedGeneration": answered,
        "columns": [{"name": "rate", "type": "double"}],
        "rows": [{"values": [rate]}],
        "conditions": [{"type": name, "status": said} for name, said in conditions.items()],
    }
    found = named("errors", status=status)
    found["metadata"]["generation"] = 3
    return found


CHECK = {"checks": [{"query": "errors", "holds": "rows.all(r, r.rate < 0.01)"}]}


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        (None, "QueryMissing"),
        (Held(), "QueryMissing"),
        (Held(named("errors")), "QueryIncomplete"),
        (Held(query(complete="False")), "QueryIncomplete"),
        (Held(query(whole="False")), "QueryIncomplete"),
        (Held(query(answered=2)), "QueryIncomplete"),
        (Held(query(rate=0.5)), "CheckFailed"),
        (Held(query()), ""),
    ],
)
def test_a_gate_is_closed_until_its_query_is_complete_and_holds(
    queries: Held | None, reason: str
) -> None:
    gate = Town(named("web", spec={"judge": CHECK}), queries=queries).observe().gate
    assert (gate.holds, gate.reason) == (not reason, reason)


def test_a_check_that_cannot_be_evaluated_closes_the_gate_and_says_why() -> None:
    broken = Held(query(rate="high"))
    gate = Town(named("web", spec={"judge": CHECK}), queries=broken).observe().gate
    assert (gate.holds, gate.reason) == (False, "CheckFailed")
    assert gate.message.startswith("StatusQuery errors: ")


@pytest.mark.parametrize(
    ("status", "gate"),
    [
        ("", Gate(False, "ExternalCheck", "condition smoke is absent")),
        ("Unknown", Gate(False, "ExternalCheck", "condition smoke is Unknown")),
        ("True", Gate()),
    ],
)
def test_a_condition_that_others_write_must_be_true(status: str, gate: Gate) -> None:
    found = [{"type": "smoke", "status": status}] if status else []
    rollout = named("web", spec={"judge": {"external": ["smoke"]}}, status={"conditions": found})
    assert Town(rollout).observe().gate == gate


def test_what_changes_enqueues_the_placements_it_is_about() -> None:
    queries = Held()
    town = Town(named("web", spec={"judge": CHECK}), queries=queries)
    town.rollouts.put(named("shop", spec={"judge": {}}))
    asked: list[tuple[ObjectRef, str]] = []
    town.state.changed(lambda ref, kind, _: asked.append((ref, kind)))
    town.revisions.put(lean_revision(revision()))
    town.approvals.put(named("web-2-early", spec={"rollout": "web"}))
    town.rollouts.put(named("shop", spec={"placement": "misleading"}))
    queries.put(query())
    queries.put(named("errors", "elsewhere"))
    queries.put(named("another"))
    assert asked == [
        (WEB, "PlacementRevision"),
        (WEB, "RolloutApproval"),
        (edge_placement_ref("c", "shop"), "Rollout"),
        (WEB, "Rollout"),
    ]
