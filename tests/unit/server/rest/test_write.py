"""create and update: what the server adds, what it keeps, what it refuses and how it says so."""

from __future__ import annotations

import asyncio

from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, config_map, definition, deployment, pod, thing
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
THINGS = "/apis/example.org/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


# -- create ------------------------------------------------------------------------------------


@virtual
async def test_a_new_object_gets_what_only_the_server_may_set() -> None:
    async with serving() as server:
        sent = deployment("web")
        sent["metadata"] |= {
            "uid": "mine",
            "creationTimestamp": "1999-01-01T00:00:00Z",
            "generation": 77,
            "deletionTimestamp": "1999-01-01T00:00:00Z",
            "selfLink": "/x",
        }
        sent["status"] = {"replicas": 9}
        made = await server.create(DEPLOYMENTS, sent)
        assert made.status == 201
        metadata = made.body["metadata"]
        assert metadata["uid"] != "mine"
        assert metadata["creationTimestamp"] > "2029"
        assert metadata["generation"] == 1
        assert metadata["namespace"] == "default"
        assert "deletionTimestamp" not in metadata
        assert "selfLink" not in metadata
        assert made.body.get("status", {}) == {}
        assert made.body["spec"]["progressDeadlineSeconds"] == 600, "defaults are filled in"


@virtual
async def test_a_name_is_taken_once() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        again = await server.create(MAPS, config_map("c"))
        assert again.status == 409
        assert again.body["reason"] == "AlreadyExists"
        assert again.body["message"] == 'configmaps "c" already exists'


@virtual
async def test_of_many_that_race_for_a_name_one_wins() -> None:
    async with serving() as server:
        made = await asyncio.gather(*(server.create(MAPS, config_map("c")) for _ in range(20)))
        assert sorted(reply.status for reply in made) == [201] + [409] * 19


@virtual
async def test_generated_names_differ_and_keep_their_prefix() -> None:
    async with serving() as server:
        names = set()
        for _ in range(20):
            made = await server.create(MAPS, {"metadata": {"generateName": "g-"}})
            names.add(made.body["metadata"]["name"])
            assert made.body["metadata"]["generateName"] == "g-"
        assert len(names) == 20
        assert all(name.startswith("g-") and len(name) == 7 for name in names)


@virtual
async def test_a_nameless_object_is_refused() -> None:
    async with serving() as server:
        refused = await server.create(MAPS, {"metadata": {}})
        assert refused.status == 422
        assert "name or generateName is required" in refused.body["message"]


@virtual
async def test_names_must_be_names() -> None:
    async with serving() as server:
        for name in ("Upper", "under_score", "-dash", "a" * 254, "sla/sh", ".."):
            refused = await server.create(MAPS, config_map(name))
            assert refused.status == 422, name
            assert refused.body["details"]["causes"][0]["field"] == "metadata.name"


@virtual
async def test_body_and_path_must_agree() -> None:
    async with serving() as server:
        elsewhere = config_map("c")
        elsewhere["metadata"]["namespace"] = "other"
        for body, words in (
            (
                elsewhere,
                "the namespace of the provided object does not match the namespace sent on",
            ),
            (
                {"kind": "Pod", "apiVersion": "v1"},
                'Pod in version "v1" cannot be handled as a Conf',
            ),
            (
                {"kind": "ConfigMap", "apiVersion": "v2"},
                "the API version in the data (v2) does not match the expected API version (v1)",
            ),
        ):
            refused = await server.create(MAPS, body)
            assert refused.status == 400
            assert words in refused.body["message"]


@virtual
async def test_a_resource_version_cannot_be_brought_along() -> None:
    async with serving() as server:
        sent = config_map("c")
        sent["metadata"]["resourceVersion"] = "5"
        refused = await server.create(MAPS, sent)
        assert refused.status == 400
        assert refused.body["message"] == (
            "resourceVersion should not be set on objects to be created"
        )


@virtual
async def test_an_invalid_object_is_refused_with_every_cause() -> None:
    async with serving() as server:
        sent = deployment("web")
        sent["spec"]["replicas"] = -1
        sent["spec"]["template"]["spec"]["containers"][0]["name"] = "Not A Name"
        refused = await server.create(DEPLOYMENTS, sent)
        assert refused.status == 422
        assert refused.body["reason"] == "Invalid"
        assert refused.body["message"].startswith('Deployment.apps "web" is invalid: [spec.')
        details = refused.body["details"]
        assert (details["group"], details["kind"], details["name"]) == (
            "apps",
            "Deployment",
            "web",
        )
        fields = {cause["field"] for cause in details["causes"]}
        assert fields == {"spec.replicas", "spec.template.spec.containers[0].name"}


@virtual
async def test_wrong_types_fail_decoding() -> None:
    async with serving() as server:
        sent = deployment("web")
        sent["spec"]["replicas"] = "many"
        refused = await server.create(DEPLOYMENTS, sent)
        assert refused.status == 400
        assert "json: cannot unmarshal string into Go struct field" in refused.body["message"]
        for body in (b"", b"{", b"[]", b'"x"', b"{}}", b"\xff\xfe", b'{"a":1,}'):
            assert (await server.create(MAPS, body)).status == 400


@virtual
async def test_unknown_fields_are_reported_as_loudly_as_asked() -> None:
    async with serving() as server:
        sent = {**config_map("c"), "colour": "red"}
        sent["metadata"]["shape"] = "round"
        strict = await server.create(f"{MAPS}?fieldValidation=Strict", sent)
        assert strict.status == 400
        assert 'strict decoding error: unknown field "' in strict.body["message"]
        warned = await server.create(f"{MAPS}?fieldValidation=Warn&dryRun=All", sent)
        assert sorted(warned.warnings) == [
            '299 - "unknown field \\"colour\\""',
            '299 - "unknown field \\"metadata.shape\\""',
        ]
        quiet = await server.create(f"{MAPS}?fieldValidation=Ignore&dryRun=All", sent)
        assert (quiet.status, quiet.warnings) == (201, [])
        assert "colour" not in quiet.body
        usual = await server.create(MAPS, sent)
        assert len(usual.warnings) == 2
        wrong = await server.create(f"{MAPS}?fieldValidation=Maybe", sent)
        assert wrong.status == 422
        assert "Unsupported value" in wrong.body["message"]


@virtual
async def test_warnings_without_end_are_cut() -> None:
    async with serving() as server:
        sent = {**config_map("c"), **{f"unknown-{number:03}": 1 for number in range(500)}}
        made = await server.create(MAPS, sent)
        assert made.status == 201
        assert 50 < len(made.warnings) < 200
        assert sum(map(len, made.warnings)) < 8192


@virtual
async def test_fields_sent_twice_are_reported_too() -> None:
    async with serving() as server:
        body = b'{"metadata":{"name":"c"},"data":{"a":"1","a":"2"}}'
        strict = await server.create(f"{MAPS}?fieldValidation=Strict", body)
        assert 'duplicate field "data.a"' in strict.body["message"]
        assert (await server.create(MAPS, body)).warnings == [
            '299 - "duplicate field \\"data.a\\""'
        ]


@virtual
async def test_a_rehearsal_says_what_would_be_and_stores_nothing() -> None:
    async with serving() as server:
        before = await server.api.store.revision()
        made = await server.create(f"{MAPS}?dryRun=All", config_map("c"))
        assert made.status == 201
        assert made.body["metadata"]["uid"]
        assert "resourceVersion" not in made.body["metadata"]
        assert await server.api.store.revision() == before
        await server.create(MAPS, config_map("c", a="1"))
        assert (await server.create(f"{MAPS}?dryRun=All", config_map("c"))).status == 409
        changed = await server.put(f"{MAPS}/c?dryRun=All", config_map("c", a="2"))
        assert changed.body["data"] == {"a": "2"}
        assert (await server.request("DELETE", f"{MAPS}/c?dryRun=All")).status == 200
        assert (await server.get(f"{MAPS}/c")).body["data"] == {"a": "1"}
        assert (await server.create(f"{MAPS}?dryRun=Some", config_map("d"))).status == 422


@virtual
async def test_deprecated_things_are_warned_of() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        sent = pod("p", nodeSelector={"beta.kubernetes.io/os": "linux"})
        made = await server.create(f"{CORE}/pods", sent)
        assert made.status == 201
        assert any("deprecated" in warning for warning in made.warnings)


@virtual
async def test_nulls_in_lists_are_read_as_empty_items() -> None:
    async with serving() as server:
        template = {"spec": {"containers": [{"name": "a", "image": "i"}, None]}}
        sent = {"metadata": {"name": "t"}, "template": template}
        refused = await server.create(f"{CORE}/podtemplates", sent)
        assert refused.status == 422
        assert "template.spec.containers[1].name: Required value" in refused.body["message"]


@virtual
async def test_yaml_bodies_are_read_as_json_would_be() -> None:
    async with serving() as server:
        body = b"metadata:\n  name: c\n  labels: {a: b}\ndata:\n  2030-01-01: 'x'\n  on: 'y'\n"
        made = await server.create(MAPS, body, content_type="application/yaml")
        assert made.status == 201, made.body
        assert made.body["data"] == {"2030-01-01": "x", "true": "y"}
        broken = await server.create(MAPS, b"a: [", content_type="application/yaml")
        assert broken.status == 400
        bomb = b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
        assert (await server.create(MAPS, bomb, content_type="application/yaml")).status == 422


@virtual
async def test_bodies_of_unknown_kinds_are_refused() -> None:
    async with serving() as server:
        refused = await server.create(MAPS, b"<xml/>", content_type="application/xml")
        assert refused.status == 415
        assert refused.body["reason"] == "UnsupportedMediaType"
        refused = await server.request("PATCH", f"{MAPS}/c", {}, content_type="application/json")
        assert refused.status == 415


@virtual
async def test_nesting_without_end_is_refused() -> None:
    async with serving() as server:
        deep = b'{"metadata":{"name":"c"},"x":' + b"[" * 5000 + b"]" * 5000 + b"}"
        assert (await server.create(MAPS, deep)).status == 400
        assert (await server.create(MAPS, deep, content_type="application/yaml")).status == 400


# -- update ------------------------------------------------------------------------------------


@virtual
async def test_an_update_keeps_what_it_may_not_touch() -> None:
    async with serving() as server:
        made = (await server.create(DEPLOYMENTS, deployment("web"))).body
        sent = deployment("web", 4)
        sent["metadata"] |= {"creationTimestamp": "1999-01-01T00:00:00Z", "generation": 50}
        sent["status"] = {"replicas": 9}
        changed = (await server.put(f"{DEPLOYMENTS}/web", sent)).body
        for name in ("uid", "creationTimestamp"):
            assert changed["metadata"][name] == made["metadata"][name]
        assert changed["metadata"]["generation"] == 2
        assert "replicas" not in changed.get("status", {})


@virtual
async def test_generation_counts_changes_of_what_is_wanted_only() -> None:
    async with serving() as server:
        path = f"{DEPLOYMENTS}/web"
        await server.create(DEPLOYMENTS, deployment("web"))
        labelled = await server.patch(path, {"metadata": {"labels": {"a": "b"}}})
        assert labelled.body["metadata"]["generation"] == 1
        status = await server.patch(f"{path}/status", {"status": {"replicas": 1}})
        assert status.body["metadata"]["generation"] == 1
        scaled = await server.patch(path, {"spec": {"replicas": 5}})
        assert scaled.body["metadata"]["generation"] == 2


@virtual
async def test_a_stale_update_conflicts() -> None:
    async with serving() as server:
        old = (await server.create(MAPS, config_map("c"))).body
        await server.patch(f"{MAPS}/c", {"data": {"a": "1"}})
        refused = await server.put(f"{MAPS}/c", old)
        assert refused.status == 409
        assert refused.body["reason"] == "Conflict"
        assert refused.body["message"] == (
            'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}
        assert (await server.patch(f"{MAPS}/c", stale)).status == 409


@virtual
async def test_version_zero_names_no_version() -> None:
    zero = {"metadata": {"name": "c", "resourceVersion": "0"}}
    async with serving() as server:
        assert (await server.create(MAPS, zero)).status == 201
        replaced = await server.put(f"{MAPS}/c", zero | {"data": {"a": "1"}})
        assert replaced.status == 200
        patched = await server.patch(f"{MAPS}/c", zero | {"data": {"a": "2"}})
        assert (patched.status, patched.body["data"]) == (200, {"a": "2"})
        assert patched.body["metadata"]["resourceVersion"] != "0"
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, thing("t", size=1))
        sent = thing("t", size=2)
        sent["metadata"]["resourceVersion"] = "0"
        refused = await server.put(f"{THINGS}/t", sent)
        assert (refused.status, refused.body["message"]) == (
            422,
            (
                'Thing.example.org "t" is invalid: metadata.resourceVersion: '
                "Invalid value: 0x0: must be specified for an update"
            ),
        )


@virtual
async def test_an_update_without_a_version_wins_unless_the_kind_is_custom() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        assert (await server.put(f"{MAPS}/c", config_map("c", a="1"))).status == 200
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, thing("t", size=1))
        refused = await server.put(f"{THINGS}/t", thing("t", size=2))
        assert refused.status == 422
        assert "metadata.resourceVersion: Invalid value: 0" in refused.body["message"]


@virtual
async def test_an_update_meant_for_another_life_conflicts() -> None:
    async with serving() as server:
        first = (await server.create(MAPS, config_map("c"))).body
        await server.delete(f"{MAPS}/c")
        await server.create(MAPS, config_map("c"))
        sent = config_map("c")
        sent["metadata"]["uid"] = first["metadata"]["uid"]
        refused = await server.put(f"{MAPS}/c", sent)
        assert refused.status == 409
        assert "Precondition failed: UID in precondition" in refused.body["message"]


@virtual
async def test_what_was_read_from_an_object_that_is_gone_does_not_take_its_place() -> None:
    async with serving() as server:
        # Endpoints would be created by an update.
        for kind in ("configmaps", "endpoints"):
            path = f"/api/v1/namespaces/default/{kind}"
            read = (await server.create(path, {"metadata": {"name": "gone"}})).body
            await server.delete(f"{path}/gone")
            reply = await server.put(f"{path}/gone", read)
            uid = read["metadata"]["uid"]
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            shown = f'Operation cannot be fulfilled on {kind} "gone": {why}'
            assert (reply.status, reply.body["message"]) == (409, shown)


@virtual
async def test_an_update_that_changes_nothing_leaves_the_revision() -> None:
    async with serving() as server:
        made = (await server.create(MAPS, config_map("c", a="1"))).body
        same = await server.put(f"{MAPS}/c", made)
        assert same.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        patched = await server.patch(f"{MAPS}/c", {"data": {"a": "1"}})
        assert patched.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@virtual
async def test_names_do_not_change() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        refused = await server.put(f"{MAPS}/c", config_map("d"))
        assert refused.status == 400
        assert refused.body["message"] == (
            "the name of the object (d) does not match the name on the URL (c)"
        )


@virtual
async def test_what_is_not_there_is_created_by_an_update_of_a_few_kinds_only() -> None:
    async with serving() as server:
        assert (await server.put(f"{MAPS}/c", config_map("c"))).status == 404
        lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
        made = await server.put(path, lease)
        assert made.status == 201
        assert (await server.put(path, lease)).status == 422, "which version is replaced?"
        assert (await server.put(path, made.body)).status == 200


@virtual
async def test_an_update_says_whom_it_is_about() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        nameless = await server.put(f"{MAPS}/c", {"data": {"a": "1"}})
        assert nameless.status == 400
        assert "name must be provided" in nameless.body["message"]


@virtual
async def test_status_and_the_rest_do_not_touch_each_other() -> None:
    async with serving() as server:
        path = f"{DEPLOYMENTS}/web"
        live = (await server.create(DEPLOYMENTS, deployment("web", 2))).body
        live["status"] = {"replicas": 2}
        live["spec"]["replicas"] = 9
        live["metadata"]["labels"] = {"a": "b"}
        changed = (await server.put(f"{path}/status", live)).body
        assert changed["spec"]["replicas"] == 2
        assert changed["status"]["replicas"] == 2
        assert "labels" not in changed["metadata"]
        again = (await server.patch(path, {"status": {"replicas": 7}})).body
        assert again["status"]["replicas"] == 2


@virtual
async def test_concurrent_patches_all_take_effect() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c"))
        replies = await asyncio.gather(
            *(server.patch(f"{MAPS}/c", {"data": {f"k{n}": "v"}}) for n in range(15))
        )
        assert {reply.status for reply in replies} == {200}
        assert len((await server.get(f"{MAPS}/c")).body["data"]) == 15


@virtual
async def test_labels_annotations_and_owners_are_checked() -> None:
    async with serving() as server:
        for metadata, field in (
            ({"labels": {"a b": "c"}}, "metadata.labels"),
            ({"labels": {"a": "not valid!"}}, "metadata.labels"),
            ({"annotations": {"/x": "c"}}, "metadata.annotations"),
            ({"annotations": {"big": "x" * 262145}}, "metadata.annotations"),
            ({"finalizers": ["not valid!"]}, "metadata.finalizers"),
            ({"ownerReferences": [{"kind": "Pod"}]}, "metadata.ownerReferences"),
        ):
            refused = await server.create(MAPS, {"metadata": {"name": "c", **metadata}})
            assert refused.status == 422, metadata
            fields = [cause["field"] for cause in refused.body["details"]["causes"]]
            assert any(found.startswith(field) for found in fields), (field, fields)


# -- who did it --------------------------------------------------------------------------------


@virtual
async def test_managers_are_noted_for_what_they_sent_and_its_defaults_only() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        made = await server.create(f"{CORE}/pods?fieldManager=me", pod("p"))
        (entry,) = made.body["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("me", "Update", "v1")
        owned = entry["fieldsV1"]["f:spec"]
        assert "f:restartPolicy" in owned, "defaults belong to whoever left them out"
        assert "f:tolerations" not in owned, "what admission adds belongs to nobody"
        assert "f:serviceAccountName" not in owned
        assert made.body["spec"]["serviceAccountName"] == "default"


@virtual
async def test_an_unnamed_manager_is_called_by_its_program() -> None:
    async with serving() as server:
        made = await server.create(
            MAPS, config_map("c", a="1"), headers={"user-agent": "tool/1.2 x"}
        )
        assert made.body["metadata"]["managedFields"][0]["manager"] == "tool"
        long = await server.create(f"{MAPS}?fieldManager={'x' * 129}", config_map("d"))
        assert long.status == 422
        assert "may not be more than 128" in long.body["message"]


@virtual
async def test_writes_of_the_status_are_noted_apart() -> None:
    async with serving() as server:
        await server.create(f"{DEPLOYMENTS}?fieldManager=a", deployment("web"))
        path = f"{DEPLOYMENTS}/web/status?fieldManager=b"
        changed = await server.patch(path, {"status": {"replicas": 1}})
        entries = {e["manager"]: e for e in changed.body["metadata"]["managedFields"]}
        assert entries["b"]["subresource"] == "status"
        assert list(entries["b"]["fieldsV1"]) == ["f:status"]
        assert "f:status" not in entries["a"]["fieldsV1"]


async def test_a_version_is_refused_on_a_create_and_kept_on_a_rehearsal_of_one() -> None:
    sent = {"metadata": {"name": "c", "resourceVersion": "5"}}
    async with serving() as server:
        assert (await server.create(MAPS, sent)).status == 400
        tried = await server.create(f"{MAPS}?dryRun=All", sent)
        assert (tried.status, tried.body["metadata"]["resourceVersion"]) == (201, "5")
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        plain = {"metadata": {"name": "c"}}
        shown = await server.create(f"{MAPS}?dryRun=All", plain, headers=table)
        assert shown.body["metadata"] == {}, "it has no version yet"


@virtual
async def test_a_custom_object_of_another_kind_is_refused_by_its_name() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        things = "/apis/example.org/v1/namespaces/default/things"
        refused = await server.create(things, {**thing("t"), "kind": "Other"})
        assert refused.status == 422
        assert refused.body["message"].startswith('Other.example.org "t" is invalid: kind: ')
        refused = await server.put(things, thing("t"))
        assert (refused.status, refused.body["message"]) == (400, "name must be provided")
