"""From any sequence of events, mailboxes hold what the reference computes, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.machinery.plan import Delete
from tests.kit.chain.translator_world import (
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    ROLES,
    A,
    B,
    World,
    cluster_object,
)

GO = {"matchLabels": {"go": "yes"}}
WRONG = {"matchExpressions": [{"key": "go", "operator": "Nonsense"}]}
NAMED_ROLES = {"apiGroup": ROLES.group, "resources": ["clusterroles"], "resourceNames": ["*"]}
NAMED_SPACES = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
SPECS: list[dict[str, Any]] = [
    {"namespaceSelector": GO},
    {"namespaceSelector": GO, "nonNamespacedObjects": [NAMED_ROLES]},
    {"namespaceSelector": {}, "nonNamespacedObjects": [NAMED_SPACES]},
    {"namespaceSelector": WRONG},
    {"namespaceSelector": GO, "upsync": [{"apiGroup": "g", "resources": ["*"], "names": ["*"]}]},
]
WAYS = [(), ((A, "florin"),), ((A, "florin"), (B, "guilder")), ((A, "florin"), (A, "guilder"))]
PAGE = ObjectRef("", *CONFIG_MAPS, "n", "x")


def page(cluster: str, name: str = "x", namespace: str = "n", data: str = "1", **more: Any) -> Any:
    return cluster_object(cluster, name, namespace, data={"k": data}, **more)


def space(cluster: str, name: str = "n", go: str = "yes") -> Any:
    return cluster_object(cluster, name, labels={"go": go})


def check(world: World) -> None:
    """Compare every mailbox with the reference; where something is unknown, nothing is missing."""
    expected = world.expected()
    for mailbox, cluster in CLUSTERS.items():
        contents = expected.contents.get(mailbox, {})
        wanted = {item: digest(item.group_resource, obj) for item, obj in contents.items()}
        found = world.copies(mailbox)
        if mailbox in expected.held:
            assert wanted.items() <= found.items()
            continue
        assert found == wanted
        spec = world.configs.get(cluster, {}).get("spec", {"namespaceScope": {}})
        assert spec == expected.configs.get(mailbox, {"namespaceScope": {}})


# -- stories -----------------------------------------------------------------------------------


def placed(world: World) -> ObjectRef:
    world.put(NAMESPACES, space("one"))
    world.put(CONFIG_MAPS, page("one"))
    placement = world.place("one", "p", namespaceSelector=GO)
    world.slice(placement, (A, "florin"))
    world.reconcile()
    return placement


def test_what_a_placement_chooses_arrives_and_leaves_with_it() -> None:
    world = World()
    placement = placed(world)
    assert set(world.copies(A)) == {namespace_ref("n"), PAGE}
    assert world.copies(B) == {}
    world.unplace(placement)
    world.reconcile()
    assert world.copies(A) == {}
    assert world.tables.dirty.waiting == 0


def test_a_second_pass_does_nothing() -> None:
    world = World()
    placed(world)
    world.handlers.mark(A, {PAGE, CONFIG, namespace_ref("n")})
    assert world.reconcile() == []


def test_an_event_that_changes_nothing_marks_nothing() -> None:
    world = World()
    placement = placed(world)
    world.handlers.placement_changed(world.placements[placement], world.placements[placement])
    world.locate("florin", env="prod")
    world.reconcile()
    world.handlers.location_changed(*[next(iter(world.locations.values()))] * 2)
    world.handlers.schema_changed({"spec": 1}, {"spec": 1})
    assert world.queue == set()


def test_one_changed_object_marks_one_row_of_each_of_its_mailboxes() -> None:
    world = World()
    placement = placed(world)
    for number in range(5):
        world.put(CONFIG_MAPS, page("one", f"other-{number}"))
    world.slice(placement, (A, "florin"), (B, "guilder"))
    world.reconcile()
    world.put(CONFIG_MAPS, page("one", data="2"))
    assert {mailbox: list(world.tables.dirty.of(mailbox)) for mailbox in (A, B)} == {
        A: [PAGE],
        B: [PAGE],
    }


def test_nothing_is_removed_before_everything_has_been_read() -> None:
    world = World(synced=False)
    for name in ("x", "y"):
        copy = page(CLUSTERS[A], name, labels={"edge.kcp.io/projected": "yes"})
        world.put(CONFIG_MAPS, copy)
    world.put(NAMESPACES, space("one"))
    placement = world.place("one", "p", namespaceSelector=GO)
    world.slice(placement, (A, "florin"))
    assert world.reconcile() == []
    assert world.tables.dirty.waits(A)
    assert not world.problems.is_complete([A])
    world.put(CONFIG_MAPS, page("one"))
    world.sync()
    world.reconcile()
    assert set(world.copies(A)) == {namespace_ref("n"), PAGE}
    assert not world.tables.dirty.waits(A)
    assert world.problems.is_complete([A])


def test_a_copy_is_kept_while_what_a_malformed_placement_selects_is_unknown() -> None:
    world = World()
    placement = placed(world)
    world.place("one", "p", namespaceSelector=WRONG)
    assert world.reconcile() == []
    assert PAGE in world.copies(A)
    # It is not waiting for anything to be read, so its problems can be reported.
    assert not world.tables.dirty.waits(A)
    world.place("one", "p", namespaceSelector={"matchLabels": {"go": "no"}})
    world.reconcile()
    assert world.copies(A) == {}
    assert placement in world.statuses


def test_what_another_placement_left_behind_goes_when_a_malformed_one_is_corrected() -> None:
    world = World()
    other = placed(world)
    malformed = world.place("two", "q", namespaceSelector=WRONG)
    world.slice(malformed, (A, "florin"))
    world.unplace(other)
    world.reconcile()
    assert PAGE in world.copies(A)
    world.place("two", "q", namespaceSelector=GO)
    world.reconcile()
    assert world.copies(A) == {}


def test_what_another_placement_left_behind_goes_when_a_malformed_one_is_deleted() -> None:
    world = World()
    other = placed(world)
    malformed = world.place("two", "q", namespaceSelector=WRONG)
    world.slice(malformed, (A, "florin"))
    world.unplace(other)
    world.reconcile()
    world.unplace(malformed)
    world.reconcile()
    assert world.copies(A) == {}


def test_a_namespace_is_kept_for_what_is_no_copy_and_goes_after_it() -> None:
    world = World()
    placement = placed(world)
    foreign = world.put(CONFIG_MAPS, page(CLUSTERS[A], "foreign"))
    world.unplace(placement)
    world.reconcile()
    assert set(world.copies(A)) == {namespace_ref("n")}
    world.remove(CONFIG_MAPS, CLUSTERS[A], foreign["metadata"]["name"], "n")
    world.reconcile()
    assert world.copies(A) == {}


def test_a_mailbox_that_appears_later_gets_everything_and_one_that_goes_is_forgotten() -> None:
    world = World(mailboxes=False)
    placement = placed(world)
    assert world.queue == set()
    world.add_mailbox(A)
    world.sync()
    world.reconcile()
    assert PAGE in world.copies(A)
    world.statuses.clear()
    world.put(CONFIG_MAPS, page("one", data="2"))
    world.remove_mailbox(A)
    assert world.tables.dirty.waiting == 0
    assert world.statuses == [placement]
    assert world.reconcile() == []


@pytest.mark.parametrize("ways", [(), ((B, "guilder"),)], ids=["nowhere", "elsewhere"])
def test_a_placement_that_leaves_a_mailbox_no_longer_waits_to_report_on_it(ways: Any) -> None:
    """It waited for the mailbox to be evaluated, and when that is done nobody thinks of it."""
    world = World()
    placement = placed(world)
    world.statuses.clear()
    world.slice(placement, *ways)
    assert world.statuses == [placement]


def test_what_each_namespace_has_for_itself_is_not_kept_unless_it_is_a_copy() -> None:
    world = World()
    placed(world)
    ref = ObjectRef("", *CONFIG_MAPS, "n", "kube-root-ca.crt")

    def is_kept(labels: dict[str, str]) -> bool:
        world.put(CONFIG_MAPS, page(CLUSTERS[A], ref.name, labels=labels))
        return world.tables.workspaces.record(CLUSTERS[A], ref) is not None

    copy = {"edge.kcp.io/projected": "yes"}
    assert [is_kept(labels) for labels in ({}, copy, {})] == [False, True, False]


def test_a_change_during_a_write_is_not_lost() -> None:
    world = World()
    placed(world)
    world.put(CONFIG_MAPS, page("one", data="2"))
    numbers = world.tables.dirty.of(A)
    world.put(CONFIG_MAPS, page("one", data="3"))
    for item, number in numbers.items():
        world.tables.dirty.done(A, item, number)
    assert list(world.tables.dirty.of(A)) == [PAGE]


def test_a_refusal_is_reported_until_the_object_is_taken() -> None:
    world = World()
    placement = placed(world)
    world.server.refused.add("bad")
    world.put(CONFIG_MAPS, page("one", "bad"))
    world.reconcile()
    [(problem, item)] = world.problems.of(placement)
    assert (problem.reason, item.name) == ("Refused", "bad")
    world.server.refused.clear()
    world.handlers.mark(A, [item])
    world.reconcile()
    assert world.problems.of(placement) == {}
    check(world)


def test_a_syncer_config_gets_its_status_though_the_first_request_for_it_was_lost() -> None:
    world = World()
    world.server.loses_patches = True
    placed(world)
    assert "status" not in world.configs[CLUSTERS[A]]
    world.server.loses_patches = False
    world.queue.add(A)  # as the back-off does
    world.reconcile()
    assert world.configs[CLUSTERS[A]]["status"] == {}
    assert world.tables.dirty.of(A) == {}
    check(world)


@pytest.mark.parametrize("event", ["namespace", "copy", "config"])
def test_drift_in_a_mailbox_marks_what_drifted(event: str) -> None:
    world = World()
    placed(world)
    if event == "namespace":
        world.remove(CONFIG_MAPS, CLUSTERS[A], "x", "n")
        world.remove(NAMESPACES, CLUSTERS[A], "n")
    elif event == "copy":
        world.put(CONFIG_MAPS, page(CLUSTERS[A], data="drift"))
    else:
        old = world.configs.pop(CLUSTERS[A])
        world.handlers.config_changed(old, None)
    world.reconcile()
    check(world)


def test_a_changed_location_and_customizer_touch_what_is_customized_and_nothing_else() -> None:
    world = World()
    world.put(CONFIG_MAPS, page("one", "plain"))
    world.put(CONFIG_MAPS, page("one", "own", notes={"edge.kcp.io/customizer": "c"}))
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"a"'})
    world.locate("florin", env="prod")
    placed(world)
    check(world)
    world.locate("florin", env="test")
    assert {item.name for item in world.tables.dirty.of(A)} == {"own", "the-one"}
    world.reconcile()
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"b"'})
    assert {item.name for item in world.tables.dirty.of(A)} == {"own"}
    world.reconcile()
    check(world)


# -- any sequence ------------------------------------------------------------------------------

Step = Callable[[World], object]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    owner = draw(st.sampled_from(["one", "two"]))
    name = draw(st.sampled_from(["x", "y"]))
    where = draw(st.sampled_from(["n", "m"]))
    data = draw(st.sampled_from(["1", "2", "%(env)"]))
    notes = draw(
        st.sampled_from(
            [{}, {}, {"edge.kcp.io/expand-parameters": "true"}, {"edge.kcp.io/customizer": "c"}]
        )
    )
    go = draw(st.sampled_from(["yes", "no"]))
    spec = draw(st.sampled_from(SPECS))
    ways = draw(st.sampled_from(WAYS))
    mailbox: Mailbox = draw(st.sampled_from([A, B]))
    placement = edge_placement_ref(owner, draw(st.sampled_from(["p", "q"])))
    choices: list[Step] = [
        lambda world: world.put(NAMESPACES, space(owner, where, go)),
        lambda world: world.remove(NAMESPACES, owner, where),
        lambda world: world.put(CONFIG_MAPS, page(owner, name, where, data, notes=notes)),
        lambda world: world.remove(CONFIG_MAPS, owner, name, where),
        lambda world: world.put(ROLES, cluster_object(owner, name, rules=[{"d": data}])),
        lambda world: world.remove(ROLES, owner, name),
        lambda world: world.place(owner, placement.name, **spec),
        lambda world: world.unplace(placement),
        lambda world: world.slice(placement, *ways),
        lambda world: world.locate("florin", env=go),
        lambda world: world.customize(owner, where, "c", {"path": "$.data.k", "value": '"c"'}),
        lambda world: world.put(CONFIG_MAPS, page(CLUSTERS[mailbox], name, where)),
        lambda world: world.remove(CONFIG_MAPS, CLUSTERS[mailbox], name, where),
        lambda world: world.restart(world.key(CONFIG_MAPS)),
        lambda world: world.sync(),
    ]
    return draw(st.sampled_from(choices))


def begun() -> World:
    world = World()
    for owner in ("one", "two"):
        world.put(NAMESPACES, space(owner))
        world.put(CONFIG_MAPS, page(owner))
    world.slice(world.place("one", "p", **SPECS[1]), *WAYS[2])
    world.reconcile()
    return world


@settings(max_examples=60, deadline=None)
@given(st.lists(steps(), max_size=12))
def test_mailboxes_follow_every_sequence_of_events(sequence: list[Step]) -> None:
    world = begun()
    for step in sequence:
        step(world)
        unread = not world.tables.dirty.scopes.is_complete(world.key(CONFIG_MAPS))
        plans = world.reconcile()
        if unread:
            kinds = {
                action.target.gvr.group_resource
                for plan in plans
                for action in plan
                if isinstance(action, Delete)
            }
            assert not kinds & {CONFIG_MAPS, NAMESPACES}
        elif not _foreign(world):
            check(world)
    world.sync()
    world.reconcile()
    if not _foreign(world):
        check(world)
    # Whatever is left waits for a malformed placement.
    assert not any(world.tables.dirty.waits(mailbox) for mailbox in CLUSTERS)


@settings(max_examples=30, deadline=None)
@given(st.lists(steps(), max_size=10))
def test_the_outcome_does_not_depend_on_how_events_are_batched(sequence: list[Step]) -> None:
    one, all_at_once = begun(), begun()
    for step in sequence:
        step(one)
        one.reconcile()
        step(all_at_once)
    for world in (one, all_at_once):
        world.sync()
        world.reconcile()
    if not any(_foreign(world) or world.expected().held for world in (one, all_at_once)):
        for mailbox in CLUSTERS:
            assert one.copies(mailbox) == all_at_once.copies(mailbox)


def _foreign(world: World) -> bool:
    """Tell whether a mailbox has what is no copy: that keeps its namespace."""
    found = (key for rows in world.objects.values() for key in rows)
    clusters = set(CLUSTERS.values())
    total = sum(1 for cluster, _, _ in found if cluster in clusters)
    return total != sum(len(world.copies(mailbox)) for mailbox in CLUSTERS)


def test_rows_that_are_right_say_none() -> None:
    world = World()
    placed(world)
    found = world.difference.rows(A, CLUSTERS[A], [CONFIG, namespace_ref("n"), PAGE])
    assert [row.verdict for row in found] == [Verdict.NONE] * 3
