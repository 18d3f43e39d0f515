"""Running totals say what counting all pods again would say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.selectors import (
    IN,
    Requirement,
    Selector,
)
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.counts import TALLIES_KEPT, PodCounts, Question, domain_sums
from tests.kit.scheduler.fixtures import node, pod

WEB = Selector([Requirement("app", IN, ("web",))])
ZONES = {"a": "north", "b": "north", "c": "south", "d": ""}
EVENTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["", *ZONES]), st.sampled_from(["web", "db"])),
    max_size=30,
)


def cluster() -> Cluster:
    made = Cluster()
    for name, zone in ZONES.items():
        made.set_node(node(name, labels={"zone": zone} if zone else {}))
    return made


def place(made: Cluster, number: int, where: str, app: str) -> None:
    made.remove_pod(f"p{number}")
    if where:
        item = pod(f"p{number}", {"app": app})
        item["spec"]["nodeName"] = where
        made.set_pod(made.reader.read(item))


def asked(made: Cluster) -> tuple[Any, dict[str, int]]:
    question = Question(frozenset({"default"}), (WEB,), count_terminating=False)
    tally = made.table.counts.tally(question)
    return tally, {name: int(tally.by_row[made.table.row(name) or 0]) for name in ZONES}


@given(EVENTS)
def test_a_question_asked_first_is_kept_up_and_one_asked_last_is_counted(
    events: list[tuple[int, str, str]],
) -> None:
    early, late = cluster(), cluster()
    tally, _ = asked(early)
    tally.domains("zone")
    found: dict[int, str] = {}
    for number, where, app in events:
        place(early, number, where, app)
        place(late, number, where, app)
        found.pop(number, None)
        if where and app == "web":
            found[number] = where
    here = Counter(found.values())
    for made in (early, late):
        tally, by_node = asked(made)
        assert by_node == {name: here[name] for name in ZONES}
        assert tally.total == len(found)
        rows = np.array([made.table.row(name) for name in ("a", "c", "d")])
        north, south = here["a"] + here["b"], here["c"]
        assert tally.near("zone", rows).tolist() == [north, south, 0]


def test_a_node_that_moves_to_another_zone_takes_its_pods_along() -> None:
    made = cluster()
    place(made, 1, "a", "web")
    tally, _ = asked(made)
    row = np.array([made.table.row("c")])
    assert tally.near("zone", row).tolist() == [0]
    made.set_node(node("a", labels={"zone": "south"}))
    assert tally.near("zone", row).tolist() == [1]


def test_terminating_pods_and_other_namespaces_are_not_meant() -> None:
    question = Question(frozenset({"shop"}), (WEB,), count_terminating=False)
    made = cluster()
    for name, namespace, terminating in (("x", "shop", True), ("y", "other", False)):
        item = pod(name, {"app": "web"}, namespace=namespace)
        item["spec"]["nodeName"] = "a"
        if terminating:
            item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        made.set_pod(made.reader.read(item))
    assert made.table.counts.tally(question).total == 0
    counted = question._replace(count_terminating=True)
    assert made.table.counts.tally(counted).total == 1


def test_the_question_asked_longest_ago_is_forgotten_at_the_limit() -> None:
    counts = cluster().table.counts
    questions = [Question(frozenset({str(n)}), (WEB,), False) for n in range(TALLIES_KEPT + 1)]
    first, second = counts.tally(questions[0]), counts.tally(questions[1])
    for each in questions[2:-1]:
        counts.tally(each)
    assert counts.tally(questions[0]) is first
    counts.tally(questions[-1])
    assert len(counts.keys()) == TALLIES_KEPT
    assert (first.kept, second.kept) == (True, False)


def test_sums_by_domain_gather_rows_without_the_label_last() -> None:
    codes = np.array([0, -1, 1, 0], np.int32)
    assert domain_sums(codes, np.array([1, 2, 4, 8]), 2).tolist() == [9, 4, 2]


def test_terms_that_pods_carry_are_found_by_whom_they_mean_and_go_with_the_last_of_them() -> None:
    made = cluster()
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("one", "two"):
        item = pod(name, {"app": "web"}, affinity=affinity)
        item["spec"]["nodeName"] = "a"
        made.set_pod(made.reader.read(item))
    counts = made.table.counts
    database = made.reader.read(pod("d", {"app": "db"}))
    ((found, tally),) = counts.carried(PodCounts.ANTI, database)
    assert (found.topology_key, tally.total) == ("zone", 2)
    assert counts.carried(PodCounts.ANTI, made.reader.read(pod("w", {"app": "web"}))) == []
    for name in ("one", "two"):
        made.remove_pod(name)
    assert not counts.any_carried(PodCounts.ANTI)
    assert counts.carried(PodCounts.ANTI, database) == []


def test_the_namespaces_of_a_term_are_those_named_and_those_selected_at_present() -> None:
    made = cluster()
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "zone",
        "namespaces": ["named"],
        "namespaceSelector": {"matchLabels": {"team": "shop"}},
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (read,) = made.reader.read(pod("x", {}, affinity=affinity)).spec.affinity
    made.set_namespace("shop", {"team": "shop"})
    counts = made.table.counts
    assert counts.namespaces(read) == frozenset({"named", "shop"})
    made.set_namespace("shop", None)
    assert counts.namespaces(read) == frozenset({"named"})
