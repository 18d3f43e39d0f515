"""Images as files: OCI image layouts, unpacked into root file systems.

A layout is a directory, or a tar of one, as ``skopeo copy … oci:DIR`` and ``docker save`` write it.
Its configuration is read at once; its layers are unpacked when a container first needs them, into
a directory named by the image's digest that appears as a whole or not at all. Layers say what they
take away by whiteouts. Owners and devices are left out: one user owns everything here.

Nothing a layer says is written outside its root: links on the way are followed as the container
will follow them, from its own root.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_MAX_LINKS = 40
_INDEX = "index.json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageError(Exception):
    """An image that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One image of a layout: its configuration, and which blobs its layers are."""

    path: Path
    digest: str
    config: Mapping[str, Any]
    layers: tuple[str, ...]


def read_layout(path: Path) -> Layout:
    """Return the image of this machine's kind that a layout holds; raises ``ImageError``."""
    try:
        with _Blobs(path) as blobs:
            digest, manifest = _manifest(blobs, json.loads(blobs.read(_INDEX)))
            config = json.loads(blobs.blob(manifest["config"]["digest"]))
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        raise ImageError(f"{path} is no OCI image layout: {error}") from error
    layers = []
    for layer in manifest["layers"]:
        if layer.get("mediaType", "").endswith("zstd"):
            raise ImageError(f"{path}: layers compressed by zstd cannot be unpacked here")
        layers.append(layer["digest"])
    return Layout(path, digest, config, tuple(layers))


def _manifest(blobs: _Blobs, index: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the first manifest for this machine, through indexes of indexes."""
    wanted = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    for item in index["manifests"]:
        platform = item.get("platform") or {}
        if platform.get("architecture", wanted) != wanted:
            continue
        found = json.loads(blobs.blob(item["digest"]))
        if "manifests" in found:
            return _manifest(blobs, found)
        return item["digest"], found
    raise KeyError(f"no image for {wanted}")


class _Blobs:
    """The files of a layout, in a directory or a tar."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive: tarfile.TarFile | None = None

    def __enter__(self) -> _Blobs:
        if not self._path.is_dir():
            self._archive = tarfile.open(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.close()

    def open(self, name: str) -> IO[bytes]:
        if self._archive is None:
            return (self._path / name).open("rb")
        for spelling in (name, f"./{name}"):
            if spelling in self._archive.getnames():
                found = self._archive.extractfile(spelling)
                if found is not None:
                    return found
        raise KeyError(f"no {name}")

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    def blob(self, digest: str) -> bytes:
        return self.read(f"blobs/{digest.replace(':', '/')}")

    def open_blob(self, digest: str) -> IO[bytes]:
        return self.open(f"blobs/{digest.replace(':', '/')}")


def unpack(layout: Layout, root: Path) -> None:
    """Have the image's files at *root*; does nothing when they are there. Raises ``ImageError``."""
    if root.exists():
        return
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="unpacking-", dir=root.parent))
        fresh.chmod(0o755)
    except OSError as error:
        raise ImageError(f"{layout.path}: there is no place to unpack it: {error}") from error
    try:
        with _Blobs(layout.path) as blobs:
            for digest in layout.layers:
                with blobs.open_blob(digest) as file:
                    apply_layer(file, fresh)
        # Somebody else may have been as quick; then theirs is as good.
        if not root.exists():
            fresh.rename(root)
    except (OSError, KeyError, tarfile.TarError, EOFError) as error:
        raise ImageError(f"{layout.path}: cannot unpack {layout.digest}: {error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def apply_layer(file: IO[bytes], root: Path) -> None:
    """Change *root* as one layer says; gzip is recognised. Raises ``ImageError``."""
    buffered = file if file.seekable() else io.BytesIO(file.read())
    with tarfile.open(fileobj=buffered, mode="r:*") as layer:
        for member in layer:
            _apply(layer, member, root)


def parts_of(name: str) -> list[str]:
    """Return the parts of a path in a layer, none of which says anything but a name or "..".

    By splitting, not as a path: a path may begin with two slashes, and joining one of those to a
    directory gives the machine's root.
    """
    return [part for part in name.split("/") if part not in ("", ".")]


def guarded(root: Path, path: Path) -> Path:
    """Return *path* if it is surely below *root*; raises ``ImageError`` before harm is done.

    Asked before every change to the disk, whatever was worked out before: what is unpacked comes
    from strangers, and the edge may be root's.
    """
    place, home = os.path.realpath(path.parent), os.path.realpath(root)
    within = place == home or place.startswith(f"{home}/")
    if not within or path.name in ("", ".", "..") or "/" in path.name:
        raise ImageError(f"{path} leads out of {root}")
    return path


def _apply(layer: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    parts = parts_of(member.name)
    if not parts or ".." in parts:
        return
    directory, name = _made(root, parts[:-1]), parts[-1]
    if name == _OPAQUE:
        for entry in list(directory.iterdir()):
            _remove(root, entry)
    elif name.startswith(_WHITEOUT):
        gone = name.removeprefix(_WHITEOUT)
        if gone not in ("", ".", ".."):
            _remove(root, directory / gone)
    else:
        _write(layer, member, guarded(root, directory / name), root)


def _made(root: Path, parts: Sequence[str]) -> Path:
    """Return a directory of the image, made if it is not there."""
    found = inside(root, parts)
    if found != root and not found.is_dir():
        guarded(root, found).mkdir(parents=True)
    return found


def _write(layer: tarfile.TarFile, member: tarfile.TarInfo, target: Path, root: Path) -> None:
    if member.isdir():
        if target.is_symlink() or not target.is_dir():
            _remove(root, target)
            target.mkdir()
        # Always the owner's to change; nobody else owns anything here.
        target.chmod(member.mode & 0o7777 | 0o700)
        return
    _remove(root, target)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        _link(root, target, parts_of(member.linkname))
    elif member.isfile():
        content = layer.extractfile(member)
        with target.open("xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file)
        target.chmod(member.mode & 0o7777 | 0o400)


def _link(root: Path, target: Path, parts: Sequence[str]) -> None:
    if not parts or parts[-1] == "..":
        return
    source = guarded(root, inside(root, parts[:-1]) / parts[-1])
    os.link(source, target, follow_symlinks=False)


def _remove(root: Path, path: Path) -> None:
    guarded(root, path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def inside(root: Path, parts: Sequence[str]) -> Path:
    """Return where a path leads from *root* as from the root; never anywhere else."""
    waiting = [part for part in parts if part not in ("", ".")]
    found: list[str] = []
    links = 0
    while waiting:
        part = waiting.pop(0)
        if part == "..":
            found = found[:-1]
            continue
        if "/" in part:
            raise ImageError(f"{part!r} is no name of a file")
        place = root.joinpath(*found, part)
        if place.is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise ImageError(f"too many links on the way to {'/'.join(parts)}")
            target = os.readlink(place)
            found = [] if target.startswith("/") else found
            waiting = parts_of(target) + waiting
        else:
            found.append(part)
    return root.joinpath(*found)
