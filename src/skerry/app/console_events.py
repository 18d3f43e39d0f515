"""Events about an edge, as ``kubectl get events`` lists them where its SyncTarget is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from skerry.api.errors import BadRequest, NotFound
from skerry.api.objects import Object
from skerry.app.console_questions import Answering, Given, Viewer, path_given, required_text
from skerry.logic.fleet.console.view import text
from skerry.runtime.client import Selection
from skerry.runtime.events import EVENTS
from skerry.server.user import User

# As many as anybody reads; the hub keeps them for an hour, and few of each.
MAX_EVENTS: Final = 200
_KINDS: Final = ("SyncTarget", "Location")
# Nothing that a field selector would read as another requirement.
_NAME: Final = re.compile(r"[a-z0-9.-]{1,253}")


class ConsoleEvents:
    """Answers as the viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {"events": self.events}

    async def events(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return what was recorded about an edge and its Location, the newest first."""
        client = self._viewer.client(user).at("", path_given(given))
        name = required_text(given, "name")
        if not _NAME.fullmatch(name):
            raise BadRequest(f"name: found {name[:64]!r}, want the name of a SyncTarget")
        about = Selection(fields=f"involvedObject.name={name}")
        try:
            found = (await client.list(EVENTS, about)).items
        except NotFound:
            # A workspace whose type has no events.
            found = []
        shown = [_event(each) for each in found if _is_about(each)]
        shown.sort(key=lambda each: each["time"], reverse=True)
        return {"events": shown[:MAX_EVENTS]}


def _is_about(event: Object) -> bool:
    return (event.get("involvedObject") or {}).get("kind") in _KINDS


def _event(event: Object) -> dict[str, Any]:
    """Return an Event as a row; whoever may write events wrote its words."""
    times = (event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    count = event.get("count")
    return {
        "time": next((str(each) for each in times if each), ""),
        "kind": text(str(event["involvedObject"]["kind"])),
        "type": text(str(event.get("type", ""))),
        "reason": text(str(event.get("reason", ""))),
        "message": text(str(event.get("message", ""))),
        "count": count if isinstance(count, int) else 1,
    }
