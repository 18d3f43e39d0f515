"""Which resource types a server offers, and which one a kind means.

Asks for aggregated discovery (two requests) and falls back to the legacy documents (one per group
version). A group whose API server is away leaves the rest usable and is named in ``failed``:
whoever would delete because a type is absent must look there first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import (
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    ResourceInfo,
    Subresource,
)
from skerry.runtime.client import Client

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)


@dataclass(frozen=True, slots=True)
class ServedTypes:
    """Every type at every version, preferred versions first within a group."""

    resources: tuple[ResourceInfo, ...]
    failed: tuple[GroupVersion, ...] = ()

    def preferred(self) -> dict[GroupResource, ResourceInfo]:
        """Return each resource type once, at the version the server likes best."""
        found: dict[GroupResource, ResourceInfo] = {}
        for info in self.resources:
            found.setdefault(info.group_resource, info)
        return found

    def for_kind(self, kind: GroupVersionKind) -> ResourceInfo | None:
        """Return the type an object of *kind* belongs to."""
        for info in self.resources:
            if info.gvk == kind:
                return info
        return None

    def for_group_kind(self, group: str, kind: str) -> ResourceInfo | None:
        """Return the preferred type of a kind whatever the version."""
        for info in self.resources:
            if info.group == group and info.kind == kind:
                return info
        return None


async def discover(client: Client) -> ServedTypes:
    """Ask the server what it serves, now."""
    found: list[ResourceInfo] = []
    failed: list[GroupVersion] = []
    for path in ("/api", "/apis"):
        document = await client.call("GET", client.base + path, {}, accept=_AGGREGATED)
        if document.get("kind") == "APIGroupDiscoveryList":
            for group in document.get("items") or ():
                _read_aggregated(group, found, failed)
        else:
            for version in _group_versions(document):
                await _read_legacy(client, version, found, failed)
    return ServedTypes(tuple(found), tuple(failed))


class Mapper:
    """Kinds to resource types, remembered; asks again when a kind is not known."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types: ServedTypes | None = None

    async def types(self) -> ServedTypes:
        if self._types is None:
            self._types = await discover(self._client)
        return self._types

    def forget(self) -> None:
        """Ask the server again next time."""
        self._types = None

    async def resource_for(self, kind: GroupVersionKind) -> ResourceInfo:
        """Return the type of *kind*; ``NotFound`` when the server has none such."""
        info = (await self.types()).for_kind(kind)
        if info is None:
            self.forget()
            info = (await self.types()).for_kind(kind)
        if info is None:
            raise NotFound(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')
        return info


def _read_aggregated(
    group: Mapping[str, Any], found: list[ResourceInfo], failed: list[GroupVersion]
) -> None:
    name = str((group.get("metadata") or {}).get("name", ""))
    for version in group.get("versions") or ():
        if version.get("freshness") == "Stale":
            failed.append(GroupVersion(name, version["version"]))
            continue
        raws = version.get("resources") or ()
        found.extend(_aggregated_info(name, version["version"], raw) for raw in raws)


def _aggregated_info(group: str, version: str, raw: Mapping[str, Any]) -> ResourceInfo:
    return ResourceInfo(
        group=group,
        version=version,
        resource=raw["resource"],
        kind=(raw.get("responseKind") or {}).get("kind", ""),
        namespaced=raw.get("scope") == "Namespaced",
        singular=raw.get("singularResource", ""),
        short_names=tuple(raw.get("shortNames") or ()),
        categories=tuple(raw.get("categories") or ()),
        verbs=tuple(raw.get("verbs") or ()),
        subresources=tuple(
            _subresource(sub["subresource"], sub.get("responseKind") or {}, sub.get("verbs"))
            for sub in raw.get("subresources") or ()
        ),
    )


def _subresource(name: str, kind: Mapping[str, str], verbs: Iterable[str] | None) -> Subresource:
    gvk = GroupVersionKind(kind.get("group", ""), kind.get("version", ""), kind.get("kind", ""))
    return Subresource(name, gvk, tuple(verbs or ()))


def _group_versions(document: Mapping[str, Any]) -> list[GroupVersion]:
    """Return the versions a legacy ``/api`` or ``/apis`` names, preferred first in each group."""
    if document.get("kind") == "APIVersions":
        return [GroupVersion("", version) for version in document.get("versions") or ()]
    found: list[GroupVersion] = []
    for group in document.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [version["version"] for version in group.get("versions") or ()]
        versions.sort(key=lambda version: version != preferred)
        found.extend(GroupVersion(group["name"], version) for version in versions)
    return found


async def _read_legacy(
    client: Client, version: GroupVersion, found: list[ResourceInfo], failed: list[GroupVersion]
) -> None:
    path = f"/apis/{version}" if version.group else f"/api/{version}"
    try:
        document = await client.call("GET", client.base + path, {})
    except ApiError:  # this group's server is away or refuses; the others still count
        failed.append(version)
        return
    raws = document.get("resources") or ()
    found.extend(_legacy_info(version, raw, raws) for raw in raws if "/" not in raw["name"])


def _legacy_info(
    version: GroupVersion, raw: Mapping[str, Any], raws: Iterable[Mapping[str, Any]]
) -> ResourceInfo:
    prefix = raw["name"] + "/"
    return ResourceInfo(
        group=version.group,
        version=version.version,
        resource=raw["name"],
        kind=raw.get("kind", ""),
        namespaced=bool(raw.get("namespaced")),
        singular=raw.get("singularName", ""),
        short_names=tuple(raw.get("shortNames") or ()),
        categories=tuple(raw.get("categories") or ()),
        verbs=tuple(raw.get("verbs") or ()),
        subresources=tuple(
            _subresource(sub["name"].removeprefix(prefix), sub, sub.get("verbs"))
            for sub in raws
            if sub["name"].startswith(prefix)
        ),
    )
