"""Definitions go along with what needs them: APIBindings and CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS
from skerry.logic.fleet.translation.configs import desired_config
from skerry.logic.fleet.translation.merging import VERSIONS_DISAGREE
from skerry.logic.fleet.translation.rows import NOTHING
from skerry.logic.fleet.translation.sources import record_of
from skerry.logic.fleet.translation.workspaces import (
    BINDING_WATCH,
    DEFINITION_WATCH,
    NAMESPACE_WATCH,
)
from tests.kit.chain.translation_objects import GO, There, thing

WIDGETS = GroupResource("example.io", "widgets")
WIDGET = ObjectRef("", *WIDGETS, "n", "w")
SCHEMA: dict[str, Any] = {
    "metadata": {"name": "v1.widgets"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True}],
    },
}
ANY_WIDGET = Rule(
    frozenset(["example.io"]), frozenset(["widgets"]), namespaced=True, cluster_scoped=False
)
UPSYNC = {"apiGroup": "example.io", "resources": ["widgets"], "namespaces": ["n"], "names": ["*"]}


def binding(name: str) -> ObjectRef:
    return ObjectRef("", *BINDINGS, "", name)


DEFINITION = ObjectRef("", *DEFINITIONS, "", "widgets.example.io")


class Typed(There):
    """Workspaces that bind or define the kind Widget."""

    def __init__(self) -> None:
        super().__init__({("exports", "v1.widgets"): SCHEMA})

    def bind(self, cluster: ClusterName, name: str, export: str = "widgets") -> None:
        bound = {"group": "example.io", "resource": "widgets",
                 "schema": {"name": "v1.widgets", "identityHash": "h"}}  # fmt: skip
        obj = thing(
            name,
            cluster,
            spec={"reference": {"export": {"path": "root:exports", "name": export}}},
            status={"apiExportClusterName": "exports", "boundResources": [bound]},
        )
        self.workspaces.bindings.put(record_of(BINDING_WATCH, obj))
        self._retype(cluster)

    def define(self, cluster: ClusterName, *versions: str) -> None:
        spec = {
            **SCHEMA["spec"],
            "versions": [{"name": each, "served": True} for each in versions],
        }
        established = {"conditions": [{"type": "Established", "status": "True"}]}
        obj = thing("widgets.example.io", cluster, spec=spec, status=established)
        obj["kind"] = "CustomResourceDefinition"
        self.workspaces.definitions.put(record_of(DEFINITION_WATCH, obj))
        self._retype(cluster)

    def _retype(self, cluster: ClusterName) -> None:
        retyped = self.workspaces.retype(cluster)
        for key in () if retyped is None else retyped.follow:
            self.workspaces.watch(key)
        self.route.put_candidates(cluster)
        self.route.settle()

    def widget(self, cluster: ClusterName, **more: Any) -> None:
        key = self.workspaces.watch_of(cluster, WIDGETS)
        assert key is not None
        self.put(NAMESPACE_WATCH, thing("n", cluster, labels={"go": "yes"}))
        self.put(key, thing("w", cluster, "n", **more))


@pytest.fixture
def there() -> Typed:
    return Typed()


def test_a_binding_goes_along_with_an_object_of_a_kind_that_it_brings(there: Typed) -> None:
    there.bind("one", "wb")
    placement = there.place("one", namespaceSelector=GO)
    assert there.at().row(binding("wb")) is NOTHING, "nothing needs it yet"
    there.widget("one")
    assert there.at().row(WIDGET).digest is not None
    assert there.at().row(binding("wb")).digest is not None
    assert there.at().senders(binding("wb")) == [placement]


def test_a_definition_goes_along_with_an_object_of_its_kind(there: Typed) -> None:
    there.define("one", "v1")
    there.place("one", namespaceSelector=GO)
    assert there.at().row(DEFINITION) is NOTHING
    there.widget("one")
    assert there.at().row(DEFINITION).digest is not None


def test_an_object_that_is_not_placed_brings_no_definition(there: Typed) -> None:
    there.define("one", "v1")
    there.widget("one")
    there.place("one", namespaceSelector={"matchLabels": {"other": "place"}})
    assert there.at().row(DEFINITION) is NOTHING


def test_what_is_to_come_up_needs_its_definition_before_there_is_any(there: Typed) -> None:
    there.define("one", "v1")
    there.put(NAMESPACE_WATCH, thing("n", "one", labels={"go": "yes"}))
    there.place("one", namespaceSelector=GO, upsync=[UPSYNC])
    assert there.at().row(DEFINITION).digest is not None


def test_of_two_bindings_of_an_export_the_first_by_name_is_made(there: Typed) -> None:
    there.bind("one", "zebra")
    there.bind("two", "ant")
    for cluster in ("one", "two"):
        there.widget(cluster)
        there.place(cluster, namespaceSelector=GO)
    assert there.at().row(binding("zebra")) is NOTHING
    assert there.at().row(binding("ant")).digest is not None


def test_a_binding_that_somebody_names_comes_before_those_that_go_along(there: Typed) -> None:
    there.bind("one", "zebra")
    there.bind("two", "ant")
    for cluster in ("one", "two"):
        there.widget(cluster)
    named = {"apiGroup": BINDINGS.group, "resources": ["apibindings"], "resourceNames": ["zebra"]}
    there.place("one", namespaceSelector=GO, nonNamespacedObjects=[named])
    there.place("two", namespaceSelector=GO)
    assert there.at().row(binding("zebra")).digest is not None
    assert there.at().row(binding("ant")) is NOTHING


def test_bindings_of_different_exports_do_not_compete(there: Typed) -> None:
    there.bind("one", "zebra", "widgets")
    there.bind("two", "ant", "other-widgets")
    for cluster in ("one", "two"):
        there.widget(cluster)
        there.place(cluster, namespaceSelector=GO)
    assert there.at().row(binding("zebra")).digest is not None
    assert there.at().row(binding("ant")).digest is not None


def test_a_grant_of_a_kind_lets_the_binding_through_that_brings_it(there: Typed) -> None:
    there.bind("one", "wb")
    there.widget("one")
    placement = there.place("one", namespaceSelector=GO)
    there.book.mode = "Enforce"
    assert there.at().row(binding("wb")).refused == (placement,)
    there.book.granted = [ANY_WIDGET]
    row = there.at().row(binding("wb"))
    assert (row.digest is not None, row.refused) == (True, ())


def test_whether_a_definition_is_needed_depends_on_everything_in_the_workspace(
    there: Typed,
) -> None:
    there.define("one", "v1")
    there.widget("one")
    there.place("one", namespaceSelector=GO)
    key = there.workspaces.watch_of("one", WIDGETS)
    assert key in set(there.at().scopes(DEFINITION))
    assert set(there.workspaces.all_scopes("one")) <= set(there.at().scopes(DEFINITION))


def test_a_placement_sends_the_definitions_of_what_it_sends(there: Typed) -> None:
    there.define("one", "v1")
    there.widget("one")
    placement = there.place("one", namespaceSelector=GO)
    assert {DEFINITION, WIDGET} <= set(there.route.items(placement))
    assert {DEFINITION, WIDGET} <= set(there.route.items_within("one", "n"))
    assert DEFINITION not in set(there.route.items_within("one", "empty"))


def test_workspaces_without_a_version_in_common_hear_which_one_is_used(there: Typed) -> None:
    placements = []
    for cluster, version in (("one", "v1"), ("two", "v2")):
        there.define(cluster, version)
        there.widget(cluster)
        placements.append(there.place(cluster, namespaceSelector=GO))
    found = desired_config(there.at())
    disagree = [each for each in found.problems if each.problem.reason == VERSIONS_DISAGREE]
    assert sorted(each.placement for each in disagree) == placements
    assert disagree[0].problem.message == (
        "no version of widgets.example.io is served by every workspace that places it; v2 is used"
    )


def test_what_may_come_up_is_what_grants_cover(there: Typed) -> None:
    there.define("one", "v1")
    there.put(NAMESPACE_WATCH, thing("n", "one", labels={"go": "yes"}))
    there.place("one", namespaceSelector=GO, upsync=[{**UPSYNC, "resources": ["widgets", "gears"]}])
    there.book.mode, there.book.granted = "Enforce", [ANY_WIDGET]
    spec = desired_config(there.at()).spec
    assert spec is not None
    assert [each["resources"] for each in spec["upsync"]] == [["widgets"]]


def test_a_mailbox_that_is_gone_has_nothing_under_any_name(there: Typed) -> None:
    there.placed()
    there.copy()
    assert there.at().holders.copy(ObjectRef("", "", "configmaps", "n", "page")) is not None
    there.mailboxes.remove(there.at().mailbox)
    assert there.at().holders.copy(ObjectRef("", "", "configmaps", "n", "page")) is None
