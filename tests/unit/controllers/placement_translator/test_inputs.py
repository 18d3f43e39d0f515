"""What the tables are filled from: which kinds are followed, and what is kept of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    SYNCER_CONFIGS,
    edge_placement_ref,
)
from skerry.api.kcp.resources import API_RESOURCE_SCHEMAS, LOCATIONS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.placement_translator.inputs import (
    BY_PLACEMENT,
    Granting,
    Inputs,
    Views,
    lean_revision,
    lean_rollout,
)
from skerry.controllers.placement_translator.records import placement_ref_of_slice
from skerry.kit.ids import SeededIds
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.informer import Informer, InformerFactory, Keeps, Transform
from tests.kit.chain.translator_world import cluster_object
from tests.kit.sim.twin import Twin


class Asked(InformerFactory):
    """Remembers in which form each kind was asked for."""

    def __init__(self) -> None:
        super().__init__(Client(Twin()), ids=SeededIds(0))
        self.transforms: dict[GroupVersionResource, Transform] = {}
        self.packed: set[GroupVersionResource] = set()

    def informer(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        *,
        transform: Transform | None = None,
        keeps: Keeps | None = None,
        packed: bool = False,
        compact: bool = False,
    ) -> Informer:
        if transform is not None:
            self.transforms[gvr] = transform
        if packed:
            self.packed.add(gvr)
        return super().informer(
            gvr, selection, transform=transform, keeps=keeps, packed=packed, compact=compact
        )


class Desk:
    """The translator's inputs, over views that no server fills."""

    def __init__(self, **more: Any) -> None:
        context = ControllerContext(Client(Twin()), Asked(), SeededIds(0))
        self.edge, self.scheduling, self.provider = Asked(), Asked(), Asked()
        found = Views(context, self.edge, self.scheduling, self.provider)
        self.inputs = Inputs(replace(found, **more))

    def followed(self) -> list[GroupVersionResource]:
        return [each.gvr for each in self.inputs.all]


def noted(name: str, **more: Any) -> Object:
    """Return an object with a note of who wrote which of its fields."""
    found = cluster_object("c", name, **more)
    found["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    return found


OPTIONAL = {
    "guards": {PLACEMENT_GUARDS},
    "grants": {LOCATION_GRANTS, LOCATION_CONSENTS},
    "revisions": {ROLLOUTS, PLACEMENT_REVISIONS},
}


@pytest.mark.parametrize(
    ("views", "kinds"),
    [
        ({"has_revisions": False}, set()),
        ({"has_revisions": True}, OPTIONAL["revisions"]),
        ({"has_revisions": False, "exporter": "espw"}, OPTIONAL["guards"]),
        ({"has_revisions": False, "granting": Granting(Asked(), Asked())}, OPTIONAL["grants"]),
        (
            {"exporter": "espw", "granting": Granting(Asked(), Asked())},
            set().union(*OPTIONAL.values()),
        ),
    ],
    ids=["none", "revisions", "guards", "grants", "all"],
)
def test_what_a_hub_does_not_offer_is_not_followed(
    views: dict[str, Any], kinds: set[GroupVersionResource]
) -> None:
    desk = Desk(**views)

    always = {
        API_RESOURCE_SCHEMAS,
        LOCATIONS,
        CUSTOMIZERS,
        WORKSPACES,
        SYNCER_CONFIGS,
        SINGLE_PLACEMENT_SLICES,
        EDGE_PLACEMENTS,
    }
    assert set(desk.followed()) == always | kinds
    assert len(desk.followed()) == len(set(desk.followed()))


def test_kinds_of_which_there_are_thousands_are_kept_packed() -> None:
    desk = Desk()

    assert desk.edge.packed == {
        SINGLE_PLACEMENT_SLICES,
        CUSTOMIZERS,
        SYNCER_CONFIGS,
        PLACEMENT_REVISIONS,
    }
    assert desk.scheduling.packed == {LOCATIONS}
    assert desk.provider.packed == {WORKSPACES}


def test_the_slices_of_a_placement_are_found_by_it() -> None:
    slices = Desk().inputs.slices
    lean: dict[str, Any] = {"destinations": []}
    slices.apply("ADDED", cluster_object("one", "web", **lean))
    slices.apply("ADDED", cluster_object("one", "other", **lean))
    slices.apply("ADDED", cluster_object("two", "web", **lean))

    found = slices.index.by(BY_PLACEMENT, edge_placement_ref("one", "web"))

    assert [each["metadata"]["name"] for each in found] == ["web"]
    assert [placement_ref_of_slice(each).cluster for each in found] == ["one"]


# -- schemas ---------------------------------------------------------------------------------------


def schema(cluster: str, name: str) -> Object:
    return cluster_object(cluster, name, spec={})


def test_schemas_are_known_when_all_have_been_read_and_not_before() -> None:
    inputs = Desk().inputs
    inputs.schemas.apply("ADDED", schema("root", "v1.widgets"))
    assert inputs.schema_table() is None, "there may be more"

    inputs.schemas.synced.set()
    found = inputs.schema_table()
    assert found is not None
    assert set(found) == {("root", "v1.widgets")}


def test_the_table_of_schemas_is_made_once_until_one_changes() -> None:
    inputs = Desk().inputs
    inputs.schemas.synced.set()
    inputs.schemas.apply("ADDED", schema("root", "v1.widgets"))
    first = inputs.schema_table()
    assert inputs.schema_table() is first

    inputs.schemas.apply("ADDED", schema("other", "v1.widgets"))
    second = inputs.schema_table()
    assert second is not None
    assert set(second) == {("root", "v1.widgets"), ("other", "v1.widgets")}

    inputs.schemas.apply("DELETED", schema("root", "v1.widgets"))
    third = inputs.schema_table()
    assert third is not None
    assert set(third) == {("other", "v1.widgets")}


# -- what is kept of each kind ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "kept"),
    [
        (SINGLE_PLACEMENT_SLICES, {"destinations": [{"a": 1}]}, {"destinations": [{"a": 1}]}),
        (SINGLE_PLACEMENT_SLICES, {}, {"destinations": []}),
        (SINGLE_PLACEMENT_SLICES, {"destinations": None}, {"destinations": []}),
        (
            SYNCER_CONFIGS,
            {"spec": {"upsync": []}, "status": {"a": 1}},
            {"spec": {"upsync": []}, "status": {}},
        ),
        (SYNCER_CONFIGS, {"spec": {"upsync": []}, "status": None}, {"spec": {"upsync": []}}),
        (SYNCER_CONFIGS, {"spec": None}, {"spec": {}}),
        (
            PLACEMENT_REVISIONS,
            {"spec": {"number": 1}, "status": {"verdict": "Bad"}},
            {"spec": {"number": 1}, "status": {"verdict": "Bad"}},
        ),
        (PLACEMENT_REVISIONS, {"spec": {}, "status": None}, {"spec": {}, "status": {}}),
        (ROLLOUTS, {"spec": None, "status": None}, {"spec": {}, "status": {}}),
    ],
    ids=lambda each: each.resource if isinstance(each, GroupVersionResource) else None,
)
def test_of_an_edge_object_remains_what_translation_reads(
    kind: GroupVersionResource, fields: Object, kept: Object
) -> None:
    obj = noted("x", **fields)
    found = Desk().edge.transforms[kind](obj)

    metadata = found.pop("metadata")
    assert found == kept
    assert metadata == {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    assert "managedFields" in obj["metadata"], "what arrived is not changed"


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"instanceSelector": {"matchLabels": {"a": "b"}}, "description": "x"},
         {"instanceSelector": {"matchLabels": {"a": "b"}}}),
        ({"instanceSelector": {}}, {"instanceSelector": {}}),
        ({}, {}),
        (None, {}),
    ],
    ids=["selector", "everything", "no selector", "no spec"],
)  # fmt: skip
def test_of_a_location_remain_its_labels_and_its_selector(
    spec: Object | None, kept: Object
) -> None:
    """An empty selector is kept apart from none: they do not mean the same."""
    obj = noted("x", labels={"env": "prod"}, spec=spec)
    found = Desk().scheduling.transforms[LOCATIONS](obj)

    assert found["spec"] == kept
    assert found["metadata"]["labels"] == {"env": "prod"}
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize("kind", [LOCATION_GRANTS, LOCATION_CONSENTS, PLACEMENT_GUARDS])
def test_of_what_owners_say_nobody_needs_to_know_with_which_tool_they_said_it(
    kind: GroupVersionResource,
) -> None:
    desk = Desk(exporter="espw", granting=Granting(Asked(), Asked()))
    found = desk.edge.transforms[kind](noted("x", spec={"a": 1}))

    assert "managedFields" not in found["metadata"]


def test_of_a_rollout_remains_what_settles_and_what_it_names() -> None:
    spec = {"settle": {"quiet": "1s"}, "waves": [1], "force": {"revision": 2}}
    status = {"target": 3, "stable": 2, "verdicts": {"good": "x"}, "phase": "Soaking"}
    found = lean_rollout(cluster_object("c", "web", spec=spec, status=status))
    assert found["spec"] == {"settle": {"quiet": "1s"}, "force": {"revision": 2}}
    assert found["status"] == {"target": 3, "stable": 2}


def test_of_a_revision_remains_all_but_who_wrote_it() -> None:
    obj = cluster_object("c", "web-1", spec={"number": 1})
    obj["metadata"]["managedFields"] = [{}]
    found = lean_revision(obj)
    assert found["spec"] == {"number": 1}
    assert "managedFields" not in found["metadata"]
