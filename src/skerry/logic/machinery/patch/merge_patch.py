"""JSON Merge Patch (RFC 7386): an object says what to change, ``null`` says what to drop."""

from __future__ import annotations

from typing import Any

from skerry.api.errors import BadRequest
from skerry.api.objects import Object
from skerry.logic.machinery.patch.values import json_kind


def apply_merge_patch(obj: Object, patch: Any) -> Object:
    """Return *obj* changed as *patch* says.

    Lists are replaced whole. A ``null`` inside a new object is dropped too, so that applying a
    patch twice changes nothing more; inside a list it is kept, as the RFC has it (kube-apiserver
    drops it from maps in most new lists; typed decoding makes the two the same). The RFC lets a
    patch that is no object replace the document; an API object cannot become a number, so here
    that is a bad request.
    """
    if not isinstance(patch, dict):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} "
            "into Go value of type map[string]interface {}"
        )
    return _merged(obj, patch)


def _merged(target: Object, patch: Object) -> Object:
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            current = result.get(key)
            result[key] = _merged(current if isinstance(current, dict) else {}, value)
        else:
            result[key] = value
    return result
