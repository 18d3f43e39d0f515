"""Objects that stay where they are, although others of their type travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE, is_system_object
from skerry.api.edge_identity import BOOTSTRAP_TYPE
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.kinds import GroupResource
from skerry.api.refs import namespace_ref
from skerry.logic.fleet.placement.heartbeat import LEASES

NAMESPACES = GroupResource("", "namespaces")
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
BINDINGS = API_BINDINGS.group_resource

# Every workspace has this one already; it is never made, changed or removed.
DEFAULT_NAMESPACE = namespace_ref("default")


def is_edge_object(resource: GroupResource, obj: Mapping[str, Any]) -> bool:
    """Tell whether a mailbox has such an object for its edge: its heartbeat, its credentials.

    A copy in its place would speak for the edge, with the word of whoever placed it.
    """
    if resource == GroupResource("", "secrets"):
        return obj.get("type") == BOOTSTRAP_TYPE
    metadata = obj["metadata"]
    place = (metadata.get("namespace"), metadata["name"])
    return resource == LEASES.group_resource and place == (HEARTBEAT_NAMESPACE, HEARTBEAT_LEASE)


def is_never_copied(resource: GroupResource, obj: Mapping[str, Any]) -> bool:
    """Tell whether an object stays where it is, although others of its type travel."""
    return is_system_object(resource, obj) or is_edge_object(resource, obj)
