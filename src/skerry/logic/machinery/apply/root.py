"""The schema of a whole object where its author wrote only the interesting part.

The schema of a custom resource need not mention ``apiVersion``, ``kind`` and ``metadata``, and may
not say much about them; yet finalizers are a set, and owners known by uid, in every kind there is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from skerry.api.schema import Schema

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Final = {"type": "integer"}
_FLAG: Final = {"type": "boolean"}
_OWNER: Final = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _FLAG),
    },
}
_METADATA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid"), _TEXT),
        **dict.fromkeys(("resourceVersion", "creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "managedFields": {"type": "array", "items": {"type": "object"}},
    },
}


def rooted(schema: Schema | None) -> Schema | None:
    """Return *schema* with what every object has declared in it; built-in kinds have it already."""
    if schema is None or schema.name.startswith("io.k8s."):
        return schema
    return _rooted(schema)


# By identity: a schema is compiled once and kept as long as its kind is served.
@lru_cache(maxsize=1024)
def _rooted(schema: Schema) -> Schema:
    metadata = schema.field("metadata")
    if metadata is not None and "finalizers" in metadata.property_names:
        return schema
    properties = {
        **schema.property_names,
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _METADATA,
    }
    raw = {**schema.raw, "type": "object", "properties": properties}
    if not schema.property_names:
        # Declaring three fields must not close an object that was open.
        raw["x-kubernetes-preserve-unknown-fields"] = True
    return Schema(raw, schema.definitions, schema.name)
