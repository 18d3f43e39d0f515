"""What image references stand for, on a machine that pulls no images.

An entry names one or more repositories (``httpd``, ``ghcr.io/acme/web``); tag and digest are not
looked at. It says what to run when the pod names no command, and which of the image's programs
are something else here. Users' entries come from a YAML file, read again whenever it changes, and
win over the built-in ones:

    images:
    - names: [ghcr.io/acme/web, acme-web]
      entrypoint: [/opt/acme/web, --listen, "{address}:{port}"]
      ports: [8080]
      environment: {ACME_ROOT: "{path:/data}"}
      programs: {web-admin: [/opt/acme/admin]}
      paths: [/opt/acme-data]         # what else of this machine its containers see, read-only
    - names: [ghcr.io/acme/shop]
      layout: /srv/images/shop        # an OCI image layout: a directory, or a tar of one

An entry may bring files of its own instead: ``layout`` as above, ``rootfs``, an unpacked root file
system, or ``bundle``, an OCI bundle. Containers of such an image see these files and nothing of the
machine; an OCI runtime starts them. What the image says of itself holds unless the entry says
otherwise.
"""

from __future__ import annotations

import hashlib
import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skerry.edge.agent.image_files import with_files
from skerry.edge.agent.image_layout import ImageError
from skerry.edge.agent.runtime import Image, ImageNotFound

_DEFAULT_REGISTRY = "docker.io"
_STATIC_SERVER = str(Path(__file__).parent / "static_server.py")
_SERVE_FILES = (sys.executable, "-I", "-S", _STATIC_SERVER, "{address}", "{port}")
_FLAGS = {
    *("names", "entrypoint", "command", "environment", "programs", "ports", "workingDirectory"),
    *("rootfs", "bundle", "layout", "paths"),
}


class CatalogueError(Exception):
    """A catalogue file that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One image as this machine knows it."""

    names: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    working_directory: str = ""
    paths: tuple[str, ...] = ()
    """Paths of this machine that containers of the image see, read-only."""
    files: tuple[str, str] | None = None
    """How the image's files are given (``rootfs``, ``bundle`` or ``layout``), and where."""


def _file_server(name: str, program: str, root: str) -> Entry:
    serve = (*_SERVE_FILES, f"{{path:{root}}}")
    return Entry(
        (name,), (program,), programs={program: serve}, ports=(80,), paths=(_STATIC_SERVER,)
    )


_PYTHON = (sys.executable,)
_BUILT_IN = (
    _file_server("httpd", "httpd-foreground", "/usr/local/apache2/htdocs"),
    _file_server("nginx", "nginx", "/usr/share/nginx/html"),
    Entry(("busybox", "alpine", "debian", "ubuntu", "bash"), command=("sh",)),
    Entry(
        ("python",),
        command=("python3",),
        programs={"python": _PYTHON, "python3": _PYTHON},
        environment={"PYTHONUNBUFFERED": "1"},
    ),
    # As registry.k8s.io/pause: holds a pod open and does nothing.
    Entry(("registry.k8s.io/pause", "pause"), entrypoint=("sh", "-c", "exec sleep 2147483647")),
)


def repository(reference: str) -> str:
    """Return the full repository of an image reference, without tag and digest."""
    name = reference.split("@", 1)[0]
    head, slash, last = name.rpartition("/")
    name = head + slash + last.split(":", 1)[0]
    first, slash, _ = name.partition("/")
    if not slash:
        return f"{_DEFAULT_REGISTRY}/library/{name}"
    if "." not in first and ":" not in first and first != "localhost":
        return f"{_DEFAULT_REGISTRY}/{name}"
    return name


class Catalogue:
    """Finds entries; the file may be absent. *images* is where layouts are unpacked."""

    def __init__(self, path: Path | None = None, images: Path | None = None) -> None:
        self._path = path
        self._images = images
        self._read_at: tuple[int, int] | None = None
        self._entries = _by_repository(_BUILT_IN)
        # Why the file as it is now cannot be used; what it said before stays in force.
        self._fault = ""

    def find(self, reference: str) -> Image:
        """Return what *reference* stands for; raises ``ImageNotFound`` with what to do."""
        self._refresh()
        entry = self._entries.get(repository(reference))
        if entry is None:
            where = f" in {self._path}" if self._path else ""
            fault = f" ({self._fault})" if self._fault else ""
            raise ImageNotFound(
                f'image "{reference}" is not in the catalogue of this node: add an entry '
                f"for {repository(reference)}{where}{fault}"
            )
        digest = hashlib.sha256(repr(entry).encode()).hexdigest()
        found = Image(
            reference,
            f"{repository(reference)}@sha256:{digest}",
            entry.entrypoint,
            entry.command,
            entry.environment,
            entry.programs,
            entry.ports,
            entry.working_directory,
            entry.paths,
        )
        try:
            return found if entry.files is None else with_files(found, entry.files, self._images)
        except ImageError as error:
            raise ImageNotFound(f'image "{reference}": {error}') from error

    @property
    def names(self) -> list[str]:
        """Every repository there is an entry for."""
        self._refresh()
        return sorted(self._entries)

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except FileNotFoundError:
            seen = None
        else:
            seen = (status.st_mtime_ns, status.st_size)
        if seen == self._read_at:
            return
        self._read_at = seen
        try:
            added = [] if seen is None else parse_catalogue(self._path.read_text(), str(self._path))
        except (CatalogueError, OSError) as error:
            self._fault = str(error)
            return
        self._fault = ""
        self._entries = {**_by_repository(_BUILT_IN), **_by_repository(added)}


def _by_repository(entries: Sequence[Entry]) -> dict[str, Entry]:
    return {repository(name): entry for entry in entries for name in entry.names}


def parse_catalogue(text: str, where: str) -> list[Entry]:
    """Return the entries of a catalogue file; raises ``CatalogueError`` naming the fault."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise CatalogueError(f"{where}: {error}") from error
    items = document.get("images") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise CatalogueError(f"{where}: want a list under 'images'")
    return [_entry(item, f"{where}: images[{number}]") for number, item in enumerate(items)]


def _entry(item: Any, where: str) -> Entry:
    if not isinstance(item, dict) or not item.get("names"):
        raise CatalogueError(f"{where}: want a mapping with 'names'")
    if unknown := sorted(set(item) - _FLAGS):
        raise CatalogueError(f"{where}: unknown {', '.join(unknown)}")
    try:
        programs = {str(k): _texts(v) for k, v in (item.get("programs") or {}).items()}
        words = [*_texts(item.get("entrypoint")), *_texts(item.get("command"))]
        words += [word for program in programs.values() for word in program]
        return Entry(
            names=_texts(item["names"]),
            entrypoint=_texts(item.get("entrypoint")),
            command=_texts(item.get("command")),
            environment={str(k): str(v) for k, v in (item.get("environment") or {}).items()},
            programs=programs,
            ports=tuple(int(port) for port in item.get("ports") or ()),
            working_directory=str(item.get("workingDirectory") or ""),
            paths=(*_paths(item), *program_paths(words)),
            files=_files(item),
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise CatalogueError(f"{where}: {error}") from error


def _paths(item: Mapping[str, Any]) -> tuple[str, ...]:
    found = _texts(item.get("paths"))
    for path in found:
        if not path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"paths: {path!r} is no absolute path without '..'")
    return found


def program_paths(words: Sequence[str]) -> tuple[str, ...]:
    """Return what containers see of the programs an entry names: each with its folder.

    A program that lies in a folder of many things, the root or somebody's home, is seen alone.
    """
    found = []
    for word in words:
        if word.startswith("/"):
            path = posixpath.normpath(word)
            folder = posixpath.dirname(path)
            found.append(path if _holds_many_things(folder) else folder)
    return tuple(dict.fromkeys(found))


def _holds_many_things(folder: str) -> bool:
    parts = folder.strip("/").split("/")
    return len(parts) < 2 or (len(parts) == 2 and parts[0] in ("home", "Users", "mnt", "media"))


def _files(item: Mapping[str, Any]) -> tuple[str, str] | None:
    given = [(kind, str(item[kind])) for kind in ("rootfs", "bundle", "layout") if item.get(kind)]
    if len(given) > 1:
        raise ValueError(f"want only one of {' and '.join(kind for kind, _ in given)}")
    if given and not Path(given[0][1]).is_absolute():
        raise ValueError(f"{given[0][0]}: {given[0][1]!r} is no absolute path")
    return given[0] if given else None


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError(f"{value!r}: want a list of texts")
    return tuple(str(item) for item in value)
