"""What a pod gets from its surroundings, and the doors into it."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.objects import Object
from skerry.server.http.message import Answer, Response
from skerry.server.request.call import Call
from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import CORE, pod
from tests.kit.sim.loop import virtual

PODS = f"{CORE}/pods"


async def with_pod(server: Server, name: str = "p", **spec: Any) -> Object:
    await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    made = await server.create(PODS, pod(name, **spec))
    assert made.status == 201, made.body
    body: Object = made.body
    return body


# -- admission ---------------------------------------------------------------------------------


@virtual
async def test_a_pod_runs_as_an_account_with_its_token() -> None:
    async with serving() as server:
        refused = await server.create(PODS, pod("p"))
        assert refused.status == 403
        assert refused.body["message"] == (
            'pods "p" is forbidden: error looking up service account default/default: '
            'serviceaccount "default" not found'
        )
        made = await with_pod(server)
        spec = made["spec"]
        assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
        (volume,) = spec["volumes"]
        assert volume["name"].startswith("kube-api-access-")
        mount = spec["containers"][0]["volumeMounts"][0]
        assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        bare = await server.create(PODS, pod("bare", automountServiceAccountToken=False))
        assert "volumes" not in bare.body["spec"]


@virtual
async def test_priorities_come_from_classes() -> None:
    async with serving() as server:
        made = await with_pod(server)
        assert made["spec"]["priority"] == 0
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await server.create(classes, {"metadata": {"name": "high"}, "value": 1000})
        named = await server.create(PODS, pod("named", priorityClassName="high"))
        assert named.body["spec"]["priority"] == 1000
        system = await server.create(PODS, pod("sys", priorityClassName="system-node-critical"))
        assert system.body["spec"]["priority"] == 2000001000
        unknown = await server.create(PODS, pod("x", priorityClassName="nothing"))
        assert unknown.status == 403
        assert "no PriorityClass with name nothing was found" in unknown.body["message"]
        usual = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
        await server.create(classes, usual)
        plain = await server.create(PODS, pod("plain"))
        assert (plain.body["spec"]["priority"], plain.body["spec"]["priorityClassName"]) == (
            5,
            "usual",
        )


@virtual
async def test_limit_ranges_fill_in_and_bound() -> None:
    async with serving() as server:
        limits = {
            "type": "Container",
            "default": {"cpu": "500m"},
            "defaultRequest": {"cpu": "100m"},
            "max": {"cpu": "1"},
        }
        made = await server.create(
            f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limits]}}
        )
        assert made.status == 201, made.body
        found = await with_pod(server)
        resources = found["spec"]["containers"][0]["resources"]
        assert resources == {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}
        greedy = pod("greedy")
        greedy["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
        refused = await server.create(PODS, greedy)
        assert refused.status == 403
        assert "maximum cpu usage per Container is 1, but limit is 2" in refused.body["message"]


# -- quota -------------------------------------------------------------------------------------


async def with_quota(server: Server, **hard: str) -> None:
    spec = {"hard": {key.replace("_", "."): value for key, value in hard.items()}}
    made = await server.create(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
    assert made.status == 201
    status = {"status": {"hard": spec["hard"], "used": dict.fromkeys(spec["hard"], "0")}}
    await server.patch(f"{CORE}/resourcequotas/q/status", status)


@virtual
async def test_a_quota_is_exact_however_many_race_for_it() -> None:
    async with serving() as server:
        await with_quota(server, configmaps="5")
        replies = await asyncio.gather(
            *(
                server.create(f"{CORE}/configmaps", {"metadata": {"name": f"c{n}"}})
                for n in range(20)
            )
        )
        statuses = [reply.status for reply in replies]
        assert statuses.count(201) == 5
        assert set(statuses) == {201, 403}
        refused = next(reply for reply in replies if reply.status == 403)
        assert refused.body["message"].endswith(
            "is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=5, "
            "limited: configmaps=5"
        )
        quota = (await server.get(f"{CORE}/resourcequotas/q")).body
        assert quota["status"]["used"] == {"configmaps": "5"}


@virtual
async def test_compute_is_counted_and_must_be_said() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        await with_quota(server, pods="10", requests_cpu="1")
        silent = await server.create(PODS, pod("silent"))
        assert silent.status == 403
        assert "must specify requests.cpu" in silent.body["message"]
        for name, status in (("a", 201), ("b", 201), ("c", 403)):
            sent = pod(name)
            sent["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
            assert (await server.create(PODS, sent)).status == status, name
        quota = (await server.get(f"{CORE}/resourcequotas/q")).body
        assert quota["status"]["used"] == {"pods": "2", "requests.cpu": "1"}


@virtual
async def test_a_refused_or_rehearsed_create_charges_nothing() -> None:
    async with serving() as server:
        await with_quota(server, configmaps="1")
        path = f"{CORE}/configmaps"
        assert (
            await server.create(f"{path}?dryRun=All", {"metadata": {"name": "a"}})
        ).status == 201
        assert (await server.create(path, {"metadata": {"name": "BAD"}})).status == 422
        assert (await server.create(path, {"metadata": {"name": "a"}})).status == 201


# -- binding, eviction, debugging, resizing ----------------------------------------------------


@virtual
async def test_a_pod_is_bound_once() -> None:
    async with serving() as server:
        await with_pod(server)
        binding = {"target": {"kind": "Node", "name": "n"}, "metadata": {"annotations": {"a": "b"}}}
        bound = await server.create(f"{PODS}/p/binding", binding)
        assert (bound.status, bound.body["status"]) == (201, "Success")
        found = (await server.get(f"{PODS}/p")).body
        assert found["spec"]["nodeName"] == "n"
        assert found["metadata"]["annotations"] == {"a": "b"}
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        again = await server.create(f"{PODS}/p/binding", binding)
        assert again.status == 409
        assert 'pod p is already assigned to node "n"' in again.body["message"]


@virtual
async def test_of_two_schedulers_that_race_one_binds() -> None:
    async with serving() as server:
        await with_pod(server)
        replies = await asyncio.gather(
            *(
                server.create(f"{PODS}/p/binding", {"target": {"name": f"n{number}"}})
                for number in range(5)
            )
        )
        assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409]


@virtual
async def test_bindings_that_cannot_be_are_refused() -> None:
    async with serving() as server:
        made = await with_pod(server)
        gated = pod("gated", schedulingGates=[{"name": "example.org/wait"}])
        await server.create(PODS, gated)
        for path, body, code in (
            (f"{PODS}/p/binding", {"target": {}}, 422),
            (f"{PODS}/p/binding", {"target": {"kind": "Boat", "name": "n"}}, 422),
            (f"{PODS}/p/binding", {"target": {"name": "n"}, "metadata": {"name": "q"}}, 400),
            (f"{PODS}/p/binding", {"target": {"name": "n"}, "metadata": {"uid": "other"}}, 409),
            (f"{PODS}/gated/binding", {"target": {"name": "n"}}, 409),
            (f"{PODS}/nobody/binding", {"target": {"name": "n"}}, 404),
        ):
            assert (await server.create(path, body)).status == code, (path, body)
        uid = made["metadata"]["uid"]
        meant = {"target": {"name": "n"}, "metadata": {"name": "p", "uid": uid}}
        assert (await server.create(f"{CORE}/bindings", meant)).status == 201


async def running(server: Server, name: str) -> None:
    ready = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": ready}}
    assert (await server.patch(f"{PODS}/{name}/status", status)).status == 200


async def with_budget(server: Server, allowed: int, name: str = "b") -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await server.create(path, {"metadata": {"name": name}, "spec": spec})
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": 1}
    full = {"expectedPods": 2, "currentHealthy": 1, **status}
    changed = await server.patch(f"{path}/{name}/status", {"status": full})
    assert changed.status == 200, changed.body


@virtual
async def test_evictions_use_up_the_budget_exactly() -> None:
    async with serving() as server:
        await with_pod(server, "p0")
        await running(server, "p0")
        for number in range(1, 4):
            await server.create(PODS, pod(f"p{number}"))
            await running(server, f"p{number}")
        await with_budget(server, allowed=2)
        replies = await asyncio.gather(
            *(server.create(f"{PODS}/p{n}/eviction", {}) for n in range(4))
        )
        assert sorted(reply.status for reply in replies) == [201, 201, 429, 429]
        refused = next(reply for reply in replies if reply.status == 429)
        assert refused.body["message"] == (
            "Cannot evict pod as it would violate the pod's disruption budget."
        )
        cause = refused.body["details"]["causes"][0]
        assert cause["reason"] == "DisruptionBudget"
        assert cause["message"] == (
            "The disruption budget b needs 1 healthy pods and has 1 currently"
        )
        assert len((await server.get(PODS)).body["items"]) == 2


@virtual
async def test_pods_that_protect_nobody_may_go() -> None:
    async with serving() as server:
        await with_pod(server, "pending")
        await with_budget(server, allowed=0)
        assert (await server.create(f"{PODS}/pending/eviction", {})).status == 201
        await server.create(PODS, pod("unready"))
        await server.patch(f"{PODS}/unready/status", {"status": {"phase": "Running"}})
        assert (await server.create(f"{PODS}/unready/eviction", {})).status == 201
        assert (await server.create(f"{PODS}/nobody/eviction", {})).status == 404


@virtual
async def test_a_pod_of_two_budgets_is_not_evicted() -> None:
    async with serving() as server:
        await with_pod(server)
        await running(server, "p")
        await with_budget(server, allowed=1)
        await with_budget(server, allowed=1, name="other")
        refused = await server.create(f"{PODS}/p/eviction", {})
        assert refused.status == 500
        assert "more than one PodDisruptionBudget" in refused.body["message"]


@virtual
async def test_ephemeral_containers_only_come() -> None:
    async with serving() as server:
        await with_pod(server)
        path = f"{PODS}/p/ephemeralcontainers"
        tools = {"spec": {"ephemeralContainers": [{"name": "tools", "image": "i"}]}}
        added = await server.patch(path, tools, "strategic")
        assert added.status == 200, added.body
        assert added.body["spec"]["ephemeralContainers"][0]["name"] == "tools"
        removed = await server.patch(path, {"spec": {"ephemeralContainers": None}})
        assert removed.status == 422
        assert "may not be removed" in removed.body["message"]
        otherwise = await server.patch(f"{PODS}/p", {"spec": {"ephemeralContainers": None}})
        assert otherwise.status == 422
        nameless = {"spec": {"ephemeralContainers": [{"image": "i"}]}}
        assert (await server.patch(path, nameless, "strategic")).status in (400, 422)


@virtual
async def test_resizing_changes_cpu_and_memory_and_nothing_else() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        sent = pod("p")
        sent["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        await server.create(PODS, sent)
        live = (await server.get(f"{PODS}/p")).body
        live["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
        resized = await server.put(f"{PODS}/p/resize", live)
        assert resized.status == 200, resized.body
        assert resized.body["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
        resized.body["spec"]["containers"][0]["image"] = "other"
        refused = await server.put(f"{PODS}/p/resize", resized.body)
        assert refused.status == 422
        assert "only cpu and memory resources are mutable" in refused.body["message"]
        assert (await server.put(f"{PODS}/p", live)).status in (409, 422)


# -- what ends at a node -----------------------------------------------------------------------


class Agent:
    """A node agent that says what it was asked."""

    async def connect(self, call: Call, pod: Object | None, part: str) -> Answer:
        name = pod["metadata"]["name"] if pod else ""
        text = f"{call.info.subresource} {name} {part} {call.info.rest}"
        return Response(body=text.encode(), content_type="text/plain")


@virtual
async def test_without_an_agent_the_client_learns_who_is_missing() -> None:
    async with serving() as server:
        await with_pod(server)
        waiting = await server.get(f"{PODS}/p/log")
        assert (waiting.status, waiting.body["message"]) == (
            400,
            "pod p does not have a host assigned",
        )
        await server.create(f"{PODS}/p/binding", {"target": {"name": "n"}})
        for name in ("log", "exec", "attach", "portforward", "proxy"):
            missing = await server.get(f"{PODS}/p/{name}")
            assert missing.status == 503
            assert missing.body["message"] == (
                'error trying to reach node "n": no node agent is connected'
            )
        assert (await server.get("/api/v1/nodes/n/proxy/stats")).status == 404
        await server.create("/api/v1/nodes", {"metadata": {"name": "n"}})
        assert (await server.get("/api/v1/nodes/n/proxy/stats")).status == 503
        await server.create(
            f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        )
        proxied = await server.get(f"{CORE}/services/http:s:80/proxy/")
        assert proxied.body["message"] == 'no endpoints available for service "s"'
        assert (await server.get(f"{PODS}/nobody/log")).status == 404


@virtual
async def test_an_agent_answers_for_its_node() -> None:
    async with serving() as server:
        two = [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]
        await with_pod(server, containers=two, nodeName="n")
        server.api.connections.register("local", "n", Agent())
        ambiguous = await server.get(f"{PODS}/p/log")
        assert ambiguous.body["message"] == (
            "a container name must be specified for pod p, choose one of: [one two]"
        )
        wrong = await server.get(f"{PODS}/p/log?container=three")
        assert wrong.body["message"] == "container three is not valid for pod p"
        assert (await server.get(f"{PODS}/p/log?container=two")).raw == b"log p two "
        await server.create("/api/v1/nodes", {"metadata": {"name": "n"}})
        assert (await server.get("/api/v1/nodes/n/proxy/a/b")).raw == b"proxy   a/b"
        server.api.connections.unregister("local", "n")
        assert (await server.get(f"{PODS}/p/log?container=two")).status == 503


@virtual
async def test_a_proxy_leads_to_a_port_of_a_pod() -> None:
    async with serving() as server:
        ports = [{"containerPort": 8080}, {"containerPort": 9090}]
        one = [{"name": "one", "image": "i", "ports": ports}]
        await with_pod(server, containers=one, nodeName="n")
        server.api.connections.register("local", "n", Agent())
        for name, port in (("p", 8080), ("p:9090", 9090), ("http:p:81", 81), ("https:p", 8080)):
            found = await server.get(f"{PODS}/{name}/proxy/a/b")
            assert found.raw == f"proxy p {port} a/b".encode()
        wrong = await server.get(f"{PODS}/p:http/proxy/")
        assert wrong.body["message"] == 'invalid pod port "http": want a number from 1 to 65535'


@virtual
async def test_a_services_proxy_leads_to_a_pod_that_is_ready() -> None:
    async with serving() as server:
        await with_pod(server, nodeName="n")
        server.api.connections.register("local", "n", Agent())
        ports = [{"name": "web", "port": 80}, {"name": "other", "port": 81}]
        await server.create(
            f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}}
        )
        gone = {"addresses": ["10.0.0.1"], "conditions": {"ready": False}}
        there = {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Pod", "name": "p"}}
        piece = {
            "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
            "addressType": "IPv4",
            "endpoints": [gone, there],
            "ports": [{"name": "web", "port": 8080}],
        }
        made = await server.create(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", piece
        )
        assert made.status == 201, made.body
        for name in ("s:web", "s:80", "http:s:web"):
            assert (await server.get(f"{CORE}/services/{name}/proxy/a")).raw == b"proxy p 8080 a"
        none = await server.get(f"{CORE}/services/s:81/proxy/a")
        assert none.body["message"] == 'no endpoints available for service "s"'
        unknown = await server.get(f"{CORE}/services/s:x/proxy/a")
        assert unknown.body["message"] == 'no service port "x" found for service "s"'
