"""Names of things: groups, versions, kinds and resources, and what a served resource is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class GroupVersion(NamedTuple):
    """An API group at a version; the core group is the empty string."""

    group: str
    version: str

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """Return what an object's ``apiVersion`` says; ``v1`` is the core group."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupResource(NamedTuple):
    """A resource type whatever its version."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersionResource(NamedTuple):
    """A resource type as a URL names it."""

    group: str
    version: str
    resource: str

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


class GroupVersionKind(NamedTuple):
    """A type as an object names it."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """One resource type at one version, as discovery tells it.

    ``subresources`` maps a name such as ``status`` to the kind served there.
    """

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.resource)

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object: its name, the kind it speaks and its verbs.

    Where it is not ``listed``, discovery tells that it exists and not what can be done with it.
    """

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]
    listed: bool = True
