"""Questions of the console about decisions: the next steps of rollouts, and histories.

Like those of ``console_questions`` they are asked over the hub's own API with the viewer's rights.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from skerry.api.errors import BadRequest, Conflict
from skerry.app.console_questions import (
    Answering,
    Given,
    Viewer,
    path_given,
    required_text,
)
from skerry.app.explain_names import Unanswered
from skerry.app.history import History, history_of, paths_of
from skerry.app.hub_reading import HubReader
from skerry.app.rollout import Rollouts
from skerry.kit.timestamps import rfc3339, rfc3339_micro
from skerry.logic.fleet.console.past import moment_given
from skerry.logic.fleet.console.view import text
from skerry.logic.fleet.history.record import Record
from skerry.logic.fleet.history.text import Selection, cause, why
from skerry.server.user import User

# As many as anybody reads.
MAX_LISTED: Final = 500
# Destinations that are named to who points at them; the map has them all.
MAX_NAMED: Final = 2_000

Act = Callable[[Rollouts, str, User], Awaitable[str]]


class ConsoleDecisions:
    """Answers as the viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {
            "act": self.act,
            "timeline": self.timeline,
            "then": self.then,
        }

    async def act(self, user: User, given: Given) -> Mapping[str, Any]:
        """Ask for the next step of a rollout, as ``skerry rollout`` does.

        Of the revision and wave that the viewer saw, where they are named: whoever approves has
        looked at those, and at no others.
        """
        verb = required_text(given, "verb")
        act = _ACTS.get(verb)
        if act is None:
            raise BadRequest(f"verb: found {verb[:32]!r}, want one of {', '.join(sorted(_ACTS))}")
        reader = self._viewer.reader(user, path_given(given))
        steered = Rollouts(reader.own, reader.workspace, reader.clock)
        name = required_text(given, "name")
        try:
            check_seen((await steered.get(name)).get("status") or {}, given)
            return {"message": await act(steered, name, user)}
        except Unanswered as error:
            raise BadRequest(str(error)) from error

    async def timeline(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return what was decided about a placement between two times."""
        about, history = (await self._history(user, given))[1:]
        start, end = moment_given(given, "from"), moment_given(given, "to")
        story = history.story(Selection(since=start))
        events = [_event(each) for each in story if end is None or each.time <= end]
        lanes = [{"about": about, "events": events[-MAX_LISTED:]}] if events else []
        return {"lanes": lanes, "to": rfc3339(end or history.now), "problems": history.problems}

    async def then(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return where a placement led at a time, beside where it leads now.

        One byte each, as the map of an edit has it: 0 then and now, 1 only now, 2 only then.
        """
        reader, about, history = await self._history(user, given)
        moment = moment_given(given, "at")
        if moment is None:
            raise BadRequest("at: want a time as in 2026-11-15T03:00:00Z")
        try:
            before, after = history.at(moment).standings, history.at(history.now).standings
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        places = sorted(before.keys() | after.keys())
        paths = await paths_of(reader, *before.values(), *after.values())
        cells = bytes(
            0 if each in before and each in after else 1 if each in after else 2 for each in places
        )
        return {
            "about": about,
            "at": rfc3339_micro(moment),
            "then": len(before),
            "now": len(after),
            "cells": base64.b64encode(cells).decode(),
            "edges": [
                {"ws": text(paths.get(each.cluster, "")), "name": text(each.sync_target)}
                for each in places[:MAX_NAMED]
            ],
        }

    async def _history(self, user: User, given: Given) -> tuple[HubReader, str, History]:
        about = required_text(given, "about")
        workspace, _, name = about.rpartition("/")
        reader = self._viewer.reader(user, path_given({"ws": workspace}))
        try:
            return reader, about, await history_of(reader, name)
        except Unanswered as error:
            raise BadRequest(str(error)) from error


def check_seen(status: Mapping[str, Any], given: Given) -> None:
    """Raise Conflict when a rollout is not any more where *given* says that it was seen."""
    target, wave = status.get("target"), (status.get("wave") or {}).get("name") or ""
    if given.get("target", target) != target or given.get("wave", wave) != wave:
        where = f"revision {target}, wave {text(str(wave)) or '(everybody)'}"
        raise Conflict(f"the rollout has moved since you looked: it is at {where} by now")


def _event(record: Record) -> dict[str, Any]:
    said = why(record.object)
    return {
        "time": rfc3339_micro(record.time),
        "kind": record.change,
        "text": f"{record.count}: {said}" if said else str(record.count),
        "who": cause(record.object),
    }


async def _undo(steered: Rollouts, name: str) -> str:
    stable = ((await steered.get(name)).get("status") or {}).get("stable")
    if stable is None:
        raise Unanswered(f"Rollout {name} has no stable revision to go back to")
    return await steered.undo(name, int(stable), "")


_ACTS: Final[Mapping[str, Act]] = {
    "approve": lambda steered, name, user: steered.approve(name, "", "", user.name),
    "pause": lambda steered, name, _: steered.set_paused(name, paused=True),
    "resume": lambda steered, name, _: steered.set_paused(name, paused=False),
    "abort": lambda steered, name, _: steered.abort(name),
    "promote": lambda steered, name, _: steered.promote(name),
    "undo": lambda steered, name, _: _undo(steered, name),
}
