"""Pods really run: processes, volumes, probes, restarts, ends, and agents that come and go."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.processes import Process, alive, wait_gone
from skerry.edge.agent.sources import CONFIG_MAPS
from tests.kit.agent.fixtures import PAGES, httpd, log, pages, record
from tests.kit.agent.harness import (
    EVENTS,
    PODS,
    Edge,
    container,
    fetched,
    first,
    phase,
    ready,
    why_no_namespaces,
)


@pytest.fixture(params=["processes", "namespaces"])
async def edge(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Edge]:
    namespaces = request.param == "namespaces"
    if namespaces and (refused := why_no_namespaces()):
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    world = Edge(tmp_path, namespaces=namespaces)
    async with world.up():
        yield world


async def test_a_web_server_serves_its_config_map_and_follows_changes(edge: Edge) -> None:
    await edge.configure("site", **{"index.html": "first"})
    async with edge.agents():
        await edge.run_pod("web", httpd(port={"hostPort": 8081}), volumes=[pages("site")])
        pod = await edge.pod("web", ready)
        assert await fetched(edge, edge.network.node_port("node-0", 8081)) == "first"
        assert await fetched(edge, edge.network.at(pod["status"]["podIP"], 80)) == "first"
        await edge.direct.patch(CONFIG_MAPS, "site", {"data": {"index.html": "second"}}, "default")
        for _ in range(200):
            if await fetched(edge, edge.network.node_port("node-0", 8081)) == "second":
                break
            await asyncio.sleep(0.02)  # a volume's update announces itself to nobody
        else:
            raise AssertionError("the change never reached the volume")
        reasons = await edge.reasons("web")
        assert [r for r in reasons if r in ("Pulled", "Created", "Started")] == [
            "Pulled",
            "Created",
            "Started",
        ]


async def test_two_pods_serve_one_container_port(edge: Edge) -> None:
    async with edge.agents():
        for name in ("one", "two"):
            await edge.configure(name, **{"index.html": name})
            await edge.run_pod(name, httpd(), volumes=[pages(name)])
        for name in ("one", "two"):
            pod = await edge.pod(name, ready)
            assert await fetched(edge, edge.network.at(pod["status"]["podIP"], 80)) == name


@pytest.mark.parametrize("namespaces", [False, True], ids=["processes", "namespaces"])
async def test_two_nodes_have_one_host_port_each(tmp_path: Path, namespaces: bool) -> None:
    if namespaces and (refused := why_no_namespaces()):
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, nodes=2, namespaces=namespaces)
    async with edge.up(), edge.agents():
        for node in edge.names:
            await edge.configure(node, **{"index.html": node})
            await edge.run_pod(
                node, httpd(port={"hostPort": 8081}), volumes=[pages(node)], nodeName=node
            )
        for node in edge.names:
            await edge.pod(node, ready)
            assert await fetched(edge, edge.network.node_port(node, 8081)) == node
        assert edge.network.node_port("node-0", 8082) is None


async def test_environment_and_volumes_say_what_the_pod_refers_to(edge: Edge) -> None:
    await edge.configure("settings", COLOUR="red", **{"file.txt": "from a file"})
    script = 'echo "$COLOUR $PREFIX_COLOUR $NAME $CPU $GREETING"; '
    script += "cat /etc/settings/file.txt; cat /info/labels"
    environment = [
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOUR"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        {"name": "GREETING", "value": "hello $(NAME)"},
    ]
    info = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    async with edge.agents():
        await edge.run_pod(
            "printer",
            container(
                "busybox",
                "sh",
                "-c",
                script,
                env=environment,
                envFrom=[{"prefix": "PREFIX_", "configMapRef": {"name": "settings"}}],
                resources={"requests": {"cpu": "1500m"}},
                volumeMounts=[
                    {"name": "settings", "mountPath": "/etc/settings"},
                    {"name": "info", "mountPath": "/info"},
                ],
            ),
            restartPolicy="Never",
            metadata={"labels": {"tier": "edge"}},
            volumes=[
                {"name": "settings", "configMap": {"name": "settings"}},
                {"name": "info", "downwardAPI": {"items": info}},
            ],
        )
        pod = await edge.pod("printer", phase("Succeeded"))
        text = await log(edge, pod)
        assert text == 'red red printer 2 hello printer\nfrom a filetier="edge"\n'


async def test_init_containers_run_in_order_before_the_others(edge: Edge) -> None:
    shared = [{"name": "work", "mountPath": "/shared"}]
    async with edge.agents():
        await edge.run_pod(
            "ordered",
            container("busybox", "cat", "/shared/log", volumeMounts=shared),
            initContainers=[
                container(
                    "busybox", "sh", "-c", f"echo {n} >> /shared/log", name=n, volumeMounts=shared
                )
                for n in ("first", "second")
            ],
            volumes=[{"name": "work", "emptyDir": {}}],
            restartPolicy="Never",
        )
        pod = await edge.pod("ordered", phase("Succeeded"))
        assert await log(edge, pod) == "first\nsecond\n"
        ends = [
            s["state"]["terminated"]["exitCode"] for s in pod["status"]["initContainerStatuses"]
        ]
        assert ends == [0, 0]


async def test_a_failing_init_container_fails_a_pod_that_never_restarts(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod(
            "broken",
            container("busybox", "true"),
            initContainers=[container("busybox", "sh", "-c", "exit 4", name="init")],
            restartPolicy="Never",
        )
        pod = await edge.pod("broken", phase("Failed"))
        assert first(pod)["state"]["waiting"]["reason"] == "PodInitializing"


async def test_what_keeps_ending_is_restarted_ever_more_slowly(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("crash", container("busybox", "sh", "-c", "echo no; exit 3"))
        pod = await edge.pod("crash", lambda p: first(p).get("restartCount", 0) >= 3)
        assert first(pod)["lastState"]["terminated"]["exitCode"] == 3
        pod = await edge.pod(
            "crash",
            lambda p: (
                (first(p).get("state") or {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
            ),
        )
        assert pod["status"]["phase"] == "Running"
        assert not ready(pod)
        assert "BackOff" in await edge.reasons("crash")


async def test_restart_policies_are_kept(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("never", container("busybox", "false"), restartPolicy="Never")
        await edge.run_pod(
            "fails-once",
            container(
                "busybox",
                "sh",
                "-c",
                "[ -e /state/x ] || { touch /state/x; exit 1; }",
                volumeMounts=[{"name": "state", "mountPath": "/state"}],
            ),
            volumes=[{"name": "state", "emptyDir": {}}],
            restartPolicy="OnFailure",
        )
        pod = await edge.pod("never", phase("Failed"))
        assert first(pod)["state"]["terminated"]["reason"] == "Error"
        pod = await edge.pod("fails-once", phase("Succeeded"))
        assert first(pod)["restartCount"] == 1


async def test_a_failed_liveness_probe_restarts_the_container(edge: Edge) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    async with edge.agents():
        await edge.run_pod("ill", container("busybox", "sleep", "100", livenessProbe=probe))
        await edge.pod("ill", lambda p: first(p).get("restartCount", 0) >= 1)
        reasons = await edge.reasons("ill")
        assert {"Unhealthy", "Killing"} <= set(reasons)


async def test_readiness_follows_its_probe(edge: Edge) -> None:
    probe = {"httpGet": {"path": "/index.html", "port": "http"}, "periodSeconds": 1}
    await edge.configure("site", **{"index.html": "x"})
    async with edge.agents():
        await edge.run_pod("web", httpd(readinessProbe=probe), volumes=[pages("site")])
        pod = await edge.pod("web", ready)
        assert first(pod)["ready"]


async def test_the_grace_period_lets_a_program_end_by_itself(edge: Edge) -> None:
    farewell = "trap 'echo goodbye > /dev/termination-log; exit 0' TERM"
    script = f"{farewell}; touch /flags/up; while :; do sleep 0.05; done"
    probe = {"exec": {"command": ["ls", "/flags/up"]}, "periodSeconds": 1}
    mounts = [{"name": "flags", "mountPath": "/flags"}]
    async with edge.agents():
        await edge.run_pod(
            "polite",
            container("busybox", "sh", "-c", script, readinessProbe=probe, volumeMounts=mounts),
            volumes=[{"name": "flags", "emptyDir": {}}],
        )
        await edge.pod("polite", ready)
        ended: list[Object] = []
        edge.factory.informer(PODS).add_handler(
            lambda old, new: ended.append(old) if new is None and old else None
        )
        await edge.delete("polite")
        await edge.gone("polite")
        state = first(ended[-1])["state"]["terminated"]
        assert (state["exitCode"], state["message"]) == (0, "goodbye\n")
        assert ended[-1]["status"]["phase"] == "Succeeded"


async def test_a_deaf_program_is_killed_once_its_time_is_up(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod(
            "deaf", container("busybox", "sh", "-c", "trap '' TERM; sleep 100 & wait; wait")
        )
        pod = await edge.pod("deaf", ready)
        process = Process(record(edge, pod)["pid"], record(edge, pod)["pid_start"])
        await edge.delete("deaf", grace=1)
        await edge.gone("deaf")
        assert not alive(process)
        assert not (edge.root / "node-0" / pod["metadata"]["uid"]).exists()


async def test_processes_outlive_the_agent_and_are_taken_over(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("long", container("busybox", "sleep", "100"))
        before = await edge.pod("long", ready)
    async with edge.agents():
        life = None
        async with asyncio.timeout(60):
            while life is None or life.running is None:
                life = edge.by_name["node-0"].life(before["metadata"]["uid"], "c")
                await asyncio.sleep(0.01)
        after = await edge.pod("long", ready)
        assert first(after)["containerID"] == first(before)["containerID"]
        assert first(after)["restartCount"] == 0
        assert record(edge, before)["pid"] == record(edge, after)["pid"]
        await edge.delete("long", grace=0)
        await edge.gone("long")


async def test_what_ended_while_the_agent_was_away_is_reported_afterwards(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod(
            "brief", container("busybox", "sh", "-c", "sleep 0.3; exit 7"), restartPolicy="Never"
        )
        pod = await edge.pod("brief", ready)
    shim = record(edge, pod)
    await wait_gone(Process(shim["shim"], shim["shim_start"]))
    async with edge.agents():
        pod = await edge.pod("brief", phase("Failed"))
        assert first(pod)["state"]["terminated"]["exitCode"] == 7


async def test_a_finished_pod_with_volumes_is_left_in_peace_by_the_next_agent(edge: Edge) -> None:
    await edge.configure("site", **{"index.html": "x"})
    mount = {"name": "pages", "mountPath": PAGES}
    ended = container("busybox", "sh", "-c", "echo said; exit 3", volumeMounts=[mount])
    async with edge.agents():
        await edge.run_pod("over", ended, volumes=[pages("site")], restartPolicy="Never")
        before = await edge.pod("over", phase("Failed"))
    async with edge.agents():
        while not (life := edge.by_name["node-0"].life(before["metadata"]["uid"], "c")):
            await asyncio.sleep(0.01)  # nothing announces that it was taken over
        while life.state.identity == "":
            await asyncio.sleep(0.01)
        assert await log(edge, before) == "said\n"
        await edge.delete("over")
        await edge.gone("over")
        assert "FailedSync" not in await edge.reasons("over")
        assert "SandboxChanged" not in await edge.reasons("over")


async def test_a_program_without_its_shim_is_ended_and_restarted(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("lost", container("busybox", "sleep", "100"))
        pod = await edge.pod("lost", ready)
        found = record(edge, pod)
        os.kill(found["shim"], signal.SIGKILL)
        pod = await edge.pod("lost", lambda p: first(p).get("restartCount") == 1 and ready(p))
        assert not alive(Process(found["pid"], found["pid_start"]))
        assert first(pod)["lastState"]["terminated"]["exitCode"] == 137


async def test_pods_that_vanished_while_the_agent_was_away_leave_no_process(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("orphan", container("busybox", "sleep", "100"))
        pod = await edge.pod("orphan", ready)
        found = record(edge, pod)
    await edge.delete("orphan", grace=0)
    await edge.gone("orphan")
    process = Process(found["pid"], found["pid_start"])
    assert alive(process)
    async with edge.agents():
        async with asyncio.timeout(60):
            await wait_gone(process)
            while (edge.root / "node-0" / pod["metadata"]["uid"]).exists():
                await asyncio.sleep(0.01)  # a directory tells nobody that it went


async def test_a_missing_config_map_is_waited_for_and_named(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("waiting", httpd(), volumes=[pages("later")])
        await edge.pod("waiting", phase("Pending"))
        async with asyncio.timeout(60):
            while "FailedMount" not in await edge.reasons("waiting"):
                await asyncio.sleep(0.02)
        messages = [e["message"] for e in (await edge.direct.list(EVENTS)).items]
        wanted = 'MountVolume.SetUp failed for volume "pages" : configmap "later" not found'
        assert wanted in messages
        await edge.configure("later", **{"index.html": "x"})
        await edge.pod("waiting", ready)


async def test_an_unknown_image_says_what_to_do_and_is_found_once_it_is_listed(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("special", container("example.com/special:1"))

        def backing_off(pod: Object) -> bool:
            waiting = (first(pod).get("state") or {}).get("waiting") or {}
            return bool(waiting.get("reason") == "ImagePullBackOff")

        pod = await edge.pod("special", backing_off)
        assert "add an entry for example.com/special" in first(pod)["state"]["waiting"]["message"]
        text = "images:\n- names: [example.com/special]\n  entrypoint: [sleep, '100']\n"
        (edge.root / "images.yaml").write_text(text)
        await edge.pod("special", ready)


async def test_a_pod_beyond_its_deadline_fails(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("slow", container("busybox", "sleep", "100"), activeDeadlineSeconds=1)
        pod = await edge.pod("slow", phase("Failed"))
        assert pod["status"]["reason"] == "DeadlineExceeded"


async def test_a_program_that_cannot_start_says_why(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("bad", container("busybox", "/no/such/program"), restartPolicy="Never")
        pod = await edge.pod("bad", phase("Failed"))
        state = first(pod)["state"]["terminated"]
        assert state["reason"] == "StartError"
        assert "No such file or directory" in state["message"]


async def test_logs_are_followed_to_the_end(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod(
            "talker",
            container("busybox", "sh", "-c", "echo one; sleep 0.3; echo two >&2"),
            restartPolicy="Never",
        )
        pod = await edge.pod("talker", lambda p: ready(p) or phase("Succeeded")(p))
        assert await log(edge, pod, follow=True) == "one\ntwo\n"
        assert await log(edge, pod, tail_lines=1) == "two\n"
        assert await log(edge, pod, stream="stdout") == "one\n"
        assert (await log(edge, pod, timestamps=True)).splitlines()[0].endswith("Z one")
        assert await log(edge, pod, limit_bytes=2) == "on"


async def test_a_command_that_cannot_be_written_down_fails_alone(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("full", container("busybox", "sleep", "100"))
        pod = await edge.pod("full", ready)
        life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
        assert life is not None
        assert life.run_spec is not None
        (edge.root / "file").touch()
        life.run_spec = replace(life.run_spec, directory=edge.root / "file" / "absent")
        code, text = await life.reach().run(["true"], 10)
        assert code == 126
        assert "a command cannot be run" in text
