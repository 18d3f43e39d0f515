"""The tables equal what one pass over the inputs finds, after any history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.api.edge import edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import LIVE, Lease, lapsed
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import Report
from skerry.logic.fleet.summary.standing import Hold, Named, Standing, Worst
from skerry.logic.fleet.summary.standing import reference as reference_standing
from skerry.logic.fleet.summary.tables import Labels, Source, SummaryTables, reference
from skerry.logic.fleet.summary.tally import DeliveredCopies, Totals
from skerry.logic.fleet.summary.tally import reference as reference_tally

DEPLOYMENTS = GroupResource("apps", "deployments")
CONFIG_MAPS = GroupResource("", "configmaps")
NAMESPACES = GroupResource("", "namespaces")
CLUSTERS = ["one", "two"]
SPACES = ["shop", "bank"]
UIDS = ["u1", "u2", "u3"]
ITEMS = [
    *(
        ObjectRef("", *kind, space, "web")
        for kind in (DEPLOYMENTS, CONFIG_MAPS)
        for space in SPACES
    ),
    ObjectRef("", *NAMESPACES, "", "shop"),
]
WELL = Report(delivered=True, reported=True, health=Health("True"), numbers=(("replicas", 2),))
ILL = Report(delivered=False, reported=True, health=Health("False", "Unavailable"))
THEIRS = replace(WELL, withheld_from=("two",))

placements = st.builds(edge_placement_ref, st.sampled_from(CLUSTERS), st.sampled_from(["p", "q"]))
destinations = st.builds(
    lambda location, uid: Destination("imw", location, f"st-{uid}", uid),
    st.sampled_from(["far", "near"]),
    st.sampled_from(UIDS),
)
items = st.sampled_from(ITEMS)
clusters = st.sampled_from(CLUSTERS)
answers = st.sampled_from(["yes", "no"])


@dataclass
class Selection:
    """Selects what is in namespaces with this label, and cluster-scoped items so labelled."""

    wanted: str

    def __call__(self, item: ObjectRef, labels: Labels, within: Labels) -> bool:
        return (within if item.namespace else labels).get("go") == self.wanted


Summary = tuple[ObjectRef, ObjectRef]


@dataclass
class Given:
    """Everything that was written, and nothing derived."""

    placements: dict[ObjectRef, Selection] = field(default_factory=dict)
    slices: dict[ObjectRef, list[Destination]] = field(default_factory=dict)
    sources: dict[ObjectRef, Source] = field(default_factory=dict)
    namespaces: dict[ObjectRef, Labels] = field(default_factory=dict)
    reports: dict[tuple[ObjectRef, str], Report] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)

    def tallies(self) -> dict[Summary, Totals | int]:
        return reference_tally(
            self._selected(), self._destinations(), self.reports, self.leases, 10
        )

    def standing(self, placement: ObjectRef) -> Standing | None:
        if placement not in self.placements:
            return None
        return reference_standing(
            placement, self._selected(), self._destinations(), self.reports, self.leases
        )

    def _selected(self) -> dict[Summary, bool]:
        return reference(dict(self.placements), self.sources, self.namespaces)

    def _destinations(self) -> dict[tuple[ObjectRef, str], Destination]:
        first: dict[tuple[ObjectRef, str], Destination] = {}
        for placement, found in self.slices.items():
            for destination in sorted(found):
                first.setdefault((placement, destination.uid), destination)
        return first


def counts(standing: Standing | None) -> Standing | None:
    """Return what the reference computes too: the counts without the names."""
    return standing and replace(standing, undelivered=(), unheard=(), worst=None, held=())


class SummaryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tables, self.given = SummaryTables(), Given()
        self.known: dict[Summary, object] = {}
        self.stood: dict[ObjectRef, Standing] = {}

    @rule(placement=placements, wanted=answers)
    def place(self, placement: ObjectRef, wanted: str) -> None:
        self.given.placements[placement] = Selection(wanted)
        self.tables.placements.put(placement, Selection(wanted))

    @rule(placement=placements)
    def withdraw(self, placement: ObjectRef) -> None:
        self.given.placements.pop(placement, None)
        self.given.slices.pop(placement, None)
        self.tables.drop_placement(placement)

    @rule(placement=placements, found=st.lists(destinations, max_size=4))
    def slice(self, placement: ObjectRef, found: list[Destination]) -> None:
        self.given.slices[placement] = found
        self.tables.set_destinations(placement, found)

    @rule(cluster=clusters, item=items, go=answers, odd=st.booleans())
    def put(self, cluster: str, item: ObjectRef, go: str, odd: bool) -> None:
        # A kind may come to have a status, or lose it, when its definition changes.
        source = Source({"go": go}, has_status=(item.group_resource != CONFIG_MAPS) != odd)
        self.given.sources[item.at(cluster)] = source
        self.tables.sources.put(item.at(cluster), source)

    @rule(cluster=clusters, item=items)
    def drop(self, cluster: str, item: ObjectRef) -> None:
        self.given.sources.pop(item.at(cluster), None)
        self.tables.sources.drop(item.at(cluster))

    @rule(cluster=clusters, name=st.sampled_from(SPACES), go=answers)
    def label(self, cluster: str, name: str, go: str) -> None:
        self.given.namespaces[namespace_ref(name, cluster)] = {"go": go}
        self.tables.namespaces.put(namespace_ref(name, cluster), {"go": go})

    @rule(cluster=clusters, name=st.sampled_from(SPACES))
    def clear(self, cluster: str, name: str) -> None:
        self.given.namespaces.pop(namespace_ref(name, cluster), None)
        self.tables.namespaces.drop(namespace_ref(name, cluster))

    @rule(uid=st.sampled_from(UIDS), item=items, report=st.sampled_from([WELL, ILL, THEIRS]))
    def report(self, uid: str, item: ObjectRef, report: Report) -> None:
        self.given.reports[item, uid] = report
        self.tables.reports.put_pair(item, uid, report)

    @rule(uid=st.sampled_from(UIDS), item=items)
    def lose(self, uid: str, item: ObjectRef) -> None:
        self.given.reports.pop((item, uid), None)
        self.tables.reports.drop_pair(item, uid)

    @rule(uid=st.sampled_from(UIDS), lease=st.sampled_from([LIVE, LIVE, lapsed(""), lapsed("t")]))
    def hear(self, uid: str, lease: Lease) -> None:
        self.given.leases[uid] = lease
        self.tables.leases.put(uid, lease)

    @rule(uid=st.sampled_from(UIDS))
    def never(self, uid: str) -> None:
        self.given.leases.pop(uid, None)
        self.tables.leases.drop(uid)

    # A rule like the others, so that batches have any size.
    @rule()
    def settle(self) -> None:
        expected = self.given.tallies()
        touched = self.tables.settle()

        found = {
            key: fold.delivered_copies if isinstance(fold, DeliveredCopies) else fold.totals(10)
            for key in self.tables.tallies
            if (fold := self.tables.tallies.get(key)) is not None
        }
        assert found == expected
        for placement in [edge_placement_ref(c, n) for c in CLUSTERS for n in ("p", "q")]:
            standing = self.tables.standing(placement)
            assert counts(standing) == self.given.standing(placement)
            # Whoever takes in a placement, or sees it go, knows that already.
            before = self.stood.pop(placement, None)
            if standing is not None and before is not None and standing != before:
                assert placement in touched.standings
            if standing is not None:
                self.stood[placement] = standing
        keys = expected.keys() | self.known.keys()
        assert {k for k in keys if expected.get(k) != self.known.get(k)} <= set(touched.summaries)
        self.known = dict(expected)


class OneByOne(SummaryMachine):
    """The same, settled after every single write."""

    @invariant()
    def settled(self) -> None:
        self.settle()


TestBatches = SummaryMachine.TestCase
TestBatches.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestOneByOne = OneByOne.TestCase
TestOneByOne.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

WEB = ObjectRef("", *DEPLOYMENTS, "shop", "web")
P, Q = edge_placement_ref("one", "p"), edge_placement_ref("one", "q")


def placed() -> SummaryTables:
    """Return the tables of one object that P sends to u1 and Q to u2."""
    tables = SummaryTables()
    for placement, uid in ((P, "u1"), (Q, "u2")):
        tables.placements.put(placement, Selection("yes"))
        tables.set_destinations(placement, [Destination("imw", "loc", f"st-{uid}", uid)])
        tables.leases.put(uid, LIVE)
    tables.namespaces.put(namespace_ref("shop", "one"), {"go": "yes"})
    tables.sources.put(WEB.at("one"), Source({}))
    tables.settle()
    return tables


def test_a_lease_that_lapses_makes_its_destination_unknown_in_every_summary_of_it() -> None:
    tables = placed()
    tables.reports.put_pair(WEB, "u2", WELL)
    tables.settle()

    tables.leases.put("u2", lapsed("2030-01-01T00:00:00Z"))

    assert tables.settle() == ([(Q, WEB)], [Q])
    tally = tables.tally(Q, WEB)
    assert tally is not None
    totals = tally.totals(1)
    assert (totals.healthy, totals.delivered, totals.reported, totals.unknown) == (0, 0, 0, 1)
    assert totals.numbers == ()
    assert totals.details[0].report.last_heard == "2030-01-01T00:00:00Z"


def test_an_edge_that_comes_back_counts_as_it_was_last_reported() -> None:
    tables = placed()
    tables.reports.put_pair(WEB, "u2", WELL)
    tables.settle()
    tally = tables.tally(Q, WEB)
    assert tally is not None
    before = tally.totals(1)
    tables.leases.put("u2", lapsed("t"))
    tables.settle()

    tables.leases.put("u2", LIVE)

    assert tables.settle() == ([(Q, WEB)], [Q])
    assert tally.totals(1) == before


def test_a_lease_that_lives_on_touches_nothing() -> None:
    tables = placed()

    tables.leases.put("u2", LIVE)

    assert tables.settle() == ([], [])


def test_a_standing_names_whom_nothing_was_heard_of_and_what_is_unhealthy() -> None:
    tables = placed()
    tables.set_destinations(P, [Destination("imw", f"loc-{uid}", f"st-{uid}", uid) for uid in UIDS])
    tables.reports.put_pair(WEB, "u1", ILL)
    tables.leases.put("u2", lapsed("2030-01-01T00:00:00Z"))
    tables.holds.put("u1", Hold("DeletionsHeld", "5 deletions wait"))
    tables.settle()

    standing = tables.standing(P)

    assert standing is not None
    assert standing.worst == Worst(WEB, "loc-u1", ILL.health)
    assert standing.unheard == (
        Named("loc-u2", "last heard of 2030-01-01T00:00:00Z"),
        Named("loc-u3", "not heard of yet"),
    )
    assert standing.undelivered == ("loc-u1",)
    assert standing.held == (("loc-u1", Hold("DeletionsHeld", "5 deletions wait")),)


def test_what_an_edge_holds_back_is_reported_to_the_workspaces_it_is_about() -> None:
    tables = placed()
    tables.holds.put("u1", Hold("DeletionsHeld", "5 deletions wait", ("two", "three")))
    tables.holds.put("u2", Hold("DeletionsHeld", "6 deletions wait", ("two", "one")))
    tables.settle()

    mine, other = tables.standing(P), tables.standing(Q)

    assert mine is not None
    assert mine.held == ()
    assert other is not None
    assert other.held == (("loc", Hold("DeletionsHeld", "6 deletions wait")),)
    tables.holds.drop("u2")
    assert tables.settle().standings == [Q]
    assert tables.standing(Q) == Standing(destinations=1, objects=1, undelivered=("loc",))


def test_another_cause_of_ill_health_touches_the_placement() -> None:
    tables = placed()
    tables.reports.put_pair(WEB, "u1", ILL)
    tables.settle()

    tables.reports.put_pair(WEB, "u1", replace(ILL, health=Health("False", "CrashLoopBackOff")))

    assert tables.settle().standings == [P]


def test_a_refused_copy_of_a_kind_without_status_is_undelivered_and_unhealthy() -> None:
    tables = placed()
    config = ObjectRef("", *CONFIG_MAPS, "shop", "settings")
    tables.sources.put(config.at("one"), Source({}, has_status=False))
    tables.reports.put_pair(WEB, "u1", WELL)
    tables.reports.put_pair(config, "u1", Report(health=Health("False", "NotOurs")))
    tables.settle()

    standing = tables.standing(P)

    assert standing is not None
    assert (standing.delivered, standing.unhealthy, standing.healthy) == (0, 1, 0)
    assert standing.worst == Worst(config, "loc", Health("False", "NotOurs"))


def test_a_copy_that_is_another_workspaces_reports_nothing_to_whom_it_is_withheld_from() -> None:
    tables = placed()
    theirs = edge_placement_ref("two", "p")
    tables.placements.put(theirs, Selection("yes"))
    tables.namespaces.put(namespace_ref("shop", "two"), {"go": "yes"})
    tables.sources.put(WEB.at("two"), Source({}))
    tables.set_destinations(theirs, [Destination("imw", "loc", "st-u1", "u1")])
    tables.reports.put_pair(WEB, "u1", replace(WELL, withheld_from=("two",)))
    tables.settle()

    mine, rival = tables.tally(P, WEB), tables.tally(theirs, WEB)
    standing = tables.standing(theirs)

    assert mine is not None
    assert mine.totals(1).healthy == 1
    assert rival is not None
    totals = rival.totals(1)
    assert (totals.delivered, totals.healthy, totals.unhealthy, totals.numbers) == (0, 0, 1, ())
    assert totals.details[0].report.health.reason == "NameTaken"
    assert standing is not None
    assert (standing.delivered, standing.unhealthy) == (0, 1)
    tables.reports.put_pair(WEB, "u1", WELL)
    tables.settle()
    assert rival.totals(1).healthy == 1, "the same content is no conflict"


def test_a_report_touches_only_the_placements_that_go_there_with_that_object() -> None:
    tables = placed()

    tables.reports.put_pair(WEB, "u2", WELL)

    assert tables.settle().summaries == [(Q, WEB)]


def test_an_equal_report_touches_nothing() -> None:
    tables = placed()
    tables.reports.put_pair(WEB, "u2", WELL)
    tables.settle()

    tables.reports.put_pair(WEB, "u2", WELL)

    assert tables.settle() == ([], [])


def test_a_source_that_is_served_otherwise_touches_its_summaries() -> None:
    tables = placed()

    tables.sources.put(WEB.at("one"), Source({}, version="v2"))

    assert tables.settle().summaries == [(P, WEB), (Q, WEB)]


def test_an_object_of_that_name_in_another_workspace_touches_nothing_here() -> None:
    tables = placed()

    tables.sources.put(WEB.at("two"), Source({}))

    assert tables.settle().summaries == []


def test_a_delivered_copy_of_a_kind_without_status_touches_the_count() -> None:
    tables = placed()
    config = ObjectRef("", *CONFIG_MAPS, "shop", "settings")
    tables.sources.put(config.at("one"), Source({}, has_status=False))
    tables.settle()

    tables.reports.put_pair(config, "u1", Report(delivered=True))

    assert tables.settle().standings == [P]
    assert [
        standing and standing.delivered_copies for standing in map(tables.standing, (P, Q))
    ] == [
        1,
        0,
    ]


def test_two_locations_of_one_edge_are_one_destination_named_by_the_first() -> None:
    tables = placed()

    tables.set_destinations(
        P, [Destination("imw", "far", "st-u1", "u1"), Destination("imw", "city", "st-u1", "u1")]
    )
    tables.settle()

    tally = tables.tally(P, WEB)
    assert tally is not None
    assert [detail.destination.location for detail in tally.totals(5).details] == ["city"]


def test_what_is_not_placed_or_has_no_status_has_no_tally() -> None:
    tables = placed()

    assert tables.tally(P, WEB.at("one")) is None
    assert tables.standing(edge_placement_ref("one", "other")) is None


def test_a_report_costs_the_same_at_ten_edges_and_at_a_thousand() -> None:
    costs = []
    for edges in (10, 1000):
        tables = placed()
        tables.set_destinations(
            P, [Destination("imw", f"loc-{n}", f"st-{n}", f"u{n}") for n in range(edges)]
        )
        tables.settle()
        before = tables.flow.touched
        tables.reports.put_pair(WEB, "u5", WELL)
        tables.settle()
        costs.append(tables.flow.touched - before)

    assert costs[0] == costs[1] <= 4
