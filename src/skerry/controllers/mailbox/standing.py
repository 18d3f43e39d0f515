"""Passing on how an edge stands: its SyncerConfig's status becomes a part of its SyncTarget's.

Those who own an edge look at its SyncTarget and cannot see into mailboxes. What is held and what is
refused there is passed on at once, and announced. Numbers change with every object: those that one
change comes to are passed on as they come, those of lasting churn now and then.

So conditions and numbers differ in two ways. A condition that changes is written at once, with the
version that was seen, as the list of conditions is replaced whole and others write into it. Numbers
alone are written without one, and wait for their turn (``PassedOn``). What waits is not kept: when
the turn has come, what is reported then is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from skerry.api.edge import HELD, OBJECTS_REFUSED, SYNCER_CONFIG_NAME, mailbox_named
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.controllers.mailbox.events import BY_CONTENT, BY_UID
from skerry.controllers.mailbox.relay import MailboxContent
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.syncing.reported import Reason, Reported, lean_status, reported
from skerry.logic.machinery.conditions import condition, condition_of, set_conditions
from skerry.logic.machinery.plan import Action, Announcement, Patch, Plan, Target
from skerry.runtime.client import cluster_of
from skerry.runtime.execute import Outcome
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer

# Numbers are for a glance at the fleet, and others reconcile every write: so often they are passed
# on for as long as they change, and so many times in a row after a while of quiet, which is what it
# takes until objects are wanted, applied and healthy. Conditions of placements say that at once,
# and people see both on one screen.
_SPACING_SECONDS: Final = 10.0
_IN_A_ROW: Final = 5
_QUIET: Final = {HELD: "NothingHeld", OBJECTS_REFUSED: "NothingRefused"}


def lean_config(obj: Object) -> Object:
    """Return what is worth keeping of a SyncerConfig: what it reports."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "uid", "resourceVersion")}
    cluster = (metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, "")
    kept["annotations"] = {CLUSTER_ANNOTATION: cluster}
    return {"metadata": kept, "status": lean_status(obj)}


def enqueue_on_report(add: Callable[[MailboxContent], None]) -> Handler:
    """Enqueue a mailbox whose SyncerConfig reports something else than before."""

    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or obj["metadata"]["name"] != SYNCER_CONFIG_NAME:
            return
        if old is None or new is None or old["status"] != new["status"]:
            add(MailboxContent(cluster_of(obj)))

    return handle


@dataclass(frozen=True, slots=True)
class Standing:
    """What an edge reports, and what its SyncTarget says so far."""

    sync_target: Object
    reported: Reported
    # Seconds until numbers may be passed on again.
    due: float = 0.0

    @property
    def status(self) -> Mapping[str, Any]:
        """The SyncTarget's."""
        return dict(self.sync_target["status"])


class PassedOn:
    """What was passed on lately, by SyncTarget; an executor records it as it writes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When as many as ever may be passed on in a row again.
        self._rested: dict[Key, float] = {}

    def due(self, sync_target: Key) -> float:
        """Return the seconds until numbers may be passed on again."""
        rested = self._rested.get(sync_target)
        if rested is None:
            return 0.0
        return max(0.0, rested - (_IN_A_ROW - 1) * _SPACING_SECONDS - self._clock.monotonic())

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        """Forget an edge that is gone: it says nothing about one in its place."""
        if new is None and old is not None:
            self._rested.pop(key_of(old), None)

    def begin(self, _: Action) -> None:
        """Nothing was passed on before it was written."""

    def done(self, outcome: Outcome) -> None:
        """Take that something was passed on."""
        action = outcome.action
        if isinstance(action, Patch) and outcome.object is not None:
            key, now = Key(action.target.cluster, "", action.target.name), self._clock.monotonic()
            self._rested[key] = max(self._rested.get(key, now), now) + _SPACING_SECONDS

    def failed(self, _: Action, __: BaseException) -> None:
        """Nothing was passed on, or nobody knows: trying again is right in both cases."""


class StandingObserver:
    """Finds the SyncTarget that a report is of."""

    def __init__(
        self,
        configs: Informer,
        workspaces: Informer,
        sync_targets: Informer,
        due: Callable[[Key], float],
    ) -> None:
        """*due* returns the seconds until numbers may be passed on again to a SyncTarget."""
        self._configs = configs
        self._workspaces = workspaces
        self._sync_targets = sync_targets
        self._due = due

    async def observe(self, content: MailboxContent) -> Standing | None:
        """Return None while there is no report, or no SyncTarget that it is of."""
        config = self._configs.index.get(Key(content.cluster, "", SYNCER_CONFIG_NAME))
        found = None if config is None else reported(config)
        target = self._sync_target(content)
        if found is None or target is None:
            return None
        return Standing(target, found, self._due(key_of(target)))

    def _sync_target(self, content: MailboxContent) -> Object | None:
        for workspace in self._workspaces.index.by(BY_CONTENT, content.cluster):
            for target in self._sync_targets.index.by(
                BY_UID, mailbox_named(workspace["metadata"]["name"])
            ):
                return target
        return None


def decide(observed: Standing, now: datetime) -> Plan:
    """Have a SyncTarget say how its edge stands."""
    found, known = observed.reported, observed.status
    wanted = [_condition(HELD, found.hold), _condition(OBJECTS_REFUSED, found.refusal)]
    conditions = set_conditions(known["conditions"], wanted, rfc3339(now))
    figures = {"objects": found.objects, "syncerVersion": found.version}
    # What is empty was left out.
    news = {k: v for k, v in figures.items() if v != known.get(k) and (v or k in known)}
    patch: Object = {"status": news}
    if conditions == known["conditions"]:
        if news and observed.due:
            return Plan(requeue_after_seconds=observed.due)
    else:
        # Others write conditions too, and a list is replaced as a whole.
        version = observed.sync_target["metadata"]["resourceVersion"]
        patch = {
            "metadata": {"resourceVersion": version},
            "status": {**news, "conditions": conditions},
        }
    if not patch["status"]:
        return Plan()
    target = observed.sync_target
    action = Patch(
        Target(SYNC_TARGETS, target["metadata"]["name"], cluster=cluster_of(target)),
        patch,
        reason="StandingReported",
        subresource="status",
        absent_is_fine=True,
    )
    return Plan([action], list(_announced(target, known["conditions"], wanted)))


def _condition(kind: str, found: Reason | None) -> Object:
    if found is None:
        return condition(kind, False, _QUIET[kind], "")
    return condition(kind, True, found.reason, found.message)


def _announced(target: Object, old: list[Object], new: list[Object]) -> Iterator[Announcement]:
    """Yield an Event for each change of mind; that nothing is held is none at the beginning."""
    version = f"{SYNC_TARGETS.group}/{SYNC_TARGETS.version}"
    about = {**target, "apiVersion": version, "kind": "SyncTarget"}
    for each in new:
        before = condition_of(old, each["type"]) or {"status": "False", "reason": ""}
        if each["status"] == "True" and each["reason"] != before["reason"]:
            yield Announcement(about, "Warning", each["reason"], each["message"])
        elif each["status"] != before["status"]:
            yield Announcement(about, "Normal", each["reason"], "nothing waits for a person")
