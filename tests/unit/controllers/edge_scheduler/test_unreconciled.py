"""Reports wait for whoever may hold something there and was not reconciled, and for nobody else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skerry.api.edge import SliceOwner, edge_placement_ref, location_grant_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.observed import Observed, Result
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.controllers.edge_scheduler.unreconciled import Unreconciled
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import location_of, placement_of
from tests.kit.chain import building

NOW = datetime(2025, 6, 6, tzinfo=UTC)
P, Q = edge_placement_ref("bank", "p"), edge_placement_ref("bank", "q")
GRANTED = edge_placement_ref("shop", "p")
EVERYTHING: dict[str, object] = {}


def always(_: ObjectRef) -> bool:
    return True


class Fleet:
    """Two inventory workspaces that let root:shop place; each has one Location in its region."""

    def __init__(self, mode: str = "Enforce") -> None:
        self.index = DestinationTable()
        for name in ("imw", "other", "bank", "shop"):
            self.index.put_workspace(name, {}, workspace_ref("root", name))
        for cluster in ("imw", "other"):
            raw = {
                "name": "l",
                "labels": {"region": cluster},
                "annotations": {"kcp.io/cluster": cluster},
            }
            self.index.put_location(location_of({"metadata": raw, "spec": {}}))
            self.grant(cluster, mode, "root:shop")
        self.unreconciled = Unreconciled(self.index)

    def grant(self, cluster: str, mode: str, *paths: str) -> None:
        obj = building.grant("g", mode=mode, paths=list(paths), selector={})
        obj["metadata"]["annotations"] = {"kcp.io/cluster": cluster}
        self.index.put_grant(grant_of(obj))

    def place(self, ref: ObjectRef, selector: dict[str, object] = EVERYTHING) -> None:
        metadata = {"name": ref.name, "annotations": {"kcp.io/cluster": ref.cluster}}
        spec = {"locationSelectors": [selector]}
        self.index.put_placement(placement_of({"metadata": metadata, "spec": spec}))

    def waits(self, inventory: str = "imw") -> bool:
        return self.unreconciled.waits(inventory, always)


@pytest.mark.parametrize("mode", ["Enforce", "Observe"])
def test_a_report_waits_for_each_placement_that_is_refused_there(mode: str) -> None:
    fleet = Fleet(mode)
    fleet.place(P)
    fleet.place(Q)
    assert fleet.waits()
    enqueued = fleet.unreconciled.reconciled(P) | fleet.unreconciled.reconciled(Q)
    assert enqueued == {"imw"}
    assert not fleet.waits()
    assert fleet.unreconciled.reconciled(P) == set(), "it waited once"


def test_whoever_was_reconciled_before_the_first_report_is_not_waited_for() -> None:
    fleet = Fleet()
    fleet.place(P)
    fleet.unreconciled.reconciled(P)
    assert not fleet.waits()


def test_nobody_waits_for_who_is_granted_or_refused_elsewhere() -> None:
    fleet = Fleet()
    fleet.place(GRANTED)
    fleet.place(P, {"matchLabels": {"region": "other"}})
    assert not fleet.waits("imw")
    assert fleet.waits("other")


def test_who_is_granted_meanwhile_or_selects_elsewhere_is_not_waited_for_any_more() -> None:
    fleet = Fleet()
    fleet.place(P)
    assert fleet.waits()
    fleet.place(P, {"matchLabels": {"region": "other"}})
    assert not fleet.waits("imw")
    assert fleet.waits("other")
    fleet.grant("other", "Enforce", "root:bank")
    assert not fleet.waits("other")
    fleet.index.remove_grant(location_grant_ref("other", "g"))
    assert not fleet.waits("other"), "it is open"


def test_a_placement_that_is_gone_lets_reports_go_on_and_its_namesake_is_another() -> None:
    fleet = Fleet()
    fleet.place(P)
    fleet.unreconciled.reconciled(P)
    fleet.unreconciled.forget(P)
    assert fleet.waits(), "one is there again by that name"
    assert fleet.unreconciled.forget(P) == {"imw"}
    assert not fleet.waits()


def test_who_is_never_reconciled_is_left_out_as_of_now() -> None:
    fleet = Fleet()
    fleet.place(P)
    assert not fleet.unreconciled.waits("imw", lambda _: False)
    assert fleet.waits()


def test_whoever_leads_again_waits_again() -> None:
    fleet = Fleet()
    fleet.place(P)
    fleet.unreconciled.reconciled(P)
    assert not fleet.waits()
    fleet.unreconciled.begin()
    assert fleet.waits()
    fleet.unreconciled.begin()
    assert fleet.unreconciled.reconciled(P) == set(), "its reports are enqueued by the start"


def test_who_is_passed_over_is_waited_for_again_once_it_may_be_reconciled() -> None:
    fleet = Fleet()
    fleet.place(P)
    assert fleet.waits()
    assert fleet.unreconciled.abandoned(P) == {"imw"}
    assert fleet.unreconciled.abandoned(P) == set(), "it waited once"
    assert fleet.waits(), "corrected meanwhile, it is about to be reconciled"
    assert fleet.unreconciled.reconciled(P) == {"imw"}


class Reports:
    """A cache whose reports of inventory workspaces are enqueued here."""

    def __init__(self, fleet: Fleet) -> None:
        self.enqueued: list[str] = []
        self.state = ConsentState(fleet.index, lambda key: self.enqueued.append(key.cluster))
        self.cache = PlacementCache(self.state, GuardState(fleet.index, lambda: NOW))

    def waits(self) -> bool:
        return self.state.unreconciled.waits("imw", always)


def observed(ref: ObjectRef, *errors: str) -> Observed:
    return Observed(ref, SliceOwner(ref.name, "u"), Result(1, errors=errors))


def test_a_report_goes_on_when_whom_it_waits_for_becomes_invalid() -> None:
    fleet = Fleet()
    fleet.place(P)
    reports = Reports(fleet)
    assert reports.waits()
    fleet.place(P, {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]})
    reports.cache.found(observed(P, "operator: Nonsense"))
    assert reports.enqueued == ["imw"]
    assert not reports.waits()
    fleet.place(P)
    assert reports.waits(), "corrected, it is refused again"


def test_a_report_goes_on_when_whom_it_waits_for_is_being_deleted_and_kept() -> None:
    fleet = Fleet()
    fleet.place(P)
    by_guards, by_others = Reports(fleet), Reports(fleet)
    assert by_guards.waits()
    assert by_others.waits()
    by_guards.cache.found(observed(P))
    by_others.cache.pass_over(P)
    assert by_guards.enqueued == by_others.enqueued == ["imw"]


def test_nothing_found_before_there_are_grants_counts_as_no_reconcile() -> None:
    fleet = Fleet()
    fleet.place(P)
    reports = Reports(fleet)
    reports.cache.found(observed(P))
    assert reports.waits(), "what the first grant refuses has not been found yet"
