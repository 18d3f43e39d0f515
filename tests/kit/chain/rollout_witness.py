"""What a rollout and its revisions promise of every single write, read from the store's history.

Whoever wrote, whatever was lost and whoever died: after each write of a slice its revisions are
there with all their contents, a slot is still whose it was, nobody was given what is known to be
bad or what the rollout is not about, and no more are on their way than the pace allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.api.edge import (
    PLACEMENT_REVISIONS,
    REVISION_CONTENTS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    placement_of_slice,
)
from skerry.api.objects import Object
from skerry.logic.fleet.revision.objects import RevisionPage, read_page
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import state_of, verdicts_of
from skerry.store.memory import MemoryStore
from tests.kit.chain.written import Write, writes

_KINDS = (PLACEMENT_REVISIONS, REVISION_CONTENTS, ROLLOUTS, SINGLE_PLACEMENT_SLICES)


@dataclass
class Witness:
    """Everything that was written so far about the rollout of one placement."""

    placement: str
    slices: dict[str, Object] = field(default_factory=dict)
    pages: dict[str, RevisionPage] = field(default_factory=dict)
    bad: set[int] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    rollout: Object = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    # Who was silent at any time: it may be heard of again between a decision and its write.
    silent: set[int] = field(default_factory=set)

    def see(self, write: Write) -> None:
        """Take in one write, and check what follows from it."""
        if write.kind == REVISION_CONTENTS.group_resource:
            (self.contents.discard if write.obj is None else self.contents.add)(write.name)
        elif write.kind == PLACEMENT_REVISIONS.group_resource:
            self._see_revision(write)
        elif write.kind == ROLLOUTS.group_resource and write.name == self.placement:
            self.rollout = write.obj or {}
            status = self.rollout.get("status") or {}
            self.silent |= set(verdicts_of(status, state_of(status).attempt).absent)
        elif write.kind == SINGLE_PLACEMENT_SLICES.group_resource:
            before = self._revisions()
            self.slices.pop(write.key, None)
            if write.obj is not None and placement_of_slice(write.obj) == self.placement:
                self.slices[write.key] = write.obj
            self._check(before, self._revisions(), f"revision {write.revision}: ")

    def _see_revision(self, write: Write) -> None:
        self.pages.pop(write.name, None)
        if write.obj is not None and write.obj["spec"]["placement"] == self.placement:
            self.pages[write.name] = page = read_page(write.obj)
            if (write.obj.get("status") or {}).get("verdict") == "Bad":
                self.bad.add(page.number)

    def _revisions(self) -> dict[int, int]:
        """Return the revision of each slot, and check whose it is."""
        found: dict[int, int] = {}
        for piece in self.slices.values():
            for each in piece["destinations"]:
                if "slot" in each:
                    uid = each["syncTargetUID"]
                    assert self.owners.setdefault(each["slot"], uid) == uid, "a slot used again"
                    found[each["slot"]] = each.get("revision", 0)
        return found

    def _check(self, before: dict[int, int], after: dict[int, int], when: str) -> None:
        given = {slot: number for slot, number in after.items() if before.get(slot) != number}
        for number in set(given.values()) - {0}:
            held = [page for page in self.pages.values() if page.number == number]
            assert held, f"{when}{number} is named and not there"
            assert len(held) == held[0].pages, f"{when}{number} is not all there"
            named = {i.digest for p in held for i in (*p.items, *p.inputs.customizers)}
            assert named <= self.contents, f"{when}contents of {number} are not there"
            assert number not in self.bad, f"{when}{number} is bad and was given again"
        status = self.rollout.get("status") or {}
        state = state_of(status)
        moved = {s: n for s, n in given.items() if before.get(s)}
        assert set(moved.values()) <= {state.target, state.stable}, f"{when}given {moved}"
        if state.target != state.stable and state.target in moved.values():
            found = verdicts_of(status, state.attempt)
            judged = {*found.good, *found.bad, *found.excused, *found.unfit, *self.silent}
            flying = {slot for slot, number in after.items() if number == state.target} - judged
            limit = read_spec(self.rollout["spec"]).pace.concurrency.of(len(after))
            assert len(flying) <= limit, f"{when}{len(flying)} are on their way, {limit} may be"


async def assert_promises_kept(store: MemoryStore, placement: str = "web") -> None:
    """Check every write there was; at the end no slot may stand in two slices."""
    witness = Witness(placement)
    for write in await writes(store, *_KINDS):
        witness.see(write)
    slots = [e["slot"] for piece in witness.slices.values() for e in piece["destinations"]]
    assert len(slots) == len(set(slots)), "a slot is in two slices"
    assert witness.owners
