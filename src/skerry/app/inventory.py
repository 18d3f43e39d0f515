"""An inventory workspace filled in: a SyncTarget and a Location per edge cluster.

Lines returned are for people, in kubectl's own words; none when nothing had to be done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_identity import HubAccess
from skerry.runtime.client import Client

_TARGET = "synctarget.workload.kcp.io"
_LOCATION = "location.scheduling.kcp.io"
_NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
_LABEL_KEY = re.compile(
    r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
)
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")


class CommandFailed(Exception):
    """Why a command failed, and the exit code that says so."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def checked_labels(words: Sequence[str]) -> dict[str, str]:
    """Return ``k=v`` words as labels; exit code 1 for what is none."""
    labels: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not _LABEL_KEY.match(key) or not _LABEL_VALUE.match(value):
            raise CommandFailed(1, f"{word!r} is not a valid label assignment, want key=value")
        if key == "id":
            raise CommandFailed(1, "label 'id' is reserved: it is set to the location's name")
        labels[key] = value
    if not labels:
        raise CommandFailed(1, "at least one label must be given, as key=value")
    return labels


def checked_name(name: str) -> str:
    """Return a location's name; exit code 1 for one that cannot be."""
    if not _NAME.match(name):
        raise CommandFailed(1, f"location name {name!r} must be a lower-case DNS name")
    if name == "default":
        raise CommandFailed(1, "location name 'default' is taken by the server's own Location")
    return name


async def ensure_location(
    hub: HubAccess, imw: str, name: str, labels: Mapping[str, str]
) -> list[str]:
    """Make sure of a SyncTarget and a Location of this name with these labels."""
    client = hub.at(imw)
    wanted = {"id": name, **labels}
    selector = {
        "resource": SYNC_TARGETS._asdict(),
        "instanceSelector": {"matchLabels": {"id": name}},
    }
    target: Object = {
        "apiVersion": str(SYNC_TARGETS.group_version),
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": wanted},
        "spec": {},
    }
    location: Object = {
        "apiVersion": str(LOCATIONS.group_version),
        "kind": "Location",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": selector,
    }
    lines = await _ensured(client, SYNC_TARGETS, target, _TARGET)
    lines += await _ensured(client, LOCATIONS, location, _LOCATION)
    lines += await removed(client, LOCATIONS, "default", _LOCATION)
    return lines


async def _ensured(client: Client, gvr: GroupVersionResource, obj: Object, shown: str) -> list[str]:
    name, wanted = obj["metadata"]["name"], obj["metadata"]["labels"]
    try:
        found = await client.get(gvr, name)
    except NotFound:
        try:
            await client.create(gvr, obj)
        except AlreadyExists:
            found = await client.get(gvr, name)
        except ApiError as error:
            raise CommandFailed(3, f"failed to create {shown}/{name}: {error}") from error
        else:
            return [f"{shown}/{name} created"]
    present = found["metadata"].get("labels") or {}
    if all(present.get(key) == value for key, value in wanted.items()):
        return []
    try:
        await client.patch(gvr, name, {"metadata": {"labels": dict(wanted)}})
    except ApiError as error:
        raise CommandFailed(4, f"failed to label {shown}/{name}: {error}") from error
    return [f"{shown}/{name} labeled"]


async def remove_location(hub: HubAccess, imw: str, name: str) -> list[str]:
    """Remove the SyncTarget and the Location; what is absent needs no word."""
    client = hub.at(imw)
    lines = await removed(client, LOCATIONS, name, _LOCATION)
    return lines + await removed(client, SYNC_TARGETS, name, _TARGET)


async def removed(client: Client, gvr: GroupVersionResource, name: str, shown: str) -> list[str]:
    """Delete an object; what is absent needs no word."""
    try:
        await client.delete(gvr, name)
    except NotFound:
        return []
    return [f'{shown} "{name}" deleted']
