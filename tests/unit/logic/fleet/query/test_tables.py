"""After every change the answer that was kept up is the one computed from scratch.

The history is random: copies come, change and go, placements select and go elsewhere, Locations
are relabelled, Leases lapse. ``SKERRY_HISTORIES`` raises how many there are.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.answer import reference
from skerry.logic.fleet.query.expressions import Failure, kept
from skerry.logic.fleet.query.plan import QueryPlan, plan_of
from skerry.logic.fleet.query.rows import Copy, Evaluator, Target
from skerry.logic.fleet.query.tables import QueryTables
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.report import Report
from skerry.logic.machinery.edges.scope import UpsyncRule

HISTORIES = int(os.environ.get("SKERRY_HISTORIES", "60"))
CLUSTERS = ["shop", "bank"]
PLACEMENTS = [edge_placement_ref(cluster, name) for cluster in CLUSTERS for name in ("p", "q")]
UIDS = ["u1", "u2", "u3"]
ITEMS = [ObjectRef("", "apps", "deployments", space, name) for space in "ab" for name in ("x", "y")]
LOCATIONS = [("inv", "oslo"), ("inv", "bern")]
CUTOFF = "2030-01-01T00:00:30Z"

DEPLOYMENTS: Object = {"apiGroup": "apps", "resources": ["deployments"]}
REGION: Object = {"name": "region", "value": "location.labels[?'region'].orValue('none')"}
SPECS: list[Object] = [
    {
        "from": DEPLOYMENTS,
        "groupBy": [REGION],
        "aggregates": [
            {"name": "edges", "function": "Count"},
            {"name": "total", "function": "Sum", "of": "status.n"},
            {"name": "least", "function": "Min", "of": "status.n"},
            {"name": "peak", "function": "Max", "of": "status.n"},
            {"name": "mean", "function": "Avg", "of": "status.n"},
            {"name": "p50", "function": "Percentile", "percentile": 50, "of": "status.n"},
            {"name": "worst", "function": "Top", "k": 2, "of": "status.n", "show": "placement"},
        ],
        "orderBy": [{"column": "total", "descending": True}],
    },
    {
        "from": {**DEPLOYMENTS, "namespaces": ["a"], "placements": ["q"]},
        "filter": "report.healthy == 'True' && status.n != 3",
        "groupBy": [{"name": "n", "value": "status.n"}, {"name": "t", "value": "syncTarget.ready"}],
        "aggregates": [{"name": "rows", "function": "Count"}],
        "having": "rows > 1",
        "limit": 2,
    },
    {
        "from": DEPLOYMENTS,
        "select": [
            {"name": "where", "value": "location.name"},
            {"name": "n", "value": "status.n"},
            {"name": "mixed", "value": "status.n > 2 ? location.labels.region : obj.kind"},
        ],
        "orderBy": [{"column": "n", "descending": True}],
        "limit": 3,
    },
    {"from": {"rows": "Destinations"}, "groupBy": [REGION],
     "aggregates": [{"name": "edges", "function": "Count"}]},
    {"from": DEPLOYMENTS, "groupBy": [{"name": "at", "value": "report.revision"}],
     "aggregates": [{"name": "edges", "function": "Count"}]},
    {"from": {**DEPLOYMENTS, "rows": "Upsynced"}, "groupBy": [REGION],
     "aggregates": [{"name": "n", "function": "Sum", "of": "status.n"}]},
]  # fmt: skip


def plan(spec: Object) -> QueryPlan:
    found, errors = plan_of(spec)
    assert found is not None, errors
    return found


PLANS = [plan(spec) for spec in SPECS]
PARTS = list(dict.fromkeys(part for each in PLANS for part in each.parts()))
POSITIONS = {part.tree: number for number, part in enumerate(PARTS, 1)}


def copy_of(status: Object, **report: Any) -> Copy:
    scope = {"obj": {"kind": "Deployment"}, "status": status}
    return (Report(**report), *(kept(part.program, dict(scope)) for part in PARTS))


numbers = st.one_of(
    st.integers(0, 4), st.sampled_from([0.5, 2.0, 1e300, -1, 2**70, "3", None, float("nan"), [1]])
)
statuses = st.one_of(st.just({}), st.builds(lambda n: {"n": n}, numbers))
times = st.sampled_from(["", "2030-01-01T00:00:10Z", "2030-01-01T00:00:50Z"])
copies = st.none() | st.builds(
    lambda status, time, owners: copy_of(status, delivered=True, time=time, withheld_from=owners),
    statuses,
    times,
    st.sampled_from([(), (), ("shop",)]),
)
destinations = st.none() | st.sampled_from(LOCATIONS)
labels = st.none() | st.builds(lambda r: {"region": r}, st.sampled_from(["north", "south"]))
rules = st.sampled_from([(), (UpsyncRule("apps", None, None, None),)])
changes = st.one_of(
    st.tuples(st.just("copy"), st.sampled_from(ITEMS), st.sampled_from(UIDS), copies),
    st.tuples(st.just("copy"), st.sampled_from(ITEMS), st.sampled_from(UIDS), copies),
    st.tuples(st.just("upsynced"), st.sampled_from(ITEMS), st.sampled_from(UIDS), copies),
    st.tuples(
        st.just("selected"), st.sampled_from(PLACEMENTS), st.sampled_from(ITEMS), st.booleans()
    ),
    st.tuples(
        st.just("destination"), st.sampled_from(PLACEMENTS), st.sampled_from(UIDS), destinations
    ),
    st.tuples(st.just("location"), st.sampled_from(LOCATIONS), labels),
    st.tuples(st.just("target"), st.sampled_from(UIDS), st.none() | st.just(Target(ready=True))),
    st.tuples(st.just("lease"), st.sampled_from(UIDS), st.sampled_from([None, LIVE, lapsed("")])),
    st.tuples(st.just("upsync"), st.sampled_from(PLACEMENTS), rules),
    st.tuples(
        st.just("noted"),
        st.sampled_from(UIDS),
        st.none() | st.dictionaries(st.sampled_from(PLACEMENTS), st.integers(1, 3), max_size=2),
    ),
)


def apply(tables: QueryTables, change: tuple[Any, ...]) -> None:
    match change:
        case "copy", item, uid, copy:
            tables.put_copy(item, uid, copy)
        case "upsynced", item, uid, copy:
            tables.put_upsynced(item, uid, copy)
        case "selected", placement, item, selected:
            tables.put_selected(placement, item, selected=selected)
        case "destination", placement, uid, place:
            found = None if place is None else Destination(place[0], place[1], f"st-{uid}", uid)
            tables.put_destination(placement, uid, found)
        case "location", place, found:
            tables.put_location(place, found)
        case "target", uid, target:
            tables.put_target(uid, target)
        case "lease", uid, lease:
            tables.put_lease(uid, lease)
        case "upsync", placement, found:
            tables.put_upsync(placement, found)
        case "noted", uid, found:
            tables.put_noted(uid, found)
        case _:
            raise AssertionError(change)


def query(number: int, cluster: str) -> ObjectRef:
    return ObjectRef(cluster or "espw", "edge.kcp.io", "statusqueries", "", f"q{number}")


QUERIES = [
    (query(number, cluster), cluster, each)
    for number, each in enumerate(PLANS)
    for cluster in (*CLUSTERS, "")
]


def empty(tables: QueryTables) -> None:
    """Take everything back."""
    for item in ITEMS:
        for uid in UIDS:
            tables.put_copy(item, uid, None)
            tables.put_upsynced(item, uid, None)
        for placement in PLACEMENTS:
            tables.put_selected(placement, item, selected=False)
    for placement in PLACEMENTS:
        tables.put_upsync(placement, ())
        for uid in UIDS:
            tables.put_destination(placement, uid, None)
    for uid in UIDS:
        tables.put_target(uid, None)
        tables.put_lease(uid, None)
        tables.put_noted(uid, None)
    for place in LOCATIONS:
        tables.put_location(place, None)


@settings(max_examples=HISTORIES, deadline=None)
@given(st.lists(changes, max_size=40), st.lists(changes, max_size=40))
def test_after_every_change_the_answer_is_the_one_from_scratch(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    changed: list[ObjectRef] = []
    tables = QueryTables(changed.append)
    for change in before:
        apply(tables, change)
    known = {}
    for ref, cluster, each in QUERIES:
        tables.start(ref, cluster, each, Evaluator(each, POSITIONS))
        known[ref] = tables.answer(ref, CUTOFF)
    for change in after:
        changed.clear()
        apply(tables, change)
        for ref, _, each in QUERIES:
            found = tables.answer(ref, CUTOFF)
            scratch = reference(each, Evaluator(each, POSITIONS), tables.rows(ref), CUTOFF)
            assert found == scratch
            assert found == known[ref] or ref in changed
            sources, status = found.status["sources"], found.status
            assert sources["destinations"] == sources["absent"] + status["matched"] + status[
                "filtered"] + status["errors"]["excluded"]  # fmt: skip
            known[ref] = found
    empty(tables)
    for ref, _, _ in QUERIES:
        assert not tables.fold(ref)
        tables.stop(ref)
    assert not tables


@settings(max_examples=HISTORIES, deadline=None)
@given(st.lists(changes, max_size=60))
def test_what_groups_come_to_is_what_counting_by_hand_says(history: list[tuple[Any, ...]]) -> None:
    tables = QueryTables(lambda _: None)
    ref = query(0, "shop")
    tables.start(ref, "shop", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    state: dict[tuple[Any, ...], Any] = {}
    for change in history:
        apply(tables, change)
        state[change[:-1]] = change[-1]
    expected: dict[str, list[Any]] = {}
    for item in ITEMS:
        for uid in UIDS:
            leading = [
                placement
                for placement in PLACEMENTS
                if placement.cluster == "shop"
                and state.get(("selected", placement, item))
                and state.get(("destination", placement, uid))
            ]
            copy = state.get(("copy", item, uid))
            if leading and copy is not None and "shop" not in copy[0].withheld_from:
                place = state["destination", min(leading), uid]
                region = (state.get(("location", place)) or {}).get("region", "none")
                expected.setdefault(region, []).append(copy[POSITIONS[PLANS[0].parts()[0].tree]])
    status = tables.answer(ref, CUTOFF).status
    rows = {row["values"][0]: row["values"][1:6] for row in status["rows"]}
    assert rows.keys() == expected.keys()
    for region, values in expected.items():
        count, total, least, peak, mean = rows[region]
        valid = [v for v in values if _is_number(v)]
        assert count == len(values)
        if not valid:
            assert [total, least, peak, mean] == [None] * 4
        elif all(isinstance(v, int) and abs(v) < 2**50 for v in valid):
            assert [total, least, peak] == [sum(valid), min(valid), max(valid)]
            assert abs(mean - sum(valid) / len(valid)) < 1e-9


def _is_number(value: Any) -> bool:
    return not isinstance(value, Failure) and type(value) in (int, float) and value == value


def test_a_row_is_counted_once_however_many_placements_lead_there() -> None:
    tables = QueryTables(lambda _: None)
    ref = query(0, "shop")
    tables.start(ref, "shop", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    for placement in PLACEMENTS[:2]:
        apply(tables, ("selected", placement, ITEMS[0], True))
        apply(tables, ("destination", placement, "u1", LOCATIONS[0]))
    apply(tables, ("copy", ITEMS[0], "u1", copy_of({"n": 7})))
    [row] = tables.answer(ref, "").status["rows"]
    assert row["values"] == ["none", 1, 7, 7, 7, 7, 7, [{"value": 7, "show": "p"}]]


def test_a_copy_of_another_workspace_is_absent() -> None:
    tables = QueryTables(lambda _: None)
    ref = query(0, "shop")
    tables.start(ref, "shop", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    apply(tables, ("selected", PLACEMENTS[0], ITEMS[0], True))
    apply(tables, ("destination", PLACEMENTS[0], "u1", LOCATIONS[0]))
    apply(tables, ("copy", ITEMS[0], "u1", copy_of({"n": 7}, withheld_from=("shop",))))
    status = tables.answer(ref, "").status
    assert status["rows"] == []
    assert status["sources"] == {"destinations": 1, "reporting": 0, "stale": 0, "absent": 1}


def test_another_workspaces_objects_are_no_rows() -> None:
    tables = QueryTables(lambda _: None)
    ref = query(0, "shop")
    tables.start(ref, "shop", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    bank = PLACEMENTS[2]
    apply(tables, ("selected", bank, ITEMS[0], True))
    apply(tables, ("destination", bank, "u1", LOCATIONS[0]))
    apply(tables, ("copy", ITEMS[0], "u1", copy_of({"n": 7})))
    assert tables.answer(ref, "").status["sources"]["destinations"] == 0
    everything = query(0, "")
    tables.start(everything, "", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    assert tables.answer(everything, "").status["matched"] == 1


def test_nothing_of_a_kind_is_kept_once_it_is_forgotten() -> None:
    tables = QueryTables(lambda _: None)
    apply(tables, ("copy", ITEMS[0], "u1", copy_of({"n": 7})))
    apply(tables, ("upsynced", ITEMS[1], "u1", copy_of({"n": 7})))
    assert tables
    tables.forget_kind(ITEMS[0].group_resource)
    assert not tables


def test_a_query_holds_as_much_as_it_has_rows() -> None:
    tables = QueryTables(lambda _: None)
    ref = query(0, "shop")
    tables.start(ref, "shop", PLANS[0], Evaluator(PLANS[0], POSITIONS))
    assert tables.memory_of(ref) == 0
    apply(tables, ("selected", PLACEMENTS[0], ITEMS[0], True))
    sizes = []
    for uid in ("u1", "u2"):
        apply(tables, ("destination", PLACEMENTS[0], uid, LOCATIONS[0]))
        apply(tables, ("copy", ITEMS[0], uid, copy_of({"n": 7})))
        sizes.append(tables.memory_of(ref))
    assert sizes[1] == 2 * sizes[0] > 0
    tables.stop(ref)
    tables.stop(ref)
    assert ref not in tables
