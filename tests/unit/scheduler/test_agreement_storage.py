"""About volumes, too, the fast scheduler agrees with the simple one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.scheduler.agreement import bench_of, check, thorough
from tests.kit.scheduler.generate import Scene, named
from tests.kit.scheduler.generate_storage import claims, storage_scenes, volumes
from tests.kit.scheduler.reference_decision import pod_refusal, refusal


@thorough
@given(storage_scenes())
def test_volumes_decide_the_same(scene: Scene) -> None:
    check(bench_of(scene.world), scene.world, scene.kinds[0])


@thorough
@given(storage_scenes(), st.data())
def test_agreement_holds_while_claims_and_volumes_change(scene: Scene, data: st.DataObject) -> None:
    world = scene.world
    bench = bench_of(world)
    for step in range(data.draw(st.integers(2, 5))):
        kind = data.draw(st.sampled_from(["claims", "volumes", "schedule", "schedule"]))
        if kind == "schedule":
            item = named(data.draw(st.sampled_from(scene.kinds)), f"new{step}")
            chosen = check(bench, world, item)
            if chosen:
                world.pods.append((item, chosen))
                bench.cluster.assume(bench.cluster.reader.read(item), chosen)
            continue
        make = claims if kind == "claims" else volumes
        changed = data.draw(make("c1" if kind == "claims" else "v1"))
        listed = getattr(world.storage, kind)
        name = changed["metadata"]["name"]
        kept = [changed if each["metadata"]["name"] == name else each for each in listed]
        setattr(world.storage, kind, kept if changed in kept else [*kept, changed])
        bench.cluster.objects.store(kind).set(changed)


@thorough
@given(storage_scenes())
def test_one_node_at_a_time_says_the_same_of_volumes(scene: Scene) -> None:
    bench, item = bench_of(scene.world), scene.kinds[0]
    info = bench.cluster.reader.read(item)
    evaluator = bench.profile.evaluator
    _, state, prepared = evaluator.begin(info, evaluator.signature(info))
    whole = pod_refusal(scene.world, item)
    assert (whole is None) == (prepared.status is None)
    if prepared.status is not None:
        assert whole == (prepared.status.plugin, prepared.status.message)
        return
    for node in scene.world.nodes:
        found = bench.cluster.table.get(node["metadata"]["name"])
        assert found is not None
        status = bench.framework.run_filter(state, info, found)
        said = None if status is None else (status.plugin, status.reasons)
        assert said == refusal(scene.world, item, node)
