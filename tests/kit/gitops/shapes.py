"""What of an answer a tool depends on: how it ended, what it is, and which members it has.

Names, times, versions and counts are a server's own. That a list has a ``resourceVersion`` to watch
from, that an object has a UID, that a refusal says which field is wrong: that is the shape.
"""

from __future__ import annotations

from typing import Any

from tests.kit.gitops.asking import Answer

Shape = dict[str, Any]

# Members that a tool reads where they are.
_METADATA = ("creationTimestamp", "generation", "name", "namespace", "resourceVersion", "uid")


def shape(answer: Answer) -> Shape:
    """Return the shape of an answer."""
    found: Shape = {
        "status": answer.status,
        "contentType": answer.content_type.partition(";")[0],
    }
    body = answer.body
    if isinstance(body, dict):
        found |= _of_object(body)
    return found


def _of_object(body: dict[str, Any]) -> Shape:
    kind = body.get("kind", "")
    found: Shape = {"kind": kind, "apiVersion": body.get("apiVersion", "")}
    metadata = body.get("metadata") or {}
    if kind == "Status":
        details = body.get("details") or {}
        return found | {
            "reason": body.get("reason", ""),
            "code": body.get("code"),
            "details": sorted(details),
            "causes": sorted({each.get("field", "") for each in details.get("causes") or ()}),
        }
    if "items" in body:
        return found | {"list": sorted(name for name in metadata if metadata[name])}
    skipped = ("apiVersion", "kind", "metadata")
    stored = "uid" in metadata
    found["members"] = sorted(
        name for name in body if name not in skipped and (body[name] or not stored)
    )
    found["metadata"] = [name for name in _METADATA if metadata.get(name)]
    if stored:
        # Who has which fields of what is stored; what the server does to status is its own affair.
        found["managers"] = [
            f"{each['manager']} {each['operation']}"
            for each in metadata.get("managedFields") or ()
            if not each.get("subresource")
        ]
    return found
