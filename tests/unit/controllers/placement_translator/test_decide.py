"""What is done in a mailbox, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.edge import SYNCER_CONFIGS, Mailbox
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.decide import (
    ADOPTED,
    CHANGED,
    NOT_PLACED,
    PLACED,
    MailboxPlan,
    decide,
    phases,
    target_of,
)
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.observe import Observed
from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.copies import labelled
from skerry.logic.fleet.translation.difference import ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.ownership import Owned, owned_of, recorded_on
from skerry.logic.machinery.plan import (
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Plan,
    Target,
    Update,
)

MAILBOX, CLUSTER = Mailbox("imw", "u"), "mailbox"
LIVE = {"metadata": {"name": "the-one", "annotations": {"a": "b"}}, "spec": {}, "status": {}}


def _row(item: ObjectRef, found: Verdict, desired: Object | None = None, uid: str = "") -> ItemDiff:
    gvr = GroupVersionResource(item.group, "v1", item.resource)
    return ItemDiff(item, found, gvr, None if desired is None else lambda: desired, uid)


def _observed(*rows: ItemDiff, **live: Object) -> Observed:
    by_name = {row.item: live[row.item.name] for row in rows if row.item.name in live}
    return Observed(Judgement(MAILBOX, rows), CLUSTER, {row.item: 1 for row in rows}, by_name)


def _target(item: ObjectRef) -> Target:
    gvr = GroupVersionResource(item.group, "v1", item.resource)
    return Target(gvr, item.name, item.namespace, CLUSTER)


PAGE = ObjectRef("", "", "configmaps", "shop", "page")
SPACE = ObjectRef("", "", "namespaces", "", "shop")
BINDING = ObjectRef("", "apis.kcp.io", "apibindings", "", "bind-kube")
COPY = labelled({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}})


def test_what_is_missing_is_made() -> None:
    plan = decide(_observed(_row(PAGE, Verdict.CREATE, COPY)))
    assert list(plan) == [Create(_target(PAGE), COPY, PLACED)]
    assert plan.done == frozenset()


def test_a_name_changes_hands_in_one_update_unless_that_was_decided_anew_meanwhile() -> None:
    mine, theirs = recorded_on(COPY, Owned("one")), recorded_on(COPY, Owned("two"))
    row = replace(_row(PAGE, Verdict.UPDATE, theirs), owned=Owned("one"))
    [action] = decide(_observed(row, page=mine))
    assert isinstance(action, Update)
    assert owned_of(action.object) == Owned("two")
    assert list(decide(_observed(row, page=theirs))) == []
    third = recorded_on(COPY, Owned("three"))
    assert list(decide(_observed(row, page=third))) == []


def test_what_should_not_be_there_is_deleted_by_its_uid() -> None:
    plan = decide(_observed(_row(PAGE, Verdict.DELETE, uid="u")))
    assert list(plan) == [Delete(_target(PAGE), NOT_PLACED, uid="u", propagation="Background")]


def test_what_is_right_is_done_and_what_is_pending_is_neither_done_nor_acted_on() -> None:
    pending = ItemDiff(SPACE, Verdict.PENDING, missing=("types", "one"))
    plan = decide(_observed(_row(PAGE, Verdict.NONE), pending))
    assert not plan
    assert plan.done == {PAGE}
    assert plan.rows[1] is pending


def test_a_pending_row_never_becomes_a_deletion_whatever_it_says() -> None:
    row = ItemDiff(PAGE, Verdict.PENDING, _target(PAGE).gvr, None, "u", ("types", "one"))
    assert not decide(_observed(row))


def test_a_row_that_has_to_change_and_no_version_to_change_it_at_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        decide(_observed(ItemDiff(PAGE, Verdict.DELETE)))


@pytest.mark.parametrize(
    ("labels", "reason"), [({"edge.kcp.io/projected": "yes"}, CHANGED), ({}, ADOPTED)]
)
def test_what_differs_is_replaced_as_it_was_read(labels: dict[str, str], reason: str) -> None:
    metadata = {"name": "page", "uid": "u", "resourceVersion": "7", "labels": labels}
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x"}}
    (action,) = decide(_observed(_row(PAGE, Verdict.UPDATE, COPY, "u"), page=live))
    assert isinstance(action, Update)
    assert action.reason == reason
    assert action.object["metadata"]["resourceVersion"] == "7"
    assert "data" not in action.object
    assert not action.overwrite


def test_what_turns_out_to_be_right_already_is_left_alone() -> None:
    metadata = {**COPY["metadata"], "uid": "u", "resourceVersion": "7"}
    plan = decide(_observed(_row(PAGE, Verdict.UPDATE, COPY), page={**COPY, "metadata": metadata}))
    assert not plan
    assert plan.done == {PAGE}


def test_what_has_gone_meanwhile_is_made_anew() -> None:
    (action,) = decide(_observed(_row(PAGE, Verdict.UPDATE, COPY, "u")))
    assert isinstance(action, Create)


def test_definitions_and_room_come_before_objects_and_go_after_them() -> None:
    other = ObjectRef("", "", "namespaces", "", "old")
    old = ObjectRef("", "", "configmaps", "old", "x")
    gone = ObjectRef("", "apis.kcp.io", "apibindings", "", "unneeded")
    rows = (
        _row(other, Verdict.DELETE, uid="1"),
        _row(gone, Verdict.DELETE, uid="2"),
        _row(old, Verdict.DELETE, uid="3"),
        _row(PAGE, Verdict.CREATE, COPY),
        _row(SPACE, Verdict.CREATE, COPY),
        _row(BINDING, Verdict.CREATE, COPY),
    )
    names = [
        [target_of(action).name for action in turn] for turn in phases(decide(_observed(*rows)))
    ]
    assert names == [["bind-kube"], ["shop"], ["page"], ["x"], ["old"], ["unneeded"]]


def _config(found: Verdict, live: Object | None = None) -> MailboxPlan:
    desired: Object = {"spec": {"namespaceScope": {}}, "note": ""}
    row = ItemDiff(CONFIG, found, SYNCER_CONFIGS, lambda: desired)
    return decide(
        Observed(Judgement(MAILBOX, (row,)), CLUSTER, {CONFIG: 1}, {CONFIG: live} if live else {})
    )


def test_a_new_syncer_config_has_a_status_from_the_beginning() -> None:
    create, patch = _config(Verdict.CREATE)
    assert isinstance(create, Create)
    assert create.object["spec"] == {"namespaceScope": {}}
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    assert [len(turn) for turn in phases(_config(Verdict.CREATE))] == [1, 1]


@pytest.mark.parametrize("spec", [{"namespaceScope": {}}, {}], ids=["as desired", "another"])
def test_a_syncer_config_that_has_no_status_gets_one(spec: Object) -> None:
    """Whoever made it died, or its request was lost, before that."""
    live = {"metadata": LIVE["metadata"], "spec": spec}
    plan = _config(Verdict.UPDATE, live)
    assert [type(each) for each in plan] == ([Update] if spec == {} else []) + [Patch]
    patch = plan.actions[-1]
    assert isinstance(patch, Patch)
    assert (patch.patch, patch.subresource) == ({"status": {}}, "status")
    assert CONFIG not in plan.done


def test_of_an_existing_syncer_config_only_the_spec_is_replaced() -> None:
    (update,) = _config(Verdict.UPDATE, LIVE)
    assert isinstance(update, Update)
    assert update.object == {**LIVE, "spec": {"namespaceScope": {}}}


def test_a_syncer_config_that_says_the_same_is_left_alone() -> None:
    assert not _config(Verdict.UPDATE, {**LIVE, "spec": {"namespaceScope": {}}})


def test_a_mailbox_is_never_emptied_by_collection() -> None:
    collection = DeleteCollection(GroupVersionResource("", "v1", "configmaps"), "No")
    with pytest.raises(InvariantError):
        list(phases(Plan([collection])))
