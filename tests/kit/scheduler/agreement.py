"""What the agreement tests share: how many examples, and a cluster that equals a world.

Each run takes some examples of every test; ``SKERRY_AGREEMENT_EXAMPLES=2000`` takes thousands.
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, settings

from skerry.api.objects import Object
from skerry.scheduler.config.load import Configuration, complete
from tests.kit.scheduler.fixtures import Bench
from tests.kit.scheduler.reference import Options, World
from tests.kit.scheduler.reference_decision import schedule

EXAMPLES = int(os.environ.get("SKERRY_AGREEMENT_EXAMPLES", "20"))

thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def configured(options: Options) -> Configuration:
    """Return a configuration with plugins as the world has them."""
    spread: Object = {"defaultingType": "System"}
    if options.spread_defaults is not None:
        spread = {"defaultingType": "List", "defaultConstraints": options.spread_defaults}
    added = {"addedAffinity": options.added_affinity} if options.added_affinity else {}
    arguments: dict[str, Object] = {
        "NodeResourcesFit": {
            "scoringStrategy": options.strategy,
            "ignoredResources": options.ignored,
        },
        "NodeAffinity": added,
        "InterPodAffinity": {
            "hardPodAffinityWeight": options.hard_weight,
            "ignorePreferredTermsOfExistingPods": options.ignore_preferred,
        },
        "PodTopologySpread": spread,
    }
    listed = [{"name": name, "args": args} for name, args in arguments.items()]
    return complete({"profiles": [{"pluginConfig": listed}]})


def bench_of(world: World) -> Bench:
    """Return a cluster that equals *world*."""
    default = world.options == Options()
    bench = Bench(None if default else configured(world.options))
    for name, labels in world.namespaces.items():
        bench.cluster.set_namespace(name, labels)
    bench.nodes(*world.nodes)
    objects, storage = bench.cluster.objects, world.storage
    for attribute in vars(storage):
        for item in getattr(storage, attribute):
            objects.store(attribute).set(item)
    for service in world.services:
        objects.services.set(service)
    for budget in world.budgets:
        objects.budgets.set(budget)
    for item, name in world.pods:
        bench.place(item, name)
    for item, name in world.nominated:
        bench.handle.nominations.nominate(bench.cluster.reader.read(item), name)
    return bench


def check(bench: Bench, world: World, item: Object) -> str:
    """Compare one decision in every respect; returns the chosen node."""
    expected = schedule(world, item)
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
