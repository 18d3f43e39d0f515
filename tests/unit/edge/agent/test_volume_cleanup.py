from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.sources import VOLUMES
from skerry.edge.agent.volume_cleanup import run_volume_cleanup
from skerry.runtime.informer import Informer
from tests.kit.at_once import AtOnce
from tests.kit.caches import cache

FIRST, SECOND = (f"pvc-{n * 8}-0000-0000-0000-000000000000" for n in ("1", "2"))


def volume(name: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": {}}


@asynccontextmanager
async def cleaning(root: Path, volumes: Informer) -> AsyncIterator[None]:
    asyncio.get_running_loop().set_default_executor(AtOnce())
    task = asyncio.create_task(run_volume_cleanup(root, volumes))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_gone(path: Path) -> None:
    while path.exists():
        await asyncio.sleep(0.001)


async def test_directories_of_volumes_that_are_gone_are_removed_and_no_others(
    tmp_path: Path,
) -> None:
    for name in (FIRST, f"{FIRST}_shop_data", f"{SECOND}_shop_data", "of-somebody-else"):
        (tmp_path / name / "content").mkdir(parents=True)
    async with cleaning(tmp_path, cache(VOLUMES, volume(FIRST))):
        await until_gone(tmp_path / f"{SECOND}_shop_data")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["of-somebody-else", FIRST, f"{FIRST}_shop_data"]


async def test_a_directory_goes_when_its_volume_does(tmp_path: Path) -> None:
    (tmp_path / FIRST).mkdir()
    volumes = cache(VOLUMES, volume(FIRST))
    async with cleaning(tmp_path, volumes):
        for _ in range(5):
            await asyncio.sleep(0)
        assert (tmp_path / FIRST).exists()
        volumes.apply("DELETED", volume(FIRST))
        await until_gone(tmp_path / FIRST)


async def test_nothing_is_removed_before_the_server_was_asked(tmp_path: Path) -> None:
    """An empty cache that was never filled says nothing of what there is."""
    (tmp_path / FIRST).mkdir()
    volumes = cache(VOLUMES)
    volumes.synced.clear()
    async with cleaning(tmp_path, volumes):
        for _ in range(20):
            await asyncio.sleep(0)
        assert (tmp_path / FIRST).exists()


async def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    root = tmp_path / "volumes"
    root.mkdir()
    (root / FIRST).symlink_to(tmp_path / "precious")
    (root / SECOND).mkdir()
    async with cleaning(root, cache(VOLUMES)):
        await until_gone(root / SECOND)
    assert (tmp_path / "precious").is_dir()


async def test_an_edge_that_has_no_volumes_yet_has_nothing_to_remove(tmp_path: Path) -> None:
    volumes = cache(VOLUMES, volume(FIRST))
    async with cleaning(tmp_path / "none", volumes):
        await asyncio.sleep(0)
        volumes.apply("DELETED", volume(FIRST))
        await asyncio.sleep(0)
