"""What the console shows of Rollouts and StatusQueries: rows of lists, and one of them in full.

A Rollout's waves are cumulative: a wave holds whom those before it held. Its status remembers the
one that is open; those before have passed and those after it have yet to open, and who will be in
those is decided then.

    waves 1 canary, 2 half, 3 everybody; the status says: wave 2, members {0, 1, 2, 3}
    canary passed, half open (size 4; good, bad, waiting), everybody ahead

Whatever is shown here was written into objects by people or by other hubs. So texts are cut to one
line, and conditions, rows and columns are counted off: an object of a megabyte costs a tab no more
than any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.logic.fleet.console.view import text
from skerry.logic.fleet.overview.rows import row_key
from skerry.logic.fleet.rollout.spec import Portion, read_spec
from skerry.logic.fleet.rollout.state import state_of, verdicts_of
from skerry.logic.fleet.rollout.view import UNDER_WAY

# No object of ours has half as many conditions; a page shows no more rows and columns than these.
_MAX_CONDITIONS: Final = 32
_MAX_ROWS: Final = 500
_MAX_COLUMNS: Final = 32

Key = tuple[ClusterName, str]


class ObjectRows:
    """Rows of all objects of a kind; ``version`` counts changes of any of them.

    ``changed`` has the version at which each object changed last. A view of one object compares
    that, so it is not made again when another object changes; without an entry the object is gone.
    Rows are made when an object arrives and not when somebody looks: a list shows many, often.
    """

    def __init__(self, describe: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        self._describe = describe
        self.version = 0
        self.rows: dict[Key, dict[str, Any]] = {}
        self.changed: dict[Key, int] = {}

    def put(self, obj: Mapping[str, Any]) -> None:
        """Take an object, new or changed."""
        key = row_key(obj)
        self.version += 1
        self.rows[key] = self._describe(obj)
        self.changed[key] = self.version

    def remove(self, obj: Mapping[str, Any]) -> None:
        """Take that an object is gone."""
        key = row_key(obj)
        self.version += 1
        self.rows.pop(key, None)
        self.changed.pop(key, None)


def condition(given: Mapping[str, Any]) -> dict[str, str]:
    """Return a condition as pages show it."""
    shown = ("type", "status", "reason", "message", "lastTransitionTime")
    return {key: text(str(given[key])) for key in shown if given.get(key)}


def _conditions(status: Mapping[str, Any]) -> list[dict[str, str]]:
    return [condition(each) for each in (status.get("conditions") or ())[:_MAX_CONDITIONS]]


def rollout_row(rollout: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Rollout as a list shows it."""
    status = rollout.get("status") or {}
    return {
        "phase": text(str(status.get("phase", ""))),
        "wave": text(str((status.get("wave") or {}).get("name", ""))),
        "target": status.get("target"),
        "stable": status.get("stable"),
        "counts": status.get("counts") or {},
    }


def rollout_shown(rollout: Object) -> dict[str, Any]:
    """Return a Rollout in full."""
    status = rollout.get("status") or {}
    failure = status.get("failure")
    parts = ("revision", "reason", "message")
    return {
        **rollout_row(rollout),
        "paused": bool((rollout.get("spec") or {}).get("paused")),
        "failure": {each: text(str(failure.get(each, ""))) for each in parts} if failure else None,
        "conditions": _conditions(status),
        "waves": waves_of(rollout),
    }


def waves_of(rollout: Object) -> list[dict[str, Any]]:
    """Return the waves of a Rollout in order, with how the open one fares.

    Waves are numbered from 1, so without a rollout under way no wave is open and none is passed,
    unless the last rollout was completed: then all are. Only verdicts about the present attempt
    count; those of an earlier one would show a wave as judged that has just begun.
    """
    spec, status = read_spec(rollout.get("spec") or {}), rollout.get("status") or {}
    state = state_of(status)
    verdicts = verdicts_of(status, state.attempt)
    open_now = state.wave if state.phase in UNDER_WAY else 0
    found = []
    for number in range(1, spec.last + 1):
        wave = spec.wave(number)
        shown: dict[str, Any] = {
            "name": text(wave.name),
            "until": _portion(wave.until),
            "soakSeconds": wave.soak,
            "approval": wave.approval,
            "state": "ahead",
        }
        if state.phase == "Completed" or number < open_now:
            shown["state"] = "passed"
        elif number == open_now:
            members = state.members
            good, bad = verdicts.good & members, verdicts.bad & members
            shown |= {
                "state": "open",
                "size": len(members),
                "good": len(good),
                "bad": len(bad),
                "waiting": len(members - good - bad),
            }
        found.append(shown)
    return found


def _portion(portion: Portion | None) -> str:
    """Return how far a wave goes; only the last one has no bound."""
    if portion is None:
        return "everybody"
    return f"{portion.number}%" if portion.percent else str(portion.number)


def query_row(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a StatusQuery as a list shows it.

    Its problem is the first condition that is False. ``rows`` counts the rows that are not shown
    too, so a cut answer does not look like a small one.
    """
    status = query.get("status") or {}
    wrong = [
        f"{each.get('reason')}: {each.get('message')}"
        for each in status.get("conditions") or ()
        if each.get("status") == "False"
    ]
    return {
        "rows": len(status.get("rows") or ()) + int(status.get("rowsOmitted") or 0),
        "problem": text(wrong[0]) if wrong else "",
    }


def query_shown(query: Object) -> dict[str, Any]:
    """Return a StatusQuery and its answer.

    Rows beyond what is shown here are added to those that the answer itself left out.
    """
    spec, status = query.get("spec") or {}, query.get("status") or {}
    rows = status.get("rows") or ()
    omitted = int(status.get("rowsOmitted") or 0) + max(0, len(rows) - _MAX_ROWS)
    return {
        "asked": {text(key): _value(value) for key, value in spec.items()},
        "columns": [
            {"name": text(str(each.get("name", ""))), "approximate": bool(each.get("approximate"))}
            for each in (status.get("columns") or ())[:_MAX_COLUMNS]
        ],
        "rows": [
            [_value(value) for value in (each.get("values") or ())[:_MAX_COLUMNS]]
            for each in rows[:_MAX_ROWS]
        ],
        "omitted": omitted,
        "stale": int((status.get("sources") or {}).get("stale") or 0),
        "conditions": _conditions(status),
    }


def _value(value: object) -> object:
    """Return a value as it may be shown: numbers as they are, the rest as bounded text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return text(value if isinstance(value, str) else str(value))
