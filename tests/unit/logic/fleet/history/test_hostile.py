"""Whatever is written into a record, it is corrupt or every reader can do with it.

Tenants may write records, and the digest in a name is one that anybody can compute: records here
are changed in one or two places and named for what they then say.
"""

from __future__ import annotations

import base64
import copy
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.edge import edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.history.decide import ObservedHistory, decide
from skerry.logic.fleet.console.past import edges_then
from skerry.logic.fleet.history.audit import AuditTrail, audit_event
from skerry.logic.fleet.history.chain import verify
from skerry.logic.fleet.history.compare import compare
from skerry.logic.fleet.history.fold import State, UnknownThen, folded, timeline
from skerry.logic.fleet.history.packing import Corrupt, Standing, packed_slots
from skerry.logic.fleet.history.record import (
    Cause,
    Decision,
    Head,
    Item,
    Reason,
    _content,
    checkpoint_of,
    digest,
    order_of,
    read,
    records_of,
)
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.fleet.history.text import (
    Selection,
    difference_rows,
    selected,
    state_rows,
    table,
)
from tests.kit.decisions import ANN, MAKER, NOW, SUBJECT, destination

P = edge_placement_ref("wmw", "web")
Path = tuple[str | int, ...]


def packed(rows: object) -> str:
    return base64.b64encode(zlib.compress(orjson.dumps(rows))).decode()


def row(slot: object, revision: object = None, cluster: object = "inv") -> list[object]:
    return [cluster, "l1", "t1", "uid-1", slot, revision]


def whole_history() -> list[Object]:
    """Return a record of every kind, with a checkpoint in the middle."""
    two = tuple(Standing(destination(n), n, 3) for n in (1, 2))
    many = tuple(Standing(destination(n), n, 3) for n in range(10, 40))
    bare = (Standing(destination(50)),)
    deployment = Item("apps", "deployments", "default", "web", "a" * 8, "b" * 8)
    causes = (ANN, Cause("Rollout", "web", "wmw", user="bob"))
    before = [
        Decision("Joined", two, Reason("Selected", "it matches"), causes, 2, None, 3),
        Decision("Joined", many, Reason("Selected"), to=3),
        Decision("Joined", bare, Reason("Selected")),
        Decision("Revised", bare, Reason("RolloutGone")),
    ]
    after = [
        Decision("Revised", two, Reason("WaveOpened"), causes, 9, 3, 4),
        Decision("Revised", (), Reason("Edited"), causes, 2, item=deployment, count=2),
        Decision("Delivered", two, Reason("Delivered"), to=4),
        Decision("Judged", two, Reason("Good"), to=4),
        Decision("Held", two, Reason("Guard", "a budget")),
        Decision("Left", two[:1], Reason("NotSelected"), start=4),
        Decision("Left", (), Reason("Deleted"), everybody=32),
    ]
    found = records_of(before, SUBJECT, MAKER, follows=100, head=None, now=NOW)
    state = folded(timeline(found), len(found))
    last = order_of(found[-1]["metadata"]["name"])
    assert last is not None
    head = Head(last, digest(found[-1]))
    found += checkpoint_of(
        list(state.standings.values()),
        SUBJECT,
        MAKER,
        after=last,
        time=NOW,
        chains={MAKER.controller: head.digest},
    )
    return found + records_of(after, SUBJECT, MAKER, follows=102, head=head, now=NOW)


HISTORY = whole_history()


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every field, inner ones too."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        if not path and name in ("metadata", "apiVersion", "kind"):
            continue
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, name))


PLACES = [(at, path) for at, obj in enumerate(HISTORY) for path in paths(obj)]
ABSENT = object()
# One that is nearly right hurts more often than any other.
NEARLY: list[object] = [
    ABSENT, None, True, 0, -1, 1, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 0.5,
    "", "AAAA", "!!!!", "Checkpoint", "Revised", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    [], [[]], [{}], {}, {"slot": 1}, {"state": "AAAA"},
    packed([]), packed([row(1, 3)]), packed([row(-1)]), packed([row(2**40)]), packed([row(True)]),
    packed([row(1, 2**64 - 1)]), packed([row(1, -1)]), packed([row(1.0)]),
    packed([row(1, cluster=1)]),
    packed([row(1)[:4]]), packed([[*row(1), 1]]), packed([row(1), row(1)[:5]]), packed(["abcdef"]),
    packed({"a": 1}), packed([{"abcdef": 1}]), packed([5]), packed(5), packed(None), packed("rows"),
    packed_slots(BitMap([2**32 - 1])), packed_slots(range(5)),
]  # fmt: skip
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
changes = st.tuples(st.sampled_from(PLACES), st.sampled_from(NEARLY) | json)


def changed(obj: Object, path: Path, value: object) -> Object:
    """Return *obj* with another value at *path*, and the name for that, where it may have one."""
    found = copy.deepcopy(obj)
    inner: Any = found
    for step in path[:-1]:
        inner = inner[step]
    if value is not ABSENT:
        inner[path[-1]] = value
    else:
        del inner[path[-1]]
    return named_for_itself(found)


def named_for_itself(obj: Object) -> Object:
    try:
        content = _content(obj)
    except (KeyError, TypeError):
        return obj
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "name": metadata["name"][:-8] + content}}


def read_by_everybody(objects: list[Object]) -> None:
    """Have every reader read a history; only that a state is not known may be raised."""
    line = timeline(objects)
    zone = NOW.astimezone(timezone(timedelta(hours=14)))
    for place in ("", "l1", "l20", "l50"):
        table(selected(line, Selection(location=place)), zone)
    selected(line, Selection(object="deployments.apps/default/web"))
    states = [State({})]
    for end in (1, 4, len(line.records)):
        try:
            states.append(folded(line, end))
            edges_then("web", line, NOW, NOW)
        except UnknownThen:
            continue
    for before, after in pairwise(states):
        difference_rows(compare(before, after))
        state_rows(after)
    verify(objects)
    trail = AuditTrail([b'{"auditID": "x", "responseStatus": {"code": 200}}'])
    for record in line.records:
        trail.with_users(dict(record.object))
        audit_event(dict(record.object))
    for limits, now in (
        (Limits(), NOW + timedelta(days=2)),
        (Limits(records=3), NOW),
        (Limits(), LATE),
    ):
        decide(ObservedHistory(P, objects, limits), now, MAKER)


LATE = datetime(2126, 1, 1, tzinfo=NOW.tzinfo)


def test_every_reader_reads_what_is_well_written() -> None:
    assert not timeline(HISTORY).broken
    read_by_everybody(HISTORY)


@given(st.lists(changes, min_size=1, max_size=2))
def test_a_record_is_corrupt_or_every_reader_can_do_with_it(
    made: list[tuple[tuple[int, Path], object]],
) -> None:
    objects = list(HISTORY)
    for (at, path), value in made:
        try:
            objects[at] = changed(objects[at], path, value)
        except (KeyError, IndexError, TypeError):
            continue  # the first change took away what the second is about
    read_by_everybody(objects)


@pytest.mark.parametrize("at", range(len(HISTORY)))
def test_no_value_that_is_nearly_right_stops_a_reader_wherever_it_is(at: int) -> None:
    for path in paths(HISTORY[at]):
        if at and path[0] in ("cause", "otherCauses"):
            continue  # those of the first record are like any
        for value in NEARLY:
            if isinstance(value, str) and path[0] not in ("destinations", "time", "change", "to"):
                continue  # one text is like another there
            obj = changed(HISTORY[at], path, value)
            with suppress(Corrupt):
                read(obj)
                read_by_everybody([*HISTORY[:at], obj, *HISTORY[at + 1 :]])


@pytest.mark.parametrize("slot", [-1, 2**31, 2**40, 2**63 - 1, True, 1.0, "1"])
def test_a_slot_is_a_number_that_placements_come_to(slot: object) -> None:
    joined, checkpoint = HISTORY[0], HISTORY[4]
    with pytest.raises(Corrupt, match=r"web-000000000100-0000-.*want|whole numbers"):
        read(changed(joined, ("destinations", "named", 0, "slot"), slot))
    for obj in (checkpoint, HISTORY[1]):
        with pytest.raises(Corrupt, match=r"destinations\.state: "):
            read(changed(obj, ("destinations", "state"), packed([row(slot)])))


@pytest.mark.parametrize("destinations", [ABSENT, {}, {"count": 0}, {"state": "AAAA"}])
def test_a_checkpoint_that_has_no_state_is_broken_and_what_came_before_unknown_from_there(
    destinations: object,
) -> None:
    objects = [*HISTORY[:4], changed(HISTORY[4], ("destinations",), destinations), *HISTORY[5:]]
    line = timeline(objects)
    assert list(line.broken) == [4]
    assert len(line.records) == len(HISTORY) - 1
    with pytest.raises(UnknownThen, match="z001"):
        folded(line, len(line.records))
    assert len(folded(line, 4).standings) == 33


def test_slots_beyond_any_placement_are_no_slots() -> None:
    obj = changed(HISTORY[0], ("destinations", "slots"), packed_slots([2**31]))
    with pytest.raises(Corrupt, match=r"slot 2147483648: want one below 2147483648"):
        read(obj)


def test_a_billion_slots_in_a_few_bytes_take_no_time() -> None:
    everywhere = BitMap()
    everywhere.add_range(0, 2**31)
    objects = list(HISTORY)
    for at in range(len(HISTORY)):
        if "slots" in HISTORY[at].get("destinations", {}):
            text = packed_slots(everywhere)
            objects[at] = changed(objects[at], ("destinations", "slots"), text)
    assert len(timeline(objects).records) == len(HISTORY)
    read_by_everybody(objects)


@pytest.mark.parametrize("rows", [[[]] * 200_000, [{}] * 200_000, [0] * 200_000, [[0] * 200_000]])
def test_a_state_is_not_made_into_more_objects_than_a_record_has_destinations(rows: object) -> None:
    with pytest.raises(Corrupt, match="values: want at most 160000 in a record"):
        read(changed(HISTORY[4], ("destinations", "state"), packed(rows)))
