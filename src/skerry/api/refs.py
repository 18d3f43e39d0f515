"""The one identity of an object, wherever it is talked about.

An object has the same group, resource, namespace and name in the workspace of its owner, in a
mailbox and at an edge; only the logical cluster differs. So there is one tuple for all three:
``ref.at(cluster)`` is the same object in another cluster, and an empty cluster means "in the
cluster that is being talked about", which is what a syncer and the rows of one mailbox need.

Versions are not part of an identity: the same object is read at whichever version is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from skerry.api.kinds import GroupResource

# The internal name of a workspace (``2hc3…``, ``root``), as the ``kcp.io/cluster`` annotation has
# it; never a path and never the name of a Workspace object.
ClusterName: TypeAlias = str

# Where every object of a hub says in which logical cluster it is.
CLUSTER_ANNOTATION = "kcp.io/cluster"
# Where objects that others refer to by path say at which path their workspace is.
PATH_ANNOTATION = "kcp.io/path"


class ObjectRef(NamedTuple):
    """One object: logical cluster, type, namespace (empty when cluster-scoped) and name.

    The order of the fields is the order of lists: by cluster, then type, namespace and name.
    """

    cluster: ClusterName
    group: str
    resource: str
    namespace: str
    name: str

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    def at(self, cluster: ClusterName) -> ObjectRef:
        """Return the object of the same type and name in *cluster*."""
        return ObjectRef(cluster, self.group, self.resource, self.namespace, self.name)

    @property
    def text(self) -> str:
        """The form that records, annotations and journals keep: ``deployments.apps/shop/web``.

        It leaves the cluster out: whoever keeps it is in one.
        """
        return "/".join((str(self.group_resource), self.namespace, self.name))

    @classmethod
    def parse(cls, text: str) -> ObjectRef:
        """Return what ``text`` names; the inverse of the property."""
        kind, namespace, name = text.split("/", 2)
        resource, _, group = kind.partition(".")
        return cls("", group, resource, namespace, name)

    @classmethod
    def of(cls, kind: GroupResource, obj: Mapping[str, Any]) -> ObjectRef:
        """Return the identity of *obj*, which is of type *kind*."""
        metadata = obj["metadata"]
        cluster = (metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, "")
        namespace = metadata.get("namespace") or ""
        return cls(cluster, kind.group, kind.resource, namespace, metadata["name"])

    @classmethod
    def local(cls, kind: GroupResource, obj: Mapping[str, Any]) -> ObjectRef:
        """Return the identity of *obj* within the cluster it was read from, whichever that is."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or ""
        return cls("", kind.group, kind.resource, namespace, metadata["name"])

    @property
    def qualified_name(self) -> str:
        """``cluster|name``, as logs and slices of the edge API show an object of a known type."""
        return f"{self.cluster}|{self.name}" if self.cluster else self.name

    def __str__(self) -> str:
        """How messages name the object: ``deployments.apps shop/web``; the cluster is left out."""
        local = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.group_resource} {local}"


def namespace_ref(name: str, cluster: ClusterName = "") -> ObjectRef:
    """Return the identity of a Namespace."""
    return ObjectRef(cluster, "", "namespaces", "", name)
