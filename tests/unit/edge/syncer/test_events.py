"""Which event enqueues which key, and which makes deletions candidates early."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

from skerry.api.edge import ACCEPT_STORE_IDENTITY, SYNCER_CONFIG_NAME, TYPES_CHANGED
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.app.syncer import hub_client
from skerry.edge.syncer.events import EventHandlers
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.state import SyncerState
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.upsync import UpsyncWatches
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.present import OURS
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import Desired
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import InformerFactory
from skerry.runtime.workqueue import WorkQueue
from tests.kit.chain.inline import inline
from tests.kit.chain.syncer_world import SPEC, SyncerWorld
from tests.kit.sim.loop import virtual

PAGE = ObjectRef("", "", "configmaps", "shop", "page")
SECOND = ObjectRef("", "", "configmaps", "shop", "second")
ELSEWHERE = ObjectRef("", "", "configmaps", "elsewhere", "page")
CONFIG_MAPS = GroupResource("", "configmaps")
MAPS = GroupVersionResource("", "v1", "configmaps")
OBJECT: Object = {"metadata": {"name": "page", "namespace": "shop"}}


class Handled:
    """Handlers of a session that nobody runs, whose hub is trusted and whose scope is *SPEC*."""

    def __init__(self, world: SyncerWorld, journal: Journal) -> None:
        records = SyncRecords(journal)
        records.set_fact("store", "a")
        records.set_fact("config", {"specs": [SPEC], "revision": 1})
        hub = hub_client(world.hub.transport, world.clock)
        edge = Client(world.edge.transport, clock=world.clock)
        settings = replace(world.settings, budget=Budget(2, 1))
        session = Session(settings, hub, edge, records, world.ids, SyncerMetrics())
        self.state: SyncerState = session.state
        self.state.trust.saw_header("a")
        self.reports = self.ends = 0
        watches = UpsyncWatches(self.state, InformerFactory(edge, ids=world.ids))
        self.events = EventHandlers(self.state, watches, report=self._report, end=self._end)
        for queue in (self.state.down, self.state.back, self.state.up):
            drain(queue)

    def _report(self) -> None:
        self.reports += 1

    def _end(self) -> None:
        self.ends += 1

    def say(self, annotations: dict[str, str]) -> None:
        """Have the SyncerConfig carry these annotations."""
        metadata = {"name": SYNCER_CONFIG_NAME, "uid": "u", "resourceVersion": "1"}
        config = {"metadata": {**metadata, "annotations": annotations}, "spec": SPEC}
        self.state.config.informer.index.put(Key("", "", SYNCER_CONFIG_NAME), config)
        self.events.config_changed()

    def another_store(self) -> None:
        """Have the hub answer from a store that we do not know, and read its SyncerConfig."""
        self.state.trust.saw_header("b")
        self.events.trust_changed()
        self.state.config.informer.synced.set()
        self.say({})

    def hold(self, ref: ObjectRef, *, present: bool = True) -> None:
        """Have the mailbox hold an object, or no longer."""
        key, followed = Key("", ref.namespace, ref.name), self.state.mailbox._types
        index = followed[ref.group_resource].informer.index
        obj = {"metadata": {"name": ref.name, "namespace": ref.namespace}}
        if present:
            index.put(key, obj)
            self.events.mailbox_changed(ref, None, obj)
        else:
            index.remove(key)
            self.events.mailbox_changed(ref, obj, None)

    def place(self, *refs: ObjectRef, uid: str = "") -> None:
        record = DownsyncRecord(Desired("v1", {}, "u", 1), edge_uid=uid)
        for ref in refs:
            self.state.records.set_placed(ref, record)


def drain(queue: WorkQueue[ObjectRef]) -> set[ObjectRef]:
    found = set(queue._added)
    for ref in found:
        queue._added.pop(ref)
    queue._waiting.clear()
    return found


@asynccontextmanager
async def handled(folder: Path) -> AsyncIterator[Handled]:
    with closing(Journal(folder / "journal", offload=inline)) as journal:
        yield Handled(SyncerWorld(folder), journal)


@virtual
async def test_a_change_in_the_mailbox_concerns_what_is_covered_or_placed(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.events.mailbox_changed(ELSEWHERE, None, OBJECT)
        assert drain(h.state.down) == set()
        h.events.mailbox_changed(PAGE, None, OBJECT)
        assert drain(h.state.down) == {PAGE}
        assert h.state.back.delayed == 0, "a new object has no status to return"
        h.events.mailbox_changed(PAGE, OBJECT, OBJECT)
        assert h.state.back.delayed == 1
        h.place(ELSEWHERE)
        h.events.mailbox_changed(ELSEWHERE, OBJECT, OBJECT)
        assert drain(h.state.down) == {PAGE, ELSEWHERE}


@virtual
async def test_what_goes_from_the_mailbox_is_proposed_at_once_if_it_was_placed(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.events.mailbox_changed(PAGE, OBJECT, None)
        assert not h.state.budget.candidates
        h.place(PAGE)
        h.events.mailbox_changed(PAGE, OBJECT, None)
        assert h.state.budget.candidates == {PAGE}


@virtual
async def test_a_hub_that_is_not_trusted_makes_no_candidates(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE)
        h.state.trust.saw_header("b")
        h.events.mailbox_changed(PAGE, OBJECT, None)
        h.events.mailbox_completed(CONFIG_MAPS)
        assert not h.state.budget.candidates


@virtual
async def test_a_type_read_completely_has_everything_placed_of_it_looked_at(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE, ObjectRef("", "", "secrets", "shop", "key"))
        h.events.mailbox_completed(CONFIG_MAPS)
        assert drain(h.state.down) == {PAGE}
        assert not h.state.budget.candidates, "no SyncerConfig says yet what belongs"


@virtual
async def test_a_change_at_the_edge_concerns_what_is_ours(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.events.edge_changed(PAGE, None, OBJECT)
        assert drain(h.state.down) == set()
        h.events.edge_changed(PAGE, None, {**OBJECT, OURS: "x"})
        assert drain(h.state.down) == {PAGE}, "a record was lost"
        h.place(PAGE)
        h.events.edge_changed(PAGE, OBJECT, None)
        assert drain(h.state.down) == {PAGE}
        assert h.state.back.delayed == 1


@virtual
async def test_what_went_before_its_place_was_watched_is_looked_at_once_the_place_was_read(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE, SECOND, ELSEWHERE)
        h.events.connect()
        present = {**OBJECT, "metadata": {**OBJECT["metadata"], "uid": "u", "resourceVersion": "1"}}
        await h.state.edge_cache.watch(MAPS, "shop").replace([present])
        # The page is there, and said so; of the second nobody will ever say anything.
        assert drain(h.state.down) == {PAGE, SECOND}
        await h.state.edge_cache.watch(MAPS, "shop").replace([present])
        assert drain(h.state.down) == set(), "whoever goes from now on is named"


@virtual
async def test_a_new_type_or_right_brings_back_what_waits_for_it(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        waiting, forbidden = PAGE, ObjectRef("", "", "secrets", "shop", "key")
        h.state.outcomes.set(waiting, SyncOutcome("Waiting", "KindUnknown"))
        h.state.outcomes.set(forbidden, SyncOutcome("Failed", "EdgeForbidden"))
        h.events.edge_types_changed()
        assert drain(h.state.down) == {waiting}
        h.events.right_granted(GroupResource("", "secrets"), "elsewhere")
        assert drain(h.state.down) == set()
        h.events.right_granted(GroupResource("", "secrets"), "shop")
        assert drain(h.state.down) == {forbidden}


@virtual
async def test_a_budget_that_opens_brings_back_every_candidate(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.events.connect()
        refs = [ObjectRef("", "", "configmaps", "shop", f"page-{i}") for i in range(4)]
        h.place(*refs, uid="e1")
        h.state.budget.propose(refs[:3])
        assert drain(h.state.down) == set()
        assert h.reports == 1
        h.state.budget.approve(h.state.budget.verdict.name)
        assert drain(h.state.down) == set(refs[:3])
        assert h.reports == 2


@virtual
async def test_a_namespace_in_use_is_looked_into_again_when_something_inside_goes(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE)
        h.events.mailbox_changed(PAGE, OBJECT, None)
        assert h.state.down.delayed == 0
        h.state.outcomes.set(namespace_ref("shop"), SyncOutcome("Held", "InUse"))
        h.events.mailbox_changed(PAGE, OBJECT, None)
        assert h.state.down.delayed == 1


@virtual
async def test_another_store_ends_the_session_and_an_accepted_one_looks_at_everything(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE)
        h.events.trust_changed()
        assert (drain(h.state.down), h.ends) == ({PAGE}, 0)
        h.state.trust.saw_header("b")
        h.events.trust_changed()
        assert h.ends == 1


@virtual
async def test_a_session_begins_with_everything_that_was_ever_placed(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE, ELSEWHERE)
        h.events.start()
        assert drain(h.state.down) == {PAGE, ELSEWHERE}
        assert h.state.mailbox.followed(CONFIG_MAPS) is not None, "what the journal remembers"


@virtual
async def test_types_are_asked_for_when_the_mailbox_is_said_to_have_got_some(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        types = h.state.hub_types
        said = ["7", "7", "8"]
        asked = []
        for version in said:
            types._wanted.clear()
            h.say({TYPES_CHANGED: version})
            asked.append(types._wanted.is_set())
        assert asked[1:] == [False, True], "the first reading asks for them anyway"


@virtual
async def test_a_report_that_comes_back_has_nothing_looked_at_but_what_a_person_agreed_to(
    tmp_path: Path,
) -> None:
    async with handled(tmp_path) as h:
        h.say({ACCEPT_STORE_IDENTITY: "b"})
        h.place(PAGE, ELSEWHERE)
        drain(h.state.down)
        before = h.reports
        h.events.config_reported()
        assert (drain(h.state.down), h.reports) == (set(), before + 1)
        h.state.trust.saw_header("b")
        assert not h.state.trust.trusted
        h.events.config_reported()
        assert h.state.trust.trusted


async def test_another_store_that_wants_everything_we_placed_is_accepted(tmp_path: Path) -> None:
    """Nothing hangs on which store it is, once the last of what we placed is wanted there too."""
    async with handled(tmp_path) as h:
        h.place(PAGE, SECOND)
        h.another_store()
        h.hold(PAGE)
        assert not h.state.trust.trusted, "one of two is missing there"
        h.hold(SECOND)
        assert h.state.trust.trusted


async def test_another_store_that_loses_one_again_is_not_accepted(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE, SECOND)
        h.another_store()
        h.hold(PAGE)
        h.hold(PAGE, present=False)
        h.hold(SECOND)
        assert not h.state.trust.trusted
        h.hold(PAGE)
        assert h.state.trust.trusted


async def test_what_was_never_placed_does_not_stand_in_for_what_was(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE)
        h.another_store()
        h.hold(SECOND)
        h.hold(SECOND, present=False)
        assert not h.state.trust.trusted


async def test_stores_that_changed_within_a_session_are_left_to_a_person(tmp_path: Path) -> None:
    """What was read before is of another store, so that nothing here shows what is wanted."""
    async with handled(tmp_path) as h:
        h.place(PAGE)
        h.events.trust_changed()
        h.another_store()
        h.hold(PAGE)
        assert not h.state.trust.trusted
        assert h.ends == 1


async def test_objects_that_fell_out_of_the_scope_count_as_missing(tmp_path: Path) -> None:
    async with handled(tmp_path) as h:
        h.place(PAGE, ELSEWHERE)
        h.another_store()
        h.hold(PAGE)
        h.hold(ELSEWHERE)
        assert not h.state.trust.trusted
