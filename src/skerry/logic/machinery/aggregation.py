"""Aggregated API servers: what an APIService says, and how their documents join ours."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from skerry.api.kinds import GroupVersion
from skerry.api.objects import Object
from skerry.logic.machinery.conditions import is_true
from skerry.logic.machinery.openapi.schemas import closure, referenced

AVAILABLE = "Available"
_HTTPS_PORT = 443
# What concerns one connection only, or is the server's own to say.
_NOT_FORWARDED = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "authorization",
        "host",
        "content-length",
        "expect",
    )
)
_OWN = ("x-remote-", "impersonate-", "x-forwarded-")
# What a header's name may have besides letters and digits.
_TOKEN = "!#$&'*+-.^_`|~"  # noqa: S105 - characters, no secret
_NOT_RETURNED = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "content-type", "date")
)


@dataclass(frozen=True, slots=True)
class AggregatedVersion:
    """A group version that another server serves, and how that is reached."""

    group_version: GroupVersion
    namespace: str
    service: str
    port: int
    # PEM; empty means what the system trusts, None that it cannot be read.
    ca_bundle: bytes | None
    insecure: bool
    is_available: bool
    group_priority: int
    version_priority: int

    @property
    def host(self) -> str:
        """The name that the server's certificate is good for."""
        return f"{self.service}.{self.namespace}.svc"


def aggregated_version(obj: Object) -> AggregatedVersion | None:
    """Return what an APIService says; None of one that this server serves itself."""
    spec = obj.get("spec") or {}
    service = spec.get("service")
    if not service:
        return None
    return AggregatedVersion(
        GroupVersion(spec.get("group") or "", spec.get("version") or ""),
        service.get("namespace") or "",
        service.get("name") or "",
        int(service.get("port") or _HTTPS_PORT),
        _bundle(spec.get("caBundle") or ""),
        bool(spec.get("insecureSkipTLSVerify")),
        is_true(obj, AVAILABLE),
        int(spec.get("groupPriorityMinimum") or 0),
        int(spec.get("versionPriority") or 0),
    )


def _bundle(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


# Headers.


def forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return what of a request's headers another server is shown."""
    listed = {each.strip().lower() for each in headers.get("connection", "").split(",")}
    return {
        name: value
        for name, value in headers.items()
        if name not in _NOT_FORWARDED and name not in listed and not name.startswith(_OWN)
    }


def identity_lines(
    name: str, uid: str, groups: Iterable[str], extra: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the headers by which a front proxy says who asks."""
    lines = [("X-Remote-User", name)]
    if uid:
        lines.append(("X-Remote-Uid", uid))
    lines += [("X-Remote-Group", group) for group in groups]
    for key, values in extra.items():
        escaped = quote(key, safe=_TOKEN)
        lines += [(f"X-Remote-Extra-{escaped}", value) for value in values]
    return lines


def returned(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what of an answer's headers a client is shown."""
    return [(name, value) for name, value in headers.items() if name not in _NOT_RETURNED]


# Documents.


def _ordered(versions: Iterable[AggregatedVersion]) -> dict[str, list[AggregatedVersion]]:
    """Return versions by group, both with the preferred first."""
    groups: dict[str, list[AggregatedVersion]] = {}
    for each in versions:
        groups.setdefault(each.group_version.group, []).append(each)
    for found in groups.values():
        found.sort(key=lambda each: (-each.version_priority, each.group_version.version))
    return dict(
        sorted(groups.items(), key=lambda item: (-max(v.group_priority for v in item[1]), item[0]))
    )


def _group(name: str, versions: Sequence[AggregatedVersion]) -> dict[str, Any]:
    listed = [
        {"groupVersion": str(each.group_version), "version": each.group_version.version}
        for each in versions
    ]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group_document(name: str, versions: Iterable[AggregatedVersion]) -> dict[str, Any] | None:
    """Return the document at ``/apis/<group>``; None where no other server serves the group."""
    found = _ordered(versions).get(name)
    if found is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, found)}


def with_groups(document: dict[str, Any], versions: Iterable[AggregatedVersion]) -> dict[str, Any]:
    """Return the list of groups with those that others serve; what we serve of one comes first."""
    groups = {group["name"]: group for group in document["groups"]}
    for name, found in _ordered(versions).items():
        made = _group(name, found)
        known = groups.get(name)
        if known is not None:
            made = {**known, "versions": [*known["versions"], *made["versions"]]}
        groups[name] = made
    return {**document, "groups": list(groups.values())}


def with_discovery(
    document: dict[str, Any],
    versions: Iterable[AggregatedVersion],
    learned: Mapping[GroupVersion, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return aggregated discovery with what others serve, as far as they have said so.

    *learned* are the lists of resources they gave last; of who does not answer now they are stale.
    """
    items = {item["metadata"].get("name", ""): item for item in document["items"]}
    for name, found in _ordered(versions).items():
        made = [
            {
                "version": each.group_version.version,
                "resources": _resources(learned[each.group_version], each.group_version),
                "freshness": "Current" if each.is_available else "Stale",
            }
            for each in found
            if each.group_version in learned
        ]
        if not made:
            continue
        known = items.get(name) or {"metadata": {"name": name, "creationTimestamp": None}}
        items[name] = {**known, "versions": [*known.get("versions", ()), *made]}
    return {**document, "items": list(items.values())}


def own_part(swagger: Mapping[str, Any], home: GroupVersion) -> dict[str, dict[str, Any]]:
    """Return of another server's ``/openapi/v2`` what is about *home*: paths, and the definitions
    that they lead to. Whatever is not as it should be is left out."""
    paths, definitions = swagger.get("paths"), swagger.get("definitions")
    if not isinstance(paths, dict) or not isinstance(definitions, dict):
        return {"paths": {}, "definitions": {}}
    prefix = f"/apis/{home.group}/{home.version}/"
    own = {path: item for path, item in paths.items() if f"{path}/".startswith(prefix)}
    needed = closure(referenced(own), definitions)
    return {"paths": own, "definitions": {name: definitions[name] for name in needed}}


def with_swagger(
    document: dict[str, Any], parts: Iterable[Mapping[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return our ``/openapi/v2`` with *parts* of other servers; what both describe is ours."""
    merged = {**document}
    for name in ("paths", "definitions"):
        theirs: dict[str, Any] = {}
        for part in parts:
            theirs |= part[name]
        merged[name] = {**theirs, **document[name]}
    return merged


def _resources(listed: Mapping[str, Any], home: GroupVersion) -> list[dict[str, Any]]:
    """Return the resources of an ``APIResourceList`` as aggregated discovery has them."""
    found: dict[str, dict[str, Any]] = {}
    for each in listed.get("resources") or ():
        name, _, below = str(each.get("name", "")).partition("/")
        kind = {
            "group": each.get("group") or home.group,
            "version": each.get("version") or home.version,
            "kind": each.get("kind") or "",
        }
        if below:
            part = {"subresource": below, "responseKind": kind, "verbs": each.get("verbs") or []}
            found.setdefault(name, {"resource": name}).setdefault("subresources", []).append(part)
            continue
        entry = found.setdefault(name, {"resource": name})
        entry |= {
            "responseKind": kind,
            "scope": "Namespaced" if each.get("namespaced") else "Cluster",
            "singularResource": each.get("singularName") or "",
            "verbs": each.get("verbs") or [],
        }
        for key in ("shortNames", "categories"):
            if each.get(key):
                entry[key] = each[key]
    return [found[name] for name in sorted(found)]
