"""What guards keep in mailboxes, for how long, and how a person lets it go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import CONFIRM, Mailbox, edge_placement_ref
from skerry.api.errors import ApiError
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef, namespace_ref
from skerry.controllers.placement_translator.guards import (
    GuardedObjects,
    ReleasePlan,
    ReleasingExecutor,
    newly_charged,
    taken,
)
from skerry.logic.fleet.guards.book import OBJECTS as BOOK
from skerry.logic.fleet.guards.book import Hold, status_with
from skerry.logic.fleet.guards.token import member
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import Answer
from tests.kit.chain.translator_world import (
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    A,
    B,
    Echo,
    World,
    cluster_object,
)

NOW = datetime(2025, 6, 6, tzinfo=UTC)
HOLD = Hold("7f21c0", 21, 20, 100, NOW, "too many", ("fleet",))


def placement(**annotations: str) -> dict[str, Any]:
    notes = {CLUSTER_ANNOTATION: "shop", **annotations}
    return {"metadata": {"name": "web", "uid": "u", "annotations": notes}}


# -- what is held ----------------------------------------------------------------------------------

GO = {"matchLabels": {"go": "yes"}}
P = edge_placement_ref("one", "p")
SPACE = namespace_ref("n")
OBJECTS = {"of": "ObjectsRemoved", "max": 1}


def item(name: str) -> ObjectRef:
    return ObjectRef("", *CONFIG_MAPS, "n", name)


class Desk:
    """A workspace with ConfigMaps a, b and c at two mailboxes, and guards to be asked."""

    def __init__(self, provider: str = "") -> None:
        self.world = World()
        self.world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
        for name in "abc":
            self.world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": name}))
        self.world.place("one", "p", namespaceSelector=GO)
        self.world.slice(P, (A, "florin"), (B, "guilder"))
        self.world.reconcile()
        self.marked: list[tuple[Mailbox, set[ObjectRef]]] = []
        self.written: list[ObjectRef] = []
        tables = self.world.tables
        self.guards = GuardedObjects(
            tables.workspaces,
            tables.route,
            lambda: NOW,
            lambda mailbox, items: self.marked.append((mailbox, set(items))),
            self.written.append,
            provider,
        )
        self.guards.placement_changed(None, self.placement())

    def placement(self, **more: Any) -> dict[str, Any]:
        found = cluster_object("one", "p", **more)
        found["metadata"]["uid"] = "u"
        return found

    def guard(self, cluster: str = "one", **spec: Any) -> dict[str, Any]:
        obj = cluster_object(cluster, "own", spec=spec)
        self.guards.guard_changed(None, obj)
        return obj

    def delete(self, *names: str) -> None:
        for name in names:
            self.world.remove(CONFIG_MAPS, "one", name, "n")

    def deselect(self) -> None:
        self.world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "no"}))

    def hold(self) -> Hold | None:
        return self.guards.book(P).hold

    def judged(self, *items: ObjectRef, at: Mailbox = A, verdict: Verdict = Verdict.DELETE) -> str:
        rows = [ItemDiff(each, verdict) for each in items]
        found = self.guards.judged(at, CLUSTERS[at], rows)
        assert found == self.guards.judged(at, CLUSTERS[at], rows), "judging changes nothing"
        self.guards.note(found)
        assert [row.item for row in found.rows] == list(items)
        return " ".join(row.verdict.value for row in found.rows)


def test_what_is_within_the_budget_goes_and_what_exceeds_it_stays() -> None:
    desk = Desk()
    desk.guard(budgets=[OBJECTS])
    desk.delete("a", "b")
    assert desk.judged(item("a")) == "delete"
    assert desk.hold() is None
    assert desk.judged(item("a"), item("b")) == "none none"
    hold = desk.hold()
    assert hold is not None
    assert (hold.removed, hold.limit) == (2, 1)
    assert desk.written == [P]


def test_an_object_counts_once_however_many_mailboxes_have_a_copy() -> None:
    desk = Desk()
    desk.guard(budgets=[OBJECTS])
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    assert desk.judged(item("a"), at=B) == "delete"


def test_what_is_held_adds_up_over_reconciles() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a", "b")
    assert desk.judged(item("a")) == "none"
    assert desk.judged(item("b"), at=B) == "none"
    hold = desk.hold()
    assert hold is not None
    assert hold.removed == 2
    assert desk.written == [P, P]


def test_a_confirmed_removal_goes_at_every_mailbox_and_is_asked_for_no_more() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a")
    desk.judged(item("a"))
    desk.judged(item("a"), at=B)
    desk.guards.release(P, None)
    assert desk.marked == [(A, {item("a")}), (B, {item("a")})]
    assert desk.hold() is None
    assert desk.judged(item("a")) == "delete"
    assert desk.judged(item("a"), at=B) == "delete"


def test_an_object_that_is_wanted_again_is_held_no_more_and_asked_for_anew_later() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a", "b")
    desk.judged(item("a"), item("b"))
    assert desk.judged(item("a"), verdict=Verdict.NONE) == "none"
    assert desk.marked == [(A, {item("b")})], "what is left may fit the budget now"
    desk.judged(item("b"), verdict=Verdict.UPDATE)
    assert desk.hold() is None
    desk.guards.release(P, None)
    assert desk.judged(item("a")) == "none", "a release is of what was held"


def test_what_replaces_all_that_was_held_is_judged_as_if_nothing_had_been() -> None:
    desk = Desk()
    guard = desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a", "b")
    desk.judged(item("a"))
    desk.guards.guard_changed(guard, desk.guard(budgets=[OBJECTS]))
    rows = [ItemDiff(item("a"), Verdict.UPDATE), ItemDiff(item("b"), Verdict.DELETE)]
    found = desk.guards.judged(A, CLUSTERS[A], rows)
    assert found.settled == {item("a")}
    assert [each.frees for each in found.kept] == [True]
    assert found.rows == tuple(rows)
    assert desk.written == [P], "nothing has been noted yet"
    desk.guards.note(found)
    assert desk.written == [P, P]


def test_a_copy_whose_destination_went_is_not_the_guards_affair() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    assert desk.judged(item("a")) == "delete", "it is still selected"
    desk.delete("a")
    desk.world.slice(P, (B, "guilder"))
    assert desk.judged(item("a")) == "delete", "its placement does not go there any more"
    assert desk.judged(item("a"), at=B) == "none"


def test_a_syncer_config_is_never_counted() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    assert desk.judged(CONFIG) == "delete"


def test_guards_of_another_workspace_have_no_say_and_those_of_the_provider_have() -> None:
    desk = Desk(provider="espw")
    budgets = [{"of": "ObjectsRemoved", "max": 0}]
    desk.guard("two", budgets=budgets)
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    desk.guard("espw", budgets=budgets)
    assert desk.judged(item("a")) == "none"


def test_a_guard_selects_by_the_labels_of_workspace_and_placement() -> None:
    desk = Desk()
    prod = {"matchLabels": {"env": "prod"}}
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}], placements={"workspaces": prod})
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    space = {"metadata": {"name": "ws", "labels": {"env": "prod"}}, "spec": {"cluster": "one"}}
    desk.guards.workspace_changed(None, space)
    assert desk.judged(item("a")) == "none"
    desk.guards.workspace_changed(space, None)
    assert desk.judged(item("a")) == "none", "what was asked stays asked"


def test_a_guard_that_says_nothing_of_objects_or_only_observes_keeps_nothing() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "DestinationsRemoved", "max": 0}])
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    desk.guard(mode="Observe", budgets=[{"of": "ObjectsRemoved", "max": 0}])
    assert desk.judged(item("a")) == "delete"


def test_what_is_held_is_looked_at_again_when_a_guard_changes_or_goes() -> None:
    desk = Desk()
    guard = desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a")
    desk.judged(item("a"))
    desk.guards.guard_changed(guard, None)
    assert desk.marked == [(A, {item("a")})]
    assert desk.judged(item("a")) == "none", "the guard is gone, and its question is not"
    desk.guards.guard_changed(None, None)
    assert len(desk.marked) == 1


@pytest.mark.parametrize(
    ("against", "deleted", "verdict"),
    [
        (["Deselect"], False, "none"),
        (["Deselect"], True, "delete"),
        (["Delete"], True, "none"),
        (["Delete"], False, "delete"),
        (["Relabel"], False, "none"),
    ],
)
def test_a_protected_namespace_stays_for_what_it_is_protected_against(
    against: list[str], deleted: bool, verdict: str
) -> None:
    desk = Desk()
    desk.guard(protect=[{"kind": "Namespace", "names": ["n"], "against": against}])
    if deleted:
        desk.world.remove(NAMESPACES, "one", "n")
    else:
        desk.deselect()
    assert desk.judged(SPACE) == verdict
    if verdict == "none":
        hold = desk.hold()
        assert hold is not None
        assert hold.why == "PlacementGuard ./own protects Namespace n"


def test_another_namespace_is_not_protected() -> None:
    desk = Desk()
    desk.guard(protect=[{"kind": "Namespace", "names": ["other"], "against": ["Deselect"]}])
    desk.deselect()
    assert desk.judged(SPACE) == "delete"


def test_a_placement_that_is_gone_holds_nothing() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a")
    desk.judged(item("a"))
    desk.guards.placement_changed(desk.placement(), None)
    assert desk.hold() is None
    desk.guards.guard_changed(None, cluster_object("one", "other", spec={}))
    assert desk.marked == []


def test_whoever_leads_next_holds_what_was_held_and_knows_of_no_release() -> None:
    desk = Desk()
    desk.delete("a")
    status = {"removals": {"heldObjects": HOLD._replace(removed=1, limit=0).written()}}
    desk.guards.placement_changed(desk.placement(), desk.placement(status=status))
    assert desk.judged(item("a")) == "delete", "not led yet: nothing was adopted"
    desk.guards.start()
    assert desk.judged(item("a")) == "none"
    assert desk.hold() is not None
    desk.guards.release(P, None)
    assert desk.judged(item("a")) == "delete"
    desk.guards.start()
    assert desk.judged(item("a")) == "none", "its release was another leader's"


# -- letting go ------------------------------------------------------------------------------------


class Refusing(Echo):
    """Answers every write with a conflict."""

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Any:
        answer = b'{"kind":"Status","code":409,"reason":"Conflict","message":"changed"}'
        return Answer(409, {}, answer)


def executor(server: Echo, released: list[ObjectRef], **more: Any) -> ReleasingExecutor:
    metrics = RuntimeMetrics()
    return ReleasingExecutor(
        Client(server),
        "translator",
        lambda ref, _: released.append(ref),
        metrics=metrics,
        announce=None,
        **more,
    )


async def test_copies_go_once_the_confirmation_has_been_taken() -> None:
    released: list[ObjectRef] = []
    plan = taken(placement(**{CONFIRM: HOLD.name}), HOLD)
    assert plan is not None
    await executor(Echo(), released).execute(plan)
    assert released == [edge_placement_ref("shop", "web")]


async def test_copies_stay_when_the_confirmation_could_not_be_taken_or_nothing_is_done() -> None:
    released: list[ObjectRef] = []
    plan = taken(placement(**{CONFIRM: HOLD.name}), HOLD)
    assert plan is not None
    with pytest.raises(ApiError):
        await executor(Refusing(), released).execute(plan)
    await executor(Echo(), released, dry_run=True).execute(plan)
    await executor(Echo(), released).execute(ReleasePlan())
    assert released == []


def windowed(**more: Any) -> dict[str, Any]:
    return {"of": "ObjectsRemoved", "max": 2, "window": "10m", **more}


def test_what_has_to_be_charged_stays_until_the_charge_is_written_and_goes_then() -> None:
    desk = Desk()
    desk.guard(budgets=[windowed()])
    desk.delete("a", "b")
    assert desk.judged(item("a"), item("b")) == "none none"
    assert desk.hold() is None, "it fits: nobody has to be asked"
    assert desk.written == [P], "but the charge has to be written first"
    book = desk.guards.book(P)
    status = status_with({}, book, BOOK)
    charged = newly_charged({}, book)
    assert charged is not None
    desk.guards.placement_changed(desk.placement(), desk.placement(status=status))
    desk.guards.release(P, charged)
    assert desk.marked == [(A, {item("a"), item("b")})]
    assert desk.judged(item("a"), item("b")) == "delete delete"


def test_a_charge_lets_those_go_that_it_is_for_and_no_others() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a", "b")
    desk.judged(item("a"), item("b"))
    desk.judged(item("a"), at=B)
    desk.guards.release(P, frozenset([member(item("a"))]))
    assert desk.marked == [(A, {item("a")}), (B, {item("a")})]
    assert desk.judged(item("a"), at=B) == "delete"
    assert desk.judged(item("a"), item("b")) == "delete none"
    desk.marked.clear()
    desk.guards.release(P, frozenset([member(item("c"))]))
    assert desk.marked == []


def test_a_release_of_one_that_went_and_came_back_is_used_up() -> None:
    desk = Desk()
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.delete("a")
    desk.judged(item("a"))
    desk.guards.release(P, None)
    assert desk.judged(item("a")) == "delete"
    assert desk.judged(item("a"), verdict=Verdict.NONE) == "none"
    assert desk.judged(item("a")) == "none", "it is asked for anew"


def test_a_workspace_without_its_labels_is_selected_by_none() -> None:
    desk = Desk()
    prod = {"matchLabels": {"env": "prod"}}
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}], placements={"workspaces": prod})
    space = {"metadata": {"name": "ws", "labels": {"env": "prod"}}, "spec": {"cluster": "one"}}
    desk.guards.workspace_changed(None, space)
    desk.guards.workspace_changed(space, {**space, "metadata": {"name": "ws"}})
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    desk.guards.workspace_changed(None, space)
    desk.guards.workspace_changed(space, None)
    assert desk.judged(item("b")) == "delete"


def test_a_guard_that_is_gone_has_no_say_in_what_goes_next() -> None:
    desk = Desk()
    guard = desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.guards.guard_changed(guard, None)
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"


def test_the_guards_of_a_placement_are_those_of_its_labels() -> None:
    desk = Desk()
    prod = {"matchLabels": {"env": "prod"}}
    desk.guard(budgets=[{"of": "ObjectsRemoved", "max": 0}], placements={"selector": prod})
    desk.delete("a")
    assert desk.judged(item("a")) == "delete"
    labelled = desk.placement(labels={"env": "prod"})
    desk.guards.placement_changed(desk.placement(), labelled)
    assert desk.judged(item("a")) == "none"


def test_what_remains_of_an_object_whose_owner_is_recorded_is_its_owners_affair() -> None:
    desk = Desk()
    desk.guard("two", budgets=[{"of": "ObjectsRemoved", "max": 0}])
    desk.world.place("two", "q", namespaceSelector=GO)
    desk.world.slice(edge_placement_ref("two", "q"), (A, "florin"))
    desk.world.reconcile()
    desk.guards.placement_changed(None, cluster_object("two", "q"))
    record = desk.world.tables.workspaces.record(CLUSTERS[A], item("a"))
    assert record is not None
    desk.delete("a")
    assert desk.judged(item("a")) == "delete", "of two workspaces there the recorded one counts"


@pytest.mark.parametrize("maximum", [0, 1, 2, 3])
def test_of_three_objects_all_go_or_none_however_they_come(maximum: int) -> None:
    """A person who is asked sees all of it: nothing goes in part because it came in parts."""
    together, apart = Desk(), Desk()
    for desk in (together, apart):
        desk.guard(budgets=[{"of": "ObjectsRemoved", "max": maximum}])
        desk.delete("a", "b", "c")
    verdicts = together.judged(item("a"), item("b"), item("c"))
    assert verdicts == ("delete delete delete" if maximum == 3 else "none none none")
    hold = together.hold()
    assert (hold is None) is (maximum == 3)
    assert hold is None or (hold.removed, hold.limit) == (3, maximum)
    if maximum == 0:
        for name in "abc":
            assert apart.judged(item(name)) == "none"
        asked = apart.hold()
        assert asked is not None
        assert hold is not None
        assert asked.name == hold.name, "what is confirmed is the same"
