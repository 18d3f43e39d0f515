"""The media types of patches."""

from __future__ import annotations

from skerry.api.errors import UnsupportedMediaType
from skerry.server.request.call import Call

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def unsupported(call: Call) -> UnsupportedMediaType:
    """Say which patches *call*'s type takes."""
    types = [JSON_PATCH, MERGE_PATCH, APPLY]
    if not call.resource.custom:
        types.insert(2, STRATEGIC)
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(types)
    )
