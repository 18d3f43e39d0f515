"""Names of objects: the same at the hub and at the edge, whatever the version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from skerry.api.kinds import GroupResource

NAMESPACES = GroupResource("", "namespaces")
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


class Ref(NamedTuple):
    """One object; namespace is empty for cluster-scoped ones."""

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def text(self) -> str:
        """The form records and conditions use: ``deployments.apps/web/shop``."""
        return "/".join((str(self.group_resource), self.namespace, self.name))

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Return what ``text`` names; the inverse of the property."""
        kind, namespace, name = text.split("/", 2)
        resource, _, group = kind.partition(".")
        return cls(group, resource, namespace, name)

    @classmethod
    def to(cls, kind: GroupResource, obj: Mapping[str, Any]) -> Ref:
        """Return the name of *obj*, which is of type *kind*."""
        metadata = obj["metadata"]
        return cls(kind.group, kind.resource, metadata.get("namespace") or "", metadata["name"])

    @classmethod
    def to_namespace(cls, name: str) -> Ref:
        """Return the name of a Namespace object."""
        return cls("", "namespaces", "", name)
