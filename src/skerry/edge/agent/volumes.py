"""Volumes as directories of this machine.

What comes from ConfigMaps, Secrets and the pod itself is written as a whole: into a new directory
first, which then becomes ``..data`` by one rename, so that a reader sees either all of the old or
all of the new content. That is kubelet's way, and programs that watch ``..data`` rely on it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skerry.edge.agent.environment import (
    ConfigurationMissing,
    Facts,
    Lookup,
    field_value,
    resource_value,
)
from skerry.logic.resource import Object

_DATA = "..data"
# What ``_fresh_directory`` calls the versions of a volume's files.
_VERSION = re.compile(r"\.\.\d+")
_MODE = 0o644

Files = dict[str, tuple[bytes, int]]
TokenOf = Callable[[Object], str | None]
"""Returns the token a ``serviceAccountToken`` source asks for; None while there is none yet."""


class MountFailed(Exception):
    """A volume cannot be set up now; the text is kubelet's."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where content comes from."""

    facts: Facts
    lookup: Lookup
    token_of: TokenOf
    claim_path: Callable[[str], Path]
    """Returns the directory of a claim's volume; raises ``MountFailed`` when it has none yet."""


def volume_path(directory: Path, volume: Object, sources: Sources) -> Path:
    """Set one volume up (again) and return where it is; raises ``MountFailed``."""
    name = volume["name"]
    try:
        return _path_of(directory / name, volume, sources)
    except ConfigurationMissing as error:
        raise MountFailed(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
    except OSError as error:
        raise MountFailed(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error


def _path_of(path: Path, volume: Object, sources: Sources) -> Path:
    if "hostPath" in volume:
        return _host_path(volume["hostPath"])
    if "persistentVolumeClaim" in volume:
        return sources.claim_path(volume["persistentVolumeClaim"]["claimName"])
    path.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume or len(volume) == 1:
        path.chmod(0o777)
        return path
    write_files(path, files_of(volume, sources))
    return path


def is_written(volume: Object) -> bool:
    """Tell whether a volume's content follows objects, and so may change while it is used."""
    return any(kind in volume for kind in ("configMap", "secret", "downwardAPI", "projected"))


def _host_path(source: Object) -> Path:
    path, kind = Path(source["path"]), source.get("type") or ""
    checks: Mapping[str, Callable[[], bool]] = {
        "Directory": path.is_dir,
        "File": path.is_file,
        "Socket": path.is_socket,
        "CharDevice": path.is_char_device,
        "BlockDevice": path.is_block_device,
    }
    if kind == "DirectoryOrCreate":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch(mode=0o644)
    elif kind and not checks[kind]():
        raise ConfigurationMissing(f"hostPath type check failed: {path} is not a {kind.lower()}")
    return path


def files_of(volume: Object, sources: Sources) -> Files:
    """Return the files of a volume that follows objects; raises ``ConfigurationMissing``."""
    if "configMap" in volume:
        source = volume["configMap"]
        return _from_object("configmap", source.get("name", ""), source, sources.lookup)
    if "secret" in volume:
        source = volume["secret"]
        return _from_object("secret", source.get("secretName", ""), source, sources.lookup)
    if "downwardAPI" in volume:
        source = volume["downwardAPI"]
        return _from_pod(source, source.get("defaultMode", _MODE), sources.facts)
    if "projected" not in volume:
        kind = next((key for key in volume if key != "name"), "")
        raise ConfigurationMissing(f"volumes of type {kind} are not supported on this node")
    projected = volume["projected"]
    mode = projected.get("defaultMode", _MODE)
    found: Files = {}
    for source in projected.get("sources") or ():
        found |= _projected(source, mode, sources)
    return found


def _projected(source: Object, mode: int, sources: Sources) -> Files:
    if "configMap" in source:
        part = {"defaultMode": mode, **source["configMap"]}
        return _from_object("configmap", part.get("name", ""), part, sources.lookup)
    if "secret" in source:
        part = {"defaultMode": mode, **source["secret"]}
        return _from_object("secret", part.get("name", ""), part, sources.lookup)
    if "downwardAPI" in source:
        return _from_pod(source["downwardAPI"], mode, sources.facts)
    if "serviceAccountToken" in source:
        wanted = source["serviceAccountToken"]
        token = sources.token_of(wanted)
        if token is None:
            raise ConfigurationMissing("failed to fetch token: not issued yet")
        return {wanted["path"]: (token.encode(), 0o600 if mode == _MODE else mode)}
    raise ConfigurationMissing(f"projected source {', '.join(source)} is not supported")


def _from_object(kind: str, name: str, source: Object, lookup: Lookup) -> Files:
    optional, mode = bool(source.get("optional")), source.get("defaultMode", _MODE)
    obj = lookup(kind, name)
    if obj is None:
        if optional:
            return {}
        raise ConfigurationMissing(f'{kind} "{name}" not found')
    content = _content(kind, obj)
    items = source.get("items")
    if not items:
        return {key: (data, mode) for key, data in content.items()}
    found: Files = {}
    for item in items:
        if item["key"] in content:
            found[item["path"]] = (content[item["key"]], item.get("mode", mode))
        elif not optional:
            raise ConfigurationMissing(f"references non-existent {kind} key: {item['key']}")
    return found


def _content(kind: str, obj: Object) -> dict[str, bytes]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    if kind == "secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    found = {key: str(value).encode() for key, value in data.items()}
    return found | {key: base64.b64decode(value) for key, value in binary.items()}


def _from_pod(source: Object, mode: int, facts: Facts) -> Files:
    found: Files = {}
    for item in source.get("items") or ():
        if "fieldRef" in item:
            text = field_value(facts, item["fieldRef"]["fieldPath"])
        else:
            reference = item["resourceFieldRef"]
            named = [
                container
                for container in facts.pod["spec"]["containers"]
                if container["name"] == reference.get("containerName")
            ]
            text = resource_value(reference, named[0] if named else {}, facts)
        found[item["path"]] = (text.encode(), item.get("mode", mode))
    return found


def write_files(directory: Path, files: Files) -> bool:
    """Make *files* the content of *directory*, all at once; False when they were already."""
    data = directory / _DATA
    if data.is_dir() and _same(data, files):
        return False
    fresh = _fresh_directory(directory)
    for name, (content, mode) in files.items():
        path = fresh / _inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    old = _shown(directory)
    link = directory / "..data_tmp"
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(fresh.name)
    os.replace(link, data)
    _link_names(directory, {PurePosixPath(_inside(name)).parts[0] for name in files})
    if old is not None and old != fresh:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _shown(directory: Path) -> Path | None:
    """Return the version of the files that is shown now; None when there is none of ours.

    By its name alone: whoever can write to the volume could have the link lead anywhere, and what
    it leads to is about to be removed.
    """
    with contextlib.suppress(OSError):
        name = os.readlink(directory / _DATA)
        if _VERSION.fullmatch(name):
            return directory / name
    return None


def _inside(name: str) -> str:
    """Return a file name that surely stays below the volume; the server refuses others too."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ConfigurationMissing(f"path {name!r} leads out of the volume")
    return name


def _fresh_directory(directory: Path) -> Path:
    for number in range(1_000_000):
        path = directory / f"..{number}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise MountFailed(f"{directory}: too many leftovers")


def _same(data: Path, files: Files) -> bool:
    present = {str(path.relative_to(data)): path for path in data.rglob("*") if not path.is_dir()}
    if set(present) != {str(PurePosixPath(name)) for name in files}:
        return False
    return all(
        present[str(PurePosixPath(name))].read_bytes() == content
        and present[str(PurePosixPath(name))].stat().st_mode & 0o777 == mode
        for name, (content, mode) in files.items()
    )


def _link_names(directory: Path, names: set[str]) -> None:
    """Have one link per first name, all through ``..data``."""
    for name in names:
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(f"{_DATA}/{name}")
    for entry in directory.iterdir():
        if entry.is_symlink() and entry.name not in names and not entry.name.startswith(".."):
            entry.unlink()
