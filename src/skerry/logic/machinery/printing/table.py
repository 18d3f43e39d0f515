"""Objects as a ``meta.k8s.io`` Table, or as their metadata alone.

What a Table's rows carry of the object is the client's choice (``includeObject``): nothing,
the metadata (the default, enough for kubectl's label columns and sorting) or everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from skerry.api.errors import BadRequest
from skerry.api.objects import Object
from skerry.logic.machinery.printing.pods import pod_row_conditions
from skerry.logic.machinery.resource import Column


def render_table(
    columns: Sequence[Column],
    objects: Iterable[Object],
    now: datetime,
    include_object: str = "Metadata",
    metadata: Mapping[str, Any] | None = None,
    *,
    headers: bool = True,
    version: str = "v1",
) -> dict[str, Any]:
    """Return the Table of *objects*.

    *metadata* is that of the list (resourceVersion, continue, remainingItemCount), or the single
    object's resourceVersion. In a watch only the first Table has *headers*.
    """
    if include_object not in ("", "None", "Metadata", "Object"):
        raise BadRequest(f'unrecognized includeObject value: "{include_object}"')
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata or {}),
        "columnDefinitions": column_definitions(columns) if headers else None,
        "rows": [_row(columns, obj, now, include_object, version) for obj in objects],
    }


def column_definitions(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the head of a Table."""
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]


def _row(
    columns: Sequence[Column], obj: Object, now: datetime, include_object: str, version: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if obj.get("kind") == "Pod" and obj.get("apiVersion") == "v1":
        conditions = pod_row_conditions(obj)
        if conditions:
            row["conditions"] = conditions
    row["object"] = _included(obj, include_object, version)
    return row


def _included(obj: Object, include_object: str, version: str) -> Object | None:
    if include_object == "None":
        return None
    return obj if include_object == "Object" else partial_metadata(obj, version)


def partial_metadata(obj: Object, version: str = "v1") -> Object:
    """Return *obj* as PartialObjectMetadata; its metadata is shared, not copied."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj.get("metadata") or {},
    }


def partial_metadata_list(
    objects: Iterable[Object], metadata: Mapping[str, Any] | None = None, version: str = "v1"
) -> Object:
    """Return the metadata of *objects* as a PartialObjectMetadataList."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata or {}),
        "items": [partial_metadata(obj, version) for obj in objects],
    }
