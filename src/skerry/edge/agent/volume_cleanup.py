"""Removing the directories of local volumes that are gone from the server.

A directory is removed only when the server was asked and has no volume of that name any more: the
name carries the claim's uid, so it can never come back for something else.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from skerry.api.objects import Object
from skerry.kit.log import Logger
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

_log = Logger("agent")
_UID_LENGTH = len("pvc-00000000-0000-0000-0000-000000000000")


async def run_volume_cleanup(root: Path, volumes: Informer) -> None:
    """Remove what no volume stands for, now and whenever one goes, until cancelled."""
    await volumes.wait_synced()
    gone = asyncio.Event()

    def changed(old: Object | None, new: Object | None) -> None:
        if new is None:
            gone.set()

    volumes.add_handler(changed)
    while True:
        for directory in _unclaimed(root, volumes):
            _log.info("removing the directory of a deleted volume", v=1, volume=directory.name)
            await asyncio.get_running_loop().run_in_executor(None, _removed, directory)
        await gone.wait()
        gone.clear()


def _unclaimed(root: Path, volumes: Informer) -> list[Path]:
    if not root.is_dir():
        return []
    return [
        directory
        for directory in root.iterdir()
        if directory.name.startswith("pvc-")
        and Key("", "", directory.name[:_UID_LENGTH]) not in volumes.index
    ]


def _removed(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
