"""Containers as processes: one whose start is given up can still be ended."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.process_runtime import ProcessRuntime
from skerry.edge.agent.runtime import ContainerSpec


async def test_a_container_whose_start_is_given_up_is_known_whole_and_can_be_ended(
    tmp_path: Path,
) -> None:
    runtime = ProcessRuntime(Catalogue())
    image = runtime.image("busybox")
    directory = tmp_path / "containers" / "c" / "0"
    spec = ContainerSpec(image, ("sleep", "600"), {}, str(tmp_path), (), {}, directory)
    starting = asyncio.create_task(runtime.start(spec))
    while not (directory / "root").exists():
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    found = runtime.adopt(directory)
    assert found is not None, "its shim was begun, and cannot be called back"
    found.signal(signal.SIGKILL)
    async with asyncio.timeout(60):
        assert (await found.wait()).signal == signal.SIGKILL
