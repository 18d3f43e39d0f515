"""Where an object lies in the store.

``/<group or core>/<resource>/<cluster>/<namespace or ->/<name>``: the resource type first, so
that a list across clusters (workspaces) is one range read; the cluster second, so that a list in
one of them is too. A resource bound from an export is kept apart from a local one of the same
name by its identity: ``<resource>:<identity>``. A plain server has the one cluster ``PLAIN``.
"""

from __future__ import annotations

from typing import NamedTuple

PLAIN = "local"
_CLUSTER_SCOPED = "-"
_CORE = "core"


class ObjectKey(NamedTuple):
    """What identifies one object: resource type, cluster, namespace (empty when none), name."""

    group: str
    resource: str
    cluster: str
    namespace: str
    name: str

    def path(self) -> str:
        """Return the store key."""
        return object_path(*self)

    @classmethod
    def parse(cls, path: str) -> ObjectKey:
        """Return the object a store key names."""
        _, group, resource, cluster, namespace, name = path.split("/", 5)
        return cls(
            "" if group == _CORE else group,
            resource,
            cluster,
            "" if namespace == _CLUSTER_SCOPED else namespace,
            name,
        )


def object_path(group: str, resource: str, cluster: str, namespace: str, name: str) -> str:
    """Return the store key of one object."""
    return f"/{group or _CORE}/{resource}/{cluster}/{namespace or _CLUSTER_SCOPED}/{name}"


def type_prefix(
    group: str, resource: str, cluster: str = "", namespace: str = "", *, scoped: bool = False
) -> str:
    """Return the prefix of all keys of a type: everywhere, in a cluster, or in a namespace.

    With *scoped* the namespace segment is always written, so that cluster-scoped objects (an
    empty namespace) are meant rather than all namespaces.
    """
    prefix = f"/{group or _CORE}/{resource}/"
    if cluster:
        prefix += f"{cluster}/"
        if namespace or scoped:
            prefix += f"{namespace or _CLUSTER_SCOPED}/"
    return prefix
