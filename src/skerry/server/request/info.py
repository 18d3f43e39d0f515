"""What a request asks for, read from its method and path.

The path grammar is Kubernetes': ``/api/v1/...`` and ``/apis/<group>/<version>/...`` name
resources, everything else is a non-resource path. A cluster prefix, where a server has one, was
taken off before.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from skerry.api.kinds import GroupVersionResource
from skerry.kit.caching import SHORT
from skerry.logic.machinery.selectors import FieldSelector, SelectorError

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
# Below a namespace these are subresources of the namespace itself, not resources in it.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
# What follows these means more than a name: a namespace, and the old watch prefix a collection.
_NOT_COLLECTIONS = frozenset({"namespaces", "watch"})
# Types times namespaces in use; a path is short, so this is a megabyte at the most.
_MAX_COLLECTIONS = 4096


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """One request, taken apart. ``verb`` is Kubernetes' for resources, the HTTP method in lower
    case for other paths."""

    path: str
    verb: str
    is_resource: bool = False
    cluster: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    # What follows the subresource, for proxies.
    rest: str = ""
    # The one name a list or watch selects: a right to that name is enough for it.
    selected_name: str = ""
    # The one node whose pods it selects.
    selected_node: str = ""

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.resource)


def truth(text: str | None) -> bool:
    """Return what a boolean query parameter means, as Kubernetes reads it.

    One that is named is meant, whatever it is set to, unless that is ``0`` or ``false``.
    """
    return text is not None and text != "0" and text.lower() != "false"


def request_info(method: str, path: str, query: dict[str, str], cluster: str) -> RequestInfo:
    """Return what *method* on *path* asks for in *cluster*."""
    if not query and len(path) <= SHORT:
        # Nearly every request: one object of a collection that others are asked for, too.
        place, _, name = path.rpartition("/")
        found = _collection(place)
        if found is not None and name:
            group, version, resource, namespace = found
            verb = _VERBS.get(method) or method.lower()
            return RequestInfo(
                path, verb, True, cluster, group, version, resource, "", namespace, name
            )
    return _parsed(method, path, query, cluster)


@lru_cache(_MAX_COLLECTIONS)
def _collection(path: str) -> tuple[str, str, str, str] | None:
    """Return group, version, resource and namespace of a collection; None unless another segment
    of the path names an object in it."""
    info = _parsed("GET", path, {}, "")
    # An empty segment is a name that is missing: what follows it is none.
    if "//" in f"{path}/" or info.verb != "list" or info.resource in _NOT_COLLECTIONS:
        return None
    return info.group, info.version, info.resource, info.namespace


def _parsed(method: str, path: str, query: dict[str, str], cluster: str) -> RequestInfo:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(path=path, verb=method.lower(), cluster=cluster)
    return _resource_info(method, path, query, cluster, (group, version), rest)


def _resource_info(
    method: str,
    path: str,
    query: dict[str, str],
    cluster: str,
    group_version: tuple[str, str],
    rest: list[str],
) -> RequestInfo:
    watching = False
    if rest[0] == "watch" and len(rest) > 1:
        # The old watch prefix, still served by Kubernetes.
        watching, rest = True, rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    verb = _verb(method, name, query, watching=watching)
    return RequestInfo(
        path=path,
        verb=verb,
        is_resource=True,
        cluster=cluster,
        group=group_version[0],
        version=group_version[1],
        resource=resource,
        subresource=subresource,
        namespace=namespace if resource != "namespaces" or name != namespace else name,
        name=name,
        rest="/".join(rest[3:]) if len(rest) > 3 else "",
        selected_name=_selected(verb, query, "metadata.name") if query else "",
        selected_node=_selected(verb, query, "spec.nodeName")
        if query and resource == "pods"
        else "",
    )


def _selected(verb: str, query: dict[str, str], field: str) -> str:
    selector = query.get("fieldSelector")
    if not selector or verb not in ("list", "watch"):
        return ""
    return selected_name(selector, field)


def selected_name(selector: str, field: str = "metadata.name") -> str:
    """Return the one name a field selector selects; empty when it selects by anything else."""
    try:
        return FieldSelector.parse(selector).exact(field) or ""
    except SelectorError:
        # Whoever lists will say what is wrong with it.
        return ""


def _verb(method: str, name: str, query: dict[str, str], *, watching: bool) -> str:
    verb = _VERBS.get(method, method.lower())
    if verb == "get":
        # An object of its own is watched through the old prefix, or by a field selector.
        if watching or (not name and truth(query.get("watch"))):
            return "watch"
        if not name:
            return "list"
    if verb == "delete" and not name:
        return "deletecollection"
    return verb
