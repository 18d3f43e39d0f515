"""Containers of real images, through an OCI runtime.

An image whose catalogue entry has a root file system is run by crun or runc, whichever the machine
has, on the pod's network; see ``oci_process`` for how. Any other image is a program of this machine
and runs in namespaces as ever. So one pod may mix both, and everything but starting is the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skerry.edge.agent.beneath import LeadsOut, kind_of, resolver
from skerry.edge.agent.image_layout import inside, parts_of
from skerry.edge.agent.image_users import UnknownUser, numbers_of
from skerry.edge.agent.oci_configuration import configuration
from skerry.edge.agent.process_runtime import ProcessRuntime, identity_of
from skerry.edge.agent.program_words import PATH, contained
from skerry.edge.agent.runtime import CannotStart, Container, ContainerSpec, Image, Volume

_PROGRAMS = ("crun", "runc")
_TRIAL_SECONDS = 5.0
_NO_RUNTIME = "image {} has a root file system, which takes crun or runc: install one of them"

# It wants root among those that a user namespace has, where there is place for one user only.
_NOT_BY_RUNC = (
    "securityContext.runAsUser: {} cannot be had through runc on an edge that root does not run: "
    "install crun"
)


@dataclass(frozen=True, slots=True)
class OciProgram:
    """An OCI runtime of this machine."""

    name: str
    version: str
    words: tuple[str, ...]


def oci_program(names: Sequence[str] = _PROGRAMS) -> OciProgram | None:
    """Return the first OCI runtime of *names* this machine has; None when it has none."""
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        try:
            said = subprocess.run(  # noqa: S603 - a program the administrator installed
                [path, "--version"],
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        version = said.stdout.split("\n", 1)[0].rpartition(" ")[2]
        # No control groups: a user has none to give, and a pod's share is not enforced here. runc
        # cannot be asked to do without, but forgives being refused them.
        words = ("--cgroup-manager=disabled",) if name == "crun" else ("--rootless=true",)
        return OciProgram(name, version, (path, *words))
    return None


class OciRuntime:
    """Runs images with a root file system through an OCI runtime, others as *plain* does."""

    def __init__(self, plain: ProcessRuntime, program: OciProgram | None) -> None:
        self._plain = plain
        self._program = program
        self.isolation = plain.isolation
        self.abilities = plain.abilities
        self.name, self.version = plain.name, plain.version
        if program is not None:
            self.name, self.version = program.name, program.version
            self.isolation = f"{plain.isolation} and {program.name}"

    def image(self, reference: str) -> Image:
        return self._plain.image(reference)

    async def start(self, spec: ContainerSpec) -> Container:
        if spec.image.root is None:
            return await self._plain.start(spec)
        if self._program is None:
            raise CannotStart(_NO_RUNTIME.format(spec.image.reference))
        if spec.image.unpack is not None:
            await asyncio.get_running_loop().run_in_executor(None, spec.image.unpack)
        spec = _with_named_user(spec)
        run = contained(spec, spec.argv)
        identity = identity_of(spec, self.abilities.users)
        if identity is not None and self._program.name == "runc":
            raise CannotStart(_NOT_BY_RUNC.format(identity[0]))
        return await self._plain.launch(run, oci=_bundle(run, self._program, identity))

    def adopt(self, directory: Path) -> Container | None:
        return self._plain.adopt(directory)

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        return self._plain.beside(spec, argv)


def _with_named_user(spec: ContainerSpec) -> ContainerSpec:
    """Return *spec* with the user its image names by name; raises ``CannotStart``."""
    image, asked = spec.image, spec.confinement
    if asked.user is not None or not image.user_name or image.root is None:
        return spec
    try:
        user, group = numbers_of(image.user_name, image.root)
    except UnknownUser as error:
        raise CannotStart(str(error)) from error
    group = group if asked.group is None else asked.group
    return replace(spec, confinement=replace(asked, user=user, group=group))


def _bundle(
    spec: ContainerSpec, program: OciProgram, identity: tuple[int, int] | None
) -> dict[str, Any]:
    """Write what the OCI runtime reads; returns what the shim must know to drive it."""
    if spec.sandbox is None or spec.image.root is None:
        raise CannotStart(f"image {spec.image.reference} takes a pod with namespaces")
    directory = spec.directory / "bundle"
    directory.mkdir(parents=True, exist_ok=True)
    root = directory / "rootfs"
    volumes = [
        # Where the shim puts a volume before the runtime looks at it; nothing of a pod's is there.
        (str(directory / "volumes" / str(number)), mount)
        for number, mount in enumerate(spec.mounts)
    ]
    wanted = configuration(spec, str(root), [place for place, _ in volumes], identity)
    (directory / "config.json").write_text(json.dumps(wanted, indent=1))
    files = {mount.path for _, mount in volumes if not _is_directory(mount.volume)}
    for item in wanted["mounts"]:
        path = item["destination"]
        make_place(spec.image.root, directory / "upper", path, is_file=path in files)
    return {
        "volumes": [
            [place, *_fields_of(mount.volume), mount.is_read_only, mount.path in files]
            for place, mount in volumes
        ],
        "program": program.words,
        # crun looks at them even then, and does not like every arrangement.
        "hide_control_groups": program.name == "crun",
        "identity": hashlib.sha256(str(directory).encode()).hexdigest()[:32],
        "path": PATH,
        "directory": str(directory),
        "root": str(root),
        "image": str(spec.image.root),
        "user": spec.sandbox.user,
        "network": spec.sandbox.network,
    }


def _fields_of(volume: Volume) -> tuple[str, str, bool, bool]:
    return str(volume.root), volume.inside, volume.links, volume.devices


def _is_directory(volume: Volume) -> bool:
    """Tell what a volume is, or a part of one, without being led elsewhere."""
    try:
        root = os.open(volume.root, os.O_PATH | os.O_CLOEXEC)
        try:
            if not volume.inside:
                return kind_of(root) == "Directory"
            found = resolver().open(root, volume.inside, links=volume.links)
            try:
                return kind_of(found) == "Directory"
            finally:
                os.close(found)
        finally:
            os.close(root)
    except (LeadsOut, OSError) as error:
        raise CannotStart(
            f"cannot open {volume.inside or volume.root}: {error.strerror}"
        ) from error


def make_place(lower: Path, upper: Path, path: str, *, is_file: bool) -> None:
    """Have a place to mount on in the container's own layer, unless the image has one.

    The runtime would make it, but may not where the image's files belong to somebody else.
    """
    real = inside(lower, parts_of(path)).relative_to(lower)
    if (lower / real).exists():
        return
    for parent in reversed(real.parents):
        made, known = upper / parent, lower / parent
        made.mkdir(parents=True, exist_ok=True)
        made.chmod(known.stat().st_mode & 0o7777 if known.is_dir() else 0o755)
    if is_file:
        (upper / real).touch()
    else:
        (upper / real).mkdir(exist_ok=True)
