"""What a watcher with a selection sees of a change: entering and leaving its selection too."""

from __future__ import annotations

from skerry.server.change import Change, EventType
from skerry.server.request.selection import Selection


def watch_event_type(selection: Selection, change: Change) -> EventType | None:
    """Return what happened in the eyes of the watcher; None when nothing did."""
    if selection.everything:
        return change.type()
    event = change.event
    if selection.rules_out(event.key):
        return None
    now = event.value is not None and selection.matches(
        event.value, event.revision, change.current, key=event.key, whole=change.object
    )
    before = event.previous is not None and selection.matches(
        event.previous,
        event.previous_revision,
        change.previous,
        key=event.key,
        whole=change.previous_object,
    )
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None
