"""The fast scheduler agrees with the simple one, however it gets to its answer."""

from __future__ import annotations

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

from skerry.scheduler.queue import QueuedPod
from tests.kit.scheduler import reference_decision as reference
from tests.kit.scheduler.agreement import bench_of, check, thorough
from tests.kit.scheduler.fixtures import Bench, pod
from tests.kit.scheduler.generate import Scene, named, nodes, options, scenes
from tests.kit.scheduler.reference import Options, named_nodes, scheduling_gates


@thorough
@given(scenes(), options())
def test_plugins_configured_otherwise_agree_too(scene: Scene, chosen: Options) -> None:
    scene.world.options = chosen
    check(bench_of(scene.world), scene.world, scene.kinds[0])


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True))
def test_gates_keep_a_pod_out_in_the_same_words(names: list[str]) -> None:
    item = pod("p", schedulingGates=[{"name": name} for name in names])
    bench = Bench()
    status = bench.framework.run_pre_enqueue(bench.cluster.reader.read(item))
    assert ("" if status is None else status.message) == scheduling_gates(item)


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 7]), st.integers(0, 5)), max_size=8))
def test_the_queue_is_sorted_by_importance_then_by_time(waiting: list[tuple[int, int]]) -> None:
    bench = Bench()
    queued = [
        QueuedPod(bench.cluster.reader.read(pod(f"p{index}", priority=priority)), moment)
        for index, (priority, moment) in enumerate(waiting)
    ]
    queued.sort(key=bench.framework.queue_sort.sort_key)
    for first, second in itertools.pairwise(queued):
        assert first.pod.priority >= second.pod.priority
        if first.pod.priority == second.pod.priority:
            assert first.timestamp <= second.timestamp


@thorough
@given(scenes())
def test_feasible_nodes_scores_choice_and_message_agree(scene: Scene) -> None:
    check(bench_of(scene.world), scene.world, scene.kinds[0])


@thorough
@given(scenes(), st.data())
def test_agreement_holds_while_pods_come_and_go_and_nodes_change(
    scene: Scene, data: st.DataObject
) -> None:
    world = scene.world
    bench = bench_of(world)
    for step in range(data.draw(st.integers(2, 8))):
        change = data.draw(st.sampled_from(["schedule", "schedule", "schedule", "remove", "node"]))
        if change == "remove" and world.pods:
            index = data.draw(st.integers(0, len(world.pods) - 1))
            gone, _ = world.pods.pop(index)
            bench.cluster.remove_pod(gone["metadata"]["uid"])
        elif change == "node":
            index = data.draw(st.integers(0, len(world.nodes) - 1))
            world.nodes[index] = data.draw(nodes(f"n{index}", scene.focus))
            bench.cluster.set_node(world.nodes[index])
        else:
            item = named(data.draw(st.sampled_from(scene.kinds)), f"new{step}")
            chosen = check(bench, world, item)
            if chosen:
                world.pods.append((item, chosen))
                bench.cluster.assume(bench.cluster.reader.read(item), chosen)


@thorough
@given(scenes())
def test_one_node_at_a_time_answers_as_all_at_once(scene: Scene) -> None:
    bench = bench_of(scene.world)
    item = scene.kinds[0]
    # Of nodes that are not named nobody is asked.
    assume(named_nodes(item) is None)
    expected = reference.schedule(scene.world, item)
    info = bench.cluster.reader.read(item)
    evaluator = bench.profile.evaluator
    _, state, prepared = evaluator.begin(info, evaluator.signature(info))
    assert prepared.status is None
    for found in bench.cluster.table.nodes():
        status = bench.framework.run_filter(state, info, found)
        if found.name in expected.feasible:
            assert status is None
        else:
            assert status is not None
            assert (status.plugin, status.reasons) == expected.refusals[found.name]


@thorough
@given(scenes(), st.data())
def test_trying_pods_on_and_off_a_node_answers_as_if_they_were(
    scene: Scene, data: st.DataObject
) -> None:
    """What preemption and nominations do to prepared state equals preparing it afresh."""
    world, item = scene.world, scene.kinds[0]
    assume(named_nodes(item) is None)
    bench = bench_of(world)
    home = data.draw(st.sampled_from(world.nodes))["metadata"]["name"]
    info = bench.cluster.reader.read(item)
    evaluator = bench.profile.evaluator
    _, prepared, _ = evaluator.begin(info, evaluator.signature(info))
    state = prepared.clone()
    node = bench.cluster.table.get(home)
    assert node is not None
    trial = node.copy()
    for uid in data.draw(st.sets(st.sampled_from(sorted(node.pods)))) if node.pods else ():
        gone = trial.remove(uid)
        assert gone is not None
        bench.framework.remove_item(state, info, gone, trial)
        world.pods = [(p, n) for p, n in world.pods if p["metadata"]["uid"] != uid]
    if data.draw(st.booleans()):
        extra = named(scene.kinds[1], "extra")
        if "InterPodAffinity" in state.skip_filter:
            # As in kube-scheduler, a plugin that skipped hears nothing of trials, so it misses
            # rules that only the tried pod has.
            extra = {**extra, "spec": {**extra["spec"], "affinity": {}}}
        added = bench.cluster.reader.read(extra)
        trial.add(added)
        bench.framework.add_item(state, info, added, trial)
        world.pods.append((extra, home))
    expected = reference.schedule(world, item)
    status = bench.framework.run_filter(state, info, trial)
    refusal = None if status is None else (status.plugin, status.reasons)
    assert refusal == expected.refusals.get(home)
