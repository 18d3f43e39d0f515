"""What a hostile pod cannot do: real pods, in their own namespaces, trying.

Everything they try is harmless where it succeeds; what must not be reached is made by the tests.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.sources import SECRETS
from tests.kit.agent.fixtures import log
from tests.kit.agent.harness import (
    PODS,
    Edge,
    container,
    first,
    phase,
    ready,
    why_no_namespaces,
)

ATTACKS = (Path(__file__).parent / "attacks.py").read_text()
LOCALHOST = {"type": "Localhost", "localhostProfile": "x"}
USUAL_CAPABILITIES = "00000000a80425fb"
SECRET_VARIABLE = "SKERRY_TEST_SECRET"


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    world = Edge(tmp_path / "edge", namespaces=True)
    world.root.mkdir()
    world.root.chmod(0o755)
    tmp_path.chmod(0o755)
    (world.root / "admin.kubeconfig").write_text("keys of the edge")
    (world.root / "pki").mkdir()
    (world.root / "pki" / "ca.key").write_text("more keys")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "marker").write_text("not to be seen")
    async with world.up():
        yield world
    assert os.listdir(tmp_path / "outside") == ["marker"], "nothing was made out there"


def ended(pod: Object) -> bool:
    return phase("Succeeded")(pod) or phase("Failed")(pod)


async def attacked(edge: Edge, targets: Object, **more: Any) -> Object:
    """Run every attempt in a pod and return what became of each."""
    await edge.direct.create(
        SECRETS, {"metadata": {"name": "s"}, "stringData": {"password": "x"}}, "default"
    )
    mounts = [{"name": "s", "mountPath": "/secret"}, {"name": "e", "mountPath": "/data"}]
    spec = more.pop("spec", {})
    await edge.run_pod(
        "hostile",
        container(
            "python", "python3", "-c", ATTACKS, json.dumps(targets), volumeMounts=mounts, **more
        ),
        volumes=[{"name": "s", "secret": {"secretName": "s"}}, {"name": "e", "emptyDir": {}}],
        restartPolicy="Never",
        **spec,
    )
    async with edge.agents():
        pod = await edge.pod("hostile", ended)
        text = await log(edge, pod)
    assert phase("Succeeded")(pod), (first(pod), text)
    found: Object = json.loads(text.splitlines()[-1])
    return found


@pytest.fixture
def targets(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> Iterator[Object]:
    """What a pod is targets of the machine, to try it: paths, a process, ports."""
    monkeypatch.setenv(SECRET_VARIABLE, "of the agent")
    kept = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    name = f"skerry-test-{os.getpid()}"
    monkeypatch.chdir(edge.root)
    kept[0].bind(f"\0{name}")
    kept[1].bind("socket")
    kept[2].bind(("127.0.0.1", 0))
    for item in kept:
        item.listen(1)
    home = Path(os.path.expanduser("~"))
    yield {
        "agent": os.getpid(),
        "files": [
            *(str(edge.root / name) for name in ("admin.kubeconfig", "pki/ca.key", "images.yaml")),
            str(edge.root.parent / "outside" / "marker"),
            str(Path(__file__)),
            *(str(home / name) for name in (".bashrc", ".profile", ".kube/config")),
        ],
        "folders": [str(edge.root), str(edge.root / "pki"), str(edge.root / "node-0")],
        "read_only": ["/secret/password"],
        "abstract": name,
        "socket": str(edge.root / "socket"),
        "port": kept[2].getsockname()[1],
    }
    for item in kept:
        item.close()


def succeeded(found: Object) -> dict[str, str]:
    return {name: text for name, text in found.items() if str(text).startswith("SUCCEEDED")}


async def test_a_pod_sees_its_image_its_volumes_and_nothing_else(
    edge: Edge, targets: Object
) -> None:
    found = await attacked(edge, targets)
    assert succeeded(found) == {}
    assert found["command of the first"] == "init"
    assert int(found["processes"]) <= 2
    assert found["descriptors"] == "0"
    assert SECRET_VARIABLE not in found["variables"].split()
    assert found["status"]["CapBnd"] == USUAL_CAPABILITIES
    assert found["status"]["Seccomp"] == "2"
    assert found["read /etc/shadow"] == "refused: ENOENT"
    assert found["write /secret/password"] == "refused: EROFS"
    assert found["clone3"] == "refused: ENOSYS", "so that libraries do without"


async def test_neither_does_one_without_a_filter_and_with_every_capability_there_is(
    edge: Edge, targets: Object
) -> None:
    security = {
        "seccompProfile": {"type": "Unconfined"},
        "capabilities": {"add": ["SYS_PTRACE", "NET_ADMIN", "DAC_READ_SEARCH", "IPC_OWNER"]},
    }
    found = await attacked(edge, targets, securityContext=security)
    # In a user namespace of its own a program may be whoever it likes: it reaches nothing by it.
    harmless = {
        *("unshare user", "unshare mount", "unshare time", "clone into a namespace"),
        *("io_uring", "another personality"),
        *("ciphers of the kernel", "raw sockets of the hypervisor", "add a key", "userfaultfd"),
        *("clone3", "perf"),
    }
    assert set(succeeded(found)) <= harmless
    assert found["status"]["Seccomp"] == "0"
    assert found["as root of a namespace: core pattern"].startswith("refused"), "it was tried"


async def test_a_restricted_pod_is_what_it_says(edge: Edge, targets: Object) -> None:
    security = {
        "runAsUser": 1234,
        "runAsGroup": 2345,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    found = await attacked(edge, targets, securityContext=security)
    assert succeeded(found) == {}
    status = found["status"]
    assert status["Uid"].split() == ["1234"] * 4
    assert status["Gid"].split() == ["2345"] * 4
    assert status["Groups"].strip() == "" or os.geteuid() != 0
    assert (status["CapEff"], status["CapBnd"]) == ("0" * 16, "0" * 16)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


async def output(edge: Edge, name: str, script: str, **more: Any) -> str:
    """Run a shell script in a pod to its end and return what it wrote."""
    spec = more.pop("spec", {})
    made = container("busybox", "sh", "-c", script, **more)
    await edge.run_pod(name, made, restartPolicy="Never", **spec)
    async with edge.agents():
        pod = await edge.pod(name, ended)
        text = await log(edge, pod)
    assert ended(pod), first(pod)
    return text


async def test_a_read_only_root_is_read_only_but_for_volumes(edge: Edge) -> None:
    script = (
        "for p in / /tmp /run /etc /var/tmp /root; do "
        "touch $p/x 2>/dev/null && echo wrote $p; done; "
        "touch /data/x && echo wrote /data; echo message > /dev/termination-log && echo wrote log"
    )
    text = await output(
        edge,
        "sealed",
        script,
        securityContext={"readOnlyRootFilesystem": True},
        volumeMounts=[{"name": "e", "mountPath": "/data"}],
        spec={"volumes": [{"name": "e", "emptyDir": {}}]},
    )
    assert text.split("\n")[:-1] == ["wrote /data", "wrote log"]
    assert "wrote /tmp" in await output(edge, "open", script.replace("/data/x", "/tmp/y"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives containers further groups")
async def test_groups_are_those_of_the_pod_and_of_its_volumes(edge: Edge) -> None:
    script = "id -u; id -G; touch /data/x && stat -c '%u %g' /data/x; cat /secret/k"
    await edge.direct.create(
        SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "read"}}, "default"
    )
    text = await output(
        edge,
        "grouped",
        script,
        volumeMounts=[
            {"name": "e", "mountPath": "/data"},
            {"name": "s", "mountPath": "/secret"},
        ],
        spec={
            "securityContext": {
                "runAsUser": 1000,
                "runAsGroup": 3000,
                "supplementalGroups": [4000],
                "fsGroup": 2000,
            },
            "volumes": [
                {"name": "e", "emptyDir": {}},
                {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
            ],
        },
    )
    user, groups, made, read = text.splitlines()
    assert (user, set(groups.split())) == ("1000", {"3000", "4000", "2000"})
    assert (made, read) == ("1000 2000", "read")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users in a container")
async def test_a_set_user_id_program_gives_nobody_more_rights(edge: Edge) -> None:
    script = """
import os, shutil, subprocess
for folder in ("/tmp", "/data"):
    copy = folder + "/id"
    shutil.copy("/usr/bin/id", copy)
    os.chmod(copy, 0o4755)
    print(subprocess.run([copy, "-u"], user=1234, capture_output=True, text=True).stdout.strip())
"""
    await edge.run_pod(
        "climbing",
        container(
            "python", "python3", "-c", script, volumeMounts=[{"name": "e", "mountPath": "/data"}]
        ),
        volumes=[{"name": "e", "emptyDir": {}}],
        restartPolicy="Never",
    )
    async with edge.agents():
        pod = await edge.pod("climbing", ended)
        assert (await log(edge, pod)).split() == ["1234", "1234"]


async def test_a_command_in_a_container_has_its_confinement(edge: Edge) -> None:
    security = {
        "runAsUser": 1234,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    }
    async with edge.agents():
        await edge.run_pod(
            "entered", container("busybox", "sleep", "100", securityContext=security)
        )
        pod = await edge.pod("entered", ready)
        life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
        assert life is not None
        code, text = await life.reach().run(["cat", "/proc/self/status"], 10)
        assert code == 0, text
        lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        assert lines["Uid"].split() == ["1234"] * 4
        assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("1", "2")
        assert (lines["CapEff"], lines["CapBnd"]) == ("0" * 16, f"{1 << 10:016x}")
        code, text = await life.reach().run(["ls", "/proc/1/fd", "/proc/self/fd"], 10)
        assert code != 0
        assert "Permission denied" in text
        code, text = await life.reach().run(["sh", "-c", "touch /tmp/x; cat /etc/shadow"], 10)
        assert "Read-only file system" in text
        assert "/etc/shadow: No such file" in text


async def test_variables_of_a_pod_are_not_obeyed_outside_it(edge: Edge) -> None:
    """The loader writes where LD_DEBUG_OUTPUT says, in whatever process has the variable."""
    env = [
        {"name": "LD_DEBUG", "value": "files"},
        {"name": "LD_DEBUG_OUTPUT", "value": str(edge.root.parent / "outside" / "seen")},
        {"name": "LD_PRELOAD", "value": str(edge.root / "evil.so")},
        {"name": "HUSH", "value": "secret"},
    ]
    probe = {"exec": {"command": ["sh", "-c", "test $HUSH = secret"]}, "periodSeconds": 1}
    async with edge.agents():
        await edge.run_pod(
            "loaded", container("busybox", "sleep", "100", env=env, readinessProbe=probe)
        )
        pod = await edge.pod("loaded", ready)
        place = edge.root / "node-0" / pod["metadata"]["uid"] / "containers" / "c" / "0"
        assert list(place.glob("task-*")) == [], "what a command was targets is not left behind"


async def test_what_is_added_to_a_pod_to_look_at_it_is_confined_too(edge: Edge) -> None:
    debug = {
        **container("busybox", "sh", "-c", "cat /proc/1/environ /proc/1/cmdline; cat /etc/shadow"),
        "name": "debug",
        "targetContainerName": "c",
    }
    async with edge.agents():
        await edge.run_pod("watched", container("busybox", "sleep", "100"))
        await edge.pod("watched", ready)
        body = {"spec": {"ephemeralContainers": [debug]}}
        await edge.direct.patch(
            PODS, "watched", body, "default", kind="strategic", subresource="ephemeralcontainers"
        )
        pod = await edge.pod(
            "watched",
            lambda p: (
                "terminated"
                in ((p["status"].get("ephemeralContainerStatuses") or [{}])[0].get("state") or {})
            ),
        )
        text = await log(edge, pod, "debug")
    assert "environ: Permission denied" in text
    assert "init" in text, "it shares the processes of the container it looks at"
    assert "/etc/shadow: No such file" in text


# -- volumes ------------------------------------------------------------------------------------


def refused_container(pod: Object) -> bool:
    waiting: Object = (first(pod).get("state") or {}).get("waiting") or {}
    return waiting.get("reason") == "CreateContainerConfigError"


LINKS = [
    ("/etc", "link"),
    ("{outside}", "link"),
    ("{outside}", "link/deep/er"),
    ("../../../../../../../../../{outside}", "link"),
    ("/proc/self/root/etc", "link"),
    ("/proc/1/cwd", "link/x"),
    ("inner", "link"),
]


async def test_a_sub_path_through_a_link_is_refused(edge: Edge) -> None:
    mount = {"name": "e", "mountPath": "/data"}
    async with edge.agents():
        for number, (link, sub_path) in enumerate(LINKS):
            target = link.format(outside=edge.root.parent / "outside")
            plant = container(
                *("busybox", "sh", "-c", f"mkdir /data/inner; ln -s {target} /data/link"),
                name="plant",
                volumeMounts=[mount],
            )
            await edge.run_pod(
                f"linked-{number}",
                container("busybox", "sleep", "100", volumeMounts=[{**mount, "subPath": sub_path}]),
                initContainers=[plant],
                volumes=[{"name": "e", "emptyDir": {}}],
            )
        for number in range(len(LINKS)):
            pod = await edge.pod(f"linked-{number}", refused_container)
            message = first(pod)["state"]["waiting"]["message"]
            assert message.startswith(
                'failed to prepare subPath for volumeMount "e" of container "c": subPath '
            )
            assert "refused" in message


EXPANDED = ["../../../../etc", "..", "/etc", "a/../../..", "a/../../../../../../{outside}"]


async def test_an_expanded_sub_path_does_not_lead_up(edge: Edge) -> None:
    mount = {"name": "e", "mountPath": "/data", "subPathExpr": "$(EVIL)"}
    async with edge.agents():
        for number, value in enumerate(EXPANDED):
            evil = value.format(outside=edge.root.parent / "outside")
            await edge.run_pod(
                f"expanded-{number}",
                container(
                    *("busybox", "sleep", "100"),
                    volumeMounts=[mount],
                    env=[{"name": "EVIL", "value": evil}],
                ),
                volumes=[{"name": "e", "emptyDir": {}}],
            )
        for number in range(len(EXPANDED)):
            pod = await edge.pod(f"expanded-{number}", refused_container)
            assert "the path" in first(pod)["state"]["waiting"]["message"]


async def test_a_sub_path_is_made_and_an_expression_may_come_from_a_field(edge: Edge) -> None:
    field = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    mounts = [
        {"name": "e", "mountPath": "/own", "subPathExpr": "logs/$(POD)"},
        {"name": "e", "mountPath": "/all"},
        {"name": "m", "mountPath": "/etc/app.conf", "subPath": "app.conf"},
    ]
    await edge.configure("settings", **{"app.conf": "colour=red\n"})
    text = await output(
        edge,
        "parted",
        "touch /own/x; ls /all/logs/parted; cat /etc/app.conf; touch /etc/app.conf",
        volumeMounts=mounts,
        env=[field],
        spec={
            "volumes": [
                {"name": "e", "emptyDir": {}},
                {"name": "m", "configMap": {"name": "settings"}},
            ]
        },
    )
    assert text.startswith("x\ncolour=red\n")
    assert "Read-only file system" in text


async def test_a_sub_path_that_is_swapped_all_the_time_never_leads_out(edge: Edge) -> None:
    outside = edge.root.parent / "outside"
    swap = (
        f"mkdir /data/real; ln -s {outside} /data/link; cd /data; while :; do "
        "mv real name; mv name real; mv link name; mv name link; done"
    )
    mount = {"name": "e", "mountPath": "/data"}
    swapping = container("busybox", "sh", "-c", swap, name="swap", volumeMounts=[mount])
    looking = container(
        *("busybox", "sh", "-c", "ls -a /data; cat /data/marker; exit 1"),
        volumeMounts=[{**mount, "subPath": "name"}],
    )
    async with edge.agents():
        await edge.run_pod(
            "swapped",
            looking,
            initContainers=[{**swapping, "restartPolicy": "Always"}],
            volumes=[{"name": "e", "emptyDir": {}}],
        )
        seen = await edge.pod("swapped", lambda p: first(p).get("restartCount", 0) >= 4)
        logs = (edge.root / "node-0" / seen["metadata"]["uid"] / "containers").rglob("log")
        assert not any("not to be seen" in path.read_text() for path in logs)
        await edge.delete("swapped", grace=0)
        await edge.gone("swapped")


async def test_a_mount_inside_a_volume_is_put_where_the_pod_sees_it(edge: Edge) -> None:
    outside = edge.root.parent / "outside"
    outer = {"name": "e", "mountPath": "/data"}
    plant = container(
        *("busybox", "sh", "-c", f"ln -s {outside} /data/inner; ln -s /usr /data/other"),
        name="plant",
        volumeMounts=[outer],
    )
    inner = [
        {"name": "f", "mountPath": "/data/inner/new"},
        {"name": "f", "mountPath": "/data/other"},
    ]
    async with edge.agents():
        await edge.run_pod(
            "nested",
            container(*("busybox", "sh", "-c", "ls /; ls /usr"), volumeMounts=[outer, *inner]),
            initContainers=[plant],
            volumes=[{"name": "e", "emptyDir": {}}, {"name": "f", "emptyDir": {}}],
            restartPolicy="Never",
        )
        await edge.pod("nested", ended)


async def test_a_host_path_is_refused_unless_the_edge_allows_it(edge: Edge) -> None:
    edge.access = type(edge.access)((str(edge.root.parent / "outside"),), private=(str(edge.root),))
    outside = str(edge.root.parent / "outside")

    async def with_path(name: str, path: str) -> None:
        mount = {"name": "h", "mountPath": "/host"}
        await edge.run_pod(
            name,
            container("busybox", "sh", "-c", "cat /host/marker", volumeMounts=[mount]),
            volumes=[{"name": "h", "hostPath": {"path": path}}],
            restartPolicy="Never",
        )

    paths = {"root": "/", "etc": "/etc", "keys": str(edge.root), "up": str(edge.root.parent)}
    async with edge.agents():
        for name, path in paths.items():
            await with_path(name, path)
        await with_path("allowed", outside)
        for name in paths:
            pod = await edge.pod(name, refused_container)
            conditions = {c["type"]: c for c in pod["status"]["conditions"]}
            targets = conditions["PodReadyToStartContainers"]
            assert (targets["status"], targets["reason"]) == ("False", "RefusedByNode")
            assert targets["message"].startswith("spec.volumes[0].hostPath.path: ")
            assert "RefusedByNode" in await edge.reasons(name)
        pod = await edge.pod("allowed", ended)
        assert await log(edge, pod) == "not to be seen\n"


REFUSED: list[tuple[str, Object, Object]] = [
    ("spec.hostPID", {"hostPID": True}, {}),
    ("spec.hostIPC", {"hostIPC": True}, {}),
    ("privileged", {}, {"privileged": True}),
    ("capabilities.add[0]", {}, {"capabilities": {"add": ["SYS_ADMIN"]}}),
    ("procMount", {"hostUsers": False}, {"procMount": "Unmasked"}),
    ("seccompProfile.type", {}, {"seccompProfile": LOCALHOST}),
    ("appArmorProfile.type", {}, {"appArmorProfile": {"type": "RuntimeDefault"}}),
]


async def test_a_field_that_is_not_given_refuses_the_pod_by_its_name(edge: Edge) -> None:
    async with edge.agents():
        for number, (_, spec, security) in enumerate(REFUSED):
            made = container("busybox", "sleep", "100", securityContext=security)
            await edge.run_pod(f"asking-{number}", made, **spec)
        for number, (field, _, _) in enumerate(REFUSED):
            pod = await edge.pod(f"asking-{number}", refused_container)
            assert field in first(pod)["state"]["waiting"]["message"]
            assert pod["status"]["phase"] == "Pending"
        await edge.delete("asking-0")
        await edge.gone("asking-0")


async def test_not_being_root_is_kept_in_kubelets_words(edge: Edge) -> None:
    async with edge.agents():
        security = {"runAsNonRoot": True}
        await edge.run_pod("root", container("busybox", "sleep", "9", securityContext=security))
        pod = await edge.pod("root", refused_container)
        assert first(pod)["state"]["waiting"]["message"].startswith(
            "container has runAsNonRoot and image will run as root (pod: "
        )


async def test_secrets_are_followed_though_the_pod_cannot_write_them(edge: Edge) -> None:
    await edge.direct.create(
        SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "old"}}, "default"
    )
    script = "while ! grep -q new /secret/k; do sleep 0.05; done; cat /secret/k; echo x > /secret/k"
    async with edge.agents():
        await edge.run_pod(
            "following",
            container(
                *("busybox", "sh", "-c", script),
                volumeMounts=[{"name": "s", "mountPath": "/secret", "readOnly": False}],
            ),
            volumes=[{"name": "s", "secret": {"secretName": "s"}}],
            restartPolicy="Never",
        )
        await edge.pod("following", ready)
        await edge.direct.patch(SECRETS, "s", {"stringData": {"k": "new"}}, "default", kind="merge")
        pod = await edge.pod("following", ended)
        text = await log(edge, pod)
    assert "new\n" in text
    assert "Read-only file system" in text


async def test_no_command_is_run_outside_a_container_that_has_not_begun(edge: Edge) -> None:
    marker = edge.root.parent / "outside" / "run"
    async with edge.agents():
        await edge.run_pod("begun", container("busybox", "sleep", "100"))
        pod = await edge.pod("begun", ready)
        life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
        assert life is not None
        place = edge.root / "node-0" / pod["metadata"]["uid"] / "containers" / "c" / "0"
        record = json.loads((place / "record.json").read_text())
        shim_alone = {name: record[name] for name in ("shim", "shim_start", "began_ns")}
        spec = life.run_spec
        assert spec is not None
        life.run_spec = replace(spec, sandbox=None)
        code, text = await life.reach().run(["touch", str(marker)], 10)
        assert (code, text) == (126, "the pod has no namespaces")
        life.run_spec = spec
        for known in (shim_alone, {**shim_alone, "pid": 0}, None):
            if known is None:
                (place / "record.json").unlink()
            else:
                (place / "record.json").write_text(json.dumps(known))
            code, text = await life.reach().run(["touch", str(marker)], 10)
            assert (code, text) == (126, "the container is not running")
        (place / "record.json").write_text(json.dumps({**record, "namespaces": ["/proc/0/ns/mnt"]}))
        code, text = await life.reach().run(["touch", str(marker)], 10)
        assert code == 126
        assert "cannot enter the container" in text
        (place / "record.json").write_text(json.dumps(record))
