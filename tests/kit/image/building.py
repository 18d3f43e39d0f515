"""Carries out a Containerfile: a root file system and the configuration an engine would write.

Each RUN is a process in namespaces of its own, with the stage's files as its root, no network, and
the files of *shown* to read. Each COPY is checked, source within its origin and target within the
stage, before a file is written.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.image.containerfile import ContainerfileError, Instruction, Stage

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Image:
    """A root file system and how to run it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    working_directory: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Build:
    """Where a build takes things from."""

    context: Path
    folder: Path
    """Where the stages are made."""

    bases: Mapping[str, Path]
    """Root file systems by the image names that FROM may use."""

    shown: Mapping[str, Path] = field(default_factory=dict)
    """What RUN sees beside the stage, by path; podman's ``--volume``."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """What RUN has in its environment beside the stage's; podman's ``--env`` for a build."""

    def image(self, stages: list[Stage]) -> Image:
        """Carry out *stages* and return the image of the last."""
        built: dict[str, Image] = {}
        image = None
        for number, stage in enumerate(stages):
            image = self._stage(stage, self.folder / f"stage-{number}", built)
            built[stage.name or str(number)] = image
        if image is None:
            raise ContainerfileError("there is no FROM")
        return image

    def _stage(self, stage: Stage, root: Path, built: Mapping[str, Image]) -> Image:
        base = built[stage.base].root if stage.base in built else self.bases.get(stage.base)
        if base is None:
            raise ContainerfileError(f"FROM {stage.base}: no such image")
        # A copy, and not links: what a RUN does to a file must not be done to its base.
        subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
        image = Image(root)
        arguments: dict[str, str] = {}
        for instruction in stage.instructions:
            match instruction.name:
                case "ARG":
                    name, _, value = instruction.text.partition("=")
                    arguments[name] = value
                case "RUN":
                    self._run(instruction, image, arguments)
                case "COPY":
                    self._copy(instruction, image, built)
                case _:
                    _configure(instruction, image)
        return image

    def _run(self, instruction: Instruction, image: Image, arguments: Mapping[str, str]) -> None:
        environment = {**image.environment, **arguments, **self.environment}
        command = [
            "bwrap", "--unshare-all", "--clearenv", "--die-with-parent",
            "--bind", str(image.root), "/", "--proc", "/proc", "--dev", "/dev",
            *(w for at, path in self.shown.items() for w in ("--ro-bind", str(path), at)),
            *(w for name, value in environment.items() for w in ("--setenv", name, value)),
            "--chdir", image.working_directory, "/bin/sh", "-c", instruction.text,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ContainerfileError(f"RUN {instruction.text}\n{done.stdout}{done.stderr}")

    def _copy(self, instruction: Instruction, image: Image, built: Mapping[str, Image]) -> None:
        stage = instruction.flags.get("from")
        origin = self.context if stage is None else built[stage].root
        *sources, target = instruction.words
        place = _within(image.root, _absolute(target, image.working_directory))
        for name in sources:
            source = _within(origin, name)
            if not source.exists():
                raise ContainerfileError(f"COPY {name}: not there")
        for name in sources:
            source = _within(origin, name)
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__") if stage is None else None
                shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                into = place / source.name if target.endswith("/") else place
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, into)


def _configure(instruction: Instruction, image: Image) -> None:
    match instruction.name:
        case "ENV":
            image.environment.update(instruction.pairs)
        case "LABEL":
            image.labels.update(instruction.pairs)
        case "WORKDIR":
            image.working_directory = _absolute(instruction.text, image.working_directory)
            _within(image.root, image.working_directory).mkdir(parents=True, exist_ok=True)
        case "USER":
            image.user = instruction.text
        case "ENTRYPOINT":
            image.entrypoint = instruction.words
        case "CMD":
            image.command = instruction.words
        case _:
            raise ContainerfileError(f"{instruction.name}: not an instruction these tests know")


def _absolute(path: str, working_directory: str) -> str:
    return path if path.startswith("/") else f"{working_directory.rstrip('/')}/{path}"


def _within(root: Path, path: str) -> Path:
    """Return *path* below *root*; raises rather than lead out of it."""
    found = root / path.strip("/")
    if not found.resolve().is_relative_to(root.resolve()):
        raise ContainerfileError(f"{path} leads out of {root}")
    return found
