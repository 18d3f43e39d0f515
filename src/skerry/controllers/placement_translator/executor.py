"""Writing to mailboxes: phase by phase, and one bad object never blocks the others.

A plan is for all dirty rows of a mailbox. Each row is done by itself, when its actions went well,
and a later try evaluates only those that are left:

    what came of a write              its row                      its placements
    written, or it was so already     done                         a refusal of before is dropped
    refused for what it is (422, ..)  stays dirty: back-off        problem ``Refused``
    its kind is not served there yet  parked until it is           nothing
    lost a race, or the hub failed    stays dirty: back-off        nothing
    no answer                         stays dirty: back-off        nothing

The back-off is the mailbox's, not the row's. A change of any of its rows, which enqueues the
mailbox, therefore tries a refused one again too; that costs a request and may well be what mends
it.

Phases run one after the other, whatever failed in the one before: most objects need nothing of what
failed. Those that do are refused by the hub, for want of the namespace or the type, which passes
and is reported to no placement.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from skerry.api.edge import SYNCER_CONFIG_NAME, SYNCER_CONFIGS, TYPES_CHANGED, Mailbox
from skerry.api.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.decide import MailboxPlan, phases, target_of
from skerry.controllers.placement_translator.events import NAME
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.controllers.placement_translator.status import PlacementProblems
from skerry.kit.log import Logger
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.revision.noted import noted
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.difference import Accepted
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.merging import PlacementProblem
from skerry.logic.fleet.translation.workspaces import Scope, serving_scope
from skerry.logic.machinery.plan import Action, Create, Delete, Patch, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

REFUSED = "Refused"
# What a server gives as its cause when it takes nothing into a namespace that is being deleted.
_TERMINATING = "NamespaceTerminating"
# Writes in flight for one mailbox; many mailboxes are written to at once, and share the hub.
_SIDE_BY_SIDE = 8

_WORDS = {Create: "Created", Update: "Updated", Delete: "Deleted"}
_log = Logger(NAME)

Senders = Callable[[Mailbox, ObjectRef], list[ObjectRef]]


class MailboxExecutor(Executor):
    """Carries out the plan for one mailbox, and takes its rows off the list that are done."""

    def __init__(
        self,
        client: Client,
        tables: TranslatorTables,
        problems: PlacementProblems,
        held: HeldObjects,
        accepted: Accepted,
        senders: Senders,
        follow: Callable[[Scope], None],
        *,
        judged: Callable[[Judgement], None],
        notes: Callable[[Mailbox], str] = lambda _: "",
        metrics: RuntimeMetrics | None = None,
        dry_run: bool = False,
    ) -> None:
        """*senders* returns whose objects are written; *follow* has read what rows wait for;
        *judged* takes what guards said of them.

        *notes* returns which revisions a mailbox is at, unless its SyncerConfig says so.
        """
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run)
        self._workspaces = tables.workspaces
        self._route = tables.route
        self._mailboxes = tables.mailboxes
        self._dirty = tables.dirty
        self._revisions = tables.revisions
        self._problems = problems
        self._held = held
        self._accepted = accepted
        self._senders = senders
        self._follow = follow
        self._judged = judged
        self._notes = notes
        # What was written last, and may not have come back yet.
        self._noted: dict[Mailbox, str] = {}

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out *plan*; all of it is tried, then the first failure is raised."""
        if not isinstance(plan, MailboxPlan):
            return await self._act(plan) if plan else []
        self._report(plan)
        try:
            return await self._act(plan) if plan else []
        finally:
            if self._revisions.assigned:
                self._note(plan.mailbox)

    def _note(self, mailbox: Mailbox) -> None:
        """Have the SyncerConfig say it where everything of a revision has arrived.

        One that is evaluated anyway, or waits for something, is not to be marked over and over.
        """
        if self._dirty.holds(mailbox, CONFIG):
            return
        note = self._notes(mailbox)
        if note and note != self._noted.get(mailbox):
            self._dirty.mark(mailbox, [CONFIG])

    async def _act(self, plan: Plan) -> list[Outcome]:
        """Try every action of a plan, but for those of an object of which one failed before."""
        outcomes: list[Outcome] = []
        failures: list[ApiError | TransportError] = []
        room = asyncio.Semaphore(_SIDE_BY_SIDE)
        undone: set[ObjectRef] = set()
        left = Counter(_item(target_of(action)) for action in plan)

        async def guarded(action: Action) -> None:
            item = _item(target_of(action))
            if item in undone:
                return  # what goes before it failed, and it would pass for the whole row
            async with room:
                try:
                    done = await super(MailboxExecutor, self).execute(Plan([action]))
                except (ApiError, TransportError) as error:
                    undone.add(item)
                    if not self._comes_too_early(plan, action, error):
                        failures.append(error)
                        self._failed(action, error)
                else:
                    outcomes.extend(done)
                    left[item] -= 1
                    self._succeeded(plan, done[0], is_last=not left[item])

        for actions in phases(plan):
            if len(actions) == 1:
                await guarded(actions[0])
                continue
            async with asyncio.TaskGroup() as tasks:
                for action in actions:
                    tasks.create_task(guarded(action))
        await self._report_types(outcomes)
        if failures:
            raise failures[0]
        return outcomes

    async def _report_types(self, outcomes: list[Outcome]) -> None:
        """Have the SyncerConfig say for a moment that the mailbox has got types.

        Whoever reads it may not see why. A syncer that does not hear of them asks by itself, though
        not as soon.
        """
        brought = [
            each
            for each in outcomes
            if target_of(each.action).gvr.group_resource in (BINDINGS, DEFINITIONS)
            and each.result in ("created", "updated")
            and each.object is not None
        ]
        if not brought:
            return
        last = brought[-1]
        version = str(last.object["metadata"].get("resourceVersion", "")) if last.object else ""
        config = Target(SYNCER_CONFIGS, SYNCER_CONFIG_NAME, cluster=target_of(last.action).cluster)
        knocks = [
            Patch(
                config,
                {"metadata": {"annotations": {TYPES_CHANGED: value}}},
                "TypesChanged",
                absent_is_fine=True,
            )
            for value in (version, None)
        ]
        try:
            for knock in knocks:
                (outcome,) = await super().execute(Plan([knock]))
                if outcome.object is None:
                    return  # there is no SyncerConfig, and so nobody who waits
        except (ApiError, TransportError) as error:
            _log.debug("types were not reported to the syncer", key=config.cluster, error=error)

    # -- what rows say -----------------------------------------------------------------------

    def _report(self, plan: MailboxPlan) -> None:
        """Report what the rows say, park those that wait, and be done with what is right."""
        mailbox = plan.mailbox
        if self._mailboxes.cluster(mailbox) is None:
            return  # it has gone while it was observed
        self._judged(plan.judgement)
        self._dirty.unpark(mailbox, plan.numbers)
        for row in plan.rows:
            if row.problems is not None:
                self._problems.put(mailbox, row.item, row.problems)
            if row.hold is not None:
                self._held.put(mailbox, row.item, row.hold)
            if row.missing is not None:
                self._park(plan, row.item, row.missing)
            elif row.item == CONFIG and row.render is None:
                self._noted.pop(mailbox, None)  # what was written has come back
            elif row.item == CONFIG and row.render is not None and CONFIG in plan.done:
                self._noted[mailbox] = row.render()["note"]
        for item in plan.done:
            self._problems.put_refusal(mailbox, item, ())
            self._dirty.done(mailbox, item, plan.numbers[item])
        if not self._dirty.waits(mailbox):
            self._problems.complete(mailbox, self._route.destination.having(mailbox))

    def _park(self, plan: MailboxPlan, item: ObjectRef, scope: Scope) -> None:
        """Take a row off the dirty ones until *scope* has been read, which may be by now.

        It is done first: parking marks the row anew where the scope is complete already.
        """
        self._follow(scope)
        self._dirty.done(plan.mailbox, item, plan.numbers[item])
        self._dirty.park(plan.mailbox, item, scope)

    # -- what became of actions --------------------------------------------------------------

    def _succeeded(self, plan: Plan, outcome: Outcome, *, is_last: bool) -> None:
        """Be done with a row when the last of its actions went well; log what one changed."""
        target = target_of(outcome.action)
        mailbox, item = self._mailboxes.at(target.cluster), _item(target)
        if mailbox is None:
            return
        if isinstance(plan, MailboxPlan) and is_last:
            self._dirty.done(mailbox, item, plan.numbers[item])
        self._problems.put_refusal(mailbox, item, ())
        self._accept(mailbox, item, outcome)
        word = _WORDS.get(type(outcome.action), "")
        if outcome.result not in ("created", "updated", "deleted"):
            return
        if item == CONFIG and isinstance(outcome.action, Create | Update):
            self._noted[mailbox] = noted(outcome.action.object)
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

    def _accept(self, mailbox: Mailbox, item: ObjectRef, outcome: Outcome) -> None:
        """Note what the server made of a copy, if it did not keep it as it was sent.

        Defaults and mutating admission do that. Without the note the copy would differ from what
        is desired for ever, and be written each time that it is looked at. The note is of this
        process: the next one writes such a copy once, and learns it by the answer.
        """
        key = (mailbox, item)
        self._accepted.pop(key, None)
        action, answer = outcome.action, outcome.object
        if item == CONFIG or answer is None or not isinstance(action, Create | Update):
            return
        sent, kept = digest(item.group_resource, action.object), digest(item.group_resource, answer)
        if sent != kept:
            self._accepted[key] = (sent, kept)

    def _comes_too_early(
        self, plan: Plan, action: Action, error: ApiError | TransportError
    ) -> bool:
        """Park an object whose kind the mailbox is not known to serve yet.

        A binding made a moment ago may take a while to have effect, or to be gone before it is
        made anew; that it has effect is an event.
        """
        target = target_of(action)
        mailbox, item = self._mailboxes.at(target.cluster), _item(target)
        too_early = isinstance(error, NotFound | MethodNotAllowed)
        if mailbox is None or not too_early or isinstance(action, Delete):
            return False
        if self._workspaces.served(target.cluster, item.group_resource) is not None:
            return False
        if isinstance(plan, MailboxPlan):
            self._park(plan, item, serving_scope(target.cluster, item.group_resource))
        return True

    def _failed(self, action: Action, error: ApiError | TransportError) -> None:
        """Report to the placements what the mailbox has against an object.

        A type or namespace that is not there yet will be, and one that is being deleted will
        have gone; a lost race is tried again; no answer is no refusal.
        """
        if isinstance(error, TransportError) or _is_passing(error):
            return
        target = target_of(action)
        mailbox, item = self._mailboxes.at(target.cluster), _item(target)
        if mailbox is None:
            return
        problem = Problem(REFUSED, f"{item} was refused: {error.message}")
        senders = self._senders(mailbox, item)
        self._problems.put_refusal(
            mailbox, item, (PlacementProblem(each, problem) for each in senders)
        )


def _is_passing(error: ApiError) -> bool:
    """Tell whether an error says something about the moment and nothing about the object."""
    if isinstance(error, NotFound | Conflict | MethodNotAllowed) or error.code >= 500:
        return True
    causes = error.details.get("causes") or ()
    return any(each.get("reason") == _TERMINATING for each in causes)


def _item(target: Target) -> ObjectRef:
    return ObjectRef("", target.gvr.group, target.gvr.resource, target.namespace, target.name)
