"""Volumes as directories of this machine.

What comes from ConfigMaps, Secrets and the pod itself is written by the agent alone (see
``volume_files``) and read-only for the pod, whatever its mount says.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.environment import (
    ConfigurationMissing,
    Facts,
    Lookup,
    field_value,
    resource_value,
)
from skerry.edge.agent.host_access import HostAccess, HostPathRefused, host_path_volume
from skerry.edge.agent.runtime import Volume
from skerry.edge.agent.volume_files import File, write_files

_MODE = 0o644

Files = dict[str, File]
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
    claim_volume: Callable[[str], Volume]
    """Returns the volume of a claim; raises ``MountFailed`` when it has none yet."""

    access: HostAccess = field(default_factory=HostAccess)
    group: int | None = None
    """The group that every volume is given to; None where the agent cannot, or nobody asked."""

    owner: int | None = None
    """Who tokens belong to, where every container of the pod is the same user."""


def set_up(directory: Path, volume: Object, sources: Sources) -> Volume:
    """Set one volume up (again) and return where it is; raises ``MountFailed``."""
    name = volume["name"]
    try:
        return _set_up(directory / name, volume, sources)
    except (ConfigurationMissing, HostPathRefused, OSError) as error:
        raise MountFailed(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error


def _set_up(path: Path, volume: Object, sources: Sources) -> Volume:
    if "hostPath" in volume:
        return host_path_volume(volume["hostPath"], sources.access)
    if "persistentVolumeClaim" in volume:
        source = volume["persistentVolumeClaim"]
        found = sources.claim_volume(source["claimName"])
        return replace(found, read_only=found.read_only or bool(source.get("readOnly")))
    path.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume or len(volume) == 1:
        if sources.group is None:
            path.chmod(0o777)
        return Volume(path)
    path.chmod(0o755)
    write_files(path, files_of(volume, sources), sources.group)
    return Volume(path, read_only=True, links=True)


def takes_group(volume: Object) -> bool:
    """Tell whether ``fsGroup`` is about a volume: those that the pod writes to, but host paths."""
    return not is_written(volume) and "hostPath" not in volume


def is_written(volume: Object) -> bool:
    """Tell whether a volume's content follows objects, and so may change while it is used."""
    return any(kind in volume for kind in ("configMap", "secret", "downwardAPI", "projected"))


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
        private = sources.owner is not None or sources.group is not None
        return {wanted["path"]: File(token.encode(), 0o600 if private else mode, sources.owner)}
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
        return {key: File(data, mode) for key, data in content.items()}
    found: Files = {}
    for item in items:
        if item["key"] in content:
            found[item["path"]] = File(content[item["key"]], item.get("mode", mode))
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
        found[item["path"]] = File(text.encode(), item.get("mode", mode))
    return found
