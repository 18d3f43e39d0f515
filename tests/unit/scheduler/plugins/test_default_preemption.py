"""Preemption harms as few and as unimportant pods as it can."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.plugins.default_preemption import Candidate, best_candidate
from tests.kit.scheduler.fixtures import Bench, node, pod


class Log:
    """Remembers what would have been written."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.patched: list[tuple[str, Any]] = []

    async def bind(self, pod: PodInfo, node: str) -> None:
        return

    async def delete_pod(self, pod: PodInfo) -> None:
        self.deleted.append(pod.name)

    async def patch_pod_status(self, pod: PodInfo, status: Any) -> None:
        self.patched.append((pod.name, status))

    async def update(self, kind: str, obj: Any) -> Any:
        return obj


def bench() -> tuple[Bench, Log]:
    found, log = Bench(), Log()
    found.handle.writer = log
    return found, log


async def preempt(found: Bench, item: dict[str, Any]) -> tuple[str | None, str]:
    """Try to make room; returns the nominated node and what is said."""
    info = found.cluster.reader.read(item)
    name, result = found.decider.decide(found.profile, info)
    assert name == ""
    outcome, status = found.framework.run_post_filter(result.state, info, result.diagnosis)
    if outcome is None or status is not None:
        return (outcome.nominated if outcome else None), status.message if status else ""
    nominated = outcome.nominated
    if outcome.resolve is not None:
        nominated, status = await outcome.resolve()
    return nominated, status.message if status else ""


def big(name: str, priority: int, **spec: Any) -> dict[str, Any]:
    return pod(name, requests={"cpu": "3"}, priority=priority, **spec)


async def test_lesser_pods_make_room() -> None:
    found, log = bench()
    found.nodes(node("a"))
    found.place(big("old", 0), "a")
    assert await preempt(found, big("new", 10)) == ("a", "")
    assert log.deleted == ["old"]
    condition = log.patched[0][1]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")


async def test_equals_are_left_alone_and_the_message_says_so() -> None:
    found, log = bench()
    found.nodes(node("a"), node("b", unschedulable=True))
    found.place(big("old", 10), "a")
    nominated, text = await preempt(found, big("new", 10))
    assert nominated == ""
    assert text == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert log.deleted == []


async def test_a_pod_that_never_preempts_does_not() -> None:
    found, _ = bench()
    found.nodes(node("a"))
    found.place(big("old", 0), "a")
    assert await preempt(found, big("new", 10, preemptionPolicy="Never")) == (
        None,
        "preemption: not eligible due to preemptionPolicy=Never.",
    )


async def test_only_as_many_as_needed_and_the_important_stay() -> None:
    found, log = bench()
    found.nodes(node("a"))
    found.place(pod("keep", requests={"cpu": "1"}, priority=5), "a")
    found.place(pod("evict", requests={"cpu": "2"}, priority=1), "a")
    assert (await preempt(found, big("new", 10)))[0] == "a"
    assert log.deleted == ["evict"]


async def test_the_node_with_the_least_important_victim_is_chosen() -> None:
    found, log = bench()
    found.nodes(node("a"), node("b"))
    found.place(big("middling", 5), "a")
    found.place(big("low", 1), "b")
    assert (await preempt(found, big("new", 10)))[0] == "b"
    assert log.deleted == ["low"]


async def test_budgets_are_spared_where_possible() -> None:
    found, log = bench()
    found.nodes(node("a"), node("b"))
    found.place(
        big("guarded", 0) | {"metadata": big("guarded", 0)["metadata"] | {"labels": {"app": "x"}}},
        "a",
    )
    found.place(big("free", 4), "b")
    found.cluster.objects.budgets.set(
        {
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 0},
        }
    )
    assert (await preempt(found, big("new", 10)))[0] == "b"
    assert log.deleted == ["free"]


async def test_a_pod_waits_for_victims_that_are_terminating() -> None:
    found, log = bench()
    found.nodes(node("a"))
    terminating = big("old", 0)
    terminating["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    terminating["status"] = {
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
    }
    found.place(terminating, "a")
    nominated, text = await preempt(found, big("new", 10, status={"nominatedNodeName": "a"}))
    assert nominated is None
    assert text == "preemption: not eligible due to a terminating pod on the nominated node."
    assert log.deleted == []


async def test_anti_affinity_of_victims_goes_with_them() -> None:
    found, _ = bench()
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    found.nodes(node("a"))
    found.place(pod("old", affinity=rule), "a")
    assert (await preempt(found, pod("new", {"app": "x"}, priority=10)))[0] == "a"


async def test_promises_to_lesser_pods_are_withdrawn() -> None:
    found, log = bench()
    found.nodes(node("a"))
    found.place(big("old", 0), "a")
    lesser = found.cluster.reader.read(big("lesser", 5))
    found.handle.nominations.nominate(lesser, "a")
    assert (await preempt(found, big("new", 10)))[0] == "a"
    assert ("lesser", {"nominatedNodeName": None}) in log.patched
    assert not found.handle.nominations.nominated("a")


def candidate(name: str, violations: int, *victims: tuple[int, str]) -> Candidate:
    reader = Bench().cluster.reader
    pods = [
        reader.read(pod(f"{name}{i}", priority=priority, status={"startTime": start}))
        for i, (priority, start) in enumerate(victims)
    ]
    return Candidate(name, tuple(pods), violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate("b", 0, (9, "t1")), candidate("w", 1, (0, "t1"))),
        (candidate("b", 0, (1, "t1")), candidate("w", 0, (2, "t1"))),
        (candidate("b", 0, (2, "t1"), (0, "t1")), candidate("w", 0, (2, "t1"), (1, "t1"))),
        (candidate("b", 0, (2, "t1")), candidate("w", 0, (2, "t1"), (-(2**31), "t1"))),
        (candidate("b", 0, (2, "t2")), candidate("w", 0, (2, "t1"))),
    ],
    ids=["fewest violations", "lowest top", "smallest sum", "fewest", "youngest"],
)
def test_candidates_are_compared_in_order(better: Candidate, worse: Candidate) -> None:
    assert best_candidate([worse, better]).node == "b"
    assert best_candidate([better, worse]).node == "b"


async def test_several_rules_about_one_topology_are_cured_by_one_eviction() -> None:
    found, log = bench()
    found.nodes(node("a"))
    found.place(pod("old", {"app": "x", "tier": "y"}), "a")
    terms = [
        {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        for labels in ({"app": "x"}, {"tier": "y"})
    ]
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert await preempt(found, pod("new", affinity=rules, priority=10)) == ("a", "")
    assert log.deleted == ["old"]


async def test_what_was_tried_is_tried_again_once_budgets_change() -> None:
    found, log = bench()
    found.nodes(node("a"), node("b"))
    for name in ("a", "b"):
        found.place(pod(f"old-{name}", {"on": name}, requests={"cpu": "3"}), name)
    for guarded, victim in (("a", "old-b"), ("b", "old-a")):
        budget = {
            "metadata": {"name": "guard", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"on": guarded}}},
            "status": {"disruptionsAllowed": 0},
        }
        found.cluster.objects.budgets.set(budget)
        await preempt(found, big("new", 10))
        assert log.deleted == [victim]
        log.deleted.clear()


async def test_what_was_tried_is_tried_again_once_a_pod_has_started() -> None:
    """Of equals the youngest goes; a pod that starts becomes older than one that has not."""
    found, log = bench()
    found.nodes(node("a"))
    half = {"cpu": "2"}
    for name in ("one", "two"):
        found.place(pod(name, requests=half), "a")
    wanted = pod("new", requests=half, priority=10)
    for early, victim in (("one", "two"), ("two", "one")):
        for name in ("one", "two"):
            second = 0 if name == early else 9
            status = {"startTime": f"2030-01-01T00:00:0{second}Z"}
            found.place(pod(name, requests=half, status=status), "a")
        await preempt(found, wanted)
        assert log.deleted == [victim]
        log.deleted.clear()
