"""A hub whose data a previous version wrote offers what this version adds, and keeps the rest."""

from __future__ import annotations

from skerry.api.edge import EDGE_PLACEMENTS, LOCATION_GRANTS
from skerry.api.kcp.resources import API_BINDINGS, API_EXPORTS, API_RESOURCE_SCHEMAS
from skerry.app.hub_content import edge_export_objects, ensure_edge_provider, extended_export
from tests.kit.chain import building
from tests.kit.chain.edge_scheduler_hub import PROVIDER, Hub
from tests.kit.sim.loop import virtual

_WANTED = next(obj for obj in edge_export_objects() if obj["kind"] == "APIExport")


def test_an_export_is_given_the_kinds_it_lacks_and_keeps_its_schemas() -> None:
    old = ["v1.edgeplacements.edge.kcp.io", "v1.gone.edge.kcp.io"]
    live = {"metadata": {"name": "edge.kcp.io"}, "spec": {"latestResourceSchemas": old, "x": 1}}
    extended = extended_export(live, _WANTED)
    assert extended is not None
    names = extended["spec"]["latestResourceSchemas"]
    assert names[:2] == old
    kinds = [name.partition(".")[2] for name in names]
    assert len(kinds) == len(set(kinds))
    assert "locationgrants.edge.kcp.io" in kinds
    assert extended["spec"]["x"] == 1
    assert extended_export(extended, _WANTED) is None


def test_schemas_of_an_earlier_version_give_way_and_others_stay() -> None:
    names = _WANTED["spec"]["latestResourceSchemas"]
    [placements] = [name for name in names if ".edgeplacements." in name]
    offered = ["v230101.edgeplacements.edge.kcp.io", "v991231.customizers.edge.kcp.io"]
    offered += ["mine.syncerconfigs.edge.kcp.io", "v230101.gone.edge.kcp.io"]
    live = {"metadata": {}, "spec": {"latestResourceSchemas": offered}}
    extended = extended_export(live, _WANTED)
    assert extended is not None
    found = extended["spec"]["latestResourceSchemas"]
    assert found[:4] == [placements, *offered[1:]]
    assert extended_export(extended, _WANTED) is None


@virtual
async def test_placements_of_an_earlier_version_have_the_fields_of_this_one() -> None:
    hub = Hub()
    async with hub.running("imw"):
        espw = hub.at(PROVIDER)
        export = await espw.get(API_EXPORTS, "edge.kcp.io")
        names = export["spec"]["latestResourceSchemas"]
        [now] = [name for name in names if ".edgeplacements." in name]
        old = await espw.get(API_RESOURCE_SCHEMAS, now)
        before = "v230101.edgeplacements.edge.kcp.io"
        old["metadata"] = {"name": before}
        spec = old["spec"]["versions"][0]["schema"]["properties"]["spec"]
        del spec["properties"]["reportedState"]
        await espw.create(API_RESOURCE_SCHEMAS, old)
        offered = [before if name == now else name for name in names]
        await espw.update(API_EXPORTS, {**export, "spec": {"latestResourceSchemas": offered}})
        await hub.make_workspace("root", "old")
        await hub.bind("root:old")
        owner = hub.at("root:old")
        placement = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "p"},
            "spec": {"locationSelectors": [{}], "reportedState": "Aggregate"},
        }
        made = await owner.create(EDGE_PLACEMENTS, placement)
        assert "reportedState" not in made["spec"]
        await ensure_edge_provider(hub.api)
        await hub.settle(2)
        change = {"spec": {"reportedState": "Aggregate"}}
        after = await owner.patch(EDGE_PLACEMENTS, "p", change)
        assert after["metadata"]["uid"] == made["metadata"]["uid"]
        assert after["spec"]["reportedState"] == "Aggregate"


@virtual
async def test_workspaces_bound_before_an_upgrade_serve_grants_after_it() -> None:
    hub = Hub()
    async with hub.running("imw"):
        espw = hub.at(PROVIDER)
        export = await espw.get(API_EXPORTS, "edge.kcp.io")
        kept = [
            name
            for name in export["spec"]["latestResourceSchemas"]
            if "locationgrants" not in name and "locationconsents" not in name
        ]
        await espw.update(API_EXPORTS, {**export, "spec": {"latestResourceSchemas": kept}})
        await hub.make_workspace("root", "old")
        await hub.bind("root:old")
        await ensure_edge_provider(hub.api)
        await hub.settle(1)
        grant = building.grant("g", paths=["root:shop"], selector={})
        made = {**grant, "metadata": {"name": "g"}}
        await hub.at("root:old").create(LOCATION_GRANTS, made)
        binding = await hub.at("root:old").get(API_BINDINGS, "bind-espw")
        assert "locationgrants" in {r["resource"] for r in binding["status"]["boundResources"]}
