"""Carry out plans: the one place where a controller's decisions become requests.

Idempotent by construction: an object to be created that exists, one to be deleted that is gone,
are outcomes, not errors. A Conflict is retried only where the plan says that it is safe; else it
is raised, the key is looked at again and a new decision is made on newer facts.

In dry-run mode every request carries ``dryRun=All``: the outcomes tell what would happen, with
the server's own admission and validation having had their say. Entries of a journal are not
written then, nor are events.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from prometheus_client import Counter

from skerry.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from skerry.api.objects import Object
from skerry.kit.invariant import present
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import (
    Action,
    Announcement,
    Apply,
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Plan,
    Record,
    Update,
    target_text,
)
from skerry.runtime.atomic import Part
from skerry.runtime.client import Client, DeleteOptions, Selection, WriteOptions
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

# Five, as client-go's DefaultRetry: whoever still loses then should look again.
_CONFLICT_ATTEMPTS = 5
# Unordered actions in flight at once, so that one plan cannot take all of a pool.
_SIDE_BY_SIDE = 16

Result = Literal[
    "created",
    "exists",
    "updated",
    "unchanged",
    "patched",
    "applied",
    "deleted",
    "gone",
    "kept",
    "recorded",
    "refused",
]
# What a server answers to what it will never take.
_REFUSALS = (400, 403, 413, 422)
# Nothing changed that anybody would look for.
_EXPECTED = ("exists", "unchanged", "gone", "recorded")

Announce = Callable[[Announcement], None]
Intercept = Callable[[Action], Awaitable[None]]


class Journal(Protocol):
    """Where a controller that has a disk of its own keeps what it must not forget."""

    def put(self, key: str, value: object) -> None:
        """Remember *value*, durably after the next ``flush``; None forgets the key."""

    async def flush(self) -> None:
        """Return when everything put so far is on disk, or cannot be."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one action; ``object`` is the server's answer where there was one."""

    action: Action
    result: Result
    object: Object | None = None


class WriteRecorder(Protocol):
    """Learns of every write and of what came of it (``write_overlay``)."""

    def begin(self, action: Action) -> None:
        """Learn that *action* is about to be sent."""

    def done(self, outcome: Outcome) -> None:
        """Learn what came of it."""

    def failed(self, action: Action, error: BaseException) -> None:
        """Learn that it failed, or that nobody waited for its answer."""


class Executor:
    """Carries out the plans of one controller."""

    def __init__(
        self,
        client: Client,
        controller: str,
        *,
        metrics: RuntimeMetrics | None = None,
        dry_run: bool = False,
        announce: Announce | None = None,
        intercept: Intercept | None = None,
        overlay: WriteRecorder | None = None,
        journal: Journal | None = None,
    ) -> None:
        """*intercept* is awaited before each action; what it raises counts as the failure.

        *overlay* learns of every write; of none in dry-run mode, where nothing is written.
        """
        self._client = client
        self._controller = controller
        self._options = WriteOptions(field_manager=controller, dry_run=dry_run)
        self._counted = (metrics or RuntimeMetrics()).actions
        # By verb and result: to find a counter by its labels costs more than to count.
        self._counts: dict[tuple[str, str], Counter] = {}
        self._announce = announce
        self._intercept = intercept
        self._overlay = None if dry_run else overlay
        self._journal = journal
        self._log = Logger(controller)

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out *plan*; raises what its first failing action met.

        Actions before a failure have happened. Of unordered ones all are tried.
        """
        if not plan.actions and not plan.announcements:
            return []  # most looks end so
        if plan.unordered and len(plan) > 1:
            outcomes = await self._side_by_side(plan)
        else:
            outcomes = [await self._one(action) for action in plan]
        if self._announce is not None and not self._options.dry_run:
            for announcement in plan.announcements:
                self._announce(announcement)
        return outcomes

    async def _side_by_side(self, plan: Plan) -> list[Outcome]:
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def guarded(action: Action) -> Outcome | ApiError | TransportError:
            async with room:
                try:
                    return await self._one(action)
                except (ApiError, TransportError) as error:
                    return error

        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(guarded(action)) for action in plan]
        results = [task.result() for task in started]
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [result for result in results if isinstance(result, Outcome)]

    async def _one(self, action: Action) -> Outcome:
        verb = type(action).__name__.lower()
        try:
            if self._intercept is not None:
                await self._intercept(action)
            outcome = await self._recorded(action)
        except (ApiError, TransportError):
            self._count(verb, "failed")
            raise
        self._count_outcome(outcome)
        return outcome

    def _count_outcome(self, outcome: Outcome) -> None:
        """Count an outcome, and log it."""
        action = outcome.action
        verb = type(action).__name__.lower()
        self._count(verb, outcome.result)
        verbosity = 4 if outcome.result in _EXPECTED or _is_quiet(action) else 2
        if self._log.enabled(verbosity):
            self._log.info(
                verb,
                v=verbosity,
                key=target_text(action),
                reason=action.reason,
                result=outcome.result,
            )

    # -- as one of several that are written together (``runtime.together``) ------------------

    def begin(self, action: Create | Update, *, quiet: bool) -> Part:
        """Return an action as a request that is about to be sent with others."""
        target, options = action.target, self._options
        client = self._client.for_cluster(target.cluster)
        is_new = isinstance(action, Create)
        name = "" if is_new else target.name
        path = client.path(target.gvr, target.namespace, name, action.subresource)
        if self._overlay is not None:
            self._overlay.begin(action)
        method = "POST" if is_new else "PUT"
        return Part(method, path, options.parameters(), action.object, options.accept, quiet)

    def done(self, action: Create | Update, answer: Object | None) -> Outcome:
        """Take that an action that was begun is carried out."""
        result: Result = "created" if isinstance(action, Create) else "updated"
        if isinstance(action, Update) and answer and _version(answer) == _version(action.object):
            result = "unchanged"
        outcome = Outcome(action, result, answer)
        if self._overlay is not None:
            self._overlay.done(outcome)
        self._count_outcome(outcome)
        return outcome

    def fail(self, action: Create | Update, error: BaseException) -> None:
        """Take that an action that was begun is not carried out, or that nobody knows."""
        if self._overlay is not None:
            self._overlay.failed(action, error)
        self._count(type(action).__name__.lower(), "failed")

    async def _recorded(self, action: Action) -> Outcome:
        if self._overlay is None:
            return await self._perform(action)
        self._overlay.begin(action)
        try:
            outcome = await self._perform(action)
        except (ApiError, TransportError, asyncio.CancelledError) as error:
            self._overlay.failed(action, error)
            raise
        self._overlay.done(outcome)
        return outcome

    def _count(self, verb: str, result: str) -> None:
        counter = self._counts.get((verb, result))
        if counter is None:
            counter = self._counts[verb, result] = self._counted.labels(
                self._controller, verb, result
            )
        counter.inc()

    async def _perform(self, action: Action) -> Outcome:
        match action:
            case Create():
                return await self._create(action)
            case Update():
                return await self._update(action)
            case Patch():
                return await self._patch(action)
            case Apply():
                return await self._apply(action)
            case Delete():
                return await self._delete(action)
            case DeleteCollection():
                return await self._delete_collection(action)
            case Record():
                return await self._write_entries(action)

    async def _create(self, action: Create) -> Outcome:
        target = action.target
        client = self._client.for_cluster(target.cluster)
        try:
            created = await client.create(
                target.gvr,
                action.object,
                target.namespace,
                name=target.name if action.subresource else "",
                subresource=action.subresource,
                options=self._options,
            )
        except AlreadyExists:
            if action.exclusive:
                raise
            return Outcome(action, "exists")
        except ApiError as error:
            if not action.refusal_is_fine or error.code not in _REFUSALS:
                raise
            return Outcome(action, "refused")
        return Outcome(action, "created", created)

    async def _update(self, action: Update) -> Outcome:
        client = self._client.for_cluster(action.target.cluster)
        wanted = action.object
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                answer = await client.update(
                    action.target.gvr, wanted, subresource=action.subresource, options=self._options
                )
            except Conflict:
                if not action.overwrite or attempt + 1 == _CONFLICT_ATTEMPTS:
                    raise
                wanted = await self._rebased(client, action)
                continue
            except ApiError as error:
                if not action.refusal_is_fine or error.code not in _REFUSALS:
                    raise
                return Outcome(action, "refused")
            same = _version(answer) == _version(wanted)
            return Outcome(action, "unchanged" if same else "updated", answer)
        raise AssertionError("unreachable")  # pragma: no cover

    async def _rebased(self, client: Client, action: Update) -> Object:
        """Return the wanted object on top of the newest version of the same object."""
        target = action.target
        live = await client.get(target.gvr, target.name, target.namespace)
        wanted = copy.deepcopy(action.object)
        if wanted["metadata"].get("uid") not in (None, live["metadata"]["uid"]):
            raise Conflict.of(
                target.gvr.group, target.gvr.resource, target.name, "it is another object now"
            )
        wanted["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        return wanted

    async def _patch(self, action: Patch) -> Outcome:
        target = action.target
        client = self._client.for_cluster(target.cluster)
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                answer = await client.patch(
                    target.gvr,
                    target.name,
                    action.patch,
                    target.namespace,
                    kind=action.kind,
                    subresource=action.subresource,
                    quiet=action.quiet,
                    options=self._options,
                )
            except NotFound:
                if action.absent_is_fine:
                    return Outcome(action, "gone")
                raise
            except Conflict:
                if not action.retry_on_conflict or attempt + 1 == _CONFLICT_ATTEMPTS:
                    raise
                continue
            return Outcome(action, "patched", answer)
        raise AssertionError("unreachable")  # pragma: no cover

    async def _apply(self, action: Apply) -> Outcome:
        target = action.target
        answer = await self._client.for_cluster(target.cluster).patch(
            target.gvr,
            target.name,
            action.object,
            target.namespace,
            kind="apply",
            subresource=action.subresource,
            force=action.force,
            options=self._options,
        )
        return Outcome(action, "applied", answer)

    async def _delete(self, action: Delete) -> Outcome:
        target = action.target
        options = DeleteOptions(
            uid=action.uid,
            resource_version=action.resource_version,
            propagation=action.propagation,
            grace_seconds=action.grace_seconds,
            dry_run=self._options.dry_run,
        )
        client = self._client.for_cluster(target.cluster)
        try:
            answer = await client.delete(target.gvr, target.name, target.namespace, options)
        except NotFound:
            return Outcome(action, "gone")
        except Conflict:
            if action.uid or action.resource_version:
                return Outcome(action, "kept")
            raise
        return Outcome(action, "deleted", answer)

    async def _delete_collection(self, action: DeleteCollection) -> Outcome:
        answer = await self._client.for_cluster(action.cluster).delete_collection(
            action.gvr,
            Selection(namespace=action.namespace, labels=action.label_selector),
            DeleteOptions(propagation=action.propagation, dry_run=self._options.dry_run),
        )
        return Outcome(action, "deleted", answer)

    async def _write_entries(self, action: Record) -> Outcome:
        journal = present(self._journal, f"{self._controller} has no journal to record in")
        if not self._options.dry_run:
            for key, value in action.entries.items():
                journal.put(key, value)
            await journal.flush()
        return Outcome(action, "recorded")


def _is_quiet(action: Action) -> bool:
    return isinstance(action, Patch | Apply) and action.quiet


def _version(obj: Object) -> object:
    return obj.get("metadata", {}).get("resourceVersion")
