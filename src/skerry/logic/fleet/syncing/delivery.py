"""The marks on a mailbox object that tell how its delivery went.

``edge.kcp.io/applied`` names the content that was applied: its generation, or for kinds that
count none (ConfigMaps, Secrets, RBAC) a digest of it. Whoever wants to know whether the *present*
content arrived asks ``is_delivered``; a change at the hub leaves the mark behind by itself.
``edge.kcp.io/sync-error`` holds reason and message while it could not be applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import APPLIED, SYNC_ERROR
from skerry.kit.text import one_line
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.wanted import Options

_MAX_ERROR_LENGTH = 512
# What may wait for good: somebody has to bring the kind to the edge.
_WAITING = frozenset(("KindUnknown",))


def content_mark(obj: Mapping[str, Any]) -> str:
    """Return the name of what *obj* says now, as a mark would carry it."""
    generation = obj["metadata"].get("generation")
    # Labels and annotations travel too but do not count as a generation.
    metadata = carried(obj)["metadata"]
    if generation:
        return f"{generation}-{digest(metadata)[:8]}"
    return f"0-{digest([carried(obj), str(Options.of(obj))])[:12]}"


def is_delivered(obj: Mapping[str, Any]) -> bool:
    """Tell whether the present content of a mailbox object was applied at its edge."""
    notes = obj["metadata"].get("annotations") or {}
    mark = notes.get(APPLIED, "")
    return bool(mark) and mark == content_mark(obj)


def marked(obj: Mapping[str, Any], outcome: SyncOutcome) -> dict[str, str | None] | None:
    """Return the annotations to change on a mailbox object; None when they are right."""
    notes = obj["metadata"].get("annotations") or {}
    wanted: dict[str, str | None] = {SYNC_ERROR: None}
    if outcome.state == "Applied":
        wanted[APPLIED] = content_mark(obj)
    elif outcome.state in ("Failed", "Held") or outcome.reason in _WAITING:
        wanted[SYNC_ERROR] = one_line(f"{outcome.reason}: {outcome.message}")[:_MAX_ERROR_LENGTH]
    changes = {name: value for name, value in wanted.items() if notes.get(name) != value}
    return changes or None
