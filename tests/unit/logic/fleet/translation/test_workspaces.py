"""What workspaces serve, which watches show it, and what must have been read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.translation.sources import WatchKey, record_of, wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import (
    BASIC_WATCHES,
    BINDING_WATCH,
    DEFINITION_WATCH,
    NAMESPACE_WATCH,
    Mailboxes,
    Retyped,
    Workspaces,
    content_scope,
    path_scope,
    revision_scope,
    selection_scope,
    serving_scope,
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


# -- what workspaces serve -------------------------------------------------------------------------


def test_a_workspace_that_is_not_followed_serves_nothing_and_has_no_watches() -> None:
    found = Workspaces(dict)
    found.learn_hub(COMMON, copies_are_inert=True)
    assert found.types("one").served == {}
    assert found.watch_of("one", SECRETS) is None
    assert list(found.followed_types("one")) == []
    assert found.record("one", ObjectRef("", "", "secrets", "n", "s")) is None
    assert not found.knows_types("one")
    assert set(found.all_scopes("one")) == {types_scope("one"), NAMESPACE_WATCH}


def test_what_came_of_no_change_is_not_reported(workspaces: Workspaces) -> None:
    workspaces.retype("one")
    bound = {"group": "edge.kcp.io", "resource": "things", "schema": {"name": "s"}}
    going = _object("b", status={"boundResources": [bound]})
    going["metadata"]["deletionTimestamp"] = "now"
    workspaces.bindings.put(record_of(BINDING_WATCH, going))
    assert workspaces.retype("one") is None, "a binding on its way out brings nothing"
    assert workspaces.knows_types("one")


def test_types_that_are_forgotten_are_derived_anew_and_may_be_the_same(
    workspaces: Workspaces,
) -> None:
    workspaces.retype("one")
    before = workspaces.types("one")
    workspaces.forget_types()
    assert workspaces.retype("one") is None
    assert workspaces.types("one") == before


def test_what_the_hub_serves_besides_is_followed_when_types_are_derived_anew(
    workspaces: Workspaces,
) -> None:
    workspaces.retype("one")
    maps = ServedType("", "configmaps", "ConfigMap", True, ("v1",))
    workspaces.learn_hub((*COMMON, maps), copies_are_inert=False)
    assert not workspaces.copies_are_inert
    assert workspaces.retype("one") is None, "what was derived is shared until it is forgotten"
    workspaces.forget_types()
    retyped = workspaces.retype("one")
    assert retyped == Retyped(frozenset([maps.group_resource]), (wide("", "v1", "configmaps"),), ())


def test_a_kind_that_becomes_known_is_a_kind_that_differs() -> None:
    schemas: dict[tuple[str, str], Any] = {}
    found = Workspaces(lambda: schemas)
    found.learn_hub(COMMON, copies_are_inert=True)
    found.follow("one")
    found.retype("one")
    bound = {**WIDGETS._asdict(), "schema": {"name": "v1.widgets", "identityHash": "h"}}
    status = {"apiExportClusterName": "root", "boundResources": [bound]}
    found.bindings.put(record_of(BINDING_WATCH, _object("b", status=status)))
    assert found.retype("one") == Retyped(frozenset([WIDGETS]))
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{"name": "v1", "served": True}]
    spec = {"group": "example.io", "names": names, "scope": "Namespaced", "versions": versions}
    schemas["root", "v1.widgets"] = {"metadata": {"name": "v1.widgets"}, "spec": spec}
    found.forget_types()
    watch = wide("example.io", "v1", "widgets", identity="h")
    assert found.retype("one") == Retyped(frozenset([WIDGETS]), (watch,))
    assert found.knows_types("one")


def test_a_kind_of_its_own_that_gets_another_version_first_is_followed_at_that_one(
    workspaces: Workspaces,
) -> None:
    workspaces.definitions.put(record_of(DEFINITION_WATCH, _definition("v1")))
    workspaces.retype("one")
    workspaces.watch(LOCAL)
    workspaces.definitions.put(record_of(DEFINITION_WATCH, _definition("v2", "v1")))
    newer = LOCAL._replace(version="v2")
    retyped = workspaces.retype("one")
    assert retyped is not None
    assert newer in retyped.follow
    assert retyped.stop == (), "the same object at another version"
    assert workspaces.watch_of("one", WIDGETS) == newer
    assert workspaces.watch_of("one", WIDGETS, "v1") == LOCAL


def test_kinds_of_two_workspaces_that_define_the_same_are_watched_in_each(
    workspaces: Workspaces,
) -> None:
    workspaces.follow("two")
    for cluster in ("one", "two"):
        definition = _definition("v1")
        definition["metadata"]["annotations"]["kcp.io/cluster"] = cluster
        workspaces.definitions.put(record_of(DEFINITION_WATCH, definition))
        workspaces.retype(cluster)
    assert workspaces.watch_of("one", WIDGETS) == LOCAL
    assert workspaces.watch_of("two", WIDGETS) == LOCAL._replace(cluster="two")


@pytest.mark.parametrize(
    ("served", "watch"),
    [
        (ServedType("", "events", "Event", True, ("v1",)), None),
        (ServedType("events.k8s.io", "events", "Event", True, ("v1",)), None),
        (ServedType("", "nodes", "Node", False, ("v1",)), None),
        (ServedType("", "configmaps", "ConfigMap", True, ()), None),
        (
            ServedType("coordination.k8s.io", "leases", "Lease", True, ("v1",)),
            wide("coordination.k8s.io", "v1", "leases", presence=True),
        ),
        (ServedType("", "configmaps", "ConfigMap", True, ("v1",)), wide("", "v1", "configmaps")),
    ],
    ids=["events", "new events", "nodes", "no version", "only in the way", "travels"],
)
def test_a_kind_is_followed_where_it_travels_or_may_be_in_the_way(
    served: ServedType, watch: WatchKey | None
) -> None:
    found = Workspaces(dict)
    found.learn_hub((served,), copies_are_inert=True)
    found.follow("one")
    found.retype("one")
    presence = watch is not None and not served.travels
    expected = None if watch is None else watch._replace(presence=presence)
    assert found.watch_of("one", served.group_resource) == expected


def test_what_travels_is_listed_without_namespaces_and_with_its_records_alone(
    workspaces: Workspaces,
) -> None:
    workspaces.retype("one")
    assert [each.group_resource for each, _ in workspaces.followed_types("one")] == [
        NAMESPACE_WATCH.group_resource
    ], "the others are followed by nobody yet"
    secrets = workspaces.watch(SECRET_WATCH)
    assert [(each.resource, found) for each, found in workspaces.travelling("one")] == [
        ("secrets", secrets)
    ]
    assert workspaces.watch(SECRET_WATCH) is secrets
    assert workspaces.unwatch(SECRET_WATCH) is secrets
    assert workspaces.unwatch(SECRET_WATCH) is None
    assert list(workspaces.travelling("one")) == []


def test_the_basic_watches_are_there_from_the_beginning() -> None:
    found = Workspaces(dict)
    assert [each.key for each in found.all_records()] == list(BASIC_WATCHES)
    assert found.bindings.key == BINDING_WATCH
    assert found.definitions.key == DEFINITION_WATCH
    assert found.namespaces.key == NAMESPACE_WATCH


# -- paths, and reasons to follow ------------------------------------------------------------------


def test_a_path_is_known_while_its_workspace_is_followed(workspaces: Workspaces) -> None:
    workspaces.learn_path("two", "root:two")
    assert workspaces.path("two") is None, "nobody follows it"
    workspaces.learn_path("one", "root:one")
    assert workspaces.path("one") == "root:one"
    workspaces.follow("one")
    workspaces.leave("one")
    assert workspaces.path("one") == "root:one"
    workspaces.leave("one")
    assert workspaces.path("one") is None


def test_a_path_that_cannot_be_read_is_known_to_be_none(workspaces: Workspaces) -> None:
    workspaces.learn_path("one", "")
    assert workspaces.path("one") == ""


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.booleans())))
def test_every_reason_to_follow_a_workspace_is_taken_back_by_itself(
    history: list[tuple[str, bool]],
) -> None:
    found, reasons = Workspaces(dict), {"one": 0, "two": 0}
    for cluster, comes in history:
        if comes:
            found.follow(cluster)
            reasons[cluster] += 1
        elif reasons[cluster]:
            assert found.leave(cluster) == ()
            reasons[cluster] -= 1
        for each, count in reasons.items():
            assert found.follows(each) is (count > 0)
        assert sorted(found.followed) == sorted(each for each, count in reasons.items() if count)


def test_scopes_of_different_things_are_never_taken_for_each_other() -> None:
    """They are tuples of texts, and one table has them all."""
    placement = edge_placement_ref("one", "p")
    item = ObjectRef("", "", "secrets", "n", "s")
    scopes = [
        types_scope("one"),
        path_scope("one"),
        selection_scope(placement),
        serving_scope("one", SECRETS),
        revision_scope(placement, 1),
        revision_scope(placement, 11),
        content_scope("one", item, "d"),
        content_scope("one", item._replace(name="t"), "d"),
        content_scope("two", item, "d"),
    ]
    assert len(set(scopes)) == len(scopes)
    assert content_scope("one", item._replace(cluster="x"), "d") == content_scope("one", item, "d")
