"""Which event enqueues which key, and which one makes deletions candidates.

A key is enqueued for more than it may need: what is done about it depends on the state alone. Only
one thing here must be early: whatever may have to be deleted is proposed to the deletion budget as
soon as it is found missing, all of it together, before the first of it is looked at.

Keys come one at a time, and each by itself looks harmless: one object fewer. Were the budget asked
key by key, an emptied mailbox would be carried out up to the limit before anybody noticed, and what
is then held would be whatever came last. Proposed together, it is held together, and a person sees
the whole of it. That is why a type that was read completely, a SyncerConfig that covers less, and a
Namespace that loses its objects each propose a list here, and why handlers do so before they
enqueue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skerry.api.edge import ACCEPT_STORE_IDENTITY, APPROVE_DELETIONS, TYPES_CHANGED
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.edge.syncer.state import SyncerState
from skerry.edge.syncer.upsync import UpsyncWatches
from skerry.logic.fleet.syncing.present import OURS

# To look into a namespace costs a list of each type; objects leave it in bursts.
_INSPECT_AGAIN_SECONDS = 1.0


class EventHandlers:
    """Handlers of everything that happens to the tables of one session."""

    def __init__(
        self,
        state: SyncerState,
        upsync: UpsyncWatches,
        *,
        report: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        """*report* has the state reported soon; *end* ends the session: one side is another one."""
        self._s = state
        self._upsync = upsync
        self._report = report
        self._end = end
        self._known_store = state.trust.known
        self._answering_store = ""
        self._configured = False
        # What was last said of the mailbox's types; None before anything was.
        self._types_changed: str | None = None
        # What we placed and another store does not want, as far as it is known.
        self._missing: set[ObjectRef] = set()
        # Whether another store answered than the one this session has read from.
        self._is_mixed = False

    def connect(self) -> None:
        """Have the handlers called from now on."""
        s = self._s
        s.mailbox.changed.connect(self.mailbox_changed)
        s.mailbox.completed.connect(self.mailbox_completed)
        s.config.changed.connect(self.config_changed)
        s.config.reported.connect(self.config_reported)
        s.hub_types.changed.connect(self.hub_types_changed)
        s.trust.changed.connect(self.trust_changed)
        s.edge_cache.changed.connect(self.edge_changed)
        s.edge_cache.completed.connect(self.edge_completed)
        s.edge_types.changed.connect(self.edge_types_changed)
        s.rights.granted.connect(self.right_granted)
        s.causes.changed.connect(self.cause_changed)
        s.causes.counted.connect(self._report)
        s.budget.changed.connect(self._report)
        s.budget.opened.connect(self.budget_opened)
        s.outcomes.changed.connect(self._report)

    def start(self) -> None:
        """Follow what is remembered, and have everything looked at that was ever placed."""
        self._follow()
        self._enqueue(self._s.records.all_placed())

    # The mailbox.

    def mailbox_changed(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        """Propose what the mailbox has dropped, and enqueue what is, or was, sent down."""
        s = self._s
        if new is None and s.records.was_placed(ref) and s.trust.trusted:
            s.budget.propose((ref,))
            self._inspect_namespace(ref.namespace)
        if not s.trust.trusted:
            self._missing_changed(ref, new)
        if s.config.scope.covers(ref) or s.records.was_placed(ref):
            s.down.add(ref)
            if old is not None and new is not None:
                s.back.add_after(ref, s.settings.return_seconds)
        if old is None or new is None:
            self._upsync.enqueue_name(ref)

    def mailbox_completed(self, kind: GroupResource) -> None:
        """Take it that a type was read completely: what it lacks of our records may have to go."""
        s = self._s
        placed = [ref for ref in s.records.all_placed() if ref.group_resource == kind]
        self._propose([ref for ref in placed if s.mailbox.get(ref) is None])
        self._enqueue(placed)
        self._upsync.enqueue_type(kind)
        self._accept_if_harmless()

    def config_changed(self) -> None:
        """Follow the scope that is now; what fell out of it is proposed, all of it at once."""
        s = self._s
        self._agree()
        self._follow()
        dropped = [ref for ref in s.records.all_placed() if not s.config.scope.covers(ref)]
        self._propose(dropped)
        self._enqueue(dropped)
        if s.config.configured and not self._configured:
            # Types that were read before the SyncerConfig had nobody to hear what they lack.
            for kind in s.config.scope.types():
                if s.mailbox.synced(kind):
                    self.mailbox_completed(kind)
        self._configured = s.config.configured
        # What came into scope only now was seen before without being wanted.
        self._enqueue(ref for ref in s.mailbox.refs() if not s.records.was_placed(ref))
        self._upsync.adjust()
        self._expect()
        self._ask_for_types()
        self._accept_if_harmless()
        self._report()

    def config_reported(self) -> None:
        """Take it that a status was written: what a person agreed to may be what it asks for."""
        self._agree()
        self._report()

    def hub_types_changed(self) -> None:
        self._follow()
        self._upsync.enqueue_all()
        self._upsync.enqueue_upsynced()
        self._report()

    def trust_changed(self) -> None:
        """Go on with a store that is trusted again.

        A second store within one session ends it: what was read is then of both, and nobody can
        say which of them an absence is from.
        """
        trust = self._s.trust
        if self._answering_store and trust.current != self._answering_store:
            self._is_mixed = True
            self._end()
        self._answering_store = trust.current
        if trust.trusted:
            self._enqueue(self._s.records.all_placed())
            if self._known_store != trust.known:
                self._known_store = trust.known
                self._upsync.forget_content()
        self._report()

    # The edge.

    def edge_changed(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        s = self._s
        s.edge_writes.seen(ref, old, new)
        if s.records.was_placed(ref) or s.mailbox.get(ref) is not None:
            s.down.add(ref)
            s.back.add_after(ref, s.settings.return_seconds)
        elif new is not None and new.get(OURS):
            s.down.add(ref)  # a record was lost: reported as an object nobody answers for

    def edge_completed(self, gvr: GroupVersionResource, namespace: str) -> None:
        """Enqueue what we placed and a place that was read lacks: nothing else will name it."""
        s = self._s
        self._enqueue(
            ref
            for ref in s.records.all_placed()
            if ref.group_resource == gvr.group_resource
            and namespace in ("", ref.namespace)
            and s.edge_cache.get(gvr, ref) is None
        )

    def edge_types_changed(self) -> None:
        """Enqueue what waited for its type to be served; nothing else hangs on that."""
        troubled = list(self._s.outcomes.troubled.items())
        self._enqueue(ref for ref, outcome in troubled if outcome.state == "Waiting")
        self._upsync.adjust()
        self._expect()
        self._report()

    def right_granted(self, kind: GroupResource, namespace: str) -> None:
        self._enqueue(
            ref
            for ref, outcome in list(self._s.outcomes.troubled.items())
            if outcome.reason == "EdgeForbidden"
            and (ref.group_resource, ref.namespace) == (kind, namespace)
        )

    def cause_changed(self, ref: ObjectRef) -> None:
        self._s.back.add_after(ref, self._s.settings.return_seconds)

    def budget_opened(self) -> None:
        self._enqueue(self._s.budget.candidates)

    # What they have in common.

    def _inspect_namespace(self, name: str) -> None:
        """Have a namespace looked into again that could not go while something was inside."""
        if name and self._s.outcomes.get(namespace_ref(name)).reason == "InUse":
            self._s.down.add_after(namespace_ref(name), _INSPECT_AGAIN_SECONDS)

    def _enqueue(self, refs: Iterable[ObjectRef]) -> None:
        for ref in refs:
            self._s.down.add(ref)

    def _propose(self, refs: list[ObjectRef]) -> None:
        """Make deletions candidates, unless the hub is not to be believed anyway."""
        s = self._s
        if refs and s.trust.trusted and s.config.configured:
            s.budget.propose(refs)

    def _agree(self) -> None:
        """Do what a person has agreed to, if that is what is asked."""
        s = self._s
        s.budget.approve(s.config.annotation(APPROVE_DELETIONS))
        if s.trust.current and s.config.annotation(ACCEPT_STORE_IDENTITY) == s.trust.current:
            s.trust.accept()

    def _follow(self) -> None:
        """Follow the types the scope names, as far as the mailbox has them."""
        s = self._s
        types = s.config.scope.types()
        if s.hub_types.known:
            types = {kind: gvr for kind, gvr in types.items() if s.hub_types.find(gvr)}
        s.mailbox.follow(types)

    def _expect(self) -> None:
        """Say which types the mailbox should have, for a hub that tells of none by itself."""
        s = self._s
        named = s.config.scope.unserved(())
        upsynced = [gvr for gvr in self._upsync.types() if gvr.group_resource in named]
        s.hub_types.expect([*s.config.scope.types().values(), *upsynced])

    def _ask_for_types(self) -> None:
        """Ask for the mailbox's types when it is said to have got some since they were read."""
        said = self._s.config.annotation(TYPES_CHANGED)
        if self._types_changed not in (None, said):
            self._s.hub_types.renew()
        self._types_changed = said

    def _accept_if_harmless(self) -> None:
        """Accept another store that wants everything we placed: nothing hangs on it.

        What was not read yet counts as missing. Types of which nothing was placed do not matter: a
        scope may name some that the mailbox never has.
        """
        s = self._s
        if s.trust.trusted or self._is_mixed or not s.config.configured:
            return
        scope = s.config.scope
        self._missing = {
            ref
            for ref in s.records.all_placed()
            if s.mailbox.get(ref) is None or not scope.covers(ref)
        }
        if not self._missing:
            s.trust.accept()

    def _missing_changed(self, ref: ObjectRef, new: Object | None) -> None:
        """Take in that another store wants one more of what we placed, or one less."""
        if new is None and self._s.records.was_placed(ref):
            self._missing.add(ref)
        elif new is not None and ref in self._missing:
            self._missing.discard(ref)
            if not self._missing:
                self._accept_if_harmless()
