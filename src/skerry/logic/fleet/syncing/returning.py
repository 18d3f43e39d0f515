"""The way back for status: what the edge says of an object, written on the mailbox's.

A JSON patch says exactly what is meant: this whole status, on this very object. Were the mailbox
object replaced meanwhile, the test of its UID fails and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonPatch = list[dict[str, Any]]


def status_patch(mailbox: Mapping[str, Any], live: Mapping[str, Any]) -> JsonPatch | None:
    """Return the patch that makes the mailbox show the edge's status; None when it does."""
    status = live.get("status")
    if not status or mailbox.get("status") == status:
        return None
    return [
        {"op": "test", "path": "/metadata/uid", "value": mailbox["metadata"]["uid"]},
        {"op": "add", "path": "/status", "value": status},
    ]
