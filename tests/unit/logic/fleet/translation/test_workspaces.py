"""What workspaces serve, which watches show it, and what must have been read."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.translation.sources import WatchKey, record_of, wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import (
    BINDING_WATCH,
    DEFINITION_WATCH,
    NAMESPACE_WATCH,
    Mailboxes,
    Retyped,
    Workspaces,
    types_scope,
)

COMMON = (
    ServedType("", "namespaces", "Namespace", False, ("v1",)),
    ServedType("", "secrets", "Secret", True, ("v1",)),
    ServedType("", "events", "Event", True, ("v1",)),
    ServedType("", "nodes", "Node", False, ("v1",)),
    ServedType("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", False, ("v1",)),
)
SECRETS = GroupResource("", "secrets")
WIDGETS = GroupResource("example.io", "widgets")
SECRET_WATCH = wide("", "v1", "secrets")
ROLE_WATCH = wide("rbac.authorization.k8s.io", "v1", "clusterroles")
LOCAL = WatchKey("one", "example.io", "v1", "widgets")


def _object(name: str, cluster: str = "one", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}}, **more}


def _definition(*versions: str) -> dict[str, Any]:
    return _object(
        "widgets.example.io",
        kind="CustomResourceDefinition",
        spec={
            "group": "example.io",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{"name": name, "served": True} for name in versions],
        },
        status={"conditions": [{"type": "Established", "status": "True"}]},
    )


@pytest.fixture
def workspaces() -> Workspaces:
    found = Workspaces(dict)
    found.learn_hub(COMMON, copies_are_inert=True)
    found.follow("one")
    return found


def test_what_every_workspace_serves_is_watched_everywhere_and_what_matters_alone(
    workspaces: Workspaces,
) -> None:
    retyped = workspaces.retype("one")
    assert retyped is not None
    assert set(retyped.follow) == {NAMESPACE_WATCH, SECRET_WATCH, ROLE_WATCH}
    assert retyped.stop == ()
    assert workspaces.retype("one") is None


def test_workspaces_that_bind_alike_share_what_they_serve(workspaces: Workspaces) -> None:
    workspaces.follow("two")
    workspaces.retype("one")
    workspaces.retype("two")
    assert workspaces.types("one") is workspaces.types("two")
    assert workspaces.types("three").served == {}


def test_what_a_workspace_defines_for_itself_is_watched_there_and_until_it_is_gone(
    workspaces: Workspaces,
) -> None:
    workspaces.retype("one")
    record = record_of(DEFINITION_WATCH, _definition("v1", "v1beta1"))
    workspaces.definitions.put(record)
    assert workspaces.retype("one") == Retyped(frozenset([WIDGETS]), (LOCAL,))
    older = LOCAL._replace(version="v1beta1")
    for key in (LOCAL, older):
        workspaces.watch(key)
    assert workspaces.watch_of("one", WIDGETS) == LOCAL
    assert workspaces.watch_of("one", WIDGETS, "v1beta1") == older
    assert workspaces.watch_of("one", WIDGETS, "v2") is None
    workspaces.definitions.remove(record)
    assert workspaces.retype("one") == Retyped(frozenset([WIDGETS]), (), (LOCAL, older))
    assert workspaces.watch_of("one", WIDGETS) is None


def test_a_workspace_is_followed_as_long_as_there_is_a_reason(workspaces: Workspaces) -> None:
    workspaces.definitions.put(record_of(DEFINITION_WATCH, _definition("v1")))
    workspaces.retype("one")
    workspaces.watch(LOCAL)
    workspaces.follow("one")
    assert workspaces.leave("one") == ()
    assert workspaces.follows("one")
    assert workspaces.leave("one") == (LOCAL,)
    assert not workspaces.follows("one")
    assert workspaces.followed == []


def test_a_bound_type_without_its_schema_is_not_understood(workspaces: Workspaces) -> None:
    schema = {"name": "v1.widgets", "identityHash": "h"}
    bound = {"group": "example.io", "resource": "widgets", "schema": schema}
    status = {"apiExportClusterName": "root", "boundResources": [bound]}
    workspaces.bindings.put(record_of(BINDING_WATCH, _object("b", status=status)))
    workspaces.retype("one")
    assert not workspaces.knows_types("one")
    assert not workspaces.knows_types("never followed")


def test_what_was_found_of_types_that_are_forgotten_is_not_taken_for_that_of_others() -> None:
    """What is asked while all types are derived anew is about the old ones, which then go."""
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.io", "names": names, "versions": [{"name": "v1", "served": True}]}
    workspaces = Workspaces(lambda: {("root", "v1.widgets"): {"spec": spec}})
    workspaces.learn_hub(COMMON, copies_are_inert=True)
    workspaces.follow("one")
    bound = {**WIDGETS._asdict(), "schema": {"name": "v1.widgets", "identityHash": "i"}}
    status = {"apiExportClusterName": "root", "boundResources": [bound]}
    bindings = [
        record_of(BINDING_WATCH, _object(f"b{n}", kind="APIBinding", status=status))
        for n in range(50)
    ]
    for _ in range(60):
        workspaces.forget_types()
        assert workspaces.watch_of("one", WIDGETS) is None
        workspaces.retype("one")
        for binding in bindings:
            workspaces.bindings.put(binding)
            workspaces.retype("one")
            assert workspaces.watch_of("one", WIDGETS) is not None
            workspaces.bindings.remove(binding)
            workspaces.retype("one")


def test_nothing_is_known_of_the_hub_before_it_has_said_everything() -> None:
    assert not Workspaces(dict).knows_hub
    unread = Workspaces(lambda: None)
    unread.learn_hub(COMMON, copies_are_inert=False)
    assert not unread.knows_hub


def test_a_row_depends_on_types_namespaces_and_the_watch_of_its_kind(
    workspaces: Workspaces,
) -> None:
    workspaces.retype("one")
    basics = (types_scope("one"), NAMESPACE_WATCH)
    assert workspaces.scopes("one", SECRETS) == (*basics, SECRET_WATCH)
    assert workspaces.scopes("one", GroupResource("", "nodes")) == basics
    assert set(workspaces.all_scopes("one")) == {*basics, SECRET_WATCH, ROLE_WATCH}


def test_candidates_are_namespaces_and_cluster_scoped_sources(workspaces: Workspaces) -> None:
    workspaces.retype("one")
    namespace = _object("n")
    namespace["metadata"]["labels"] = {"go": "yes"}
    workspaces.namespaces.put(record_of(NAMESPACE_WATCH, namespace))
    terminating = _object("leaving")
    terminating["metadata"]["deletionTimestamp"] = "now"
    roles = workspaces.watch(ROLE_WATCH)
    for obj in (_object("r"), terminating, _object("elsewhere", "two")):
        roles.put(record_of(ROLE_WATCH, obj))
    role = ObjectRef("", *ROLE_WATCH.group_resource, "", "r")
    assert workspaces.candidates("one") == {namespace_ref("n"): {"go": "yes"}, role: {}}
    found = workspaces.record("one", role)
    assert found is not None
    assert found.name == "r"
    assert workspaces.unwatch(ROLE_WATCH) is roles
    assert workspaces.record("one", role) is None


def test_a_mailbox_is_found_both_ways_and_forgotten_both_ways() -> None:
    mailboxes, mailbox = Mailboxes(), Mailbox("imw", "u")
    mailboxes.put(mailbox, "c1")
    mailboxes.put(mailbox, "c2")
    assert mailboxes.cluster(mailbox) == "c2"
    assert (mailboxes.at("c1"), mailboxes.at("c2")) == (None, mailbox)
    mailboxes.remove(mailbox)
    mailboxes.remove(mailbox)
    assert (mailboxes.cluster(mailbox), mailboxes.at("c2")) == (None, None)
