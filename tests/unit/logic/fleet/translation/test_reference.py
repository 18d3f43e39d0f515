"""The rules of translation, one by one, as the reference computes them.

Everything incremental is compared with the reference; so these are the rules themselves, in the
order in which the package states them.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox, SliceOwner, edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.revision.manifest import Inputs, Manifest, RevisionItem, customizer_ref
from skerry.logic.fleet.revision.objects import Cut, revision_objects
from skerry.logic.fleet.translation.copies import copied, digest
from skerry.logic.fleet.translation.held import bare_digest
from skerry.logic.fleet.translation.merging import (
    KIND_WITHHELD,
    LOCATIONS_DISAGREE,
    NAME_TAKEN,
    Copy,
)
from skerry.logic.fleet.translation.ownership import Owned, owned_of
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


# -- what a revision holds -------------------------------------------------------------------------

SPACE_ENTRY = RevisionItem(SPACE, bare_digest(SPACE))


def entry(digest: str = "d1", item: ObjectRef = PAGE, version: str = "7") -> RevisionItem:
    return RevisionItem(item, digest, version)


def revision(
    *items: RevisionItem, number: int = 1, name: str = "p", customizers: Any = ()
) -> list[Object]:
    found = Manifest(items, Inputs("w", tuple(customizers)))
    pages = revision_objects(SliceOwner(name, "u"), found, Cut(number, number))
    for each in pages:
        each["metadata"].setdefault("annotations", {})["kcp.io/cluster"] = "one"
    return pages


def at_revision(number: int, name: str = "p") -> Object:
    found = piece(name=name)
    found["destinations"][0]["revision"] = number
    return found


def held(digest: str, data: str, **more: Any) -> dict[tuple[str, str], Object]:
    return {("one", digest): copied(MAPS, page("one", data, **more))}


def test_a_destination_with_a_revision_gets_what_that_holds_whatever_the_workspace_has() -> None:
    fixed: dict[str, Any] = {
        "slices": [at_revision(1)],
        "revisions": revision(SPACE_ENTRY, entry()),
        "contents": held("d1", "old"),
    }
    assert translated(**fixed).contents[A][PAGE]["data"] == {"k": "old"}
    nothing = {"one": {NAMESPACES: [space("one")]}}
    assert translated(nothing, **fixed).contents[A][PAGE]["data"] == {"k": "old"}
    malformed = placement(namespaceSelector={"matchLabels": {"-": "x"}})
    still = translated(nothing, placements=[malformed], **fixed)
    assert PAGE in still.contents[A]
    assert still.held == frozenset()


def test_what_a_revision_does_not_hold_does_not_go_there() -> None:
    result = translated(slices=[at_revision(1)], revisions=revision(SPACE_ENTRY))
    assert set(result.contents[A]) == {SPACE}


def test_a_mailbox_of_a_revision_that_nobody_knows_is_held() -> None:
    result = translated(slices=[at_revision(2)], revisions=revision(SPACE_ENTRY))
    assert result.held == {A}
    assert result.contents[A] == {}


def test_of_two_revisions_of_a_workspace_the_older_object_counts() -> None:
    for first, second, data in (("5", "7", "one"), ("7", "5", "two"), ("10", "9", "two")):
        result = translated(
            placements=[placement(), placement(name="q")],
            slices=[at_revision(1), at_revision(1, "q")],
            revisions=[
                *revision(SPACE_ENTRY, entry("d1", version=first)),
                *revision(SPACE_ENTRY, entry("d2", version=second), name="q"),
            ],
            contents={**held("d1", "one"), **held("d2", "two")},
        )
        assert result.contents[A][PAGE]["data"] == {"k": data}


def test_a_revision_brings_the_customizer_it_was_cut_with() -> None:
    notes = {"edge.kcp.io/customizer": "c"}
    rule = {"replacements": [{"path": "$.data.k", "value": '"cut"'}]}
    now = {"replacements": [{"path": "$.data.k", "value": '"now"'}]}
    own = RevisionItem(customizer_ref("n", "c"), "dc")
    objects = {"one": {NAMESPACES: [space("one")], MAPS: [page("one", notes=notes)]}}
    result = translated(
        objects,
        slices=[at_revision(1)],
        revisions=revision(SPACE_ENTRY, entry(), customizers=[own]),
        contents={
            **held("d1", "old", notes=notes),
            ("one", "dc"): cluster_object("one", "c", "n", **rule),
        },
        customizers=[cluster_object("one", "c", "n", **now)],
        locations=[cluster_object("imw", "florin")],
    )
    assert result.contents[A][PAGE]["data"] == {"k": "cut"}
    live = translated(
        objects,
        customizers=[cluster_object("one", "c", "n", **now)],
        locations=[cluster_object("imw", "florin")],
    )
    assert live.contents[A][PAGE]["data"] == {"k": "now"}


# -- whose a name is -------------------------------------------------------------------------------


def test_a_copy_stays_while_nobody_knows_what_its_owner_places() -> None:
    wrong = {"matchLabels": {"-": "x"}}
    objects = {
        name: {NAMESPACES: [space(name)], MAPS: [page(name, name)]} for name in ("one", "two")
    }
    inputs: dict[str, Any] = {
        "placements": [placement(), placement("two", namespaceSelector=wrong)],
        "slices": [piece(), piece("two")],
    }
    owned = {A: {PAGE: Copy(b"other", Owned("two"))}}
    unknown = translated(objects, copies=owned, **inputs)
    assert PAGE in unknown.frozen[A]
    assert PAGE not in unknown.contents[A]
    mine = translated(objects, copies={A: {PAGE: Copy(b"other", Owned("one"))}}, **inputs)
    assert mine.contents[A][PAGE]["data"] == {"k": "one"}
    assert PAGE not in mine.frozen[A]
    without = {**objects, "two": {NAMESPACES: [space("two")]}}
    gone = translated(without, copies=owned, **inputs)
    assert gone.contents[A][PAGE]["data"] == {"k": "one"}, "the other has no such object"


def test_a_copy_whose_owner_lost_its_grant_keeps_its_name_from_those_who_have_one() -> None:
    book = Book()
    book.mode, book.granted_to = "Enforce", {"two": [ANY_MAP]}
    result = two(consent=book, copies={A: {PAGE: Copy(b"other", Owned("one"))}})
    assert PAGE not in result.contents[A]
    assert PAGE in result.frozen[A]
    assert reasons(result, "two") == [NAME_TAKEN]
    confirmed = two(consent=book, copies={A: {}})
    assert confirmed.contents[A][PAGE]["data"] == {"k": "theirs"}


def test_a_namespace_named_without_a_grant_holds_copies_and_its_labels_stay_as_they_are() -> None:
    book = Book()
    book.mode, book.granted = "Enforce", [ANY_MAP]
    named = [placement(nonNamespacedObjects=[NAMED_SPACE])]
    result = translated(placements=named, consent=book)
    assert "go" not in (result.contents[A][SPACE]["metadata"].get("labels") or {})
    assert SPACE in result.frozen[A]
    assert PAGE in result.contents[A]


# -- bindings, and definitions ---------------------------------------------------------------------

BINDINGS = GroupResource("apis.kcp.io", "apibindings")


def bound(*names: str, **named: list[str]) -> set[str]:
    """Return which bindings of one export go, of those there are and those that are named."""
    spec = {"reference": {"export": {"path": "root", "name": "kube"}}}
    objects = {"one": {BINDINGS: [cluster_object("one", name, spec=spec) for name in names]}}
    rules = [
        {"apiGroup": BINDINGS.group, "resources": ["apibindings"], "resourceNames": found}
        for found in named.values()
    ]
    result = translated(objects, placements=[placement(nonNamespacedObjects=rules)])
    return {item.name for item in result.contents.get(A, {})}


def test_of_several_bindings_of_one_export_the_first_by_name_goes() -> None:
    assert bound("b", "a", "c", wanted=["*"]) == {"a"}
    assert bound("b", "a", "c", wanted=["c", "b"]) == {"b"}
    assert bound("b", "a") == set(), "nobody needs them"


# -- syncer configs --------------------------------------------------------------------------------

UPSYNC = {"apiGroup": "g", "resources": ["a", "b"], "namespaces": ["n"], "names": ["*"]}


def test_what_comes_up_is_what_was_asked_for_as_far_as_it_is_granted() -> None:
    asking = [placement(upsync=[UPSYNC])]
    [asked] = translated(placements=asking).configs[A]["upsync"]
    assert asked["resources"] == ["a", "b"]
    book = Book()
    book.mode = "Enforce"
    assert "upsync" not in translated(placements=asking, consent=book).configs[A]
    book.granted = [Rule(frozenset("g"), frozenset("b"), namespaced=True, cluster_scoped=False)]
    [granted] = translated(placements=asking, consent=book).configs[A]["upsync"]
    assert granted["resources"] == ["b"]


def test_a_namespace_that_is_refused_is_carried_while_its_copy_is_there() -> None:
    book = Book()
    book.mode = "Enforce"
    copies = {A: {SPACE: Copy(b"", None), PAGE: Copy(b"", None)}}
    kept = translated(consent=book, copies=copies).configs[A]["namespaceScope"]
    assert kept["namespaces"] == ["n"]
    assert "configmaps" in {each["resource"] for each in kept["resources"]}
    assert translated(consent=book).configs[A]["namespaceScope"] == {}


def test_cluster_scoped_objects_are_named_in_the_config_and_withheld_ones_are_not() -> None:
    objects = {"one": {ROLES: [cluster_object("one", "r")]}}
    placements = [placement(nonNamespacedObjects=[NAMED_ROLE])]
    [found] = translated(objects, placements=placements).configs[A]["clusterScope"]
    assert (found["resource"], found["objects"]) == ("clusterroles", ["r"])
    withheld = translated(objects, placements=placements, withhold_denatured=True)
    assert "clusterScope" not in withheld.configs[A]


# -- as a function ---------------------------------------------------------------------------------

_some = st.lists(st.sampled_from(["one", "two"]), unique=True)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return workspaces, and what is placed of them."""
    objects: dict[str, Any] = {}
    for name in ("one", "two"):
        labels = draw(st.sampled_from([{"go": "yes"}, {"go": "no"}]))
        data, created = draw(st.sampled_from("xy")), draw(st.sampled_from("12"))
        objects[name] = {
            NAMESPACES: [cluster_object(name, "n", labels=labels), cluster_object(name, "m")],
            MAPS: [page(name, data, created), cluster_object(name, "page", "m")],
            ROLES: [cluster_object(name, each) for each in ("r", "other")],
        }
    named = draw(st.lists(st.sampled_from([NAMED_ROLE, NAMED_SPACE]), unique_by=str))
    ways = draw(st.lists(st.sampled_from([(A, "florin"), (A, "b"), (B, "b")]), unique=True))
    places = [
        placement(name, short, nonNamespacedObjects=named)
        for name in ("one", "two")
        for short in ("p", "q")
    ]
    slices = [
        piece(name, *ways, name=short) for name in draw(_some) for short in ("p", "q") if ways
    ]
    return objects, {"placements": places, "slices": slices}


def backwards(objects: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {kind: found[::-1] for kind, found in reversed(kinds.items())}
        for name, kinds in reversed(objects.items())
    }


@given(inputs())
def test_the_order_in_which_things_are_given_makes_no_difference(
    given_inputs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    objects, more = given_inputs
    reversed_more = {name: found[::-1] for name, found in more.items()}

    one, other = translated(objects, **more), translated(backwards(objects), **reversed_more)

    assert one == other


@given(inputs())
def test_what_was_made_of_something_is_made_of_it_again_when_its_copies_are_there(
    given_inputs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    objects, more = given_inputs
    first = translated(objects, **more)
    copies = {
        mailbox: {
            item: Copy(digest(item.group_resource, obj), owned_of(obj))
            for item, obj in contents.items()
        }
        for mailbox, contents in first.contents.items()
    }

    again = translated(objects, copies=copies, **more)

    assert (again.contents, again.configs) == (first.contents, first.configs)
    assert again.problems == first.problems
    assert all(not found for found in again.frozen.values())


@given(inputs())
def test_a_mailbox_depends_on_nothing_that_does_not_go_there(
    given_inputs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    objects, more = given_inputs
    whole = translated(objects, **more)
    for mailbox in (A, B):
        alone = []
        for each in more["slices"]:
            there = [d for d in each["destinations"] if d["syncTargetUID"] == mailbox.uid]
            if there:
                alone.append({**each, "destinations": there})
        part = translated(objects, **{**more, "slices": alone})
        assert part.contents.get(mailbox) == whole.contents.get(mailbox)
        assert part.configs.get(mailbox) == whole.configs.get(mailbox)
