"""One stored type seen at several versions, or through two groups."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.resource import Resource
from skerry.server.request.call import Call


def to_storage(resource: Resource, obj: Object) -> Object:
    """Return *obj*, which is at the version of *resource*, at the one it is stored at.

    It may be changed on the way: the caller must own it.
    """
    if resource.convert is not None:
        return resource.convert(obj, resource.storage_version)
    if resource.info.version != resource.storage_version:
        group, version = resource.info.group, resource.storage_version
        obj["apiVersion"] = f"{group}/{version}" if group else version
    return obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """Return *obj*, as stored, at the version of *resource*; it may be changed on the way."""
    if resource.convert is not None:
        obj = resource.convert(obj, resource.info.version)
    else:
        obj["apiVersion"] = resource.info.api_version
    if resource.since is not None:
        resource.default(obj)
    return obj


class Versions:
    """The versions a type is served at, for what a field manager owns at another one."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def converted(self, obj: Object, api_version: str) -> Object | None:
        """Return *obj*, at any served version, at another; None when that is not served."""
        target = self._served(api_version)
        source = self._served(str(obj.get("apiVersion", "")))
        if target is None or source is None:
            return None
        return from_storage(target, dict(to_storage(source, dict(obj))))

    def schema(self, api_version: str) -> Schema | None:
        """Return the schema at a version; None when it is not served."""
        served = self._served(api_version)
        return None if served is None else served.schema

    def _served(self, api_version: str) -> Resource | None:
        ours = self._call.resource
        if api_version == ours.info.api_version:
            return ours
        stored = (ours.stored_group, ours.storage_resource)
        return next(
            (
                resource
                for resource in self._call.types.resources
                if resource.info.api_version == api_version
                and (resource.stored_group, resource.storage_resource) == stored
            ),
            None,
        )
