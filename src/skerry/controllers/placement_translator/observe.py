"""What is in a mailbox and what should be, for the items marked there.

Records tell whether anything has to be done at all; only what has to be changed is read afresh
from the server, so that the change is made to the newest version.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from skerry.api.edge import Mailbox, is_projected
from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.controllers.placement_translator.consent import GrantedPlaces
from skerry.controllers.placement_translator.feeds import Record
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.keys import SYNCER_CONFIGS
from skerry.controllers.placement_translator.mailboxes import Mailboxes
from skerry.controllers.placement_translator.marks import CONFIG, Marks
from skerry.controllers.placement_translator.problems import Problems
from skerry.controllers.placement_translator.resolve import Resolved, Resolver
from skerry.controllers.placement_translator.workspaces import Workspaces
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.configs import EMPTY_SPEC
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.grants import not_granted
from skerry.logic.fleet.translation.merging import Told
from skerry.logic.machinery.plan import Target
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

OCCUPIED = "NameOccupied"
NAMESPACE_GOING = "NamespaceTerminating"
# Reads in flight for one mailbox.
_SIDE_BY_SIDE = 16


@dataclass(frozen=True, slots=True)
class Look:
    """One object of a mailbox that is not as it should be.

    ``wanted`` None: it should not be there. ``live`` None: it is not there.
    """

    item: ObjectRef
    target: Target
    wanted: Object | None
    live: Object | None = None
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that has to be done in one mailbox. ``config`` is a spec and what is there."""

    mailbox: Mailbox
    looks: tuple[Look, ...]
    config: Look | None = None


Accepted = dict[tuple[Mailbox, ObjectRef], tuple[bytes, bytes]]


class Observer:
    """Looks at what is marked."""

    def __init__(
        self,
        client: Client,
        workspaces: Workspaces,
        resolver: Resolver,
        marks: Marks,
        mailboxes: Mailboxes,
        problems: Problems,
        configs: Informer,
        *,
        accepted: Accepted,
        consent: GrantedPlaces,
        held: HeldObjects,
    ) -> None:
        """*accepted* says what servers made of copies that they do not keep as they were sent."""
        self._client = client
        self._workspaces = workspaces
        self._resolver = resolver
        self._marks = marks
        self._mailboxes = mailboxes
        self._problems = problems
        self._configs = configs
        self._accepted = accepted
        self._consent = consent
        self._held = held

    async def observe(self, mailbox: Mailbox) -> Observed | None:
        cluster = self._mailboxes.cluster(mailbox)
        if cluster is None:
            self._marks.forget(mailbox)  # everything is marked when it appears
            return None
        looks: list[Look] = []
        config: Look | None = None
        for item in self._marks.take(mailbox):
            if item == CONFIG:
                config = self._look_at_config(mailbox, cluster)
            else:
                look = self._look(mailbox, cluster, item)
                if look is not None:
                    looks.append(look)
        if not self._marks.waits(mailbox):
            self._problems.complete(mailbox)
        fresh = await self._refreshed(mailbox, [*looks, config] if config else looks)
        if not fresh:
            return None
        objects = tuple(look for look in fresh if look.item != CONFIG)
        return Observed(
            mailbox, objects, next((look for look in fresh if look.item == CONFIG), None)
        )

    # One object.

    def _look(self, mailbox: Mailbox, cluster: str, item: ObjectRef) -> Look | None:
        """Return what is wrong with an item.

        What is right is settled; what is not known yet is put aside.
        """
        agreed = self._resolver.version(mailbox, item.group_resource).version
        gvr = self._gvr(cluster, item, agreed)
        known = self._resolver.ready(mailbox, item, agreed)
        if not known or not self._knows_mailbox(cluster, item, gvr):
            self._marks.put_aside(mailbox, item)
            return None
        resolved = self._resolver.resolve(mailbox, item)
        existing = self._workspaces.record(cluster, item, gvr.version if gvr else "")
        told = resolved.told
        right = self._is_right(mailbox, item, resolved.proof, existing)
        if self._consent.governs(mailbox):
            frozen = self._is_frozen(mailbox, item, resolved, existing)
            told += self._judged(mailbox, item, resolved, existing, frozen=frozen)
            right = right or frozen
        elif self._consent.is_used:
            self._held.settle(mailbox, item)
        obstacle = None if right else self._obstacle(cluster, item, existing)
        if obstacle is not None:
            told += tuple(Told(name, obstacle) for name in self._resolver.placements(mailbox, item))
        self._problems.merged(mailbox, item, told)
        if gvr is None or right or obstacle is not None:
            self._problems.refused(mailbox, item, ())
            self._marks.settle(mailbox, item)
            return None
        if resolved.proof is None and not self._may_go(mailbox, cluster, item):
            return None
        wanted = None if resolved.make is None else resolved.make()
        target = Target(gvr, item.name, item.namespace, cluster)
        return Look(item, target, wanted, uid=existing.uid if existing else "")

    def _gvr(self, cluster: str, item: ObjectRef, version: str) -> GroupVersionResource | None:
        """Return the version to write at: the agreed one, else what the mailbox prefers."""
        here = self._workspaces.served(cluster, item.group_resource)
        if here is not None and version not in here.versions:
            version = here.versions[0]
        return GroupVersionResource(item.group, version, item.resource) if version else None

    def _knows_mailbox(
        self, cluster: str, item: ObjectRef, gvr: GroupVersionResource | None
    ) -> bool:
        return self._workspaces.knows(cluster, item.group_resource, gvr.version if gvr else "")

    def _is_right(
        self, mailbox: Mailbox, item: ObjectRef, proof: bytes | None, existing: Record | None
    ) -> bool:
        if proof is None:
            return existing is None or not existing.projected or existing.deleting
        if existing is None:
            return False
        if existing.deleting:
            return True  # it is made anew when it has gone
        if not existing.projected:
            return False
        if existing.proof == proof:
            return True
        return self._accepted.get((mailbox, item)) == (proof, existing.proof)

    def _is_frozen(
        self, mailbox: Mailbox, item: ObjectRef, resolved: Resolved, existing: Record | None
    ) -> bool:
        """Tell whether a copy stays as it is, for want of a grant and of a confirmation."""
        there = existing is not None and existing.projected and not existing.deleting
        return there and resolved.frozen and not self._held.is_released(mailbox, item)

    def _judged(
        self,
        mailbox: Mailbox,
        item: ObjectRef,
        resolved: Resolved,
        existing: Record | None,
        *,
        frozen: bool,
    ) -> tuple[Told, ...]:
        """Return what the placements are told that are not granted an object; report it, too.

        A placement that is granted nothing here at all hears that from the edge scheduler, which
        holds or refuses its destinations as a whole.
        """
        if existing is None:
            self._held.gone(mailbox, item)
        wanting = resolved.refused or self._resolver.would_refuse(mailbox, item)
        named = [name for name in wanting if self._resolver.is_admitted(mailbox, name)]
        if not named:
            self._held.settle(mailbox, item, released=bool(wanting))
            return ()
        self._held.note(mailbox, item, named[0].cluster, held=frozen)
        if not resolved.refused:
            return ()
        problem = not_granted(item, self._consent.refusing(mailbox), held=frozen)
        return tuple(Told(name, problem) for name in named)

    def _obstacle(self, cluster: str, item: ObjectRef, existing: Record | None) -> Problem | None:
        """Return what keeps a copy from being made; when it is out of the way, that is an event."""
        if existing is not None and existing.upsynced and not existing.projected:
            return Problem(OCCUPIED, f"{item} was born at the edge and is left alone")
        space = namespace_ref(item.namespace)
        room = self._workspaces.record(cluster, space) if item.namespace else None
        if room is not None and room.deleting:
            text = f"{item} waits until {space} has gone from the mailbox, to be made anew"
            return Problem(NAMESPACE_GOING, text)
        return None

    def _may_go(self, mailbox: Mailbox, cluster: str, item: ObjectRef) -> bool:
        """Tell whether there is reason enough to remove a copy.

        If not, the mark is settled: whatever changes that marks anew.
        """
        if item.group_resource == NAMESPACES and not self._workspaces.knows_everything(cluster):
            self._marks.put_aside(mailbox, item)
            return False
        held = item.group_resource == NAMESPACES and self._holds_foreign(cluster, item.name)
        if held or self._resolver.malformed(mailbox):
            self._marks.settle(mailbox, item)
            return False
        return True

    def _holds_foreign(self, cluster: str, namespace: str) -> bool:
        return any(
            record.is_foreign
            for served, feed in self._workspaces.followed_types(cluster)
            if served.namespaced
            for record in feed.within(cluster, namespace).values()
        )

    # SyncerConfig.

    def _look_at_config(self, mailbox: Mailbox, cluster: str) -> Look | None:
        if not self._resolver.config_ready(mailbox):
            self._marks.put_aside(mailbox, CONFIG)
            return None
        config = self._resolver.config(mailbox)
        self._problems.merged(mailbox, CONFIG, config.told)
        existing = self._configs.index.get(Key(cluster, "", CONFIG.name))
        spec = config.spec
        if spec is None and existing is not None:
            spec = dict(EMPTY_SPEC)
        same = existing is not None and existing["spec"] == spec
        # A malformed placement's namespaces are unknown, not gone.
        if spec is None or same or self._resolver.malformed(mailbox):
            self._marks.settle(mailbox, CONFIG)
            return None
        target = Target(SYNCER_CONFIGS, CONFIG.name, "", cluster)
        uid = existing["metadata"]["uid"] if existing else ""
        return Look(CONFIG, target, {"spec": spec}, uid=uid)

    # The newest versions.

    async def _refreshed(self, mailbox: Mailbox, looks: list[Look]) -> list[Look]:
        """Return *looks* with the newest version of what is to be changed; drops what is right."""
        changes = [look for look in looks if look.uid and look.wanted is not None]
        if not changes:
            return looks
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def read(look: Look) -> Object | None:
            async with room:
                return await self._read(look.target)

        found = await asyncio.gather(*map(read, changes))
        live = {look.item: obj for look, obj in zip(changes, found, strict=True)}
        fresh = []
        for look in looks:
            obj = live.get(look.item)
            if obj is not None and _is_as_wanted(look, obj):
                self._marks.settle(mailbox, look.item)
            else:
                fresh.append(replace(look, live=obj))
        return fresh

    async def _read(self, target: Target) -> Object | None:
        client = self._client.for_cluster(target.cluster)
        try:
            return await client.get(target.gvr, target.name, target.namespace)
        except NotFound:
            return None


def _is_as_wanted(look: Look, live: Object) -> bool:
    wanted = look.wanted or {}
    if look.item == CONFIG:
        return bool(live.get("spec") == wanted["spec"])
    resource = look.item.group_resource
    return is_projected(live) and digest(resource, live) == digest(resource, wanted)
