"""Metrics of several processes, added up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from skerry.kit.metric_sums import Family, exposition_of, families_of, lasting, summed
from skerry.kit.metrics import Counter, Gauge, Histogram, exposition

amounts = st.lists(st.tuples(st.sampled_from(["get", "list"]), st.integers(0, 9)), max_size=5)


def counted(requests: list[tuple[str, int]], objects: int = 0) -> CollectorRegistry:
    registry = CollectorRegistry()
    total = Counter(registry, "requests_total", "Requests.", ("verb",))
    seconds = Histogram(registry, "request_seconds", "How long.", ("verb",), (1.0, 5.0))
    for verb, amount in requests:
        total.inc((verb,), amount)
        seconds.observe(amount, (verb,))
    Gauge(registry, "in_flight", "Now.").set(len(requests))
    Gauge(registry, "apiserver_storage_objects", "Stored.", ("resource",)).set(objects, ("pods",))
    return registry


def numbers(families: list[Family]) -> dict[tuple[object, ...], float]:
    return {(s.name, s.labels): s.value for family in families for s in family.samples}


@settings(max_examples=25, deadline=None)
@given(amounts, amounts, amounts)
def test_the_sum_is_that_of_one_process_that_did_everything(
    one: list[tuple[str, int]], two: list[tuple[str, int]], three: list[tuple[str, int]]
) -> None:
    parts = [families_of(counted(each)) for each in (one, two, three)]
    assert numbers(summed(parts)) == numbers(families_of(counted(one + two + three)))


@settings(max_examples=25, deadline=None)
@given(amounts, amounts)
def test_the_sum_does_not_depend_on_who_adds(
    one: list[tuple[str, int]], two: list[tuple[str, int]]
) -> None:
    parts = [families_of(counted(each)) for each in (one, two)]
    assert numbers(summed(parts)) == numbers(summed(parts[::-1]))


def test_what_every_process_knows_of_the_whole_is_not_added_up() -> None:
    parts = [families_of(counted([], objects)) for objects in (7, 8)]
    assert numbers(summed(parts))["apiserver_storage_objects", (("resource", "pods"),)] == 8


@settings(max_examples=25, deadline=None)
@given(amounts)
def test_the_text_is_that_of_the_registry(requests: list[tuple[str, int]]) -> None:
    registry = counted(requests)
    assert exposition_of(families_of(registry)) == exposition(registry)


def test_only_what_grows_outlives_a_process() -> None:
    kept = {family.name for family in lasting(families_of(counted([("get", 1)])))}
    assert kept == {"requests", "request_seconds"}
