"""delete: preconditions, grace, finalizers, propagation, collections."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from tests.kit.machinery.crds import cron_tab
from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.objects import CORE, config_map, deployment, pod, service
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
PODS = f"{CORE}/pods"


async def with_account(server: Server) -> None:
    await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})


async def deleted(server: Server, path: str, **options: Any) -> Reply:
    return await server.delete(path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})


@virtual
async def test_an_object_that_nothing_holds_goes_at_once() -> None:
    async with serving() as server:
        made = (await server.create(MAPS, config_map("c"))).body
        gone = await server.delete(f"{MAPS}/c")
        assert gone.status == 200
        assert gone.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]},
        }
        assert (await server.get(f"{MAPS}/c")).status == 404
        assert (await server.delete(f"{MAPS}/c")).status == 404


@virtual
async def test_some_kinds_answer_with_the_object() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/services", service("s"))
        assert (await server.delete(f"{CORE}/services/s")).body["kind"] == "Service"


@virtual
async def test_preconditions_must_hold() -> None:
    async with serving() as server:
        made = (await server.create(MAPS, config_map("c"))).body["metadata"]
        for preconditions, words in (
            (
                {"uid": "other"},
                "Precondition failed: UID in precondition: other, UID in object meta",
            ),
            ({"resourceVersion": "1"}, "Precondition failed: ResourceVersion in precondition: 1"),
        ):
            refused = await deleted(server, f"{MAPS}/c", preconditions=preconditions)
            assert refused.status == 409
            assert words in refused.body["message"]
        holding = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
        assert (await deleted(server, f"{MAPS}/c", preconditions=holding)).status == 200


@virtual
async def test_finalizers_keep_an_object_marked_until_the_last_is_gone() -> None:
    async with serving() as server:
        sent = config_map("c")
        sent["metadata"]["finalizers"] = ["example.org/a", "example.org/b"]
        await server.create(MAPS, sent)
        marked = await server.delete(f"{MAPS}/c")
        assert marked.status == 200
        metadata = marked.body["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == 0
        first = metadata["deletionTimestamp"]
        again = (await server.delete(f"{MAPS}/c")).body["metadata"]
        assert again["deletionTimestamp"] == first
        assert again["resourceVersion"] == metadata["resourceVersion"]
        fewer = await server.patch(f"{MAPS}/c", {"metadata": {"finalizers": ["example.org/b"]}})
        assert fewer.status == 200
        added = {"metadata": {"finalizers": ["example.org/b", "example.org/c"]}}
        refused = await server.patch(f"{MAPS}/c", added)
        assert refused.status == 422
        assert (
            "no new finalizers can be added if the object is being deleted"
            in (refused.body["message"])
        )
        last = await server.patch(f"{MAPS}/c", {"metadata": {"finalizers": None}})
        assert last.status == 200
        assert (await server.get(f"{MAPS}/c")).status == 404


@virtual
async def test_marking_counts_as_a_change_where_changes_are_counted() -> None:
    async with serving() as server:
        path = "/apis/apps/v1/namespaces/default/deployments"
        sent = deployment("web")
        sent["metadata"]["finalizers"] = ["example.org/a"]
        await server.create(path, sent)
        assert (await server.delete(f"{path}/web")).body["metadata"]["generation"] == 2


@virtual
async def test_a_deletion_cannot_be_taken_back_by_an_update() -> None:
    async with serving() as server:
        sent = config_map("c")
        sent["metadata"]["finalizers"] = ["example.org/a"]
        await server.create(MAPS, sent)
        await server.delete(f"{MAPS}/c")
        put = await server.put(f"{MAPS}/c", sent)
        assert "deletionTimestamp" in put.body["metadata"]


@virtual
async def test_propagation_leaves_its_finalizer() -> None:
    async with serving() as server:
        for policy, finalizers in (
            ("Orphan", ["orphan"]),
            ("Foreground", ["foregroundDeletion"]),
        ):
            await server.create(MAPS, config_map(policy.lower()))
            kept = await deleted(server, f"{MAPS}/{policy.lower()}", propagationPolicy=policy)
            assert kept.body["metadata"]["finalizers"] == finalizers
        await server.create(MAPS, config_map("background"))
        gone = await deleted(server, f"{MAPS}/background", propagationPolicy="Background")
        assert gone.body["kind"] == "Status"
        await server.create(MAPS, config_map("old"))
        kept = await deleted(server, f"{MAPS}/old", orphanDependents=True)
        assert kept.body["metadata"]["finalizers"] == ["orphan"]


@virtual
async def test_old_kinds_leave_what_they_own_unless_a_policy_is_given() -> None:
    jobs, sets = "/apis/batch/v1/namespaces/default/jobs", f"{CORE}/replicationcontrollers"
    kinds = ((jobs, "batch/v1", "Job"), (sets, "v1", "ReplicationController"))
    async with serving() as server:
        for path, version, kind in kinds:
            for name in ("silent", "explicit"):
                sent = owner_of_pods(version, kind, name)
                assert (await server.create(path, sent)).status == 201
            kept = await server.delete(f"{path}/silent")
            assert kept.body["metadata"]["finalizers"] == ["orphan"], kind
            assert bool(kept.warnings) is (kind == "Job")
            gone = await deleted(server, f"{path}/explicit", propagationPolicy="Background")
            assert (gone.body["kind"], gone.warnings) == ("Status", [])
        settled = await deleted(server, f"{jobs}/silent", propagationPolicy="Background")
        assert settled.body["kind"] == "Status", "a later delete decides anew"


def owner_of_pods(version: str, kind: str, name: str) -> Object:
    container = {"name": "c", "image": "i"}
    template: Object = {"spec": {"containers": [container], "restartPolicy": "Always"}}
    spec: Object = {"template": template}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        template["metadata"] = {"labels": {"app": "a"}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


@virtual
async def test_options_that_make_no_sense_are_refused() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        for options, code in (
            ({"propagationPolicy": "Sideways"}, 422),
            ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
            ({"dryRun": ["Some"]}, 422),
            ({"gracePeriodSeconds": "soon"}, 400),
            ({"preconditions": ["uid"]}, 400),
            ({"kind": "Pod"}, 400),
        ):
            refused = await deleted(server, f"{MAPS}/c", **options)
            assert refused.status == code, (options, refused.body)
        assert (await server.get(f"{MAPS}/c")).status == 200


@virtual
async def test_a_pod_nobody_runs_goes_at_once_whatever_is_asked() -> None:
    async with serving() as server:
        await with_account(server)
        await server.create(PODS, pod("p"))
        await deleted(server, f"{PODS}/p", gracePeriodSeconds=50)
        assert (await server.get(f"{PODS}/p")).status == 404


@virtual
async def test_a_running_pod_gets_its_time_which_may_only_shrink() -> None:
    async with serving() as server:
        await with_account(server)
        await server.create(PODS, pod("p", nodeName="n", terminationGracePeriodSeconds=40))
        first = (await server.delete(f"{PODS}/p")).body["metadata"]
        assert first["deletionGracePeriodSeconds"] == 40
        longer = (await deleted(server, f"{PODS}/p", gracePeriodSeconds=90)).body["metadata"]
        assert longer["deletionTimestamp"] == first["deletionTimestamp"]
        shorter = (await deleted(server, f"{PODS}/p", gracePeriodSeconds=5)).body["metadata"]
        assert shorter["deletionGracePeriodSeconds"] == 5
        assert shorter["deletionTimestamp"] < first["deletionTimestamp"]
        now = await deleted(server, f"{PODS}/p", gracePeriodSeconds=0)
        assert now.body["kind"] == "Pod"
        assert (await server.get(f"{PODS}/p")).status == 404


@virtual
async def test_a_finished_pod_needs_no_time() -> None:
    async with serving() as server:
        await with_account(server)
        await server.create(PODS, pod("p", nodeName="n"))
        await server.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
        await server.delete(f"{PODS}/p")
        assert (await server.get(f"{PODS}/p")).status == 404


@virtual
async def test_a_collection_goes_as_selected() -> None:
    async with serving() as server:
        for number in range(6):
            await server.create(MAPS, config_map(f"c{number}", {"odd": str(number % 2)}))
        gone = await server.request("DELETE", f"{MAPS}?labelSelector=odd%3D1")
        assert gone.body["kind"] == "ConfigMapList"
        assert [item["metadata"]["name"] for item in gone.body["items"]] == ["c1", "c3", "c5"]
        left = (await server.get(MAPS)).body["items"]
        assert [item["metadata"]["name"] for item in left] == ["c0", "c2", "c4"]
        await server.request("DELETE", f"{MAPS}?dryRun=All")
        assert len((await server.get(MAPS)).body["items"]) == 3
        await server.request("DELETE", MAPS)
        assert (await server.get(MAPS)).body["items"] == []


@virtual
async def test_a_collection_leaves_what_finalizers_hold() -> None:
    async with serving() as server:
        held = config_map("held")
        held["metadata"]["finalizers"] = ["example.org/a"]
        await server.create(MAPS, held)
        await server.create(MAPS, config_map("free"))
        await server.request("DELETE", MAPS)
        (left,) = (await server.get(MAPS)).body["items"]
        assert left["metadata"]["name"] == "held"
        assert "deletionTimestamp" in left["metadata"]


@virtual
async def test_immortal_namespaces_stay() -> None:
    async with serving() as server:
        for name in ("default", "kube-system", "kube-public"):
            refused = await server.delete(f"/api/v1/namespaces/{name}")
            assert refused.status == 403
            assert "this namespace may not be deleted" in refused.body["message"]


@virtual
async def test_a_namespace_waits_for_its_finalizer_and_takes_nothing_new() -> None:
    async with serving() as server:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
        going = (await server.delete("/api/v1/namespaces/n")).body
        assert going["status"]["phase"] == "Terminating"
        assert going["spec"]["finalizers"] == ["kubernetes"]
        refused = await server.create("/api/v1/namespaces/n/configmaps", config_map("c"))
        assert refused.status == 403
        assert refused.body["message"] == (
            'configmaps "c" is forbidden: unable to create new content in namespace n because it '
            "is being terminated"
        )
        assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        going["spec"]["finalizers"] = []
        ended = await server.put("/api/v1/namespaces/n/finalize", going)
        assert ended.status == 200
        assert (await server.get("/api/v1/namespaces/n")).status == 404
        nowhere = await server.create("/api/v1/namespaces/n/configmaps", config_map("c"))
        assert nowhere.status == 404
        assert nowhere.body["message"] == 'namespaces "n" not found'


@virtual
async def test_a_namespace_is_given_no_time() -> None:
    async with serving() as server:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
        for _ in range(2):
            gone = (await server.delete("/api/v1/namespaces/n")).body["metadata"]
            assert "deletionTimestamp" in gone
            assert "deletionGracePeriodSeconds" not in gone


@virtual
async def test_a_definition_has_its_finalizer_from_its_deletion_on() -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with serving() as server:
        made = (await server.create(path, cron_tab())).body
        assert "finalizers" not in made["metadata"]
        name = f"{path}/{made['metadata']['name']}"
        gone = (await server.delete(name)).body["metadata"]
        assert gone["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert "deletionGracePeriodSeconds" not in gone


@virtual
async def test_a_pod_that_goes_at_once_shows_that_no_time_was_left() -> None:
    async with serving() as server:
        await with_account(server)
        await server.create(PODS, pod("p"))
        gone = (await server.delete(f"{PODS}/p")).body["metadata"]
        assert gone["deletionGracePeriodSeconds"] == 0
        assert "deletionTimestamp" in gone


@virtual
async def test_a_refused_delete_carries_its_warnings() -> None:
    async with serving() as server:
        refused = await server.delete("/apis/batch/v1/namespaces/default/jobs/absent")
        assert refused.status == 404
        assert refused.warnings[0].startswith('299 - "child pods are preserved by default')
