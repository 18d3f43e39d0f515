"""What a server serves, as discovery tells it: the old documents and the aggregated one.

Old clients walk ``/api``, ``/apis`` and one document per group version; newer ones ask for
everything at once (``apidiscovery.k8s.io``, v2 or v2beta1) and fall back. Both say the same and
are built from the same resources. Groups come in the order Kubernetes gives them, custom ones
last by name; versions by stability and number; the first version is the preferred one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skerry.api.kinds import GroupVersion, GroupVersionKind, Subresource
from skerry.logic.machinery.resource import Resource

# By the priority Kubernetes registers its groups with. kubectl resolves a name that several
# groups have (events, ingresses) to the first of them.
_GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "storagemigration.k8s.io",
)
_RANK = {group: rank for rank, group in enumerate(_GROUP_ORDER)}

_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}

# Aggregated discovery is asked for and answered under this media type, at either version.
AGGREGATED_VERSIONS = ("v2", "v2beta1")


def aggregated_media_type(version: str) -> str:
    """Return the Content-Type of aggregated discovery at *version*."""
    return f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def content_hash(document: bytes) -> str:
    """Return the hash that stands for *document* in an ETag, as Kubernetes computes it."""
    return hashlib.sha512(document).hexdigest().upper()


def asked_version(accept: str) -> str:
    """Return the version of aggregated discovery the client asks for first, if any."""
    for clause in accept.split(","):
        if "as=APIGroupDiscoveryList" not in clause:
            if clause.strip().startswith("application/json"):
                return ""
            continue
        for version in AGGREGATED_VERSIONS:
            if f"v={version};" in clause + ";":
                return version
    return ""


def version_priority(version: str) -> tuple[int, int, int, int, str]:
    """Return a key that sorts versions best first: v2, v1, v1beta2, v1alpha1, then other names."""
    match = _VERSION.match(version)
    if match is None:
        return 1, 0, 0, 0, version
    major, stability, minor = match.groups()
    return 0, -_STABILITY[stability], -int(major), -int(minor or 0), ""


# Of a type whose objects are being removed with it.
_REFUSED_WHEN_TERMINATING = ("create", "patch", "update")


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Return the opaque text that changes when objects are stored differently."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def groups(resources: Iterable[Resource]) -> dict[str, list[str]]:
    """Return every group with its versions, both in the order of discovery."""
    found: dict[str, set[str]] = {}
    for resource in resources:
        found.setdefault(resource.info.group, set()).add(resource.info.version)
    ordered = sorted(found, key=lambda group: (_RANK.get(group, len(_RANK)), group))
    return {group: sorted(found[group], key=version_priority) for group in ordered}


def api_versions(server_address: str) -> dict[str, Any]:
    """Return the document at ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address},
        ],
    }


def api_group_list(resources: Iterable[Resource]) -> dict[str, Any]:
    """Return the document at ``/apis``: every group but the core one."""
    listed = [_group(name, versions) for name, versions in groups(resources).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def api_group(group: str, resources: Iterable[Resource]) -> dict[str, Any] | None:
    """Return the document at ``/apis/<group>``; None when nothing is served there."""
    versions = groups(resources).get(group)
    if not group or versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_resource_list(
    group_version: GroupVersion, resources: Iterable[Resource]
) -> dict[str, Any] | None:
    """Return the document at ``/api/v1`` or ``/apis/<group>/<version>``; None when empty."""
    served = _served_at(group_version, resources)
    if not served:
        return None
    listed = [entry for resource in served for entry in _api_resources(resource, group_version)]
    listed.sort(key=lambda entry: str(entry["name"]))
    document = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": str(group_version),
        "resources": listed,
    }
    if not group_version.group:
        # The oldest document of all does not say its own version.
        del document["apiVersion"]
    return document


def _served_at(group_version: GroupVersion, resources: Iterable[Resource]) -> list[Resource]:
    return [
        resource
        for resource in resources
        if (resource.info.group, resource.info.version) == group_version
    ]


def _api_resources(resource: Resource, within: GroupVersion) -> Iterable[dict[str, Any]]:
    info = resource.info
    entry: dict[str, Any] = {
        "name": info.resource,
        "singularName": _singular(resource),
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": _verbs(resource),
        "shortNames": list(info.short_names),
        "categories": list(info.categories),
        "storageVersionHash": _storage_hash(resource),
    }
    yield _without_empty(entry, "shortNames", "categories", "storageVersionHash")
    for subresource in info.subresources:
        yield _api_subresource(resource, subresource, within)


def _api_subresource(
    resource: Resource, subresource: Subresource, within: GroupVersion
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{resource.info.resource}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.info.namespaced,
    }
    if (subresource.kind.group, subresource.kind.version) != within:
        entry |= {"group": subresource.kind.group, "version": subresource.kind.version}
    verbs = list(subresource.verbs) if subresource.listed else None
    entry |= {"kind": subresource.kind.kind, "verbs": verbs}
    return _without_empty(entry, "group")


def _verbs(resource: Resource) -> list[str]:
    refused = _REFUSED_WHEN_TERMINATING if resource.terminating else ()
    return [verb for verb in resource.info.verbs if verb not in refused]


def _singular(resource: Resource) -> str:
    return resource.info.singular or resource.info.kind.lower()


def _storage_hash(resource: Resource) -> str:
    """Return the hash of stored types; reviews and other types that are not stored have none."""
    info = resource.info
    if resource.storage_hash or not {"create", "get"} <= set(info.verbs):
        return resource.storage_hash
    return storage_version_hash(resource.stored_group, resource.storage_version, info.kind)


def _without_empty(entry: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value or key not in keys}


def aggregated_core(resources: Iterable[Resource], version: str = "v2") -> dict[str, Any]:
    """Return the aggregated document at ``/api``: the core group alone."""
    return _aggregated([each for each in resources if not each.info.group], version)


def aggregated_groups(resources: Iterable[Resource], version: str = "v2") -> dict[str, Any]:
    """Return the aggregated document at ``/apis``: every group but the core one."""
    return _aggregated([each for each in resources if each.info.group], version)


def _aggregated(resources: Sequence[Resource], version: str) -> dict[str, Any]:
    by_group_version: dict[GroupVersion, list[Resource]] = {}
    for resource in resources:
        key = GroupVersion(resource.info.group, resource.info.version)
        by_group_version.setdefault(key, []).append(resource)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            _group_discovery(group, versions, by_group_version)
            for group, versions in groups(resources).items()
        ],
    }


def _group_discovery(
    group: str,
    versions: Sequence[str],
    by_group_version: Mapping[GroupVersion, Sequence[Resource]],
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": group, "creationTimestamp": None}
    return {
        "metadata": _without_empty(metadata, "name"),
        "versions": [
            {
                "version": version,
                "resources": _resource_discoveries(by_group_version[GroupVersion(group, version)]),
                "freshness": "Current",
            }
            for version in versions
        ],
    }


def _resource_discoveries(resources: Sequence[Resource]) -> list[dict[str, Any]]:
    ordered = sorted(resources, key=lambda resource: resource.info.resource)
    return [_resource_discovery(resource) for resource in ordered]


def _resource_discovery(resource: Resource) -> dict[str, Any]:
    info = resource.info
    entry: dict[str, Any] = {
        "resource": info.resource,
        "responseKind": _response_kind(resource, info.gvk),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": _singular(resource),
        "verbs": _verbs(resource),
        "shortNames": list(info.short_names),
        "categories": list(info.categories),
        "subresources": [
            {
                "subresource": subresource.name,
                "responseKind": _response_kind(resource, subresource.kind),
                "verbs": list(subresource.verbs) if subresource.listed else None,
            }
            for subresource in sorted(info.subresources, key=lambda each: each.name)
        ],
    }
    return _without_empty(entry, "shortNames", "categories", "subresources")


def _response_kind(resource: Resource, kind: GroupVersionKind) -> dict[str, str]:
    """Return a kind; built-in ones leave out the group version they are listed under."""
    at_home = (kind.group, kind.version) == (resource.info.group, resource.info.version)
    if at_home and not resource.custom:
        return {"group": "", "version": "", "kind": kind.kind}
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
