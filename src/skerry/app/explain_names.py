"""What the words of a question mean: kinds, objects and Locations by the names people give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.objects import Object
from skerry.runtime.discovery import ServedTypes


class Unanswered(Exception):
    """Why there is no answer, in a sentence."""


def travels(info: ResourceInfo) -> bool:
    """Tell whether objects of a kind can be read and go to edges."""
    readable = {"list", "get"}.issubset(info.verbs)
    return readable and category_of(info.group_resource).to_edge


def kinds_with_status(types: ServedTypes) -> frozenset[GroupResource]:
    """Return the kinds on which edges report."""
    # Only here: most who ask a hub would load the tables that count, and not use them.
    from skerry.logic.fleet.summary.selection import reports_status

    return frozenset(
        info.group_resource
        for info in types.preferred().values()
        if reports_status(info.group_resource, [each.name for each in info.subresources])
    )


def object_named(types: ServedTypes, text: str) -> tuple[list[ResourceInfo], str, str]:
    """Return the kinds, namespace and name that ``kind/namespace/name`` means."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise Unanswered(f"object {text!r}: want kind/namespace/name, or kind/name")
    kind, name = parts[0].lower(), parts[-1]
    namespace = parts[1] if len(parts) == 3 else ""
    kinds = [info for info in types.preferred().values() if kind in _names_of(info)]
    kinds = [info for info in kinds if info.namespaced == bool(namespace)]
    if not kinds:
        scope = "namespaced" if namespace else "cluster-scoped"
        raise Unanswered(f"object {text!r}: there is no {scope} kind {parts[0]!r} here")
    return kinds, namespace, name


def _names_of(info: ResourceInfo) -> set[str]:
    plain = {info.resource, info.kind.lower(), info.singular, *info.short_names}
    return plain | {f"{name}.{info.group}" for name in plain if info.group}


def kind_of(types: ServedTypes, document: Object) -> ResourceInfo:
    """Return the kind of a document, as the workspace serves it."""
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    info = types.for_group_kind(group, str(document.get("kind", "")))
    if info is None:
        raise Unanswered(f"{document_name(document)}: the workspace serves no such kind")
    return info


def document_name(document: Mapping[str, Any]) -> str:
    """Return how a document is named to people."""
    return f"{document.get('kind')} {(document.get('metadata') or {}).get('name')!r}"
