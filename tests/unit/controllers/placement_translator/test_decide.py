"""What is done in a mailbox, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.decide import (
    ADOPTED,
    CHANGED,
    NOT_PLACED,
    PLACED,
    decide,
    phases,
)
from skerry.controllers.placement_translator.keys import SYNCER_CONFIGS
from skerry.controllers.placement_translator.marks import CONFIG
from skerry.controllers.placement_translator.observe import Look, Observed
from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.translation.copies import labelled
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


def _look(
    item: ObjectRef,
    wanted: dict[str, Any] | None,
    live: dict[str, Any] | None = None,
    uid: str = "",
) -> Look:
    gvr = GroupVersionResource(item.group, "v1", item.resource)
    return Look(item, Target(gvr, item.name, item.namespace, CLUSTER), wanted, live, uid)


PAGE = ObjectRef("", "", "configmaps", "shop", "page")
SPACE = ObjectRef("", "", "namespaces", "", "shop")
BINDING = ObjectRef("", "apis.kcp.io", "apibindings", "", "bind-kube")
COPY = labelled({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}})


def test_what_is_missing_is_made() -> None:
    plan = decide(Observed(MAILBOX, (_look(PAGE, COPY),)))
    assert list(plan) == [Create(_look(PAGE, None).target, COPY, PLACED)]


def test_what_should_not_be_there_is_deleted_by_its_uid() -> None:
    plan = decide(Observed(MAILBOX, (_look(PAGE, None, uid="u"),)))
    assert list(plan) == [Delete(_look(PAGE, None).target, NOT_PLACED, uid="u")]


@pytest.mark.parametrize(
    ("labels", "reason"), [({"edge.kcp.io/projected": "yes"}, CHANGED), ({}, ADOPTED)]
)
def test_what_differs_is_replaced_as_it_was_read(labels: dict[str, str], reason: str) -> None:
    metadata = {"name": "page", "uid": "u", "resourceVersion": "7", "labels": labels}
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x"}}
    (action,) = decide(Observed(MAILBOX, (_look(PAGE, COPY, live, "u"),)))
    assert isinstance(action, Update)
    assert action.reason == reason
    assert action.object["metadata"]["resourceVersion"] == "7"
    assert "data" not in action.object
    assert not action.overwrite


def test_definitions_and_room_come_before_objects_and_go_after_them() -> None:
    other = ObjectRef("", "", "namespaces", "", "old")
    old = ObjectRef("", "", "configmaps", "old", "x")
    gone = ObjectRef("", "apis.kcp.io", "apibindings", "", "unneeded")
    looks = (
        _look(other, None, uid="1"),
        _look(gone, None, uid="2"),
        _look(old, None, uid="3"),
        _look(PAGE, COPY),
        _look(SPACE, COPY),
        _look(BINDING, COPY),
    )
    names = [
        [getattr(action, "target").name for action in turn]  # noqa: B009 - of a union
        for turn in phases(decide(Observed(MAILBOX, looks)))
    ]
    assert names == [["bind-kube"], ["shop"], ["page"], ["x"], ["old"], ["unneeded"]]


def _config(live: dict[str, Any] | None) -> Observed:
    target = Target(SYNCER_CONFIGS, "the-one", "", CLUSTER)
    spec: dict[str, Any] = {"namespaceScope": {}}
    return Observed(MAILBOX, (), Look(CONFIG, target, {"spec": spec}, live))


def test_a_new_syncer_config_has_a_status_from_the_beginning() -> None:
    create, patch = decide(_config(None))
    assert isinstance(create, Create)
    assert create.object["spec"] == {"namespaceScope": {}}
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    assert [len(turn) for turn in phases(decide(_config(None)))] == [1, 1]


def test_of_an_existing_syncer_config_only_the_spec_is_replaced() -> None:
    live = {"metadata": {"name": "the-one", "annotations": {"a": "b"}}, "spec": {}, "status": {}}
    (update,) = decide(_config(live))
    assert isinstance(update, Update)
    assert update.object == {**live, "spec": {"namespaceScope": {}}}


def test_emptying_a_mailbox_wholesale_is_not_a_thing_it_does() -> None:
    wholesale = DeleteCollection(GroupVersionResource("", "v1", "configmaps"), "No")
    with pytest.raises(InvariantError):
        list(phases(Plan([wholesale])))
