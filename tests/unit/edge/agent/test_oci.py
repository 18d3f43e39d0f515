"""Containers of images with files of their own, through whichever OCI runtimes there are."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from skerry.edge.agent.oci import make_place, oci_program
from skerry.edge.agent.processes import Process, wait_gone
from tests.kit.agent.fixtures import log, record
from tests.kit.agent.harness import Edge, container, first, phase, ready, why_no_namespaces

_PROGRAMS = ("sh", "cat", "sleep", "ls")


def _make_root(root: Path) -> None:
    """Make a root file system of a few of this machine's programs."""
    for name in _PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        _copy(Path(program), root / "bin" / name)
        needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        for word in needed.stdout.split():
            if word.startswith("/"):
                _copy(Path(word), root / word.lstrip("/"))
    (root / "greeting").write_text("from the image\n")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)


def _make_layout(root: Path, place: Path) -> None:
    """Write an OCI image layout of two layers: the files, and a change to them."""
    change = io.BytesIO()
    with tarfile.open(fileobj=change, mode="w") as layer:
        for name, content in (("second", b"layer\n"), (".wh.greeting", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            layer.addfile(member, io.BytesIO(content))
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as layer:
        layer.add(root, ".")
    layers = [_blob(place, gzip.compress(files.getvalue(), 1)), _blob(place, change.getvalue())]
    config = {"config": {"Cmd": ["sh", "-c", "cat /second; ls /; echo $COLOUR"]}}
    config["config"] |= {"Env": ["PATH=/bin", "COLOUR=green"], "WorkingDir": "/bin"}  # type: ignore[dict-item]
    manifest = {"config": {"digest": _blob(place, json.dumps(config).encode())}}
    manifest["layers"] = [{"digest": digest} for digest in layers]  # type: ignore[assignment]
    index = {"manifests": [{"digest": _blob(place, json.dumps(manifest).encode())}]}
    (place / "index.json").write_text(json.dumps(index))


def _blob(place: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    path = place / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"sha256:{digest}"


@pytest.fixture(params=["crun", "runc"])
async def edge(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Edge]:
    program = oci_program([request.param])
    if program is None:
        pytest.fail(f"{request.param} is not installed: tests/install-packages tells how")
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    world = Edge(tmp_path, namespaces=True)
    world.oci = program
    _make_root(tmp_path / "root")
    _list(world, {"rootfs": str(tmp_path / "root")})
    async with world.up():
        yield world


def _list(edge: Edge, entry: dict[str, Any]) -> None:
    text = yaml.safe_dump({"images": [{"names": ["acme/box"], **entry}]})
    (edge.root / "images.yaml").write_text(text)


async def test_a_container_sees_its_image_its_mounts_and_its_pod(edge: Edge) -> None:
    await edge.configure("settings", colour="red")
    script = "cat /greeting /settings/colour /etc/hostname; ls /; echo changed > /greeting"
    mount = {"name": "settings", "mountPath": "/settings"}
    await edge.run_pod(
        "seeing",
        container("acme/box:1", "sh", "-c", script, volumeMounts=[mount]),
        volumes=[{"name": "settings", "configMap": {"name": "settings"}}],
        restartPolicy="Never",
    )
    async with edge.agents():
        pod = await edge.pod("seeing", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
    assert text.startswith("from the image\nredseeing\n"), (text, first(pod))
    assert "work" not in text
    # What it wrote is gone with it.
    assert (edge.root / "root" / "greeting").read_text() == "from the image\n"


async def test_an_image_layout_is_unpacked_and_says_what_to_run(edge: Edge) -> None:
    _make_layout(edge.root / "root", edge.root / "layout")
    _list(edge, {"layout": str(edge.root / "layout")})
    await edge.run_pod("unpacked", container("acme/box:1"), restartPolicy="Never")
    async with edge.agents():
        pod = await edge.pod("unpacked", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
    assert text.startswith("layer\n"), (text, first(pod))
    assert "greeting" not in text
    assert text.endswith("green\n")


async def test_commands_run_inside_and_the_agent_may_come_and_go(edge: Edge) -> None:
    async with edge.agents():
        script = "trap 'exit 3' TERM; while true; do sleep 0.1; done"
        await edge.run_pod("lasting", container("acme/box", "sh", "-c", script))
        pod = await edge.pod("lasting", ready)
        found = record(edge, pod)
    async with edge.agents():
        pod = await edge.pod("lasting", ready)
        assert record(edge, pod) == found
        async with asyncio.timeout(60):
            while not (life := edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")):
                await asyncio.sleep(0.01)  # nothing announces that it was taken over
            while life.running is None:
                await asyncio.sleep(0.01)
        code, output = await life.reach().run(["cat", "/greeting"], 10)
        assert (code, output) == (0, "from the image\n")
        await edge.delete("lasting", grace=5)
        await edge.gone("lasting")
        await wait_gone(Process(found["pid"], found["pid_start"]))


async def test_a_program_the_image_lacks_is_named(edge: Edge) -> None:
    await edge.run_pod("lacking", container("acme/box", "absent"), restartPolicy="Never")
    async with edge.agents():
        pod = await edge.pod("lacking", phase("Failed"))
    ended = first(pod)["state"]["terminated"]
    assert ended["reason"] == "StartError"
    assert "absent" in ended["message"]


async def test_without_an_oci_runtime_the_pod_says_what_to_install(tmp_path: Path) -> None:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, namespaces=True)
    (tmp_path / "root").mkdir()
    _list(edge, {"rootfs": str(tmp_path / "root")})
    async with edge.up(), edge.agents():
        await edge.run_pod("lacking", container("acme/box", "sh"), restartPolicy="Never")
        pod = await edge.pod("lacking", phase("Failed"))
    assert "install" in first(pod)["state"]["terminated"]["message"]


def test_places_for_mounts_are_made_beside_the_images_own(tmp_path: Path) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (lower / "run").mkdir(parents=True, mode=0o711)
    (lower / "etc").mkdir()
    (lower / "etc" / "hosts").touch()
    (lower / "var").mkdir()
    (lower / "var" / "run").symlink_to("/run")
    make_place(lower, upper, "/etc/hosts", is_file=True)
    make_place(lower, upper, "/var/run/secrets/token", is_file=False)
    make_place(lower, upper, "/etc/resolv.conf", is_file=True)
    found = {str(path.relative_to(upper)) for path in upper.rglob("*")}
    assert found == {"run", "run/secrets", "run/secrets/token", "etc", "etc/resolv.conf"}
    # A layer's directory hides the mode of the one below.
    assert (upper / "run").stat().st_mode & 0o777 == (lower / "run").stat().st_mode & 0o777


async def _ended(edge: Edge, name: str, script: str, **more: Any) -> str:
    """Run a script in a container of the image to its end and return what it wrote."""
    spec = more.pop("spec", {})
    made = container("acme/box:1", "sh", "-c", script, **more)
    await edge.run_pod(name, made, restartPolicy="Never", **spec)
    async with edge.agents():
        pod = await edge.pod(name, lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
    assert text, json.dumps(first(pod)["state"])
    return text


def _one_user_by_runc(edge: Edge) -> bool:
    return os.geteuid() != 0 and edge.oci is not None and edge.oci.name == "runc"


@pytest.mark.parametrize("edge", ["runc"], indirect=True)
async def test_a_user_that_cannot_be_had_is_refused_by_name(edge: Edge) -> None:
    edge.user = 1000  # who does not run the edge as root has one user for containers
    security = {"runAsUser": 1234}
    made = container("acme/box", "sh", securityContext=security)
    await edge.run_pod("refused", made, restartPolicy="Never")
    async with edge.agents():
        pod = await edge.pod("refused", phase("Failed"))
    assert "securityContext.runAsUser: 1234" in first(pod)["state"]["terminated"]["message"]


async def test_a_container_of_an_image_is_held_to_its_security_context(edge: Edge) -> None:
    if _one_user_by_runc(edge):
        pytest.skip("runc has one user there")
    security = {
        "runAsUser": 1234,
        "runAsGroup": 2345,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    text = await _ended(
        edge,
        "restricted",
        "exec 2>&1; cat /proc/self/status; echo x > /greeting; "
        "echo x > /proc/sys/kernel/core_pattern; "
        "echo x > /settings/colour; cat /proc/kallsyms; ls /sys",
        securityContext=security,
        volumeMounts=[{"name": "s", "mountPath": "/settings"}],
        spec={"volumes": [{"name": "s", "configMap": {"name": "settings", "optional": True}}]},
    )
    lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert lines["Uid"].split() == ["1234"] * 4
    assert lines["Gid"].split() == ["2345"] * 4
    assert (lines["CapEff"], lines["CapBnd"]) == ("0" * 16, "0" * 16)
    assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("1", "2")
    assert text.count("Read-only file system") + text.count("Permission denied") >= 3
    assert text.endswith("devices\nkernel\n"), "nothing else of the machine is in /sys"


async def test_the_usual_container_of_an_image_has_the_usual_rights(edge: Edge) -> None:
    text = await _ended(edge, "usual", "cat /proc/self/status")
    lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert (lines["CapEff"], lines["CapBnd"]) == ("00000000a80425fb",) * 2
    assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("0", "2")


async def test_a_part_of_a_volume_is_mounted_alone(edge: Edge) -> None:
    mount = {"name": "e", "mountPath": "/data"}
    plant = container(
        *("acme/box", "sh", "-c", "echo inside > /data/file; ls /data"),
        name="plant",
        volumeMounts=[{**mount, "subPath": "part"}],
    )
    text = await _ended(
        edge,
        "parted",
        "cat /data/file; cat /all/part/file",
        volumeMounts=[{**mount, "subPath": "part"}, {"name": "e", "mountPath": "/all"}],
        spec={"volumes": [{"name": "e", "emptyDir": {}}], "initContainers": [plant]},
    )
    assert text == "inside\ninside\n"


async def test_a_user_that_an_image_names_is_looked_up_in_it(edge: Edge) -> None:
    if _one_user_by_runc(edge):
        pytest.skip("runc has one user there")
    layout, root = edge.root / "layout", edge.root / "root"
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text("root:x:0:0::/:\nwww:x:33:44::/:\n")
    _make_layout(root, layout)
    index = json.loads((layout / "index.json").read_text())
    place = layout / "blobs" / "sha256"
    manifest = json.loads((place / index["manifests"][0]["digest"].partition(":")[2]).read_text())
    config = json.loads((place / manifest["config"]["digest"].partition(":")[2]).read_text())
    config["config"] |= {"User": "www", "Cmd": ["cat", "/proc/self/status"]}
    manifest["config"] = {"digest": _blob(layout, json.dumps(config).encode())}
    index = {"manifests": [{"digest": _blob(layout, json.dumps(manifest).encode())}]}
    (layout / "index.json").write_text(json.dumps(index))
    _list(edge, {"layout": str(layout)})
    await edge.run_pod("named", container("acme/box:1"), restartPolicy="Never")
    security = {"runAsNonRoot": True}
    await edge.run_pod("vouched", container("acme/box:1", securityContext=security))
    async with edge.agents():
        pod = await edge.pod("named", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
        assert "Uid:\t33\t33\t33\t33" in text, (text, first(pod))
        assert "Gid:\t44\t44\t44\t44" in text
        waiting = await edge.pod(
            "vouched", lambda p: "waiting" in (first(p).get("state") or {}) and "message" in str(p)
        )
        assert "image has non-numeric user (www)" in str(first(waiting)["state"])
