"""The forms an answer may take, and what happens when none will do."""

from __future__ import annotations

import yaml

from skerry.logic.machinery import protobuf
from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, config_map, definition, deployment, pod, thing, version
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.org/v1/namespaces/default/things"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@virtual
async def test_tables_have_the_columns_of_the_kind() -> None:
    async with serving() as server:
        await server.create(DEPLOYMENTS, deployment("web", 2))
        table = (await server.get(DEPLOYMENTS, headers=TABLE)).body
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        names = [column["name"] for column in table["columnDefinitions"]]
        assert names[:5] == ["Name", "Ready", "Up-to-date", "Available", "Age"]
        (row,) = table["rows"]
        assert row["cells"][:2] == ["web", "0/2"]
        assert row["object"]["kind"] == "PartialObjectMetadata"
        assert table["metadata"]["resourceVersion"]
        one = (await server.get(f"{DEPLOYMENTS}/web", headers=TABLE)).body
        assert one["rows"][0]["cells"][0] == "web"


@virtual
async def test_a_table_carries_as_much_of_the_object_as_asked() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        for include, kind in (("None", None), ("Metadata", "PartialObjectMetadata")):
            table = (await server.get(f"{MAPS}?includeObject={include}", headers=TABLE)).body
            assert (table["rows"][0]["object"] or {}).get("kind") == kind
        whole = (await server.get(f"{MAPS}?includeObject=Object", headers=TABLE)).body
        assert whole["rows"][0]["object"]["kind"] == "ConfigMap"
        refused = await server.get(f"{MAPS}?includeObject=Half", headers=TABLE)
        assert refused.status == 400


@virtual
async def test_ages_are_reported_as_text_at_the_time_of_asking() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        await server.sleep(3 * 3600 + 25 * 60)
        (row,) = (await server.get(MAPS, headers=TABLE)).body["rows"]
        assert row["cells"][-1] == "3h25m"


@virtual
async def test_every_type_can_be_listed_as_a_table() -> None:
    async with serving() as server:
        for resource in server.api.catalogue.types("local").resources:
            info = resource.info
            if "list" not in info.verbs:
                continue
            path = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
            listed = await server.get(f"{path}/{info.resource}", headers=TABLE)
            assert listed.status == 200, info
            names = {column["name"] for column in listed.body["columnDefinitions"]}
            assert "Name" in names


@virtual
async def test_custom_kinds_have_the_columns_they_define() -> None:
    async with serving() as server:
        columns = [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Wide", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        ]
        defined = definition(
            versions=[version("v1", storage=True, additionalPrinterColumns=columns)]
        )
        await server.create(DEFINITIONS, defined)
        path = "/apis/example.org/v1/namespaces/default/things"
        await server.create(path, thing("t", size=4))
        table = (await server.get(path, headers=TABLE)).body
        assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size", "Wide"]
        assert table["rows"][0]["cells"] == ["t", 4, "red"]


@virtual
async def test_only_items_of_custom_kinds_and_of_metadata_lists_name_their_kind() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, thing("t"))
        await server.create(MAPS, config_map("c", a="1"))
        partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        for path, accept, named in (
            (MAPS, "application/json", False),
            (f"{MAPS}?pretty=true", "application/json", False),
            (MAPS, "application/yaml", False),
            (MAPS, partial, True),
            (DEFINITIONS, "application/json", False),
            (THINGS, "application/json", True),
            (THINGS, "application/yaml", True),
        ):
            answer = await server.get(path, headers={"accept": accept})
            body = yaml.safe_load(answer.raw)
            for item in body["items"]:
                assert ("kind" in item, "apiVersion" in item) == (named, named), (path, accept)
            assert "kind" in body
        # A single object always names its kind.
        assert (await server.get(f"{MAPS}/c")).body["kind"] == "ConfigMap"


@virtual
async def test_metadata_alone_can_be_had_of_one_and_of_many() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        one = await server.get(
            f"{MAPS}/c",
            headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
        )
        assert one.body["kind"] == "PartialObjectMetadata"
        assert "data" not in one.body
        many = await server.get(
            MAPS,
            headers={"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
        )
        assert many.body["kind"] == "PartialObjectMetadataList"
        assert many.body["items"][0]["metadata"]["name"] == "c"


@virtual
async def test_yaml_is_answered_where_asked_for_and_safe_for_go() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="y", b="yes", c="1", d="null"))
        found = await server.get(f"{MAPS}/c", headers={"accept": "application/yaml"})
        assert yaml.safe_load(found.raw)["data"] == {"a": "y", "b": "yes", "c": "1", "d": "null"}
        assert b"a: 'y'" in found.raw, "Go reads a bare y as true"
        listed = await server.get(MAPS, headers={"accept": "application/yaml"})
        assert yaml.safe_load(listed.raw)["kind"] == "ConfigMapList"


@virtual
async def test_the_first_form_we_know_is_taken_and_protobuf_falls_back_to_json() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        for accept, kind in (
            ("application/vnd.kubernetes.protobuf", "ConfigMap"),
            ("application/vnd.kubernetes.protobuf, */*", "ConfigMap"),
            ("application/json;as=Unicorn;v=v1;g=meta.k8s.io, application/json", "ConfigMap"),
            ("application/json;as=Table;v=v1;g=meta.k8s.io, application/json", "Table"),
            ("*/*", "ConfigMap"),
            ("application/*", "ConfigMap"),
        ):
            found = await server.get(f"{MAPS}/c", headers={"accept": accept})
            assert found.body["kind"] == kind, accept


@virtual
async def test_forms_we_do_not_have_are_not_acceptable() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        for accept in ("text/html", "application/json;as=Unicorn;v=v1;g=meta.k8s.io"):
            refused = await server.get(f"{MAPS}/c", headers={"accept": accept})
            assert refused.status == 406, accept
            assert refused.body["reason"] == "NotAcceptable"
            assert "only the following media types are accepted" in refused.body["message"]


@virtual
async def test_a_list_that_is_streamed_is_never_a_table() -> None:
    streamed = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        path = f"{MAPS}?{streamed}&allowWatchBookmarks=true"
        refused = await server.get(path, headers=TABLE)
        assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable")
        either = {"accept": f"{TABLE['accept']},application/json"}
        async with server.watch(path, headers=either) as watch:
            assert (await watch.lines.get())["object"]["kind"] == "ConfigMap"
        async with server.watch(f"{MAPS}?watch=1&resourceVersion=0", headers=TABLE) as watch:
            assert (await watch.lines.get())["object"]["kind"] == "Table"


@virtual
async def test_a_time_limit_that_is_none_is_refused() -> None:
    async with serving() as server:
        for path in ("/version", MAPS):
            refused = await server.get(f"{path}?timeout=invalid")
            assert refused.status == 400
            assert refused.body["message"] == (
                'invalid timeout specified in the request URL - time: invalid duration "invalid"'
            )
        for limit in ("3m", "0s", "1.5h"):
            assert (await server.get(f"{MAPS}?timeout={limit}")).status == 200
        async with server.watch(f"{MAPS}?watch=1&timeout=invalid"):
            pass


@virtual
async def test_pretty_answers_are_for_people() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        assert (await server.get(f"{MAPS}/c")).raw.count(b"\n") == 0
        assert (await server.get(f"{MAPS}/c?pretty=true")).raw.count(b"\n") > 5


@virtual
async def test_protobuf_bodies_of_built_in_kinds_are_understood() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        media = "application/vnd.kubernetes.protobuf"
        made = await server.create(f"{CORE}/pods", protobuf.encode(pod("p")), content_type=media)
        assert made.status == 201, made.body
        assert made.body["spec"]["containers"][0]["name"] == "main"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        gone = await server.request(
            "DELETE", f"{CORE}/pods/p", protobuf.encode(options), content_type=media
        )
        assert gone.status == 200, gone.body
        broken = await server.create(f"{CORE}/pods", b"k8s\x00garbage", content_type=media)
        assert broken.status == 400


@virtual
async def test_a_type_served_at_two_versions_is_one_object() -> None:
    async with serving() as server:
        versions = [version("v1", storage=True), version("v2", storage=False)]
        await server.create(DEFINITIONS, definition(versions=versions))
        one, two = (f"/apis/example.org/{v}/namespaces/default/things" for v in ("v1", "v2"))
        await server.create(one, thing("t", size=1))
        found = await server.get(f"{two}/t")
        assert found.body["apiVersion"] == "example.org/v2"
        assert [i["apiVersion"] for i in (await server.get(two)).body["items"]] == [
            "example.org/v2"
        ]
        changed = await server.patch(f"{two}/t", {"spec": {"size": 2}})
        assert changed.body["apiVersion"] == "example.org/v2"
        assert (await server.get(f"{one}/t")).body["spec"]["size"] == 2
        async with server.watch(f"{two}?watch=1") as sender:
            event = await sender.lines.get()
            assert event["object"]["apiVersion"] == "example.org/v2"


@virtual
async def test_autoscalers_are_one_object_at_both_versions() -> None:
    async with serving() as server:
        one, two = (
            f"/apis/autoscaling/{v}/namespaces/default/horizontalpodautoscalers"
            for v in ("v1", "v2")
        )
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        sent = {
            "metadata": {"name": "h"},
            "spec": {
                "scaleTargetRef": target,
                "maxReplicas": 5,
                "targetCPUUtilizationPercentage": 70,
            },
        }
        made = await server.create(one, sent)
        assert made.status == 201, made.body
        assert made.body["spec"]["targetCPUUtilizationPercentage"] == 70
        newer = (await server.get(f"{two}/h")).body
        assert newer["apiVersion"] == "autoscaling/v2"
        assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
        newer["spec"]["maxReplicas"] = 9
        assert (await server.put(f"{two}/h", newer)).status == 200
        older = (await server.get(f"{one}/h")).body
        assert older["spec"]["maxReplicas"] == 9
        assert older["spec"]["targetCPUUtilizationPercentage"] == 70
        assert (await server.delete(f"{one}/h")).status == 200
        assert (await server.get(two)).body["items"] == []
