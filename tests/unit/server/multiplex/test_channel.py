"""One watch among several: who puts its lines together has what is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import ApiError, Gone
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery.patch.json_patch import apply_json_patch
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.http.message import Request
from skerry.server.multiplex.channel import Channel, _parts
from skerry.server.request.options import list_options
from skerry.server.request.selection import Selection
from skerry.server.response.rendering import representation
from skerry.server.rest.read import Reader
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Entry, Event, Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


class Lines:
    """Where the lines of a stream go."""

    def __init__(self) -> None:
        self.events: list[Object] = []
        self.errors: list[ApiError] = []
        self.flushed = 0

    def line(self, line: bytes) -> None:
        self.events.append(orjson.loads(line))

    def flush(self) -> None:
        self.flushed += 1

    def failed(self, channel: Channel, error: ApiError) -> None:
        self.errors.append(error)


def channel(lines: Lines, query: str = "", *, compact: bool = True) -> Channel:
    request = Request("GET", "/", query)
    call = call_of(
        resource("configmaps"),
        request=request,
        cluster="root",
        namespace="ns",
        verb="watch",
        version="v1",
        resource="configmaps",
    )
    shown = representation(call, lambda: datetime(2030, 1, 1, tzinfo=UTC))
    selection = Selection(call, list_options(request))
    return Channel("maps", call, selection, shown, lines, compact=compact)


def key(name: str = "a") -> str:
    return ObjectKey("", "configmaps", "root", "ns", name).path()


def value(data: dict[str, str], labels: dict[str, str] | None = None, name: str = "a") -> bytes:
    metadata: Object = {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": labels or {}}
    metadata["managedFields"] = [{"manager": "me", "operation": "Update"}]
    return encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def reader_of(events: list[Object]) -> dict[str, Object]:
    """Return what a reader has who does as the lines say."""
    held: dict[str, Object] = {}
    for event in events:
        assert event["watch"] == "maps"
        obj = event["object"]
        name = obj["metadata"]["name"]
        if event["type"] == "PATCHED":
            assert held[name]["metadata"]["resourceVersion"] == obj["from"]
            base = held[name]
            base["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
            held[name] = apply_json_patch(base, obj["patch"])
        elif event["type"] == "DELETED":
            del held[name]
        else:
            held[name] = obj
    return held


_data = st.dictionaries(st.sampled_from(["a", "b", "long"]), st.sampled_from(["", "x", "y" * 500]))
_labels = st.sampled_from([{}, {"app": "x"}, {"app": "y"}])


@given(st.lists(st.none() | st.tuples(_data, _labels), max_size=8), st.booleans(), st.booleans())
def test_who_follows_the_lines_has_what_is_stored_and_selected(
    states: list[tuple[dict[str, str], dict[str, str]] | None], compact: bool, selects: bool
) -> None:
    lines = Lines()
    made = channel(lines, "labelSelector=app%3Dx" if selects else "", compact=compact)
    before: bytes | None = None
    revision = previous = 0
    for state in states:
        after = None if state is None else value(*state)
        if after is None and before is None:
            continue
        previous, revision = revision, revision + 1
        made.offer(Change(Event(revision, key(), after, before, previous if before else 0)))
        before = after
    wanted: dict[str, Object] = {}
    if before is not None and (
        not selects or decode(before, 1)["metadata"]["labels"] == {"app": "x"}
    ):
        wanted["a"] = decode(before, revision)
        if compact:
            del wanted["a"]["metadata"]["managedFields"]
    assert reader_of(lines.events) == wanted


def test_a_small_change_of_a_large_object_costs_a_line() -> None:
    lines = Lines()
    made = channel(lines)
    big = {"big": "x" * 10_000}
    made.offer(Change(Event(2, key(), value({**big, "n": "1"}), value(big), 1)))
    assert lines.events[0]["type"] == "PATCHED"
    assert len(orjson.dumps(lines.events[0])) < 300


def test_what_a_reader_has_seen_is_not_sent_again() -> None:
    lines = Lines()
    made = channel(lines)
    made.after = 5
    assert not made.offer(Change(Event(5, key(), value({}), None, 0)))
    assert made.offer(Change(Event(6, key(), value({}), None, 0)))
    assert len(lines.events) == 1


def test_a_channel_that_missed_changes_ends_as_too_old() -> None:
    lines = Lines()
    channel(lines).expire(9)
    assert isinstance(lines.errors[0], Gone)


def test_a_channel_needs_the_rights_to_list_and_to_watch_what_it_shows() -> None:
    needs = channel(Lines()).needs
    assert [each.verb for each in needs] == ["list", "watch"]
    assert {(each.cluster, each.resource, each.namespace) for each in needs} == {
        ("root", "configmaps", "ns")
    }


async def test_the_state_names_what_a_reader_knows_and_shows_the_rest() -> None:
    store = MemoryStore("test")
    [first] = await store.commit([Write(key("a"), value({}, name="a"))])
    [second] = await store.commit([Write(key("b"), value({}, name="b"))])
    other = ObjectKey("", "configmaps", "root", "other", "c").path()
    await store.commit([Write(other, value({}, name="c"))])
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    reader = Reader(store, dispatcher, lambda: datetime(2030, 1, 1, tzinfo=UTC))

    async def state(known: int) -> list[tuple[str, Any]]:
        made = channel(Lines())
        lines = [orjson.loads(line) async for some in made.state(reader, known) for line in some]
        assert made.after == await store.revision()
        return [
            (each["type"], each["object"].get("names") or each["object"]["metadata"]["name"])
            for each in lines
        ]

    assert await state(0) == [("ADDED", "a"), ("ADDED", "b")]
    assert await state(first) == [("ADDED", "b"), ("UNCHANGED", [["ns", "a"]])]
    assert await state(second) == [("UNCHANGED", [["ns", "a"], ["ns", "b"]])]


@given(st.lists(st.tuples(st.integers(0, 100_000), st.booleans()), max_size=20))
def test_parts_hold_every_entry_once_and_none_is_much_too_large(
    sizes: list[tuple[int, bool]],
) -> None:
    entries = [Entry(f"/{n}", bytes(size), 9 if new else 1) for n, (size, new) in enumerate(sizes)]
    parts = list(_parts(entries, 5))
    assert [entry for part in parts for entry in part] == entries
    for part in parts:
        assert sum(len(each.value) for each in part[:-1] if each.revision > 5) <= 64 << 10
