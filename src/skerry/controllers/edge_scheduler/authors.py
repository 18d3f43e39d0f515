"""Who changed an object, as far as somebody vouches for it.

Our hub writes ``edge.kcp.io/changed-by`` itself and overwrites what clients say there. Another hub
keeps whatever a client has written, so there it counts for nothing, and the field manager is taken
in its place. That was said by a client, too, and is shown as what nobody vouches for.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from skerry.api.edge import CHANGED_BY
from skerry.api.objects import Object
from skerry.logic.fleet.revision.causes import last_manager

# Of these so little is kept that the author is read when they are (``unverified``).
_TRANSFORMED = ("Location", "SyncTarget")


def author_of(kind: str, obj: Object, *, verified: bool) -> str:
    """Return the author in the form of the annotation; *verified*: the hub vouches for that."""
    if verified or kind in _TRANSFORMED:
        return str((obj["metadata"].get("annotations") or {}).get(CHANGED_BY, ""))
    return _manager_of(obj)


def unverified(lean: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """Return *lean* for a hub that vouches for no author."""

    def transform(obj: Object) -> Object:
        found = lean(obj)
        found["metadata"]["annotations"][CHANGED_BY] = _manager_of(obj)
        return found

    return transform


def _manager_of(obj: Object) -> str:
    manager = last_manager(obj)
    return orjson.dumps({"manager": manager}).decode() if manager else ""
