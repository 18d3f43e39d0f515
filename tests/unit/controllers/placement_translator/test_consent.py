"""Grants: what a change concerns, and what is known before everything was read."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import LOCATION_CONSENT_NAME, Mailbox, location_ref
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.controllers.placement_translator.consent import GrantedPlaces
from skerry.logic.fleet.translation.workspaces import GRANTS
from tests.kit.chain.translator_world import (
    CONFIG_MAPS,
    NAMESPACES,
    A,
    World,
    cluster_object,
)

FLORIN = location_ref("imw", "florin")


def _location(name: str = "florin", **more: Any) -> Object:
    return cluster_object("imw", name, spec={"instanceSelector": {}}, **more)


def _target(uid: str = A.uid) -> Object:
    found = cluster_object("imw", "t")
    found["metadata"]["uid"] = uid
    return found


def _workspace(cluster: ClusterName, name: str) -> Object:
    return cluster_object("root", name, spec={"cluster": cluster})


def _grant(mode: str = "Enforce", **more: Any) -> Object:
    rule = {"apiGroups": [""], "resources": ["configmaps"]}
    spec = {
        "mode": mode,
        "workspaces": {"paths": ["root:bank"]},
        "locations": {"selector": {}},
        "rules": [rule],
    }
    return cluster_object("imw", "g", spec={**spec, **more})


@pytest.fixture
def places() -> GrantedPlaces:
    found = GrantedPlaces()
    found.begin([_location()], ["one"])
    found.workspace_changed(None, _workspace("one", "bank"))
    found.sync_target_changed(None, _target())
    return found


def test_until_there_is_a_grant_nothing_is_kept_and_nothing_waited_for() -> None:
    places = GrantedPlaces()
    assert not places.is_used
    assert places.location_changed(None, _location()) == []
    assert not places.governs(A)
    assert places.scopes(A) == ()


def test_only_mailboxes_whose_inventory_has_grants_wait_for_what_they_depend_on(
    places: GrantedPlaces,
) -> None:
    places.grant_changed(None, _grant())
    assert places.scopes(A) == (GRANTS,)
    assert places.scopes(Mailbox("elsewhere", A.uid)) == ()


def test_a_grant_concerns_its_locations_and_the_sources_it_admits(places: GrantedPlaces) -> None:
    concerned = places.grant_changed(None, _grant())
    assert [location for location, _ in concerned] == [FLORIN]
    [rule] = places.rules("one", FLORIN, A)
    assert rule.covers(CONFIG_MAPS, namespaced=True)
    assert places.is_enforced("imw")
    assert places.rules("two", FLORIN, A) == ()
    assert places.grant_changed(_grant(), None)
    assert places.rules("one", FLORIN, A) == ()


def test_a_location_counts_only_for_its_own_instances(places: GrantedPlaces) -> None:
    places.grant_changed(None, _grant())
    assert places.rules("one", FLORIN, Mailbox("imw", "another")) == ()
    assert places.rules("one", location_ref("imw", "unknown"), A) == ()
    assert places.sync_target_changed(_target(), None) == [(FLORIN, None)]
    assert places.rules("one", FLORIN, A) == ()


def test_a_location_that_goes_concerns_everybody_there(places: GrantedPlaces) -> None:
    places.grant_changed(None, _grant())
    assert places.location_changed(_location(), _location()) == []
    assert places.location_changed(_location(), None) == [(FLORIN, None)]
    assert places.location_changed(_location(), None) == []


def test_of_what_is_no_object_nothing_follows(places: GrantedPlaces) -> None:
    for handler in (
        places.grant_changed,
        places.consent_changed,
        places.workspace_changed,
        places.location_changed,
        places.sync_target_changed,
    ):
        assert handler(None, None) == []


def test_the_first_grant_follows_what_grants_depend_on_once_and_rows_wait_for_it() -> None:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    world.put(CONFIG_MAPS, cluster_object("one", "x", "n", data={"k": "1"}))
    go = {"matchLabels": {"go": "yes"}}
    world.slice(world.place("one", "p", namespaceSelector=go), (A, "florin"))
    world.handlers.grant_changed(None, _grant())
    world.handlers.grant_changed(_grant(), _grant(mode="Observe"))
    world.handlers.grant_changed(None, _grant())
    assert world.grants_followed == 1
    assert world.reconcile() == []
    assert world.tables.dirty.waits(A)
    world.locations[FLORIN] = _location()
    world.handlers.location_changed(None, _location())
    world.handlers.granted_workspace_changed(None, _workspace("one", "bank"))
    world.handlers.sync_target_changed(None, _target())
    world.handlers.grants_read()
    world.reconcile()
    assert {item.name for item in world.copies(A)} == {"n", "x"}


def test_who_refuses_is_named_when_it_is_one_and_counted_when_it_is_several(
    places: GrantedPlaces,
) -> None:
    places.workspace_changed(None, _workspace("imw", "inventory"))
    places.grant_changed(None, _grant())
    assert places.refusing(A.cluster) == "root:inventory/g"
    other = _grant()
    other["metadata"]["name"] = "h"
    places.grant_changed(None, other)
    assert places.refusing(A.cluster) == "any grant of root:inventory"
    observing = _grant(mode="Observe")
    observing["metadata"]["name"] = "h"
    places.grant_changed(other, observing)
    assert places.refusing(A.cluster) == "root:inventory/g", "only those count that enforce"


def test_a_workspace_that_is_gone_is_granted_nothing(places: GrantedPlaces) -> None:
    places.grant_changed(None, _grant())
    assert places.rules("one", FLORIN, A)
    assert places.workspace_changed(_workspace("one", "bank"), None)
    assert not places.rules("one", FLORIN, A)


def test_workspaces_come_to_be_sources_and_cease_to_be(places: GrantedPlaces) -> None:
    places.grant_changed(None, _grant())
    places.workspace_changed(None, _workspace("two", "shop"))
    places.source_added("two")
    granted = places.grant_changed(None, _grant(workspaces={"paths": ["root:shop"]}))
    assert [location for location, _ in granted] == [FLORIN]
    assert places.rules("two", FLORIN, A)
    places.source_removed("two")
    assert not places.rules("two", FLORIN, A)


def test_what_was_enforced_stays_enforced_when_the_last_grant_is_deleted(
    places: GrantedPlaces,
) -> None:
    places.grant_changed(None, _grant())
    record = cluster_object("imw", LOCATION_CONSENT_NAME, mode="Enforce")
    places.consent_changed(None, record)
    places.grant_changed(_grant(), None)
    assert places.is_enforced("imw")
    places.consent_changed(record, None)
    assert not places.is_enforced("imw")
    assert places.consent_changed(None, cluster_object("imw", "another")) == []


def test_locations_being_deleted_are_not_followed() -> None:
    places = GrantedPlaces()
    going = _location()
    going["metadata"]["deletionTimestamp"] = "now"
    places.begin([going], ["one"])
    places.workspace_changed(None, _workspace("one", "bank"))
    places.sync_target_changed(None, _target())
    places.grant_changed(None, _grant())
    assert places.rules("one", FLORIN, A) == ()


def _enforced() -> World:
    """A page that goes to florin, whose workspace is enforced though it has no grant."""
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    world.put(CONFIG_MAPS, cluster_object("one", "x", "n", data={"k": "1"}))
    go = {"matchLabels": {"go": "yes"}}
    world.slice(world.place("one", "p", namespaceSelector=go), (A, "florin"))
    world.locations[FLORIN] = _location()
    world.handlers.location_changed(None, _location())
    consent = cluster_object("imw", LOCATION_CONSENT_NAME)
    world.handlers.consent_changed(None, {**consent, "mode": "Enforce"})
    world.handlers.granted_workspace_changed(None, _workspace("one", "bank"))
    world.handlers.sync_target_changed(None, _target())
    return world


def test_a_consent_that_enforces_refuses_without_any_grant() -> None:
    world = _enforced()
    assert world.grants_followed == 1
    assert world.reconcile() == [], "a grant may be on its way"
    world.handlers.grants_read()
    world.reconcile()
    assert "x" not in {item.name for item in world.copies(A)}
    world.handlers.grant_changed(None, _grant(workspaces={"paths": ["root:bank"]}))
    world.reconcile()
    assert "x" in {item.name for item in world.copies(A)}


def test_who_refuses_is_reported_anew_when_another_does() -> None:
    world = _enforced()
    world.handlers.grants_read()
    world.reconcile()
    before = list(world.reports)
    other = _grant(workspaces={"paths": ["root:other"]})
    world.handlers.grant_changed(None, other)
    world.reconcile()
    assert "x" not in {item.name for item in world.copies(A)}
    assert world.queue == set()
    assert world.reports[: len(before)] == before
