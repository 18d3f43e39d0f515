"""Why a pod goes where it goes: the decision the scheduler would make, node by node."""

from __future__ import annotations

from typing import Any

from skerry.scheduler.explain import Explanation, NodeVerdict, explain
from tests.kit.scheduler.fixtures import Bench, node, pod


def explained(place: Bench, **spec: Any) -> Explanation:
    info = place.cluster.reader.read(pod("p", **spec))
    return explain(place.cluster, place.decider, place.profile, info)


def test_the_node_is_the_one_the_scheduler_chooses_and_nothing_is_assumed() -> None:
    place = Bench().nodes(node("a"), node("b", allocatable={"cpu": "64"}))
    found = explained(place)
    assert found.chosen == place.decide(pod("p"))
    assert place.cluster.counts["pods"] == 0
    best = max(found.nodes, key=lambda each: each.total)
    assert best.node == found.chosen
    assert found.message == ""


def test_refusals_are_shown_though_another_node_is_chosen() -> None:
    place = Bench().nodes(node("a"), node("off", unschedulable=True))
    by_name = {each.node: each for each in explained(place).nodes}
    assert by_name["off"].plugin == "NodeUnschedulable"
    assert by_name["off"].reasons == ("node(s) were unschedulable",)
    assert by_name["a"].plugin == ""
    assert by_name["a"].scores


def test_a_pod_that_fits_nowhere_has_the_familiar_message() -> None:
    place = Bench().nodes(node("a", allocatable={"cpu": "1m"}))
    found = explained(place)
    assert found.chosen == ""
    assert found.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert found.text().startswith("pod default/p: 0/1 nodes are available")


def test_the_best_comes_first_and_the_refused_last() -> None:
    verdicts = (
        NodeVerdict("low", scores={"X": 1}),
        NodeVerdict("no", "Plugin", ("one", "two")),
        NodeVerdict("high", scores={"X": 2, "Y": 3}),
        NodeVerdict("plain"),
    )
    assert Explanation("n/p", "high", "", verdicts).text() == (
        "pod n/p: would go to high\n"
        "  high: 5 (X 2, Y 3)\n"
        "  low: 1 (X 1)\n"
        "  plain: 0\n"
        "  no: refused by Plugin: one, two\n"
    )


def test_whatever_nodes_and_extenders_say_is_a_line_each() -> None:
    evil = "a\nb: 9\x1b[2J"
    verdicts = (NodeVerdict(evil, "Extender", (evil,)), NodeVerdict(evil, scores={evil: 1}))
    text = Explanation("n/p", "", evil, verdicts).text()
    assert len(text.splitlines()) == 1 + len(verdicts)
    assert "\x1b" not in text
