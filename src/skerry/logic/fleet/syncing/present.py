"""Table ``present``: the edge's objects, as seen through the fields that are ours.

Whether somebody changed what we applied cannot be found by comparing with what we sent: servers
fill in, order and rewrite (``1000m`` becomes ``1``). It can be found by looking, right after our
apply, at the values the server gave to the fields it says are ours (``managedFields``), and
comparing that with the same look later. Fields of others never enter, so they may change freely.

A row is an object in reduced form: identity, status and one digest, so that a cache of the edge
costs little however large its objects are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from skerry.api.edge import EDGE_FIELD_MANAGER, NOT_ENFORCED
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.carrying import digest

# Key of the digest in the reduced form; no object has a section of that name.
OURS = "skerry:ours"

_KEPT = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")
_ABSENT = "<absent>"


def our_fields(obj: Mapping[str, Any], manager: str = EDGE_FIELD_MANAGER) -> dict[str, Any] | None:
    """Return the fields *manager* applied, in FieldsV1 form; None when it applied none."""
    for entry in obj["metadata"].get("managedFields") or ():
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        if applied and entry.get("manager") == manager:
            fields: dict[str, Any] = entry.get("fieldsV1") or {}
            return fields
    return None


def our_digest(obj: Mapping[str, Any], manager: str = EDGE_FIELD_MANAGER) -> str:
    """Return what tells one state of our fields from another; empty when none are ours."""
    fields = our_fields(obj, manager)
    return "" if fields is None else digest(_seen(obj, fields))


def present(obj: Object) -> Object:
    """Return the row of an edge object: the little that is kept of it."""
    metadata = obj["metadata"]
    kept: Object = {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        OURS: our_digest(obj),
    }
    if obj.get("status"):
        kept["status"] = obj["status"]
    inert = (metadata.get("annotations") or {}).get(NOT_ENFORCED)
    if inert:
        kept["metadata"]["annotations"] = {NOT_ENFORCED: inert}
    return kept


def _seen(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the parts of *value* that *fields* names; all of it where nothing is below."""
    below = {step: node for step, node in fields.items() if step != "."}
    if not below:
        return value if not fields else _outline(value)
    return {step: _step(value, step, node) for step, node in below.items()}


def _outline(value: Any) -> str:
    """Say that a member is there, whatever others put into it."""
    return type(value).__name__


def _step(value: Any, step: str, node: Mapping[str, Any]) -> Any:
    kind, _, rest = step.partition(":")
    found: Any = _ABSENT
    if kind == "f" and isinstance(value, Mapping):
        found = value.get(rest, _ABSENT)
    elif kind in ("k", "v") and isinstance(value, list):
        found = _element(value, kind, orjson.loads(rest))
    elif kind == "i" and isinstance(value, list) and int(rest) < len(value):
        found = value[int(rest)]
    return found if isinstance(found, str) else _seen(found, node)


def _element(items: list[Any], kind: str, wanted: Any) -> Any:
    for item in items:
        if kind == "v" and item == wanted:
            return item
        if kind == "k" and isinstance(item, Mapping) and _has_keys(item, wanted):
            return item
    return _ABSENT


def _has_keys(item: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(item.get(name) == value for name, value in wanted.items())
