"""Questions of the console about decisions: rollouts and their next steps, histories, queries.

Like those of ``console_questions`` they are asked over the hub's own API with the viewer's rights:
what spans workspaces is shown to who may read the edge export's view, and to others workspace by
workspace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from skerry.api.edge import EDGE_PLACEMENTS, ROLLOUTS, STATUS_QUERIES
from skerry.api.errors import BadRequest, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.console_questions import (
    Answering,
    Given,
    Viewer,
    optional_text,
    path_given,
    required_text,
)
from skerry.app.explain_names import Unanswered
from skerry.app.history import history_of
from skerry.app.hub_reading import HubReader
from skerry.app.rollout import Rollouts
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.fleet.history.record import Record
from skerry.logic.fleet.history.text import Selection, cause, why
from skerry.runtime.client import cluster_of
from skerry.server.user import User

# As many as anybody reads; whoever wants more names a workspace.
MAX_LISTED: Final = 500
_EVERYWHERE: Final = "root"

Act = Callable[[Rollouts, str, User], Awaitable[str]]


class ConsoleDecisions:
    """Answers as the viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {
            "rollouts": self.rollouts,
            "rollout": self.rollout,
            "act": self.act,
            "timeline": self.timeline,
            "queries": self.queries,
            "query": self.query,
        }

    async def rollouts(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the Rollouts of a workspace, or of all."""
        return {"rows": [_rollout_row(*each) for each in await self._all(user, given, ROLLOUTS)]}

    async def rollout(self, user: User, given: Given) -> Mapping[str, Any]:
        return {"rollout": await self._one(user, given, ROLLOUTS)}

    async def act(self, user: User, given: Given) -> Mapping[str, Any]:
        """Ask for the next step of a rollout, as ``skerry rollout`` does."""
        verb = required_text(given, "verb")
        act = _ACTS.get(verb)
        if act is None:
            raise BadRequest(f"verb: found {verb[:32]!r}, want one of {', '.join(sorted(_ACTS))}")
        reader = self._viewer.reader(user, path_given(given))
        steered = Rollouts(reader.own, reader.workspace, reader.clock)
        try:
            return {"message": await act(steered, required_text(given, "name"), user)}
        except Unanswered as error:
            raise BadRequest(str(error)) from error

    async def timeline(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return what was decided about a placement between two times, or whom to ask about."""
        about = optional_text(given, "about")
        if not about:
            found = await self._all(user, {}, EDGE_PLACEMENTS)
            names = [{"ws": path, "name": obj["metadata"]["name"]} for path, obj in found]
            return {"lanes": [], "choices": names}
        workspace, _, name = about.rpartition("/")
        reader = self._viewer.reader(user, path_given({"ws": workspace}))
        start, end = _moment(given, "from"), _moment(given, "to")
        try:
            history = await history_of(reader, name)
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        story = history.story(Selection(since=start))
        events = [_event(each) for each in story if end is None or each.time <= end]
        lanes = [{"about": about, "events": events[-MAX_LISTED:]}] if events else []
        return {"lanes": lanes, "to": rfc3339(end or history.now), "problems": history.problems}

    async def queries(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the StatusQueries of a workspace, or of all."""
        return {
            "rows": [_query_row(*each) for each in await self._all(user, given, STATUS_QUERIES)]
        }

    async def query(self, user: User, given: Given) -> Mapping[str, Any]:
        return {"query": await self._one(user, given, STATUS_QUERIES)}

    async def _one(self, user: User, given: Given, gvr: GroupVersionResource) -> Object:
        reader = self._viewer.reader(user, path_given(given))
        return await reader.own.get(gvr, required_text(given, "name"))

    async def _all(
        self, user: User, given: Given, gvr: GroupVersionResource
    ) -> Sequence[tuple[str, Object]]:
        """Return objects of a kind with the paths of their workspaces."""
        if optional_text(given, "ws"):
            reader = self._viewer.reader(user, path_given(given))
            return [(reader.workspace, each) for each in (await reader.own.list(gvr)).items]
        reader = self._viewer.reader(user, _EVERYWHERE)
        found = await _anywhere(reader, gvr)
        paths = await reader.paths({cluster_of(each) for each in found})
        named = [(paths[cluster_of(each)], each) for each in found]
        return sorted(named, key=lambda each: (each[0], each[1]["metadata"]["name"]))


async def _anywhere(reader: HubReader, gvr: GroupVersionResource) -> list[Object]:
    try:
        return (await reader.everywhere(gvr))[:MAX_LISTED]
    except NotFound:
        return []  # a hub without the edge API has none


def _rollout_row(path: str, rollout: Object) -> dict[str, Any]:
    status = rollout.get("status") or {}
    return {
        "ws": path,
        "name": rollout["metadata"]["name"],
        "phase": status.get("phase", ""),
        "wave": (status.get("wave") or {}).get("name", ""),
        "target": status.get("target"),
        "stable": status.get("stable"),
        "counts": status.get("counts") or {},
    }


def _query_row(path: str, query: Object) -> dict[str, Any]:
    status = query.get("status") or {}
    rows = len(status.get("rows") or ()) + int(status.get("rowsOmitted") or 0)
    wrong = [
        f"{each.get('reason')}: {each.get('message')}"
        for each in status.get("conditions") or ()
        if each.get("status") == "False"
    ]
    return {
        "ws": path,
        "name": query["metadata"]["name"],
        "rows": rows,
        "problem": wrong[0] if wrong else "",
    }


def _event(record: Record) -> dict[str, Any]:
    said = why(record.object)
    return {
        "time": rfc3339(record.time),
        "kind": record.change,
        "text": f"{record.count}: {said}" if said else str(record.count),
        "who": cause(record.object),
    }


def _moment(given: Given, name: str) -> datetime | None:
    found = optional_text(given, name)
    if not found:
        return None
    try:
        return parse_rfc3339(found)
    except ValueError as error:
        wanted = f"{name}: found {found[:64]!r}, want a time as in 2026-11-15T03:00:00Z"
        raise BadRequest(wanted) from error


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
