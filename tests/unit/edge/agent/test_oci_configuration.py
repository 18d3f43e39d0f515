"""What OCI runtimes and bubblewrap are options, and who an image's named user is."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.bubblewrap import arguments, works
from skerry.edge.agent.catalogue import program_paths
from skerry.edge.agent.image_users import UnknownUser, numbers_of
from skerry.edge.agent.oci_configuration import configuration
from skerry.edge.agent.process_runtime import identity_of, rights_of
from skerry.edge.agent.program_words import below_root, contained, translated
from skerry.edge.agent.root_plan import Content, Step, Wanted, root_plan
from skerry.edge.agent.runtime import Confinement, ContainerSpec, Image, Mount, Volume
from tests.kit.agent.fixtures import log
from tests.kit.agent.harness import Edge, container, first, phase, ready
from tests.kit.agent.mounts import MadeUp

IMAGE = Image("i", "i@sha256:0")
MOUNTS = (
    Mount("/data", Volume(Path("/edge/e"))),
    Mount("/secret", Volume(Path("/edge/s"), read_only=True, links=True)),
)


def spec(confinement: Confinement | None = None, **more: Any) -> ContainerSpec:
    asked = confinement or Confinement()
    return ContainerSpec(IMAGE, ("sh",), {"A": "1"}, "/", MOUNTS, {}, Path("/d"), asked, **more)


class TestConfiguration:
    def of(self, confinement: Confinement | None = None, **more: Any) -> dict[str, Any]:
        names = ["1", "self", "cpuinfo", "kcore", "sys"]
        return configuration(spec(confinement), "/root", ["/v/0", "/v/1"], proc_names=names, **more)

    def test_what_was_asked_is_reported(self) -> None:
        asked = Confinement(
            *(5, 6, (7,), frozenset({10}), True, True, True),
            sysctls={"net.ipv4.tcp_rmem": "1 2 3"},
        )
        found = self.of(asked)
        process, linux = found["process"], found["linux"]
        assert process["user"] == {"uid": 5, "gid": 6, "additionalGids": [7]}
        kept = ["CAP_NET_BIND_SERVICE"]
        assert process["capabilities"] == dict.fromkeys(
            ("bounding", "effective", "permitted"), kept
        )
        assert process["noNewPrivileges"] is True
        assert found["root"]["readonly"] is True
        assert linux["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"
        assert linux["sysctl"] == {"net.ipv4.tcp_rmem": "1 2 3"}
        assert linux["maskedPaths"] == ["/proc/kcore"]
        assert linux["readonlyPaths"] == ["/proc/cpuinfo", "/proc/sys", "/sys"]

    def test_what_was_not_asked_is_not(self) -> None:
        found = self.of()
        assert found["process"]["user"] == {"uid": 0, "gid": 0}
        assert found["process"]["noNewPrivileges"] is False
        assert "seccomp" not in found["linux"]
        assert not any(item["type"] == "user" for item in found["linux"]["namespaces"])

    def test_volumes_are_found_where_no_pod_can_change_them(self) -> None:
        mounts = {item["destination"]: item for item in self.of()["mounts"]}
        assert mounts["/data"]["source"] == "/v/0"
        assert mounts["/data"]["options"] == ["rbind", "rw", "nosuid", "nodev"]
        assert mounts["/secret"]["options"] == ["rbind", "ro", "nosuid", "nodev"]
        assert mounts["/sys"]["type"] == "tmpfs"

    def test_one_user_is_had_by_a_namespace_of_its_own(self) -> None:
        found = self.of(Confinement(5, 6, (7,)), identity=(5, 6))
        assert found["linux"]["uidMappings"] == [{"containerID": 5, "hostID": 0, "size": 1}]
        assert found["linux"]["gidMappings"] == [{"containerID": 6, "hostID": 0, "size": 1}]
        assert "additionalGids" not in found["process"]["user"]


class TestRights:
    asked = Confinement(5, 6, (7,), frozenset({10, 0}), False, False)

    def test_root_gives_any_user(self) -> None:
        found = rights_of(spec(self.asked), "any")
        assert (found.user, found.group, found.groups) == (5, 6, [7])
        assert found.capabilities == [0, 10]
        assert rights_of(spec(), "any").groups == [], "none of the agent's are left"

    def test_one_user_comes_from_a_namespace(self) -> None:
        found = rights_of(spec(self.asked), "one")
        assert (found.user, found.group, found.groups) == (None, None, None)
        assert identity_of(spec(self.asked), "one") == (5, 6)
        assert identity_of(spec(), "one") is None
        assert identity_of(spec(self.asked), "any") is None

    def test_a_user_without_namespaces_gains_nothing_more(self) -> None:
        assert rights_of(spec(), "own").no_new_privileges


class TestWords:
    def test_a_working_directory_does_not_lead_out_of_the_root(self) -> None:
        for path in ("../../etc", "/../../etc", "/a/../../etc"):
            assert below_root(path) == "etc"
        found = translated(spec(), ["sh"], Path("/r"))
        assert found.working_directory == "/r"

    def test_whoever_is_not_root_does_not_live_in_its_home(self) -> None:
        assert contained(spec(), ["sh"]).environment["HOME"] == "/root"
        assert contained(spec(Confinement(5)), ["sh"]).environment["HOME"] == "/"

    def test_an_entry_shows_its_programs_folders_but_no_home(self) -> None:
        words = [
            "/opt/acme/web",
            "--listen",
            "/home/alice/run",
            "/run.sh",
            "/home/a/bin/x",
            "/srv/y",
        ]
        assert program_paths(words) == (
            *("/opt/acme", "/home/alice/run", "/run.sh", "/home/a/bin", "/srv/y"),
        )


class TestImageUsers:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/:\nwww:x:33:44::/:\nbad:x::\n")
        (tmp_path / "etc" / "group").write_text("staff:x:50:www\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("www", (33, 44)), ("www:7", (33, 7)), ("www:staff", (33, 50)), ("33", (33, 44))],
    )
    def test_names_are_looked_up_in_the_image(
        self, root: Path, name: str, expected: tuple[int, int]
    ) -> None:
        assert numbers_of(name, root) == expected

    @pytest.mark.parametrize("name", ["nobody", "www:nogroup", "bad"])
    def test_a_name_it_does_not_know_is_not_root(self, root: Path, name: str) -> None:
        with pytest.raises(UnknownUser, match="no matching entries"):
            numbers_of(name, root)

    def test_links_in_the_image_do_not_lead_to_the_machine(self, root: Path) -> None:
        (root / "etc" / "passwd").unlink()
        (root / "etc" / "passwd").symlink_to("/../../../etc/passwd")
        with pytest.raises(UnknownUser):
            numbers_of("root", root)


# -- bubblewrap ---------------------------------------------------------------------------------


def wrapped(*volumes: Content, **more: Any) -> dict[str, Any]:
    steps = root_plan(MadeUp(), Wanted(volumes))
    return {"program": "bwrap", "identity": None, "steps": steps, **more}


def volume(path: str, *, read_only: bool = False, links: bool = False) -> Content:
    return Content("/edge/v", "", path, read_only, links, devices=False)


def test_bubblewrap_is_given_the_same_plan() -> None:
    options = wrapped(volume("/data"), volume("/secret", read_only=True, links=True))
    words = arguments(options, 9, lambda content: 7)
    text = " ".join(words)
    assert text.startswith("--clearenv --die-with-parent --unshare-pid --unshare-ipc")
    assert "--cap-drop ALL" in text
    assert "--ro-bind-try /usr /usr" in text
    assert "--ro-bind-try /dev/null /proc/kcore" in text
    assert "--ro-bind-try /proc/sys /proc/sys" in text
    assert "--bind-fd 7 /data" in text
    assert "--ro-bind-fd 7 /secret" in text
    assert text.endswith("--seccomp 9")
    assert "/etc/shadow" not in text
    assert "/" not in {after for word, after in pairwise(words) if word == "--remount-ro"}
    options = {**options, "identity": [5, 6], "steps": [*options["steps"], Step("seal", "/")]}
    text = " ".join(arguments(options, -1, lambda content: 7))
    assert "--unshare-user --uid 5 --gid 6" in text
    assert text.endswith("--remount-ro /")
    assert "--seccomp" not in text


def test_bubblewrap_puts_nothing_inside_what_pods_write_to() -> None:
    with pytest.raises(ValueError, match="/data/inner lies in the volume at /data"):
        arguments(wrapped(volume("/data"), volume("/data/inner")), -1, lambda content: 7)
    inside = wrapped(volume("/secret", links=True), volume("/secret/inner"))
    assert arguments(inside, -1, lambda content: 7)


def test_a_program_that_is_no_bubblewrap_is_not_used(tmp_path: Path) -> None:
    stand_in = tmp_path / "bwrap"
    stand_in.write_text("#!/bin/sh\necho 'Unknown option --ro-bind-fd' >&2; exit 1\n")
    stand_in.chmod(0o755)
    assert not works(str(stand_in), users=False)
    assert not works(str(tmp_path / "absent"), users=False)


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    if not works(program, users=True):
        pytest.skip("this bubblewrap cannot do here what containers need")
    world = Edge(tmp_path)
    world.bubblewrap = program
    async with world.up():
        yield world


async def test_variables_of_a_pod_are_not_obeyed_outside_it(edge: Edge) -> None:
    """The loader writes where LD_DEBUG_OUTPUT says, in whatever process has the variable."""
    outside = edge.root / "outside"
    outside.mkdir()
    env = [
        {"name": "LD_DEBUG", "value": "files"},
        {"name": "LD_DEBUG_OUTPUT", "value": str(outside / "seen")},
        {"name": "HUSH", "value": "secret"},
    ]
    probe = {"exec": {"command": ["sh", "-c", "test $HUSH = secret"]}, "periodSeconds": 1}
    async with edge.agents():
        await edge.run_pod(
            "loaded", container("busybox", "sleep", "100", env=env, readinessProbe=probe)
        )
        await edge.pod("loaded", ready)
    assert list(outside.iterdir()) == []


async def test_a_pod_below_bubblewrap_sees_its_volumes_and_not_the_machine(edge: Edge) -> None:
    (edge.root / "admin.kubeconfig").write_text("keys")
    await edge.configure("settings", colour="red")
    script = (
        f"cat /settings/colour; cat /etc/shadow {edge.root}/admin.kubeconfig; id -u; "
        "touch /data/x && ls /data; touch /settings/x /usr/x /tmp/x; "
        "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; "
        "echo x > /proc/sys/kernel/core_pattern; ls /proc | grep -c '^[0-9]'"
    )
    mounts = [
        {"name": "s", "mountPath": "/settings"},
        {"name": "e", "mountPath": "/data", "subPath": "part"},
    ]
    security = {"runAsUser": 1234, "readOnlyRootFilesystem": True}
    await edge.run_pod(
        "wrapped",
        container(*("busybox", "sh", "-c", script), volumeMounts=mounts, securityContext=security),
        volumes=[{"name": "s", "configMap": {"name": "settings"}}, {"name": "e", "emptyDir": {}}],
        restartPolicy="Never",
    )
    async with edge.agents():
        pod = await edge.pod("wrapped", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
    assert "red" in text, (text, first(pod))
    assert "/etc/shadow: No such file" in text
    assert "admin.kubeconfig: No such file" in text
    assert "1234\n" in text
    assert "x\n" in text
    assert text.count("Read-only file system") == 4, text
    assert "CapEff:\t0000000000000000" in text
    assert "NoNewPrivs:\t1" in text
    assert "Seccomp:\t2" in text
    assert os.listdir(edge.root / "node-0" / pod["metadata"]["uid"] / "volumes" / "e") == ["part"]
