"""The volumes of one pod: set up before its containers, followed while they run.

``mounts_of`` says what a container sees of them. A ``subPath`` is made here where it is missing,
without following a link; it is opened once more when the container is set up, by whoever mounts it
(see ``beneath``), because pods that run may have changed it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.beneath import LeadsOut, parts_of, resolver
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.environment import ConfigurationMissing, Facts, expanded_strictly
from skerry.edge.agent.ownership import belongs_to, give_to_group
from skerry.edge.agent.runtime import Mount, Volume
from skerry.edge.agent.security_context import common_user, file_group
from skerry.edge.agent.volumes import MountFailed, Sources, is_written, set_up, takes_group


class PodVolumes:
    """Sets volumes up and knows where they are; ``set_up`` before ``mounts_of``."""

    def __init__(self, node: NodeContext, directory: Path) -> None:
        self._node = node
        self._directory = directory
        self._known: dict[str, Volume] = {}
        self._failed: dict[str, str] = {}
        self._given: set[str] = set()

    def need_upkeep(self, pod: Object) -> bool:
        """Tell whether any volume follows objects or is missing, and so must be looked after."""
        written = any(is_written(volume) for volume in pod["spec"].get("volumes") or ())
        return written or bool(self._failed)

    async def set_up(self, pod: Object, facts: Facts) -> list[str]:
        """Have every volume as it should be now; returns what is wrong with those that are not."""
        await self._node.sources.fetch_tokens(pod)
        sources = self._sources(pod, facts)
        self._failed.clear()
        for volume in pod["spec"].get("volumes") or ():
            name = volume["name"]
            try:
                found = self._known[name] = set_up(self._directory, volume, sources)
                if sources.group is not None and takes_group(volume):
                    await self._give(pod, name, found.root, sources.group)
            except MountFailed as error:
                self._failed[name] = str(error)
        return list(self._failed.values())

    def _sources(self, pod: Object, facts: Facts) -> Sources:
        node, namespace = self._node, pod["metadata"]["namespace"]
        # Only root can give a file to somebody else.
        is_root = os.geteuid() == 0
        return Sources(
            facts,
            lambda kind, name: node.sources.configuration(namespace, kind, name),
            lambda source: node.sources.token(pod, source),
            lambda claim: node.sources.claim_volume(namespace, claim, node.access),
            node.access,
            file_group(pod) if is_root else None,
            common_user(pod) if is_root else None,
        )

    async def _give(self, pod: Object, name: str, root: Path, group: int) -> None:
        """Give a volume to the pod's group, once, and not at all where a pod finds that enough."""
        security = pod["spec"].get("securityContext") or {}
        enough = security.get("fsGroupChangePolicy") == "OnRootMismatch"
        if name in self._given or (enough and belongs_to(root, group)):
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, give_to_group, root, group)
        except OSError as error:
            text = f'applyFSGroup failed for volume "{name}": {error}'
            raise MountFailed(text) from error
        self._given.add(name)

    def mounts_of(self, container: Object, values: Mapping[str, str]) -> list[Mount]:
        """Return what a container sees of the volumes; raises ``ConfigurationMissing``."""
        found = []
        for mount in container.get("volumeMounts") or ():
            volume = self._known.get(mount["name"])
            if volume is None:
                raise ConfigurationMissing(self._failed.get(mount["name"], "no such volume"))
            if part := _part_of(mount, values):
                volume = self._part(container, mount, volume, part)
            found.append(Mount(mount["mountPath"], volume, bool(mount.get("readOnly"))))
        return found

    def _part(self, container: Object, mount: Object, volume: Volume, part: str) -> Volume:
        try:
            found = volume.at("/".join(parts_of(part)))
            _have(found)
        except (LeadsOut, OSError) as error:
            name, where = mount["name"], container["name"]
            raise ConfigurationMissing(
                f'failed to prepare subPath for volumeMount "{name}" of container "{where}": '
                f'subPath "{part}": {error.strerror}'
            ) from error
        return found


def _part_of(mount: Object, values: Mapping[str, str]) -> str:
    """Return which part of a volume is mounted; empty for all of it."""
    if mount.get("subPathExpr"):
        return expanded_strictly(str(mount["subPathExpr"]), values)
    return str(mount.get("subPath") or "")


def _have(volume: Volume) -> None:
    """Have a part of a volume: whatever is there, else a directory; raises ``OSError``."""
    root = os.open(volume.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.close(resolver().open(root, volume.inside, links=volume.links))
            return
        if not volume.read_only:
            os.close(resolver().directory(root, volume.inside, links=volume.links))
            return
        raise FileNotFoundError(2, "there is no such file in the volume", volume.inside)
    finally:
        os.close(root)
