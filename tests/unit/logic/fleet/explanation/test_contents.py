"""Copies compared field by field, and grouped by how they differ."""

from __future__ import annotations

from typing import Any

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import Problem
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
