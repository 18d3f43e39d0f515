"""What runs containers, as far as the agent needs to know.

A runtime starts a container from a specification, finds one again after the agent was away, and
runs a further command beside one. How isolated a container is, is the runtime's to say
(``isolation``) and the node's to publish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol


class ImageNotFound(Exception):
    """No catalogue entry answers to an image reference."""


class CannotStart(Exception):
    """The program could not be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path that a container sees at another path."""

    path: str
    source: Path
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """What an image reference stands for on this node."""

    reference: str
    identity: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    # Programs of the image that are something else on this machine.
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Container ports the image's own programs serve when the pod names none.
    ports: tuple[int, ...] = ()
    working_directory: str = ""
    # Where the image's files are unpacked; None when it stands for programs of this machine.
    root: Path | None = None
    user: int | None = None
    group: int | None = None
    # Has the files at ``root``, when first needed; takes a while and may raise ``CannotStart``.
    unpack: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The namespaces of a pod: paths that stand for them, and which start of the network it is.

    No ``network`` means the machine's.
    """

    user: str
    network: str
    epoch: int
    host_name: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """What a container wants of whoever attaches: input, until the first goes, by a terminal."""

    stdin: bool = False
    once: bool = False
    tty: bool = False


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """Everything a runtime must know to start one container.

    ``ports`` maps container ports to the loopback ports that stand for them, in a pod without a
    sandbox; ``directory`` is the container's own, for log, records and root.
    """

    image: Image
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    working_directory: str
    mounts: tuple[Mount, ...]
    ports: Mapping[int, int]
    directory: Path
    user: int | None = None
    group: int | None = None
    sandbox: Sandbox | None = None
    # A process whose process namespace the container shares, instead of having its own.
    beside: int = 0
    input: Input = field(default_factory=Input)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    code: int
    began: datetime
    ended: datetime
    signal: int = 0
    reason: str = ""
    message: str = ""


class Container(Protocol):
    """A container that runs, or did."""

    @property
    def identity(self) -> str:
        """An id unique on this node."""

    @property
    def began(self) -> datetime:
        """When it was started."""

    @property
    def process(self) -> int:
        """The first process of the container, by its number on this machine."""

    async def wait(self) -> Exit:
        """Wait for the end; every caller gets the same answer."""

    def signal(self, number: int) -> None:
        """Send a signal to everything in the container; harmless when it has ended."""


class ContainerRuntime(Protocol):
    """See the module's text."""

    name: str
    version: str
    isolation: str

    def image(self, reference: str) -> Image:
        """Return what a reference stands for; raises ``ImageNotFound``."""

    async def start(self, spec: ContainerSpec) -> Container:
        """Start a container; raises ``CannotStart``."""

    def adopt(self, directory: Path) -> Container | None:
        """Return the container recorded in *directory*; None when none was ever started."""

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        """Return what must be run to run *argv* inside the container of *spec*.

        The answer's ``argv``, ``environment`` and ``working_directory`` are those of a process of
        this machine.
        """
