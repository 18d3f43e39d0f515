"""Room is made where, and by evicting whom, the simple scheduler would."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.scheduler.plugins.default_preemption import (
    Candidate,
    DefaultPreemption,
    best_candidate,
)
from tests.kit.scheduler.agreement import bench_of, thorough
from tests.kit.scheduler.generate import KEYS, VALUES, Scene, named, pods, scenes
from tests.kit.scheduler.generate_storage import storage_scenes
from tests.kit.scheduler.reference import World, name_of
from tests.kit.scheduler.reference_decision import schedule
from tests.kit.scheduler.reference_preemption import Room, rooms
from tests.kit.scheduler.reference_storage import claim_names

budgets = st.lists(
    st.builds(
        lambda space, labels, allowed, counted: {
            "metadata": {"namespace": space},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": counted},
        },
        st.sampled_from(["default", "default", "other"]),
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
        st.integers(0, 2),
        st.dictionaries(st.sampled_from(["placed0", "placed1"]), st.none(), max_size=1),
    ),
    max_size=2,
)


def important(item: Object) -> Object:
    """Return the pod with a priority that lets it preempt most others."""
    return {**item, "spec": {**item["spec"], "priority": 10}}


def check_room(world: World, item: Object) -> None:
    """Compare every node's victims, every refusal, and the choice between them."""
    assume(not schedule(world, item).feasible)
    bench = bench_of(world)
    info = bench.cluster.reader.read(item)
    name, found = bench.decider.decide(bench.profile, info)
    assert name == ""
    assert found.diagnosis.message() == schedule(world, item).message
    plugin: Any = bench.framework.made["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    for _ in range(2):  # from scratch, then from memory
        candidates, refusals = plugin._candidates(found.state, info, found.diagnosis)
        expected, reasons = rooms(world, item)
        assert {each.node: _summary(each) for each in candidates} == {
            node: _expected(room) for node, room in expected.items()
        }
        for node, reason in reasons.items():
            row = bench.cluster.table.row(node)
            assert row is not None
            status = refusals.status_of(row)
            assert status is not None
            assert ", ".join(status.reasons) == reason
    if expected:
        assert best_candidate(candidates).node in _best(expected)


def _summary(candidate: Candidate) -> tuple[list[str], int]:
    return [victim.uid for victim in candidate.victims], candidate.violations


def _expected(room: Room) -> tuple[list[str], int]:
    return [victim["metadata"]["uid"] for victim in room.victims], room.violations


def _best(found: dict[str, Room]) -> set[str]:
    least = min(room.harm() for room in found.values())
    left = {node: room for node, room in found.items() if room.harm() == least}
    latest = max(room.youngest() for room in left.values())
    return {node for node, room in left.items() if room.youngest() == latest}


def _with_budgets(world: World, found: list[Object]) -> World:
    for index, budget in enumerate(found):
        budget["metadata"]["name"] = f"b{index}"
    world.budgets = found
    return world


def _exclusive(world: World) -> bool:
    """Tell whether claims for one pod alone are used by one at most, as is always so."""
    alone = [
        name_of(claim)
        for claim in world.storage.claims
        if "ReadWriteOncePod" in claim["spec"]["accessModes"]
    ]
    used = [name for pod, _ in world.pods for name, _ in claim_names(pod) if name in alone]
    return len(used) == len(set(used))


@thorough
@given(scenes(), budgets)
def test_the_same_pods_are_evicted(scene: Scene, found: list[Object]) -> None:
    check_room(_with_budgets(scene.world, found), important(scene.kinds[0]))


@thorough
@given(storage_scenes(), budgets)
def test_volumes_in_use_are_freed_by_the_same_evictions(scene: Scene, found: list[Object]) -> None:
    assume(_exclusive(scene.world))
    check_room(_with_budgets(scene.world, found), important(scene.kinds[0]))


@thorough
@given(scenes(), st.data())
def test_room_promised_to_others_is_left_to_them(scene: Scene, data: st.DataObject) -> None:
    """The promised say nothing of other pods: who skipped a rule hears nothing of them."""
    world = scene.world
    for index in range(data.draw(st.integers(1, 3))):
        item = data.draw(pods("", "resources"))
        item["spec"].pop("priority", None)
        priority = data.draw(st.sampled_from([5, 10, 20]))
        waiting = named({**item, "spec": {**item["spec"], "priority": priority}}, f"w{index}")
        home = data.draw(st.sampled_from(world.nodes))["metadata"]["name"]
        world.nominated.append((waiting, home))
    check_room(world, important(scene.kinds[0]))
