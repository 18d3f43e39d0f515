"""Rollouts, queries and decisions are pushed to who may see them, and to nobody else."""

from __future__ import annotations

import pytest

from skerry.api.edge import ROLLOUTS
from skerry.api.errors import Forbidden, NotFound
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.console.decided import rollout_shown
from skerry.web.decided_view import DecidedView, ObjectsView, ObjectView
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import slice_of


def rollout(cluster: str, name: str, phase: str = "Progressing") -> dict[str, object]:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}}
    return {"metadata": metadata, "status": {"phase": phase}}


def town() -> Town:
    found = Town()
    for cluster, name in (("b", "secret"), ("a", "web"), ("a", "api")):
        found.feed.objects[ROLLOUTS].put(rollout(cluster, name))
    found.grant(ALICE, "a", "rollouts", "edgeplacements")
    return found


def names(place: Town, **view: str) -> list[str]:
    rows = place.feed.objects[ROLLOUTS]
    shown = ObjectsView(rows, ROLLOUTS, place.eyes, ALICE, view).content()
    assert shown["total"] == len(shown["objects"])
    return [f"{each['ws']}/{each['name']}" for each in shown["objects"]]


def test_objects_are_listed_by_workspace_and_name_as_far_as_they_may_be_seen() -> None:
    place = town()
    assert names(place) == ["root:a/api", "root:a/web"]
    assert names(place, ws="root:a") == ["root:a/api", "root:a/web"]
    with pytest.raises(Forbidden, match="list rollouts"):
        names(place, ws="root:b")
    place.revoke(ALICE, "a")
    assert names(place) == []


def test_a_change_is_a_patch_of_what_differs() -> None:
    place = town()
    rows = place.feed.objects[ROLLOUTS]
    view = ObjectsView(rows, ROLLOUTS, place.eyes, ALICE, {})
    version, before = view.version(), view.content()
    rows.put(rollout("a", "web", "Completed"))
    assert view.version() != version
    patch = view.patch(before, view.content())
    assert [each["phase"] for each in patch["objects"]] == ["Progressing", "Completed"]
    assert "total" not in patch


def test_one_object_is_shown_to_who_may_see_it() -> None:
    place = town()
    view = {"ws": "root:a", "name": "web"}
    with pytest.raises(NotFound, match="no rollouts 'web'"):
        ObjectView(place.feed, ROLLOUTS, rollout_shown, place.eyes, ALICE, view).content()
    with pytest.raises(Forbidden):
        ObjectView(place.feed, ROLLOUTS, rollout_shown, place.eyes, BOB, view).content()


def test_one_object_changes_with_itself_and_not_with_others() -> None:
    place = town()
    view = {"ws": "root:a", "name": "web"}
    shown = ObjectView(place.feed, ROLLOUTS, rollout_shown, place.eyes, ALICE, view)
    version = shown.version()
    place.feed.objects[ROLLOUTS].put(rollout("a", "api", "Completed"))
    assert shown.version() == version
    place.feed.objects[ROLLOUTS].put(rollout("a", "web", "Completed"))
    assert shown.version() != version


def test_a_decision_about_a_placement_is_noticed_by_who_may_see_it() -> None:
    place = town()
    view = DecidedView(place.feed, place.eyes, ALICE, {"ws": "root:a", "name": "web"})
    seen = [view.content()["decided"]]
    place.feed.edges.put_slice(slice_of("a", "s-1", "web", [("inv", "north")]))
    seen.append(view.content()["decided"])
    place.feed.edges.put_slice(slice_of("a", "s-2", "other", [("inv", "north")]))
    assert view.content()["decided"] == seen[-1]
    place.feed.edges.put_slice(slice_of("a", "s-1", "web", []))
    seen.append(view.content()["decided"])
    place.feed.edges.remove_slice(slice_of("a", "s-1", "web", []))
    seen.append(view.content()["decided"])
    assert len(set(seen[:3])) == 3
    assert seen[3] == 0
    with pytest.raises(Forbidden):
        DecidedView(place.feed, place.eyes, BOB, {"ws": "root:a", "name": "web"}).content()
