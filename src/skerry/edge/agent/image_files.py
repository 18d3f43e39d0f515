"""What an image with files of its own says about itself: command, environment, user.

Read from an OCI bundle's ``config.json`` or an image's configuration; a bare root file system says
nothing. What the catalogue entry says comes first.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skerry.edge.agent.image_layout import ImageError, Layout, read_layout, unpack
from skerry.edge.agent.runtime import CannotStart, Image
from skerry.kit.text import whole_number

# What reading a document raises whose parts are of other kinds than they should be.
_NOT_AS_EXPECTED = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class _ImageFiles:
    """What an image says of itself."""

    root: Path
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    user: tuple[int | None, int | None] = (None, None)
    user_name: str = ""
    ports: tuple[int, ...] = ()
    layout: Layout | None = None


def with_files(image: Image, files: tuple[str, str], images: Path | None) -> Image:
    """Return *image* with its files; raises ``ImageError`` when they cannot be had."""
    kind, place = files
    there = _READERS[kind](Path(place), images)
    own = (image.entrypoint, image.command)
    found = replace(
        image,
        # As with a pod's command: another entrypoint silences the image's arguments.
        entrypoint=image.entrypoint or there.entrypoint,
        command=own[1] if any(own) else there.command,
        environment={**there.environment, **image.environment},
        working_directory=image.working_directory or there.working_directory,
        ports=image.ports or there.ports,
        root=there.root,
        user=there.user[0],
        group=there.user[1],
        user_name=there.user_name,
    )
    if there.layout is None:
        return found
    identity = f"{image.identity.partition('@')[0]}@{there.layout.digest}"
    return replace(found, identity=identity, unpack=_Unpacking(there.layout, there.root))


@dataclass(frozen=True, slots=True)
class _Unpacking:
    layout: Layout
    root: Path

    def __call__(self) -> None:
        try:
            unpack(self.layout, self.root)
        except ImageError as error:
            raise CannotStart(str(error)) from error


def _rootfs(path: Path, images: Path | None) -> _ImageFiles:
    if not path.is_dir():
        raise ImageError(f"{path} is no directory")
    return _ImageFiles(path)


def _bundle(path: Path, images: Path | None) -> _ImageFiles:
    try:
        config = json.loads((path / "config.json").read_text())
        process = config.get("process") or {}
        user = process.get("user") or {}
        return _ImageFiles(
            path / config["root"]["path"],
            tuple(process.get("args") or ()),
            environment=_pairs(process.get("env") or ()),
            working_directory=str(process.get("cwd") or ""),
            user=(user.get("uid"), user.get("gid")),
        )
    except (OSError, *_NOT_AS_EXPECTED) as error:
        raise ImageError(f"{path} is no OCI bundle: {error}") from error


def _layout(path: Path, images: Path | None) -> _ImageFiles:
    if images is None:
        raise ImageError(f"{path}: there is no place to unpack it")
    try:
        status = path.stat()
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from error
    layout = _read_once(path, status.st_mtime_ns, status.st_size)
    root = images / layout.digest.replace(":", "-")
    try:
        return _described(layout, root)
    except _NOT_AS_EXPECTED as error:
        raise ImageError(f"{path}: its configuration cannot be understood: {error}") from error


def _described(layout: Layout, root: Path) -> _ImageFiles:
    config = layout.config.get("config") or {}
    return _ImageFiles(
        root,
        tuple(config.get("Entrypoint") or ()),
        tuple(config.get("Cmd") or ()),
        _pairs(config.get("Env") or ()),
        str(config.get("WorkingDir") or ""),
        _numbers(str(config.get("User") or "")),
        _name(str(config.get("User") or "")),
        tuple(_tcp_ports(config.get("ExposedPorts") or {})),
        layout,
    )


_READERS = {"rootfs": _rootfs, "bundle": _bundle, "layout": _layout}


@functools.lru_cache(maxsize=64)
def _read_once(path: Path, modified_ns: int, size: int) -> Layout:
    """Return a layout, read again only when it changed."""
    return read_layout(path)


def _pairs(words: Sequence[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _numbers(user: str) -> tuple[int | None, int | None]:
    """Return user and group where both are given as numbers, or the user alone is."""
    if _name(user):
        return None, None
    name, _, group = user.partition(":")
    return (int(name) if name else None, int(group) if group else None)


def _name(user: str) -> str:
    """Return a user that is not wholly given by numbers; the image's files know who that is."""
    parts = [part for part in user.split(":") if part]
    return "" if all(whole_number(part) is not None for part in parts) else user


def _tcp_ports(exposed: Mapping[str, Any]) -> list[int]:
    pairs = (name.partition("/") for name in exposed)
    return sorted(int(port) for port, _, protocol in pairs if protocol in ("", "tcp"))
