"""Copies compared field by field, and grouped by how they differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName, Problem
from skerry.logic.fleet.explanation.contents import (
    MAX_FIELDS,
    Materials,
    content_changes,
    foreseen,
)
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.placement.records import Destination

PAGE = ObjectRef("", "", "configmaps", "shop", "page")
KEY = ObjectRef("", "", "secrets", "shop", "key")
ROLE = ObjectRef("", "rbac.authorization.k8s.io", "roles", "shop", "reader")
PLACES = [Destination("imw", name, name, name) for name in ("a", "b", "c")]
MAPS = Rule(frozenset([""]), frozenset(["configmaps"]), namespaced=True, cluster_scoped=False)


def _object(item: ObjectRef, notes: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": item.name, "namespace": item.namespace, "annotations": notes or {}}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


def _changed(item: ObjectRef, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = Materials({item: _object(item, **old)}), Materials({item: _object(item, **new)})
    assert before.differing(after) == ({item} if old != new else set())
    found, withheld = content_changes(before, after, [item], PLACES)
    assert withheld == []
    assert all(each.destinations == tuple(PLACES) for each in found)
    return [field for each in found for field in each.fields]


def test_fields_that_differ_are_named_one_by_one() -> None:
    old = {"data": {"k": "1", "gone": "x"}, "list": [{"image": "a"}, 1]}
    new = {"data": {"k": "2", "new": "two\nlines"}, "list": [{"image": "b"}, 1]}
    assert _changed(PAGE, old, new) == [
        "data.gone: removed",
        "data.k: 1 → 2",
        "data.new: added two\\nlines",
        "list[0].image: a → b",
    ]
    assert _changed(PAGE, old, old) == []


def test_contents_of_secrets_are_not_shown() -> None:
    fields = _changed(KEY, {"data": {"k": "czNjcjN0"}}, {"data": {"k": "b3RoZXI="}})
    assert fields == ["data.k: (changed; contents of Secrets are not shown)"]
    added = _changed(KEY, {}, {"data": {"k": "b3RoZXI="}, "stringData": {"k": "plain"}})
    assert not any("b3RoZXI" in field or "plain" in field for field in added)


def test_what_is_shown_is_bounded() -> None:
    many = {"data": {f"k{number:03}": "v" * 500 for number in range(MAX_FIELDS + 5)}}
    fields = _changed(PAGE, {"data": {}}, many)
    assert len(fields) == MAX_FIELDS + 1
    assert fields[-1] == "… and 5 more fields"
    assert all(len(field) < 120 for field in fields)


def test_destinations_at_which_copies_differ_alike_are_one_group() -> None:
    notes = {"edge.kcp.io/expand-parameters": "true"}
    locations = {
        each.location_ref: {"metadata": {"labels": {"n": "1" if each.location == "a" else "2"}}}
        for each in PLACES
    }
    before = Materials({PAGE: _object(PAGE, notes, data={"k": "v"})}, {}, locations)
    after = Materials({PAGE: _object(PAGE, notes, data={"k": "v%(n)"})}, {}, locations)
    found, _ = content_changes(before, after, [PAGE], PLACES)
    assert [(each.fields, [d.location for d in each.destinations]) for each in found] == [
        (("data.k: v → v1",), ["a"]),
        (("data.k: v → v2",), ["b", "c"]),
    ]


def test_what_was_withheld_and_would_be_sent_says_so() -> None:
    broken = {"edge.kcp.io/customizer": "lost"}
    before = Materials({PAGE: _object(PAGE, broken)})
    after = Materials({PAGE: _object(PAGE)})
    [found], withheld = content_changes(before, after, [PAGE], PLACES)
    assert (found.fields, withheld) == (("it would be sent",), [])
    [_], [lost] = [found], content_changes(after, before, [PAGE], PLACES)[1]
    assert lost.problem.reason == "CustomizerNotFound"
    assert content_changes(before, before, [PAGE], PLACES) == ([], [])


def test_kinds_that_act_on_a_foreign_hub_and_what_grants_leave_out_are_foreseen() -> None:
    objects = {PAGE: _object(PAGE), ROLE: _object(ROLE)}
    foreign = Materials(objects, copies_are_inert=False)
    [found] = foreseen(foreign, objects, PLACES)
    assert (found.item, found.problem.reason) == (ROLE, "KindWithheld")
    granted = Materials(objects, rules=lambda where: [MAPS] if where.name == "a" else None)
    [found] = foreseen(granted, objects, PLACES)
    assert (found.item, found.problem.reason) == (ROLE, "NotGranted")
    assert [each.location for each in found.destinations] == ["a"]
    assert isinstance(granted.made(ROLE, PLACES[0].location_ref), Problem)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (1, 2, "data: 1 → 2"),
        (None, "x", "data: null → x"),
        (True, False, "data: true → false"),
        ([1], [1, 2], "data: [1] → [1,2]"),
        ({"a": 1}, "x", 'data: {"a":1} → x'),
        ([{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 3}], "data[1].b: 2 → 3"),
        ("x" * 80, "y", f"data: {'x' * 80} → y"),
        ("x" * 81, "y", f"data: {'x' * 80}… → y"),
        ("a\nb", "c", "data: a\\nb → c"),
    ],
)
def test_a_line_says_where_and_what_it_was_and_would_be(old: Any, new: Any, line: str) -> None:
    assert _changed(PAGE, {"data": old}, {"data": new}) == [line]


json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("kl"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(json, json)
def test_there_is_a_line_exactly_where_contents_differ(old: Any, new: Any) -> None:
    before, after = Materials({PAGE: _object(PAGE, x=old)}), Materials({PAGE: _object(PAGE, x=new)})
    found, _ = content_changes(before, after, [PAGE], PLACES)
    assert bool(found) == (old != new)
    back, _ = content_changes(after, before, [PAGE], PLACES)
    assert bool(back) == bool(found)


@given(json, json)
def test_no_line_about_a_secret_has_anything_of_what_is_in_it(old: Any, new: Any) -> None:
    hidden: dict[str, Any] = {"data": {"k": ["SECRET", old]}, "stringData": {"k": {"SECRET": new}}}
    shown: dict[str, Any] = {
        "data": {"k": ["SECRET", new], "l": "SECRET"},
        "stringData": {"k": {"SECRET": old}},
    }
    for one, other in ((hidden, shown), (shown, hidden), ({}, shown), (hidden, {})):
        before, after = (
            Materials({KEY: _object(KEY, **one)}),
            Materials({KEY: _object(KEY, **other)}),
        )
        found, _ = content_changes(before, after, [KEY], PLACES)
        assert found, "that something changes is said"
        assert "SECRET" not in str(found)


def test_what_a_secret_is_apart_from_its_contents_is_shown() -> None:
    assert _changed(KEY, {"type": "Opaque"}, {"type": "tls"}) == ["type: Opaque → tls"]
    fields = _changed(PAGE, {"data": {"k": "1"}}, {"data": {"k": "2"}})
    assert fields == ["data.k: 1 → 2"], "a ConfigMap is no Secret"


def test_exactly_as_many_fields_as_fit_are_shown_without_a_remainder() -> None:
    many = {"data": {f"k{number:03}": "v" for number in range(MAX_FIELDS)}}
    fields = _changed(PAGE, {"data": {}}, many)
    assert len(fields) == MAX_FIELDS
    assert "more fields" not in fields[-1]


def test_objects_are_compared_in_their_order_and_each_for_itself() -> None:
    other = PAGE._replace(name="another")
    before = Materials({PAGE: _object(PAGE, n=1), other: _object(other, n=1)})
    after = Materials({PAGE: _object(PAGE, n=2), other: _object(other, n=2)})
    found, _ = content_changes(before, after, [PAGE, other], PLACES)
    assert [(each.item, each.fields) for each in found] == [
        (other, ("n: 1 → 2",)), (PAGE, ("n: 1 → 2",)),
    ]  # fmt: skip


def test_without_destinations_nothing_changes_anywhere() -> None:
    before, after = Materials({PAGE: _object(PAGE, n=1)}), Materials({PAGE: _object(PAGE, n=2)})
    assert content_changes(before, after, [PAGE], []) == ([], [])
    assert foreseen(after, [PAGE], []) == []


CUSTOMIZED = {"edge.kcp.io/customizer": "mine"}
EXPANDED = {"edge.kcp.io/expand-parameters": "true"}


def test_only_objects_in_both_that_may_differ_are_worth_comparing() -> None:
    gone, new = PAGE._replace(name="gone"), PAGE._replace(name="new")
    same = _object(PAGE)
    before = Materials({PAGE: same, gone: _object(gone)})
    after = Materials({PAGE: same, new: _object(new)})
    assert before.differing(after) == set()
    assert before.differing(Materials({PAGE: _object(PAGE)})) == set(), "an equal object"
    assert before.differing(Materials({PAGE: _object(PAGE, n=1)})) == {PAGE}


def test_an_object_may_differ_by_its_customizer_or_where_it_goes() -> None:
    customized = _object(PAGE, CUSTOMIZED)
    expanded, plain = KEY._replace(name="e"), KEY._replace(name="p")
    objects = {PAGE: customized, expanded: _object(expanded, EXPANDED), plain: _object(plain)}
    one: Object = {"metadata": {"name": "mine"}}
    other: Object = {**one, "replacements": []}
    name = CustomizerName("shop", "mine")
    where = PLACES[0].location_ref
    before = Materials(objects, {name: one}, {where: {"metadata": {"labels": {"n": "1"}}}})
    edited = Materials(objects, {name: other}, before.locations)
    assert before.differing(edited) == {PAGE}
    assert before.differing(Materials(objects, {}, before.locations)) == {PAGE}
    moved = Materials(objects, before.customizers, {where: {"metadata": {"labels": {"n": "2"}}}})
    assert before.differing(moved) == {PAGE, expanded}
    assert before.differing(Materials(objects, before.customizers, dict(before.locations))) == set()


def test_copies_that_do_not_vary_are_made_once_for_all() -> None:
    made = Materials({PAGE: _object(PAGE)}).made_at(PAGE, PLACES)
    assert made[0] is made[1] is made[2]
    assert isinstance(made[0], dict)
    missing = Materials({}).made_at(PAGE, PLACES)
    assert missing == [None, None, None]
    asked: list[str] = []

    def rules(where: ObjectRef) -> list[Rule] | None:
        asked.append(where.name)
        return [MAPS] if where.name != "c" else None

    granted = Materials({PAGE: _object(PAGE)}, rules=rules).made_at(PAGE, PLACES)
    assert granted[0] is granted[1]
    assert granted[0] == granted[2]


def test_what_a_grant_no_longer_lets_through_stays_as_it_is() -> None:
    objects = {ROLE: _object(ROLE)}
    every = Rule(None, None)
    before = Materials(objects, rules=lambda _: [every])
    after = Materials(objects, rules=lambda _: [MAPS])
    contents, [held] = content_changes(before, after, [ROLE], PLACES)
    assert contents == []
    assert held.problem.message.endswith("stays as it is until its removal is confirmed")
    # What was not sent does not stay.
    [never] = foreseen(after, [ROLE], PLACES)
    assert "stays" not in never.problem.message
    assert content_changes(after, after, [ROLE], PLACES) == ([], [])


def test_grants_are_compared_by_what_they_let_through_place_by_place() -> None:
    every = Rule(None, None)
    by_place: dict[str, list[Rule] | None] = {"a": [MAPS, every], "b": None, "c": []}
    before = Materials(rules=lambda where: by_place[where.name])
    same = Materials(rules=lambda where: (by_place[where.name] or [])[::-1] or by_place[where.name])
    assert before.regranted(same, PLACES) == []
    assert Materials().regranted(Materials(), PLACES) == []
    assert [each.location for each in before.regranted(Materials(), PLACES)] == ["a", "c"]
    assert [each.location for each in Materials().regranted(before, PLACES)] == ["a", "c"]


def test_a_namespace_goes_where_anything_in_one_may_go() -> None:
    space = ObjectRef("", "", "namespaces", "", "shop")
    materials = Materials({space: _object(space)}, rules=lambda _: [MAPS])
    assert isinstance(materials.made(space, PLACES[0].location_ref), dict)
    nothing = Materials({space: _object(space)}, rules=lambda _: [])
    refused = nothing.made(space, PLACES[0].location_ref)
    assert isinstance(refused, Problem)
    assert refused.reason == "NotGranted"


def test_a_name_that_another_workspace_has_there_is_foreseen() -> None:
    materials = Materials({PAGE: _object(PAGE)})

    def taken(where: Destination, item: ObjectRef) -> str | None:
        return "root:bank" if where.location == "b" and item == PAGE else None

    [found] = foreseen(materials, [PAGE, KEY], PLACES, taken)
    assert (found.item, [each.location for each in found.destinations]) == (PAGE, ["b"])
    assert "root:bank" in found.problem.message


def test_what_is_withheld_now_as_it_would_be_then_is_no_news() -> None:
    lost = {"edge.kcp.io/customizer": "lost"}
    before = Materials({PAGE: _object(PAGE, lost, n=1)})
    after = Materials({PAGE: _object(PAGE, lost, n=2)})
    assert content_changes(before, after, [PAGE], PLACES) == ([], [])
