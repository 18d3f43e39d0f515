"""The ledger equals what one pass over everything would find, after any history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.api.edge import edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.accumulator import Totals, total
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.ledger import Change, Labels, Ledger, Source
from skerry.logic.fleet.summary.report import ABSENT, Report

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

refs = st.builds(ObjectRef, st.sampled_from(CLUSTERS), st.sampled_from(["p", "q"]))
destinations = st.builds(
    lambda location, uid: Destination("imw", location, f"st-{uid}", uid),
    st.sampled_from(["far", "near"]),
    st.sampled_from(UIDS),
)
items = st.sampled_from(ITEMS)


@dataclass
class Selection:
    """Selects what is in namespaces with this label, and cluster-scoped items so labelled."""

    wanted: str

    def __call__(self, item: ObjectRef, labels: Labels, within: Labels) -> bool:
        return (within if item.namespace else labels).get("go") == self.wanted


@dataclass
class Twin:
    """Everything that was told, and nothing derived."""

    placements: dict[ObjectRef, Selection] = field(default_factory=dict)
    slices: dict[ObjectRef, list[Destination]] = field(default_factory=dict)
    sources: dict[tuple[str, ObjectRef], Source] = field(default_factory=dict)
    namespaces: dict[tuple[str, str], Labels] = field(default_factory=dict)
    copies: dict[tuple[str, ObjectRef], Report] = field(default_factory=dict)

    def placed(self, ref: ObjectRef) -> list[tuple[ObjectRef, Source]]:
        return [
            (item, source)
            for (cluster, item), source in self.sources.items()
            if cluster == ref.cluster
            and (not item.namespace or (cluster, item.namespace) in self.namespaces)
            and self.placements[ref](
                item, source.labels, self.namespaces.get((cluster, item.namespace), {})
            )
        ]

    def reports(self, ref: ObjectRef, item: ObjectRef) -> Mapping[Destination, Report]:
        first: dict[str, Destination] = {}
        for destination in sorted(self.slices.get(ref, ())):
            first.setdefault(destination.uid, destination)
        return {each: self.copies.get((each.uid, item), ABSENT) for each in first.values()}

    def totals(self, ref: ObjectRef) -> dict[ObjectRef, Totals]:
        return {
            item: total(self.reports(ref, item), 10)
            for item, source in self.placed(ref)
            if source.has_status
        }

    def delivered(self, ref: ObjectRef) -> int:
        return sum(
            report.delivered
            for item, source in self.placed(ref)
            if not source.has_status
            for report in self.reports(ref, item).values()
        )


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger, self.twin = Ledger(), Twin()
        self.known: dict[Change, object] = {}

    @rule(ref=refs, wanted=st.sampled_from(["yes", "no"]))
    def ref(self, ref: ObjectRef, wanted: str) -> None:
        self.twin.placements[ref] = Selection(wanted)
        self.ledger.put_placement(ref, Selection(wanted))

    @rule(ref=refs)
    def withdraw(self, ref: ObjectRef) -> None:
        self.twin.placements.pop(ref, None)
        self.twin.slices.pop(ref, None)
        self.ledger.drop_placement(ref)

    @rule(ref=refs, found=st.lists(destinations, max_size=4))
    def slice(self, ref: ObjectRef, found: list[Destination]) -> None:
        if ref in self.twin.placements:
            self.twin.slices[ref] = found
        self.ledger.set_destinations(ref, found)

    @rule(
        cluster=st.sampled_from(CLUSTERS),
        item=items,
        go=st.sampled_from(["yes", "no"]),
        odd=st.booleans(),
    )
    def put(self, cluster: str, item: ObjectRef, go: str, odd: bool) -> None:
        # A kind may come to have a status, or lose it, when its definition changes.
        source = Source({"go": go}, has_status=(item.group_resource != CONFIG_MAPS) != odd)
        self.twin.sources[(cluster, item)] = source
        self.ledger.put_source(cluster, item, source)

    @rule(cluster=st.sampled_from(CLUSTERS), item=items)
    def drop(self, cluster: str, item: ObjectRef) -> None:
        self.twin.sources.pop((cluster, item), None)
        self.ledger.drop_source(cluster, item)

    @rule(
        cluster=st.sampled_from(CLUSTERS),
        name=st.sampled_from(SPACES),
        go=st.sampled_from(["yes", "no"]),
    )
    def label(self, cluster: str, name: str, go: str) -> None:
        self.twin.namespaces[(cluster, name)] = {"go": go}
        self.ledger.put_namespace(cluster, name, {"go": go})

    @rule(cluster=st.sampled_from(CLUSTERS), name=st.sampled_from(SPACES))
    def clear(self, cluster: str, name: str) -> None:
        self.twin.namespaces.pop((cluster, name), None)
        self.ledger.drop_namespace(cluster, name)

    @rule(uid=st.sampled_from(UIDS), item=items, report=st.sampled_from([WELL, ILL]))
    def report(self, uid: str, item: ObjectRef, report: Report) -> None:
        self.twin.copies[(uid, item)] = report
        self.ledger.put_copy(uid, item, report)

    @rule(uid=st.sampled_from(UIDS), item=items)
    def lose(self, uid: str, item: ObjectRef) -> None:
        self.twin.copies.pop((uid, item), None)
        self.ledger.drop_copy(uid, item)

    @invariant()
    def equals_what_one_pass_finds(self) -> None:
        for ref in (
            edge_placement_ref(cluster, name) for cluster in CLUSTERS for name in ("p", "q")
        ):
            if ref not in self.twin.placements:
                assert self.ledger.delivered(ref) is None
                assert not self.ledger.tallies(ref)
                continue
            found = {item: tally.totals(10) for item, tally in self.ledger.tallies(ref).items()}
            assert found == self.twin.totals(ref)
            assert self.ledger.delivered(ref) == self.twin.delivered(ref)

    @invariant()
    def tells_of_every_change(self) -> None:
        now: dict[Change, object] = {}
        for ref in self.twin.placements:
            now |= {Change(ref, t): each for t, each in self.twin.totals(ref).items()}
        told = set(self.ledger.changes())
        different = {c for c in now.keys() | self.known.keys() if now.get(c) != self.known.get(c)}
        assert different <= told
        self.known = now


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_report_wakes_only_the_placements_that_go_there_with_that_object() -> None:
    ledger = Ledger()
    for name, uid in (("p", "u1"), ("q", "u2")):
        ref = edge_placement_ref("one", name)
        ledger.put_placement(ref, Selection("yes"))
        ledger.set_destinations(ref, [Destination("imw", "loc", f"st-{uid}", uid)])
    ledger.put_namespace("one", "shop", {"go": "yes"})
    web = ObjectRef("", *DEPLOYMENTS, "shop", "web")
    ledger.put_source("one", web, Source({}))
    ledger.changes()
    ledger.put_copy("u2", web, WELL)
    assert ledger.changes() == [Change(edge_placement_ref("one", "q"), web)]
    ledger.put_copy("u2", web, WELL)
    assert ledger.changes() == []
