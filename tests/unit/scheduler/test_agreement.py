"""The fast scheduler agrees with the simple one, however it gets to its answer."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.scheduler import reference
from tests.unit.scheduler.fixtures import Bench
from tests.unit.scheduler.generate import Scene, named, nodes, scenes
from tests.unit.scheduler.reference import World

Object = dict[str, Any]

# Enough to notice a mistake on every run; thousands when somebody asks for them.
EXAMPLES = int(os.environ.get("SKERRY_AGREEMENT_EXAMPLES", "30"))

thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def bench_of(world: World) -> Bench:
    bench = Bench()
    for name, labels in world.namespaces.items():
        bench.cluster.set_namespace(name, labels)
    bench.nodes(*world.nodes)
    for item, name in world.pods:
        bench.place(item, name)
    return bench


def check(bench: Bench, world: World, item: Object) -> str:
    """Compare one decision in every respect; returns the chosen node."""
    expected = reference.schedule(world, item)
    info = bench.cluster.reader.read(item)
    name, found = bench.decider.decide(bench.profile, info)
    table = bench.cluster.table
    rows = found.feasible()
    assert {table.target(row).name for row in rows.tolist()} == set(expected.feasible)
    if not expected.feasible:
        assert found.diagnosis.message() == expected.message
        for refused, (plugin, reasons) in expected.refusals.items():
            row = table.row(refused)
            assert row is not None
            status = found.diagnosis.status_of(row)
            assert status is not None
            assert (status.plugin, status.reasons) == (plugin, reasons)
        return ""
    evaluation = bench.decider._evaluated(bench.profile, info, found)
    by_plugin = bench.profile.evaluator.by_plugin(evaluation, found.state, info, rows)
    totals = np.sum(list(by_plugin.values()), axis=0)
    assert {
        table.target(row).name: total
        for row, total in zip(rows.tolist(), totals.tolist(), strict=True)
    } == expected.totals
    if len(expected.feasible) > 1:
        assert name == expected.chosen
    return name


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
