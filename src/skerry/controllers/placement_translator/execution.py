"""Writing to mailboxes: phase by phase, and one bad object never blocks the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.api.edge import Mailbox
from skerry.api.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.decide import phases, target_of
from skerry.controllers.placement_translator.keys import NAME
from skerry.controllers.placement_translator.mailboxes import Mailboxes
from skerry.controllers.placement_translator.marks import CONFIG, Marks
from skerry.controllers.placement_translator.observe import Accepted
from skerry.controllers.placement_translator.problems import Problems
from skerry.kit.log import Logger
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.merging import Told
from skerry.logic.machinery.plan import Action, Create, Delete, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

REFUSED = "Refused"
# What a server gives as its cause when it takes nothing into a namespace that is going away.
_TERMINATING = "NamespaceTerminating"
# Writes in flight for one mailbox; many mailboxes are written to at once.
_SIDE_BY_SIDE = 8

_WORDS = {Create: "Created", Update: "Updated", Delete: "Deleted"}
_log = Logger(NAME)


class MailboxExecutor(Executor):
    """Carries out the plan for one mailbox and settles what went well."""

    def __init__(
        self,
        client: Client,
        marks: Marks,
        mailboxes: Mailboxes,
        problems: Problems,
        accepted: Accepted,
        placements: Callable[[Mailbox, ObjectRef], list[ObjectRef]],
        serves: Callable[[str, GroupResource], bool],
        *,
        metrics: RuntimeMetrics | None = None,
        dry_run: bool = False,
    ) -> None:
        """*serves* tells whether a cluster is known to serve a type."""
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run)
        self._marks = marks
        self._mailboxes = mailboxes
        self._problems = problems
        self._accepted = accepted
        self._placements = placements
        self._serves = serves

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out *plan*; all of it is tried, then the first failure is raised."""
        outcomes: list[Outcome] = []
        failures: list[ApiError | TransportError] = []
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def guarded(action: Action) -> None:
            async with room:
                try:
                    done = await super(MailboxExecutor, self).execute(Plan([action]))
                except (ApiError, TransportError) as error:
                    if not self._comes_too_early(action, error):
                        failures.append(error)
                        self._failed(action, error)
                else:
                    outcomes.extend(done)
                    self._succeeded(done[0])

        for actions in phases(plan):
            if len(actions) == 1:
                await guarded(actions[0])
                continue
            async with asyncio.TaskGroup() as tasks:
                for action in actions:
                    tasks.create_task(guarded(action))
        if failures:
            raise failures[0]
        return outcomes

    def _succeeded(self, outcome: Outcome) -> None:
        target = target_of(outcome.action)
        mailbox, item = self._mailboxes.name(target.cluster), _item(target)
        if mailbox is None:
            return
        self._marks.settle(mailbox, item)
        self._problems.refused(mailbox, item, ())
        self._remember(mailbox, item, outcome)
        word = _WORDS.get(type(outcome.action), "")
        if outcome.result not in ("created", "updated", "deleted"):
            return
        if item == CONFIG:
            _log.info(f"{word} SyncerConfig", v=2, mbwsName=mailbox.workspace, name=item.name)
        else:
            _log.info(
                f"{word} object in mailbox workspace",
                v=3,
                mbwsName=mailbox.workspace,
                group=item.group,
                resource=item.resource,
                namespace=item.namespace,
                name=item.name,
            )

    def _remember(self, mailbox: Mailbox, item: ObjectRef, outcome: Outcome) -> None:
        """Note what the server made of a copy, if it did not keep it as it was sent."""
        key = (mailbox, item)
        self._accepted.pop(key, None)
        action, answer = outcome.action, outcome.object
        if item == CONFIG or answer is None or not isinstance(action, Create | Update):
            return
        sent, kept = digest(item.group_resource, action.object), digest(item.group_resource, answer)
        if sent != kept:
            self._accepted[key] = (sent, kept)

    def _comes_too_early(self, action: Action, error: ApiError | TransportError) -> bool:
        """Put an object aside whose type the mailbox is not known to serve yet.

        A binding made a moment ago may take a while to have effect, or to be gone before it is
        made anew; that it has effect is an event.
        """
        target = target_of(action)
        mailbox = self._mailboxes.name(target.cluster)
        too_early = isinstance(error, NotFound | MethodNotAllowed)
        if mailbox is None or not too_early or isinstance(action, Delete):
            return False
        if self._serves(target.cluster, target.gvr.group_resource):
            return False
        self._marks.put_aside(mailbox, _item(target))
        return True

    def _failed(self, action: Action, error: ApiError | TransportError) -> None:
        """Tell the placements what the mailbox has against an object.

        A type or namespace that is not there yet will be, and one that is going away will have
        gone; a lost race is tried again; no answer is no refusal.
        """
        if isinstance(error, TransportError) or _is_passing(error):
            return
        target = target_of(action)
        mailbox, item = self._mailboxes.name(target.cluster), _item(target)
        if mailbox is None:
            return
        problem = Problem(REFUSED, f"{item} was refused: {error.message}")
        names = self._placements(mailbox, item)
        self._problems.refused(mailbox, item, (Told(name, problem) for name in names))


def _is_passing(error: ApiError) -> bool:
    """Tell whether an error says something about the moment and nothing about the object."""
    if isinstance(error, NotFound | Conflict | MethodNotAllowed) or error.code >= 500:
        return True
    causes = error.details.get("causes") or ()
    return any(each.get("reason") == _TERMINATING for each in causes)


def _item(target: Target) -> ObjectRef:
    return ObjectRef("", target.gvr.group, target.gvr.resource, target.namespace, target.name)
