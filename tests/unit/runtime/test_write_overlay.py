"""What was written counts until the cache has it, and not a moment longer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skerry.api.errors import Conflict, Forbidden, InternalError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.plan import Action, Create, Delete, Patch, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.transport import TransportError
from skerry.runtime.write_overlay import InformerOverlay, InformerOverlays, WriteOverlay
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin


class State(NamedTuple):
    """One object as the model has it."""

    uid: str
    color: str


class Change(NamedTuple):
    revision: int
    key: str
    state: State | None


@dataclass
class History:
    """A server's history, and a cache that has read it up to ``read``."""

    changes: list[Change] = field(default_factory=list)
    read: int = 0

    @property
    def newest(self) -> int:
        return len(self.changes)

    def write(self, key: str, state: State | None) -> int:
        self.changes.append(Change(self.newest + 1, key, state))
        return self.newest

    def at(self, revision: int, key: str) -> State | None:
        states = [c.state for c in self.changes[:revision] if c.key == key]
        return states[-1] if states else None

    def cached(self, key: str) -> State | None:
        return self.at(self.read, key)


def overlay_of(history: History) -> WriteOverlay[str, State]:
    return WriteOverlay(
        history.cached,
        lambda: str(history.read),
        uid_of=lambda state: state.uid,
        groups_of=lambda state: (state.color,),
        fingerprint_of=lambda state: state.color,
    )


KEYS = st.sampled_from("abc")
COLORS = st.sampled_from(("red", "blue"))


class ReadYourWrites(RuleBasedStateMachine):
    """Any order of our writes, others' writes, lost answers and a cache that lags."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.overlay = overlay_of(self.history)
        self.answered: dict[str, int] = {}
        self.uids = 0

    def _state(self, key: str, color: str) -> State:
        known = self.history.at(self.history.newest, key)
        if known is not None:
            return known._replace(color=color)
        self.uids += 1
        return State(f"u{self.uids}", color)

    @rule(key=KEYS, color=COLORS, echoes=st.integers(0, 3))
    def we_write(self, key: str, color: str, echoes: int) -> None:
        """The cache may have read on before the answer arrives."""
        state = self._state(key, color)
        self.overlay.begin(key, state)
        revision = self.history.write(key, state)
        self._read_on(echoes)
        self.overlay.written(key, str(revision), state)
        self.answered[key] = revision

    @rule(key=KEYS)
    def we_delete(self, key: str) -> None:
        """Only what we know of is deleted, and only if it is still that object."""
        known = self.overlay.get(key)
        live = self.history.at(self.history.newest, key)
        if known is None or (live is not None and live.uid != known.uid):
            return
        self.overlay.begin(key)
        if live is not None:
            self.answered[key] = self.history.write(key, None)
        self.overlay.deleted(key, known.uid)
        if live is None:  # somebody else's deletion, which we learnt of by the answer
            gone = [c.revision for c in self.history.changes if c.key == key and c.state is None]
            self.answered[key] = gone[-1]

    @rule(key=KEYS, color=COLORS, arrived=st.booleans())
    def our_answer_is_lost(self, key: str, color: str, arrived: bool) -> None:
        state = self._state(key, color)
        self.overlay.begin(key, state)
        if arrived:
            self.history.write(key, state)
        self.overlay.lost(key)

    @rule(key=KEYS, color=COLORS)
    def our_write_is_refused(self, key: str, color: str) -> None:
        self.overlay.begin(key, self._state(key, color))
        self.overlay.failed(key)

    @rule(key=KEYS, color=st.one_of(COLORS, st.none()))
    def somebody_writes(self, key: str, color: str | None) -> None:
        if color is not None:
            self.history.write(key, self._state(key, color))
        elif self.history.at(self.history.newest, key) is not None:
            self.history.write(key, None)

    @rule(count=st.integers(1, 5))
    def the_cache_reads_on(self, count: int) -> None:
        self._read_on(count)

    def _read_on(self, count: int) -> None:
        self.history.read = min(self.history.newest, self.history.read + count)

    @precondition(lambda self: self.overlay.unresolved())
    @rule()
    def what_is_uncertain_is_read(self) -> None:
        for key in self.overlay.unresolved():
            live = self.history.at(self.history.newest, key)
            if live is None:
                self.overlay.failed(key)
            else:
                self.overlay.written(key, str(self.history.newest), live)
                self.answered[key] = self.history.newest
        assert self.overlay.unresolved() == []

    @invariant()
    def what_counts_is_the_later_of_cache_and_answer(self) -> None:
        for key in "abc":
            moment = max(self.history.read, self.answered.get(key, 0))
            assert self.overlay.get(key) == self.history.at(moment, key), key

    @invariant()
    def groups_hold_the_answers_that_count(self) -> None:
        for color in ("red", "blue"):
            ahead = {
                key
                for key, revision in self.answered.items()
                if revision > self.history.read
                and (state := self.history.at(revision, key)) is not None
                and state.color == color
            }
            assert set(self.overlay.keys(color)) == ahead

    @invariant()
    def nothing_is_kept_of_what_the_cache_has_read(self) -> None:
        if self.history.read == self.history.newest:
            self.overlay.sweep()
            assert len(self.overlay) == len(self.overlay.unresolved())


TestReadYourWrites = ReadYourWrites.TestCase


def test_an_event_from_before_our_write_is_an_echo_and_a_later_one_is_not() -> None:
    overlay = overlay_of(History())
    overlay.written("a", "9", State("u", "red"))
    assert overlay.take_echo("a", "8", State("u", "blue"))
    assert overlay.take_echo("a", "9", State("u", "red"))
    assert not overlay.take_echo("a", "10", State("u", "red"))
    assert not overlay.take_echo("b", "9", State("u", "red"))


def test_an_event_that_overtakes_its_answer_is_an_echo_once() -> None:
    overlay = overlay_of(History())
    overlay.begin("a", State("u", "red"))
    assert not overlay.take_echo("a", "8", State("u", "blue"))
    assert overlay.take_echo("a", "9", State("u", "red"))
    assert not overlay.take_echo("a", "10", State("u", "red"))
    overlay.begin("a", State("u", "red"))
    overlay.failed("a")
    assert not overlay.take_echo("a", "11", State("u", "red"))


def test_a_late_answer_does_not_replace_a_newer_one() -> None:
    overlay = overlay_of(History())
    overlay.written("a", "9", State("u", "red"))
    overlay.written("a", "7", State("u", "blue"))
    assert overlay.get("a") == State("u", "red")


def test_of_a_server_whose_versions_are_no_numbers_nothing_is_kept() -> None:
    history = History()
    overlay: WriteOverlay[str, State] = WriteOverlay(
        history.cached, lambda: "opaque", uid_of=lambda state: state.uid
    )
    overlay.written("a", "also-opaque", State("u", "red"))
    assert overlay.get("a") is None
    assert len(overlay) == 0


def test_what_is_lost_of_a_known_object_needs_no_asking() -> None:
    history = History()
    overlay = overlay_of(history)
    history.write("a", State("u", "red"))
    history.read = 1
    for key in "ab":
        overlay.begin(key, State("u", "blue"))
        overlay.lost(key)
    assert overlay.unresolved() == ["b"]


def test_what_is_lost_of_a_write_that_names_no_version_is_asked_for() -> None:
    history = History()
    overlay = overlay_of(history)
    history.write("a", State("u", "red"))
    history.read = 1
    overlay.begin("a")
    overlay.lost("a", unconditional=True)
    assert overlay.unresolved() == ["a"]


# -- over an informer, behind an executor --------------------------------------------------------

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
BY_COLOR = "color"


def by_color(obj: Object) -> Iterable[str]:
    return (obj["data"]["color"],)


def config_map(name: str, color: str, **metadata: object) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", **metadata}, "data": {"color": color}}


def at(name: str) -> Target:
    return Target(CONFIG_MAPS, name, "ns")


class Lagging:
    """An informer that reads only when it is asked to, and an executor that writes meanwhile."""

    def __init__(self) -> None:
        self.twin = Twin()
        self.client = Client(self.twin, clock=LoopClock())
        self.informer = Informer(self.client, CONFIG_MAPS, ids=SeededIds(1))
        self.informer.index.add_index(BY_COLOR, by_color)
        self.overlay = InformerOverlay(self.informer)
        self.executor = Executor(self.client, "test", overlay=self.overlay)

    async def start(self, *objects: Object) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": "ns"}})
        for obj in objects:
            await self.client.create(CONFIG_MAPS, obj, "ns")
        await self.read()

    async def read(self) -> None:
        """Read everything there is."""
        task = asyncio.create_task(self.informer.run())
        await self.client.create(CONFIG_MAPS, config_map("mark", "none"), "ns")
        while self.informer.index.get(Key("", "ns", "mark")) is None:
            await asyncio.sleep(0.01)
        await self.client.delete(CONFIG_MAPS, "mark", "ns")
        while self.informer.index.get(Key("", "ns", "mark")) is not None:
            await asyncio.sleep(0.01)
        task.cancel()

    async def execute(self, *actions: Action) -> None:
        await self.executor.execute(Plan(actions))

    def names(self, color: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.overlay.by(BY_COLOR, color)]


@virtual
async def test_what_was_created_updated_and_deleted_shows_before_the_cache_has_it() -> None:
    lagging = Lagging()
    await lagging.start(config_map("a", "red"), config_map("b", "red"), config_map("c", "red"))
    a = lagging.overlay.get(Key("", "ns", "a"))
    assert a is not None
    await lagging.execute(
        Create(at("d"), config_map("d", "red"), "R"),
        Update(at("a"), {**a, "data": {"color": "blue"}}, "R"),
        Delete(at("b"), "R", uid=lagging.informer.index.by(BY_COLOR, "red")[1]["metadata"]["uid"]),
        Delete(at("c"), "R"),
    )
    assert len(lagging.informer.index.by(BY_COLOR, "red")) == 3, "the cache is behind"
    assert lagging.names("red") == ["d"]
    assert lagging.names("blue") == ["a"]
    await lagging.read()
    assert lagging.names("red") == ["d"]
    assert lagging.names("blue") == ["a"]
    await lagging.overlay.resolve(lagging.client)
    assert lagging.overlay.get(Key("", "ns", "d")) is lagging.informer.index.get(
        Key("", "ns", "d")
    ), "the cache counts again"


@virtual
async def test_an_object_that_takes_its_time_to_end_shows_as_being_deleted() -> None:
    lagging = Lagging()
    await lagging.start(config_map("a", "red", finalizers=["x/y"]))
    await lagging.execute(Delete(at("a"), "R"))
    (shown,) = lagging.overlay.by(BY_COLOR, "red")
    assert "deletionTimestamp" in shown["metadata"]


@virtual
async def test_a_namesake_of_what_was_deleted_shows() -> None:
    lagging = Lagging()
    await lagging.start(config_map("a", "red"))
    await lagging.execute(Delete(at("a"), "R"))
    assert lagging.names("red") == []
    await lagging.client.create(CONFIG_MAPS, config_map("a", "red"), "ns")
    await lagging.read()
    assert lagging.names("red") == ["a"]


class Unanswered(Client):
    """A client whose requests arrive, and whose answers do not."""

    error: Exception | None = None

    async def create(self, *arguments: object, **options: object) -> Object:
        answer = await super().create(*arguments, **options)  # type: ignore[arg-type]
        if self.error is not None:
            raise self.error
        return answer


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (TransportError("cut"), ["a"]),
        (InternalError("oops"), ["a"]),
        (asyncio.CancelledError(), ["a"]),
        # The server's word that nothing was written is believed.
        (Conflict("lost a race"), []),
    ],
)
def test_what_got_no_answer_is_asked_for(error: Exception, shown: list[str]) -> None:
    @virtual
    async def story() -> None:
        lagging = Lagging()
        await lagging.start()
        client = Unanswered(lagging.twin, clock=LoopClock())
        client.error = error
        executor = Executor(client, "test", overlay=lagging.overlay)
        with pytest.raises(type(error)):
            await executor.execute(Plan([Create(at("a"), config_map("a", "red"), "R")]))
        client.error = None
        assert lagging.names("red") == [], "nobody knows yet"
        await lagging.overlay.resolve(client)
        assert lagging.names("red") == shown
        await lagging.overlay.resolve(client)
        assert lagging.names("red") == shown

    story()


class Refusing(Unanswered):
    """A client whose user may read nothing any more, as in a workspace that has gone."""

    async def get(self, *arguments: object, **options: object) -> Object:
        raise Forbidden("access denied")


@virtual
async def test_what_may_not_be_read_any_more_keeps_nobody_from_reading() -> None:
    lagging = Lagging()
    await lagging.start()
    client = Refusing(lagging.twin, clock=LoopClock())
    client.error = TransportError("cut")
    executor = Executor(client, "test", overlay=lagging.overlay)
    with pytest.raises(TransportError):
        await executor.execute(Plan([Create(at("a"), config_map("a", "red"), "R")]))
    await lagging.overlay.resolve(client)
    assert lagging.names("red") == []
    await lagging.read()
    assert lagging.names("red") == ["a"]


@virtual
async def test_a_dry_run_and_other_types_leave_no_trace() -> None:
    lagging = Lagging()
    await lagging.start()
    dry = Executor(lagging.client, "test", overlay=lagging.overlay, dry_run=True)
    await dry.execute(Plan([Create(at("a"), config_map("a", "red"), "R")]))
    other = Target(NAMESPACES, "other")
    await lagging.execute(Create(other, {"metadata": {"name": "other"}}, "R"))
    assert lagging.names("red") == []
    assert lagging.overlay.get(Key("", "", "other")) is None


@virtual
async def test_one_executor_notifies_several_overlays_each_of_its_own_type() -> None:
    lagging = Lagging()
    await lagging.start()
    spaces = InformerOverlay(Informer(lagging.client, NAMESPACES, ids=SeededIds(1)))
    both = InformerOverlays(lagging.overlay, spaces)
    executor = Executor(lagging.client, "test", overlay=both)
    other = Create(Target(NAMESPACES, "other"), {"metadata": {"name": "other"}}, "R")
    await executor.execute(Plan([Create(at("a"), config_map("a", "red"), "R"), other]))
    assert lagging.names("red") == ["a"]
    assert spaces.get(Key("", "", "other")) is not None
    missing = Patch(Target(NAMESPACES, "nobody"), {}, "R")
    with pytest.raises(NotFound):
        await executor.execute(Plan([missing]))
    assert spaces.get(Key("", "", "nobody")) is None


@virtual
async def test_answers_are_kept_in_the_form_of_the_cache() -> None:
    def lean(content: Object, answer: Object) -> Object:
        return {"metadata": answer["metadata"], "data": {"color": content["data"]["color"].upper()}}

    lagging = Lagging()
    await lagging.start()
    overlay = InformerOverlay(
        lagging.informer, project=lean, fingerprint_of=lambda obj: obj["data"]["color"]
    )
    executor = Executor(lagging.client, "test", overlay=overlay)
    await executor.execute(Plan([Create(at("a"), config_map("a", "red"), "R")]))
    (shown,) = overlay.by(BY_COLOR, "RED")
    assert shown["metadata"]["resourceVersion"]
    assert overlay.take_echo(shown)
    patch = Patch(at("a"), {"data": {"color": "blue"}}, "R")
    await executor.execute(Plan([patch]))
    assert [obj["data"] for obj in overlay.by(BY_COLOR, "BLUE")] == [{"color": "BLUE"}]
    assert overlay.take_echo(shown), "from before the patch"
