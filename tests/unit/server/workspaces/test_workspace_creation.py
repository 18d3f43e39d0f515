"""Workspaces: born complete, gone completely, and what stands in them from the start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skerry.api.kcp import edge
from skerry.app.hub_server import HubServer
from skerry.store.base import Write
from skerry.store.open import StoreSettings
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    LOCATIONS,
    ROLES,
    SYNC_TARGETS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    definition,
    grants,
    in_hub,
    provider,
    role,
    running_hub,
    widget,
    workspace,
)

MERGE = {"content_type": "application/merge-patch+json"}
TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
_OBSERVED = """
configmaps events limitranges namespaces resourcequotas secrets serviceaccounts
mutatingwebhookconfigurations validatingwebhookconfigurations customresourcedefinitions
apiresourceimports negotiatedapiresources apibindings apiconversions apiexportendpointslices
apiexports apiresourceschemas tokenreviews localsubjectaccessreviews selfsubjectaccessreviews
selfsubjectrulesreviews subjectaccessreviews certificatesigningrequests leases logicalclusters
events clusterrolebindings clusterroles rolebindings roles locations placements clusterworkspaces
workspaces workspacetypes partitions partitionsets synctargets
"""


# Kinds that the Kubernetes inside kcp 0.11 did not have yet.
_YOUNGER = "validatingadmissionpolicies validatingadmissionpolicybindings"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


# -- creation --------------------------------------------------------------------------------


@in_hub
async def test_a_workspace_is_complete_when_its_create_returns(hub: Hub) -> None:
    made = await hub.create("root", WORKSPACES, workspace("org"))
    cluster = made["spec"]["cluster"]
    assert made["spec"] == {
        "URL": f"{hub.running.url}/clusters/{cluster}",
        "cluster": cluster,
        "type": {"name": "organization", "path": "root"},
    }
    assert made["status"]["phase"] == made["metadata"]["labels"]["tenancy.kcp.io/phase"] == "Ready"
    assert made["metadata"]["finalizers"] == ["core.kcp.io/logicalcluster"]
    annotations = made["metadata"]["annotations"]
    assert annotations["internal.tenancy.kcp.io/shard"] == "1pfxsevk"
    assert annotations["experimental.tenancy.kcp.io/owner"] == '{"username":"kcp-admin"}'
    itself = await hub.get(cluster, f"{CLUSTERS}/cluster")
    assert itself["metadata"]["annotations"]["kcp.io/path"] == "root:org"
    assert itself["spec"]["owner"]["uid"] == made["metadata"]["uid"]
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces/default/serviceaccounts/default",
                 f"{CONFIG_MAPS}/kube-root-ca.crt", f"{BINDERS}/workspace-admin"):  # fmt: skip
        await hub.get(cluster, path)
    assert len((await hub.get(cluster, BINDINGS))["items"]) == 5


@in_hub
async def test_a_fresh_workspace_serves_what_kcp_serves(hub: Hub) -> None:
    await hub.workspace("root", "org")
    served = [
        resource["name"]
        for path in ("/api", "/apis")
        for group in (await hub.ask(
            "kcp-admin", "GET", f"/clusters/root:org{path}",
            accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        )).body["items"]
        for version in group["versions"]
        for resource in [{"name": r["resource"]} for r in version["resources"]]
    ]  # fmt: skip
    assert sorted(served) == sorted(_OBSERVED.split() + _YOUNGER.split())


@in_hub
async def test_types_limit_where_workspaces_may_be(hub: Hub) -> None:
    await hub.workspace("root", "org")
    await hub.workspace("root:org", "team-less", kind="universal")
    refusals = {
        ("root:org:team-less", "organization"): (
            "workspace type root:organization only allows [root:root] parent workspaces, but "
            "parent type root:universal only implements [root:universal]"
        ),
        ("root", "home"): "workspace type root:home cannot have any parent",
        ("root", "nope"): 'workspace type "nope" cannot be resolved',
    }
    before = await hub.keys()
    for (parent, kind), why in refusals.items():
        obj = workspace("x", {"type": {"name": kind}})
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{parent}{WORKSPACES}", obj)
        assert (reply.status, reply.body["message"].endswith(why)) == (403, True), reply.body
    assert await hub.keys() == before


@pytest.mark.parametrize("name", ["A", "a.b", "-a", "a-", "a" * 64, "a:b", "a/b", ""])
async def test_names_that_are_no_segment_of_a_path_are_refused(
    hub_place: HubPlace, name: str
) -> None:
    async def play(hub: Hub) -> None:
        before = await hub.keys()
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{WORKSPACES}", workspace(name))
        assert reply.status in (400, 422), reply.body
        assert await hub.keys() == before

    await in_hub(play)(hub_place)


@in_hub
async def test_a_type_may_extend_in_a_circle_without_harm(hub: Hub) -> None:
    def kind(name: str, other: str) -> dict[str, Any]:
        extend = {"with": [{"name": other, "path": "root"}, {"name": "universal", "path": "root"}]}
        return {
            "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
            "metadata": {"name": name}, "spec": {"extend": extend},
        }  # fmt: skip

    await hub.create("root", TYPES, kind("one", "two"))
    await hub.create("root", TYPES, kind("two", "one"))
    made = await hub.create("root", WORKSPACES, workspace("x", {"type": {"name": "one"}}))
    assert made["status"]["phase"] == "Ready"
    assert len((await hub.get("root:x", BINDINGS))["items"]) == 5


@in_hub
async def test_the_type_of_a_workspace_does_not_change(hub: Hub) -> None:
    await hub.workspace("root", "org")
    other = {"spec": {"type": {"name": "universal"}}}
    reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/root{WORKSPACES}/org", other, **MERGE)
    assert reply.status == 422
    assert 'spec.type: Invalid value: "object": name is immutable' in reply.body["message"]


@in_hub
async def test_users_enter_where_they_may(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    assert (await hub.ask("alice", "GET", f"/clusters/{org}/api/v1/namespaces")).status == 403
    assert (await hub.ask("alice", "GET", f"/clusters/{org}/apis")).status == 403
    await hub.create(org, BINDERS, grants("in", "system:kcp:workspace:access", "alice"))
    assert (await hub.ask("alice", "GET", f"/clusters/{org}/apis")).status == 200
    assert (await hub.ask("alice", "GET", f"/clusters/{org}/api/v1/namespaces")).status == 403
    await hub.create(org, BINDERS, grants("see", "view", "alice"))
    assert (await hub.ask("alice", "GET", f"/clusters/{org}{CONFIG_MAPS}")).status == 200


# -- homes -----------------------------------------------------------------------------------


@in_hub
async def test_everybody_has_a_home(hub: Hub) -> None:
    found = (await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")).body
    again, third = await asyncio.gather(
        *(hub.ask("bob", "GET", f"/clusters/root{WORKSPACES}/~") for _ in range(2))
    )
    assert again.body == third.body
    home = found["spec"]["cluster"]
    assert (found["metadata"]["name"], found["status"]["phase"]) == ("cluster", "Ready")
    await hub.create(home, CONFIG_MAPS, config_map("mine"), "alice")
    await hub.get("user:alice", f"{CONFIG_MAPS}/mine", "alice")
    assert (await hub.ask("bob", "GET", f"/clusters/user:alice{CONFIG_MAPS}")).status == 403
    made = await hub.create(home, WORKSPACES, workspace("kid"), "alice")
    assert made["spec"]["type"]["name"] == "universal"
    await hub.get("user:alice:kid", CONFIG_MAPS, "alice")
    admin = (await hub.ask("kcp-admin", "GET", f"/clusters/root{WORKSPACES}/~")).body
    assert admin["spec"]["cluster"] == "kvdk2spgmbix"


@in_hub
async def test_a_home_is_made_for_who_may_create_it(hub: Hub) -> None:
    mine = await hub.get("root", f"{WORKSPACES}/~", "alice")
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kcp:authenticated"
    role = await hub.get("root", path)
    for rule in role["rules"]:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb != "create"]
    assert (await hub.ask("shard-admin", "PUT", f"/clusters/root{path}", role)).status == 200
    assert (await hub.get("root", f"{WORKSPACES}/~", "alice"))["spec"] == mine["spec"]
    refused = await hub.ask("bob", "GET", f"/clusters/root{WORKSPACES}/~")
    assert refused.status == 403
    assert refused.body["message"] == (
        'workspaces.tenancy.kcp.io "~" is forbidden: User "bob" cannot create resource '
        '"workspaces" in API group "tenancy.kcp.io" at the cluster scope: workspace access not '
        "permitted"
    )


@in_hub
async def test_a_home_can_be_given_up_and_comes_back_empty(hub: Hub) -> None:
    home = (await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")).body["spec"]["cluster"]
    await hub.create(home, CONFIG_MAPS, config_map("mine"), "alice")
    assert (await hub.ask("alice", "DELETE", f"/clusters/{home}{CLUSTERS}/cluster")).status == 200
    while any(f"/{home}/" in key for key in await hub.keys()):
        await hub.settled()
    assert (await hub.ask("alice", "GET", f"/clusters/{home}{CONFIG_MAPS}")).status == 403
    await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")
    assert (await hub.ask("alice", "GET", f"/clusters/{home}{CONFIG_MAPS}/mine")).status == 404


@in_hub
async def test_a_home_that_somebody_initializes_is_to_be_asked_for_again(hub: Hub) -> None:
    slow = {"spec": {"initializer": True}}
    path = f"/clusters/root{TYPES}/home"
    assert (await hub.ask("kcp-admin", "PATCH", path, slow, **MERGE)).status == 200
    for _ in range(2):
        reply = await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")
        assert (reply.status, reply.body) == (429, "Creating the home workspace\n")
        assert ("Retry-After", "1") in reply.headers
    found = (await hub.ask("shard-admin", "GET", f"/clusters/*{CLUSTERS}")).body["items"]
    (waiting,) = [each for each in found if each["status"]["phase"] == "Initializing"]
    cluster = waiting["metadata"]["annotations"]["kcp.io/cluster"]
    path = f"/clusters/{cluster}{CLUSTERS}/cluster/status"
    done: dict[str, Any] = {"status": {"initializers": []}}
    # It is hers, and yet not hers to finish.
    assert (await hub.ask("alice", "PATCH", path, done, **MERGE)).status == 403
    assert (await hub.ask("kcp-admin", "PATCH", path, done, **MERGE)).status == 200
    reply = await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")
    assert (reply.status, reply.body["spec"]["cluster"]) == (200, cluster)


# -- initializers ----------------------------------------------------------------------------


async def initialized_type(hub: Hub) -> str:
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
        "metadata": {"name": "guarded"},
        "spec": {"initializer": True, "extend": {"with": [{"name": "universal", "path": "root"}]}},
    }  # fmt: skip
    await hub.create("root", TYPES, kind)
    initialize = {
        "apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"],
        "resourceNames": ["guarded"], "verbs": ["initialize"],
    }  # fmt: skip
    await hub.create("root", ROLES, role("initialize", initialize))
    await hub.create("root", BINDERS, grants("initialize", "initialize", "bob"))
    return "/services/initializingworkspaces/root:guarded/clusters"


@in_hub
async def test_a_workspace_waits_for_its_initializer(hub: Hub) -> None:
    view = await initialized_type(hub)
    await hub.workspace("root", "done")
    made = await hub.create("root", WORKSPACES, workspace("w", {"type": {"name": "guarded"}}))
    cluster = made["spec"]["cluster"]
    assert made["status"]["phase"] == "Initializing"
    assert made["status"]["initializers"] == ["root:guarded"]
    found = (await hub.ask("bob", "GET", f"{view}/*{CLUSTERS}")).body["items"]
    assert [i["metadata"]["annotations"]["kcp.io/cluster"] for i in found] == [cluster]
    assert (await hub.ask("alice", "GET", f"{view}/*{CLUSTERS}")).status == 403
    # In the name of the owner, while it lasts.
    acted = await hub.ask("bob", "POST", f"{view}/{cluster}{CONFIG_MAPS}", config_map("greeting"))
    assert acted.status == 201
    wrong = {"status": {"initializers": ["root:guarded", "root:more"]}}
    path = f"{view}/{cluster}{CLUSTERS}/cluster/status"
    assert (await hub.ask("bob", "PATCH", path, wrong, **MERGE)).status == 422
    cleared = await hub.ask("bob", "PATCH", path, {"status": {"initializers": []}}, **MERGE)
    assert (cleared.status, cleared.body["status"]["phase"]) == (200, "Ready")
    ready = await hub.get("root", f"{WORKSPACES}/w")
    assert (
        ready["status"]["phase"] == ready["metadata"]["labels"]["tenancy.kcp.io/phase"] == "Ready"
    )
    assert (await hub.ask("bob", "GET", f"{view}/*{CLUSTERS}")).body["items"] == []
    assert (await hub.ask("bob", "GET", f"{view}/{cluster}{CONFIG_MAPS}")).status == 403
    assert (await hub.ask("bob", "GET", f"{view}/{cluster}{CLUSTERS}/cluster")).status == 404
    await hub.get("root:w", f"{CONFIG_MAPS}/greeting")


@in_hub
async def test_the_hubs_administrators_take_initializers_off_and_the_workspaces_do_not(
    hub: Hub,
) -> None:
    await initialized_type(hub)
    made = await hub.create("root", WORKSPACES, workspace("w", {"type": {"name": "guarded"}}))
    cluster = made["spec"]["cluster"]
    await hub.create(cluster, BINDERS, grants("admin-alice", "cluster-admin", "alice"))
    path = f"/clusters/{cluster}{CLUSTERS}/cluster"

    async def refused(user: str, below: str, body: Any) -> str:
        reply = await hub.ask(user, "PATCH", f"{path}{below}", body, **MERGE)
        assert reply.status == 403, reply.body
        return str(reply.body["message"].rpartition("is forbidden: ")[2])

    none: dict[str, Any] = {"status": {"initializers": []}}
    more = {"status": {"initializers": ["root:guarded", "root:more"]}}
    other = {"status": {"initializers": ["root:other"]}}
    for body in (none, more, other, {"status": {"initializers": None}}):
        assert await refused("alice", "/status", body) == "status is the server's to write"
    for body in (more, other):
        assert await refused("kcp-admin", "/status", body) == "status.initializers must not grow"
    spec: dict[str, Any] = {"spec": {"initializers": []}}
    assert await refused("kcp-admin", "", spec) == "spec.initializers is immutable"
    early = {"status": {"phase": "Ready"}}
    assert await refused("kcp-admin", "/status", early) == "status.initializers is not empty"
    assert (await hub.get("root", f"{WORKSPACES}/w"))["status"]["phase"] == "Initializing"
    reply = await hub.ask("kcp-admin", "PATCH", f"{path}/status", none, **MERGE)
    assert (reply.status, reply.body["status"]["phase"]) == (200, "Ready")
    assert (await hub.get("root", f"{WORKSPACES}/w"))["status"]["phase"] == "Ready"
    late = await refused("kcp-admin", "/status", more)
    assert late == "status.initializers is immutable after initilization"
    back = await refused("kcp-admin", "/status", {"status": {"phase": "Initializing"}})
    assert back == 'cannot transition from "Ready" to "Initializing"'


@in_hub
async def test_through_a_view_only_its_own_initializer_is_taken_off(hub: Hub) -> None:
    view = await initialized_type(hub)
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
        "metadata": {"name": "twice"},
        "spec": {"initializer": True, "extend": {"with": [{"name": "guarded", "path": "root"}]}},
    }  # fmt: skip
    await hub.create("root", TYPES, kind)
    made = await hub.create("root", WORKSPACES, workspace("w", {"type": {"name": "twice"}}))
    both = made["status"]["initializers"]
    assert sorted(both) == ["root:guarded", "root:twice"]
    path = f"{view}/{made['spec']['cluster']}{CLUSTERS}/cluster/status"
    for left in ([], ["root:guarded"], both, [*both, "root:more"]):
        reply = await hub.ask(
            "bob", "PATCH", path, {"status": {"initializers": left}}, **MERGE
        )  # fmt: skip
        assert reply.status == 422, (left, reply.body)
        assert 'only removing the "root:guarded" initializer' in reply.body["message"]
    left = ["root:twice"]
    reply = await hub.ask("bob", "PATCH", path, {"status": {"initializers": left}}, **MERGE)
    assert (reply.status, reply.body["status"]["initializers"]) == (200, left)


@in_hub
async def test_an_initializers_view_is_the_same_whoever_waits_there(hub: Hub) -> None:
    await initialized_type(hub)
    for name in ("whatever", "root:whatever", "root:guarded", "no-such:thing"):
        view = f"/services/initializingworkspaces/{name}/clusters/*"
        reply = await hub.ask("shard-admin", "GET", f"{view}/apis/core.kcp.io/v1alpha1")
        assert reply.status == 200, (name, reply.body)
        clusters, below = reply.body["resources"]
        assert (clusters["name"], clusters["verbs"]) == (
            "logicalclusters", ["get", "list", "watch"],
        )  # fmt: skip
        assert clusters["storageVersionHash"] == "l84hS/aun10="
        assert (below["name"], below["verbs"]) == ("logicalclusters/status", None)
        listed = await hub.ask("shard-admin", "GET", f"{view}{CLUSTERS}")
        assert (listed.status, listed.body["items"]) == (200, [])
        assert (await hub.ask("alice", "GET", f"{view}{CLUSTERS}")).status == 403


# -- deletion --------------------------------------------------------------------------------


@in_hub
async def test_a_deleted_workspace_leaves_nothing(hub: Hub) -> None:
    before = await hub.keys()
    cluster = await hub.workspace("root", "org")
    child = await hub.workspace("root:org", "child")
    await hub.create(child, DEFINITIONS, definition())
    await hub.create(child, WIDGETS, widget("one"))
    await hub.create(child, SYNC_TARGETS, target("t"))
    await hub.create(cluster, CONFIG_MAPS, config_map("mine"))
    reply = await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/org")
    assert reply.body["metadata"]["labels"]["tenancy.kcp.io/phase"] == "Deleting"
    await hub.gone("root", f"{WORKSPACES}/org")
    assert await hub.keys() == before
    for where in (cluster, "root:org", child):
        assert (await hub.ask("kcp-admin", "GET", f"/clusters/{where}{CONFIG_MAPS}")).status == 403


@in_hub
async def test_a_deleted_workspace_is_forgotten_by_the_server_too(hub: Hub) -> None:
    api = hub.running.api
    assert isinstance(api, HubServer)
    for turn in range(2):
        cluster = await hub.workspace("root", "brief", admin="alice")
        await hub.create(cluster, DEFINITIONS, definition())
        await hub.create(cluster, WIDGETS, widget("one"), "alice")
        await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/brief")
        await hub.gone("root", f"{WORKSPACES}/brief")
        assert (await hub.ask("alice", "GET", f"/clusters/{cluster}/api")).status == 403, turn
        tables = (api.state.clusters, api.state.bindings, api.state.children)
        assert not [table for table in tables if cluster in table]


@in_hub
async def test_finalizers_hold_a_workspace_and_nothing_new_comes_into_it(hub: Hub) -> None:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    await provider(hub, shop)
    user = await hub.workspace("root:org", "user")
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    await hub.create(user, WIDGETS, widget("held", finalizers=["example.io/wait"]))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/user")
    await hub.until(user, f"{WIDGETS}/held", "metadata", "deletionGracePeriodSeconds", 0)
    late = await hub.ask("kcp-admin", "POST", f"/clusters/{user}{WIDGETS}", widget("late"))
    assert late.status == 403
    freed = {"metadata": {"finalizers": None}}
    path = f"/clusters/{user}{WIDGETS}/held"
    assert (await hub.ask("kcp-admin", "PATCH", path, freed, **MERGE)).status == 200
    await hub.gone("root:org", f"{WORKSPACES}/user")
    assert not [key for key in await hub.keys() if f"/{user}/" in key]


@in_hub
async def test_a_delete_may_insist_on_who_it_deletes(hub: Hub) -> None:
    await hub.workspace("root", "org")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    reply = await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/org", options)
    assert reply.status == 409
    await hub.get("root:org", CONFIG_MAPS)


async def test_a_deletion_is_finished_by_the_next_start(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        before = await hub.keys()
        org = await hub.workspace("root", "org")
        held = config_map("held")
        held["metadata"]["finalizers"] = ["example.io/wait"]
        await hub.create(org, CONFIG_MAPS, held)
        await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/org")
        await hub.until(org, f"{CONFIG_MAPS}/held", "metadata", "deletionGracePeriodSeconds", 0)
        token = hub.tokens["kcp-admin"]
    async with running_hub(tmp_path, store) as hub:
        assert hub.tokens["kcp-admin"] == token
        path = f"/clusters/{org}{CONFIG_MAPS}/held"
        freed = {"metadata": {"finalizers": None}}
        assert (await hub.ask("kcp-admin", "PATCH", path, freed, **MERGE)).status == 200
        await hub.gone("root", f"{WORKSPACES}/org")
        assert await hub.keys() == before


async def test_a_data_directory_that_was_there_is_closed_at_the_start(tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir(mode=0o755)
    async with running_hub(place):
        assert place.stat().st_mode & 0o777 == 0o700


async def test_administrators_keep_their_tokens(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        before = dict(hub.tokens)
    async with running_hub(tmp_path, store) as hub:
        for user in ("kcp-admin", "shard-admin"):
            path = f"/clusters/root{WORKSPACES}"
            assert (await hub.ask(before[user], "GET", path)).status == 200


async def test_a_start_brings_back_what_an_interrupted_one_left_out(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        before = await hub.keys()
        policy = [key for key in before if "/system:admin/" in key]
        await hub.running.api.store.commit([Write(key, None) for key in policy])
    async with running_hub(tmp_path, store) as hub:
        assert await hub.keys() == before
        await hub.get("root", WORKSPACES)


# -- locations -------------------------------------------------------------------------------


def target(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name},
        "spec": {},
    }


@in_hub
async def test_the_first_sync_target_brings_the_default_location_once(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    made = await hub.create(org, SYNC_TARGETS, target("one"))
    assert made["spec"] == {"supportedAPIExports": [{"export": "kubernetes"}],
                            "unschedulable": False}  # fmt: skip
    assert made["status"]["conditions"][0]["message"] == "No heartbeat yet seen"
    location = await hub.get(org, f"{LOCATIONS}/default")
    assert location["spec"]["instanceSelector"] == {}
    assert location["metadata"]["annotations"]["kcp.io/path"] == "root:org"
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{org}{LOCATIONS}/default")
    await hub.create(org, SYNC_TARGETS, target("two"))
    assert (await hub.get(org, LOCATIONS))["items"] == []


@in_hub
async def test_bound_workload_kinds_are_inert(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    await hub.create(org, BINDINGS, binding("kube", "root:compute", "kubernetes"))
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec
    }  # fmt: skip
    made = await hub.create(org, "/apis/apps/v1/namespaces/default/deployments", deployment)
    assert made["spec"] == spec
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
               "spec": {"ports": [{"port": 80}]}}  # fmt: skip
    stored = await hub.create(org, "/api/v1/namespaces/default/services", service)
    assert stored["spec"] == service["spec"]
    bad = {**deployment, "spec": {**spec, "replicas": "many"}}
    path = f"/clusters/{org}/apis/apps/v1/namespaces/default/deployments"
    assert (await hub.ask("kcp-admin", "POST", path, bad)).status in (400, 422)
    status = {"status": {"replicas": 3}}
    reported = await hub.ask("kcp-admin", "PATCH", f"{path}/d/status", status, **MERGE)
    assert reported.body["status"] == {"replicas": 3}


# -- copies passing through ------------------------------------------------------------------


@in_hub
async def test_projected_objects_have_no_effect_on_the_hub(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    projected = {"edge.kcp.io/projected": "yes"}
    granted = grants("g", "cluster-admin", "alice")
    granted["metadata"]["labels"] = projected
    await hub.create(org, BINDERS, granted)
    assert (await hub.ask("alice", "GET", f"/clusters/{org}{CONFIG_MAPS}")).status == 403
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "labels": projected}, "spec": {"hard": {"count/configmaps": "0"}},
    }  # fmt: skip
    await hub.create(org, "/api/v1/namespaces/default/resourcequotas", quota)
    await hub.create(org, CONFIG_MAPS, config_map("allowed"))
    account = {"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "sa", "labels": projected}}  # fmt: skip
    made = await hub.create(org, "/api/v1/namespaces/default/serviceaccounts", account)
    assert "secrets" not in made
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/clusters/{org}/api/v1/namespaces/default/serviceaccounts/sa/token"
    assert (await hub.ask("kcp-admin", "POST", path, asked)).status == 403
    token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
             "metadata": {"name": "t",
                          "annotations": {"kubernetes.io/service-account.name": "sa"}}}  # fmt: skip
    kept = await hub.create(org, "/api/v1/namespaces/default/secrets", token)
    assert "data" not in kept
    # Without the label it is what it says.
    path = f"/clusters/{org}{BINDERS}/g"
    unlabelled = {"metadata": {"labels": None}}
    await hub.ask("kcp-admin", "PATCH", path, unlabelled, **MERGE)
    assert (await hub.ask("alice", "GET", f"/clusters/{org}{CONFIG_MAPS}")).status == 200


# -- answers everywhere ----------------------------------------------------------------------


@in_hub
async def test_every_workspace_explains_itself(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    paths = (await hub.get(org, "/openapi/v3"))["paths"]
    assert {"api/v1", "apis/tenancy.kcp.io/v1alpha1", "apis/workload.kcp.io/v1alpha1"} <= set(paths)
    document = await hub.get(org, "/openapi/v2")
    assert any("SyncTarget" in name for name in document["definitions"])
    assert (await hub.ask("", "GET", f"/clusters/{org}/healthz")).raw == b"ok"
    assert (await hub.ask("", "GET", "/clusters/nowhere/readyz")).raw == b"ok"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    who = await hub.create(org, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert who["status"]["userInfo"]["username"] == "kcp-admin"


@in_hub
async def test_edge_kinds_are_served_as_they_are_defined(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    for each in edge.definitions():
        made = await hub.create(org, DEFINITIONS, each)
        found = {c["type"]: c["status"] for c in made["status"]["conditions"]}
        assert found["Established"] == "True"


@in_hub
async def test_a_placement_that_can_match_nothing_is_taken_with_a_warning(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    await hub.create(org, DEFINITIONS, edge.edge_placement())
    path = f"/clusters/{org}/apis/edge.kcp.io/v1alpha1/edgeplacements"
    both = [{"key": "env", "operator": operator} for operator in ("Exists", "DoesNotExist")]
    placement = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "nowhere"},
        "spec": {"locationSelectors": [{"matchExpressions": both}]},
    }
    made = await hub.ask("kcp-admin", "POST", path, placement)
    text = "spec.locationSelectors[0]: no value of label 'env' can satisfy it"
    assert (made.status, made.warnings) == (201, [f'299 - "{text}"'])
    patch = {"spec": {"locationSelectors": [{"matchLabels": {"env": "prod"}}]}}
    better = await hub.ask("kcp-admin", "PATCH", f"{path}/nowhere", patch, **MERGE)
    assert (better.status, better.warnings) == (200, [])
    worse = await hub.ask("kcp-admin", "PATCH", f"{path}/nowhere", {"spec": "all"}, **MERGE)
    assert worse.status == 422
