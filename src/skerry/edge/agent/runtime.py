"""What runs containers, as far as the agent needs to know.

A runtime starts a container from a specification, finds one again after the agent was away, and
runs a further command beside one. How isolated a container is, is the runtime's to say
(``isolation``) and the node's to publish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol


class ImageNotFound(Exception):
    """No catalogue entry answers to an image reference."""


class CannotStart(Exception):
    """The program could not be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Where a volume is on this machine, and what is to be heeded when it is opened.

    ``root`` is a path that no pod can change. ``inside`` lies below it, where pods may have put
    links: it is opened by ``beneath`` alone. ``links`` tells that only the agent writes there, so
    that links may be followed as long as they stay below.
    """

    root: Path
    inside: str = ""
    read_only: bool = False
    links: bool = False
    devices: bool = False

    def at(self, path: str) -> Volume:
        """Return the part of the volume at *path* below it."""
        return replace(self, inside=f"{self.inside}/{path}".strip("/"))


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, or a part of one, that a container sees at a path."""

    path: str
    volume: Volume
    read_only: bool = False

    @property
    def source(self) -> Path:
        """Where it is on this machine; for programs that share its files, not to be opened."""
        return self.volume.root / self.volume.inside

    @property
    def is_read_only(self) -> bool:
        return self.read_only or self.volume.read_only


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
    # Paths of this machine that the image's programs need; see ``root_plan`` for what all see.
    paths: tuple[str, ...] = ()
    # Where the image's files are unpacked; None when it stands for programs of this machine.
    root: Path | None = None
    user: int | None = None
    group: int | None = None
    # A user the image names otherwise than by number; found in the image's own files.
    user_name: str = ""
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


Users = Literal["any", "one", "own"]
"""Which users containers can be: any; one each, whichever they name; or only the edge's own."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a runtime can enforce on this machine; the node refuses pods that ask for more."""

    isolated: bool = False
    """Whether containers have files, processes and a host name of their own."""

    network: bool = False
    """Whether pods have a network of their own."""

    users: Users = "own"
    capabilities: frozenset[str] = frozenset()
    """Those that a container can have, by name."""

    seccomp: bool = False
    """Whether the kernel judges system calls by a filter."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a container may do, as its security context and its node have it.

    ``user`` and ``group`` None are whoever containers are by default: root, where they have a user
    namespace, else the user who runs the edge. ``capabilities`` are numbers of the kernel's.
    """

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    capabilities: frozenset[int] = frozenset()
    no_new_privileges: bool = False
    seccomp: bool = False
    read_only_root: bool = False
    # Most that is written outside volumes, in bytes; 0 leaves it to the kernel.
    storage_bytes: int = 0
    # The control group that every process of the container is put in; empty for none.
    control_group: str = ""
    sysctls: Mapping[str, str] = field(default_factory=dict)


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
    confinement: Confinement = field(default_factory=Confinement)
    sandbox: Sandbox | None = None
    # Path of the process namespace that the container shares, instead of having its own.
    beside: str = ""
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
    def processes(self) -> str:
        """A path that stands for the container's process namespace."""

    async def wait(self) -> Exit:
        """Wait for the end; every caller gets the same answer."""

    def signal(self, number: int) -> None:
        """Send a signal to everything in the container; harmless when it has ended."""


class ContainerRuntime(Protocol):
    """See the module's text."""

    name: str
    version: str
    isolation: str
    abilities: Abilities

    def image(self, reference: str) -> Image:
        """Return what a reference stands for; raises ``ImageNotFound``."""

    async def start(self, spec: ContainerSpec) -> Container:
        """Start a container; raises ``CannotStart``."""

    def adopt(self, directory: Path) -> Container | None:
        """Return the container recorded in *directory*; None when none was ever started."""

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        """Return what must be run to run *argv* inside the container of *spec*, once.

        Raises ``CannotStart``.

        The answer's ``argv``, ``environment`` and ``working_directory`` are those of a process of
        this machine.
        """
