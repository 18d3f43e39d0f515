"""The volumes of one pod on disk, and what its containers see of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.environment import ConfigurationMissing, Facts
from skerry.edge.agent.pod_volumes import PodVolumes
from skerry.edge.agent.runtime import Mount
from tests.kit.agent.nodes import HeldNode, container, pod


class Desk:
    def __init__(self, root: Path, *volumes: Object, **spec: Any) -> None:
        self.node = HeldNode(root)
        self.directory = root / "volumes"
        self.volumes = PodVolumes(self.node.context, self.directory)
        self.pod = pod(volumes=list(volumes), **spec)

    async def set_up(self) -> list[str]:
        context = self.node.context
        facts = Facts(self.pod, context.name, context.host_ip, "10.244.1.2", {})
        return await self.volumes.set_up(self.pod, facts)

    def mount(self, values: dict[str, str] | None = None, **mount: Any) -> Mount:
        (found,) = self.volumes.mounts_of(
            container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}]), values or {}
        )
        return found

    def config_map(self, **data: str) -> None:
        metadata = {"name": "settings", "namespace": "ns", "uid": "m", "resourceVersion": "1"}
        self.node.sources.config_maps.apply("ADDED", {"metadata": metadata, "data": data})


EMPTY: Object = {"name": "v", "emptyDir": {}}
SETTINGS: Object = {"name": "v", "configMap": {"name": "settings"}}


async def test_a_mount_is_where_its_volume_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY)
    assert await desk.set_up() == []
    mount = desk.mount(readOnly=True)
    assert (mount.path, mount.is_read_only) == ("/v", True)
    assert mount.source.is_dir()
    assert not desk.mount().is_read_only


async def test_a_volume_that_is_missing_says_why_and_is_had_once_it_can_be(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SETTINGS)
    (failure,) = await desk.set_up()
    assert "settings" in failure
    assert desk.volumes.need_upkeep(desk.pod)
    with pytest.raises(ConfigurationMissing, match="settings"):
        desk.mount()
    desk.config_map(a="1")
    assert await desk.set_up() == []
    assert (desk.mount().source / "a").read_text() == "1"


async def test_only_volumes_that_follow_objects_or_failed_need_upkeep(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY)
    await desk.set_up()
    assert not desk.volumes.need_upkeep(desk.pod)
    assert desk.volumes.need_upkeep(pod(volumes=[SETTINGS]))


async def test_a_volume_nobody_declared_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.set_up()
    with pytest.raises(ConfigurationMissing, match="no such volume"):
        desk.mount()


# -- parts of volumes ------------------------------------------------------------------------------


async def test_a_part_of_a_volume_is_made_where_it_is_missing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY)
    await desk.set_up()
    mount = desk.mount(subPath="a/b")
    assert mount.source.is_dir()
    assert mount.volume.inside == "a/b"
    (mount.source / "kept").write_text("x")
    assert (desk.mount(subPath="a/b").source / "kept").exists()


async def test_a_part_may_be_named_by_variables_that_must_all_be_known(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY)
    await desk.set_up()
    assert desk.mount({"POD": "web-0"}, subPathExpr="logs/$(POD)").volume.inside == "logs/web-0"
    with pytest.raises(ConfigurationMissing):
        desk.mount(subPathExpr="logs/$(POD)")


@pytest.mark.parametrize("part", ["../out", "a/../../out"])
async def test_a_part_cannot_climb_out_of_its_volume(tmp_path: Path, part: str) -> None:
    desk = Desk(tmp_path, EMPTY)
    await desk.set_up()
    with pytest.raises(ConfigurationMissing, match=r'failed to prepare subPath .* container "c"'):
        desk.mount(subPath=part)


async def test_a_link_that_the_pod_made_is_not_followed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY)
    await desk.set_up()
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.mount().source / "link").symlink_to(outside)
    with pytest.raises(ConfigurationMissing, match="failed to prepare subPath"):
        desk.mount(subPath="link/made")
    assert list(outside.iterdir()) == []


async def test_a_file_of_a_config_map_can_be_a_part_and_a_missing_one_is_not_made(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, SETTINGS)
    desk.config_map(a="1")
    await desk.set_up()
    mount = desk.mount(subPath="a")
    assert mount.volume.inside == "a"
    assert mount.source.read_text() == "1"
    with pytest.raises(ConfigurationMissing, match="there is no such file in the volume"):
        desk.mount(subPath="none")


# -- whose they are --------------------------------------------------------------------------------


async def test_a_volume_is_given_to_the_pods_group_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, EMPTY, securityContext={"fsGroup": 2000})
    await desk.set_up()
    root = desk.mount().source
    assert root.stat().st_gid == 2000
    (root / "own").write_text("")
    os.chown(root / "own", 0, 0)
    await desk.set_up()
    assert (root / "own").stat().st_gid == 0  # what the pod did since is its own


async def test_a_volume_that_belongs_to_the_group_already_may_be_left_alone(tmp_path: Path) -> None:
    security = {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"}
    first = Desk(tmp_path, EMPTY, securityContext=security)
    await first.set_up()
    root = first.mount().source
    (root / "own").write_text("")
    os.chown(root / "own", 0, 0)
    again = Desk(tmp_path, EMPTY, securityContext=security)
    await again.set_up()
    assert (root / "own").stat().st_gid == 0
    always = Desk(tmp_path, EMPTY, securityContext={"fsGroup": 2000})
    await always.set_up()
    assert (root / "own").stat().st_gid == 2000
