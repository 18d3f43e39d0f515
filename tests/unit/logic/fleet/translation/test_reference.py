"""The rules of translation, one by one, as the reference computes them.

Everything incremental is compared with the reference; so these are the rules themselves, in the
order in which the package states them.
"""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.translation.merging import (
    KIND_WITHHELD,
    LOCATIONS_DISAGREE,
    NAME_TAKEN,
    Copy,
)
from skerry.logic.fleet.translation.ownership import Owned
from skerry.logic.fleet.translation.reference import Translation, reference
from skerry.logic.fleet.translation.reference_inputs import Sources
from tests.kit.chain.translation_objects import ANY_MAP, COMMON, Book
from tests.kit.chain.translator_world import cluster_object

A, B = Mailbox("imw", "a"), Mailbox("imw", "b")
MAPS, NAMESPACES = GroupResource("", "configmaps"), GroupResource("", "namespaces")
ROLES = GroupResource("rbac.authorization.k8s.io", "clusterroles")
PAGE, SPACE = ObjectRef("", *MAPS, "n", "page"), namespace_ref("n")
ROLE = ObjectRef("", *ROLES, "", "r")
P = edge_placement_ref("one", "p")
GO = {"matchLabels": {"go": "yes"}}
NAMED_SPACE = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
NAMED_ROLE = {"apiGroup": ROLES.group, "resources": ["clusterroles"], "resourceNames": ["r"]}


def page(cluster: str, data: str = "1", created: str = "1", **more: Any) -> Object:
    found = cluster_object(cluster, "page", "n", data={"k": data}, **more)
    found["metadata"]["creationTimestamp"] = created
    return found


def space(cluster: str, **labels: str) -> Object:
    return cluster_object(cluster, "n", labels={"go": "yes", **labels})


def placement(cluster: str = "one", name: str = "p", **spec: Any) -> Object:
    return cluster_object(cluster, name, spec={"namespaceSelector": GO, **spec})


def piece(cluster: str = "one", *ways: tuple[Mailbox, str], name: str = "p") -> Object:
    destinations = [
        {
            "cluster": mailbox.cluster,
            "locationName": location,
            "syncTargetName": "t",
            "syncTargetUID": mailbox.uid,
        }
        for mailbox, location in ways or ((A, "florin"),)
    ]
    return cluster_object(cluster, name, destinations=destinations)


def translated(
    objects: dict[str, dict[GroupResource, list[Object]]] | None = None, **more: Any
) -> Translation:
    found = objects or {"one": {NAMESPACES: [space("one")], MAPS: [page("one")]}}
    inputs = {"placements": [placement()], "slices": [piece()], **more}
    return reference(Sources(COMMON, found, **inputs))


def reasons(result: Translation, cluster: str = "one") -> list[str]:
    found = result.problems.get(edge_placement_ref(cluster, "p"), set())
    return sorted(problem.reason for _, problem in found)


def test_an_object_goes_where_its_namespace_is_selected_and_a_destination_leads() -> None:
    assert set(translated().contents[A]) == {SPACE, PAGE}
    nowhere = translated(placements=[placement(namespaceSelector={"matchLabels": {"a": "b"}})])
    assert nowhere.contents.get(A, {}) == {}
    assert A not in translated(slices=[]).contents
    both = translated(slices=[piece("one", (A, "florin"), (B, "guilder"))])
    assert set(both.contents[A]) == set(both.contents[B])


def test_a_cluster_scoped_object_goes_when_it_is_named() -> None:
    objects = {"one": {ROLES: [cluster_object("one", "r"), cluster_object("one", "other")]}}
    assert translated(objects).contents.get(A, {}) == {}
    named = translated(objects, placements=[placement(nonNamespacedObjects=[NAMED_ROLE])])
    assert set(named.contents[A]) == {ROLE}


def test_a_selected_namespace_has_its_labels_only_when_it_is_named_too() -> None:
    bare = translated().contents[A][SPACE]
    assert "go" not in (bare["metadata"].get("labels") or {})
    named = translated(placements=[placement(nonNamespacedObjects=[NAMED_SPACE])])
    assert named.contents[A][SPACE]["metadata"]["labels"]["go"] == "yes"


def test_a_namespace_that_is_only_named_does_not_go() -> None:
    only = placement(
        namespaceSelector={"matchLabels": {"a": "b"}}, nonNamespacedObjects=[NAMED_SPACE]
    )
    assert translated(placements=[only]).contents.get(A, {}) == {}


def two(first: str = "1", second: str = "2", **more: Any) -> Translation:
    objects = {
        name: {NAMESPACES: [space(name)], MAPS: [page(name, data, created)]}
        for name, data, created in (("one", "mine", first), ("two", "theirs", second))
    }
    return translated(
        objects,
        placements=[placement("one"), placement("two")],
        slices=[piece("one"), piece("two")],
        **more,
    )


@pytest.mark.parametrize(
    ("first", "second", "data", "loser"), [("1", "2", "mine", "two"), ("2", "1", "theirs", "one")]
)
def test_of_several_workspaces_the_first_counts_and_the_others_hear_of_it(
    first: str, second: str, data: str, loser: str
) -> None:
    result = two(first, second)
    assert result.contents[A][PAGE]["data"] == {"k": data}
    assert reasons(result, loser) == [NAME_TAKEN]
    assert reasons(result, "two" if loser == "one" else "one") == []


def test_whose_a_copy_is_recorded_to_be_keeps_the_name_whoever_is_older() -> None:
    copies = {A: {PAGE: Copy(b"other", Owned("two"))}}
    result = two("1", "2", copies=copies)
    assert result.contents[A][PAGE]["data"] == {"k": "theirs"}
    assert reasons(result, "one") == [NAME_TAKEN]


def test_by_several_locations_an_object_is_customized_for_the_first_by_name() -> None:
    notes = {"edge.kcp.io/expand-parameters": "true"}
    objects = {"one": {NAMESPACES: [space("one")], MAPS: [page("one", "%(env)", notes=notes)]}}
    locations = [cluster_object("imw", name, labels={"env": name}) for name in ("b", "a")]
    slices = [piece("one", (A, "b"), (A, "a"))]
    result = translated(objects, slices=slices, locations=locations)
    assert result.contents[A][PAGE]["data"] == {"k": "a"}
    assert reasons(result) == [LOCATIONS_DISAGREE]


def test_what_cannot_be_customized_is_withheld_and_sent_where_that_is_wanted() -> None:
    notes = {"edge.kcp.io/customizer": "missing"}
    objects = {"one": {NAMESPACES: [space("one")], MAPS: [page("one", notes=notes)]}}
    strict = translated(objects)
    assert PAGE not in strict.contents[A]
    assert reasons(strict) == ["CustomizerNotFound"]
    assert PAGE in translated(objects, strict=False).contents[A]


def test_what_would_act_on_a_hub_is_withheld_where_copies_are_not_inert() -> None:
    objects = {"one": {ROLES: [cluster_object("one", "r")]}}
    placements = [placement(nonNamespacedObjects=[NAMED_ROLE])]
    result = translated(objects, placements=placements, withhold_denatured=True)
    assert result.contents.get(A, {}) == {}
    assert reasons(result) == [KIND_WITHHELD]


def test_a_mailbox_of_a_malformed_placement_is_held() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}
    result = translated(placements=[placement(namespaceSelector=wrong)])
    assert result.held == {A}
    assert translated().held == frozenset()


def test_what_is_being_deleted_or_a_copy_itself_is_no_source() -> None:
    going = page("one")
    going["metadata"]["deletionTimestamp"] = "now"
    copy = page("one", labels={"edge.kcp.io/projected": "yes"})
    for obj in (going, copy):
        objects = {"one": {NAMESPACES: [space("one")], MAPS: [obj]}}
        assert set(translated(objects).contents[A]) == {SPACE}


def test_nothing_comes_in_that_no_grant_covers_and_what_is_there_is_frozen() -> None:
    book = Book()
    book.mode = "Enforce"
    copies = {A: {PAGE: Copy(b"old", None)}}
    result = translated(consent=book, copies=copies)
    assert PAGE not in result.contents.get(A, {})
    assert PAGE in result.frozen[A]
    book.granted = [ANY_MAP]
    result = translated(consent=book, copies=copies)
    assert PAGE in result.contents[A]
    assert PAGE not in result.frozen.get(A, set())


def test_a_syncer_config_names_the_namespaces_and_kinds_that_go() -> None:
    scope = translated().configs[A]["namespaceScope"]
    assert scope["namespaces"] == ["n"]
    assert "configmaps" in {each["resource"] for each in scope["resources"]}
