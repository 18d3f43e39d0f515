from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as ReferenceHistogram
from prometheus_client.parser import text_string_to_metric_families

from skerry.kit import metrics
from skerry.kit.metrics import Counter, Gauge, Histogram, Reading, exposition


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def samples(registry: CollectorRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(exposition(registry).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_counter_counts_each_set_of_labels_apart(registry: CollectorRegistry) -> None:
    counter = Counter(registry, "requests_total", "Requests.", ("verb", "code"))
    counter.inc(("get", "200"))
    counter.inc(("get", "200"), 2)
    counter.inc(("get", "404"))
    assert counter.value(("get", "200")) == 3
    assert samples(registry)[("requests_total", (("code", "404"), ("verb", "get")))] == 1
    assert b"# TYPE requests_total counter" in exposition(registry)


def test_a_gauge_goes_up_and_down(registry: CollectorRegistry) -> None:
    gauge = Gauge(registry, "open", "Open things.")
    gauge.add()
    gauge.add(amount=-1)
    assert gauge.value() == 0
    gauge.set(7)
    assert samples(registry)[("open", ())] == 7


def test_a_reading_is_asked_when_scraped(registry: CollectorRegistry) -> None:
    numbers: dict[tuple[str, ...], float] = {("a",): 1.0}
    Reading(registry, "depth", "Depth.", ("queue",), lambda: numbers)
    numbers[("b",)] = 2
    assert samples(registry)[("depth", (("queue", "b"),))] == 2


def test_a_reading_named_as_a_counter_is_one(registry: CollectorRegistry) -> None:
    Reading(registry, "lost_total", "Lost.", (), lambda: {(): 3.0})
    assert b"# TYPE lost_total counter\nlost_total 3.0" in exposition(registry)


def test_wrong_label_values_are_a_bug(registry: CollectorRegistry) -> None:
    counter = Counter(registry, "x_total", "X.", ("a",))
    with pytest.raises(ValueError, match="want values of"):
        counter.inc(("1", "2"))


def test_a_name_is_registered_once(registry: CollectorRegistry) -> None:
    Counter(registry, "x_total", "X.")
    with pytest.raises(ValueError, match="Duplicated"):
        Counter(registry, "x_total", "X.")


def test_series_beyond_the_bound_are_counted_together(registry: CollectorRegistry) -> None:
    counter = Counter(registry, "x_total", "X.", ("name",))
    for number in range(metrics._MAX_SERIES + 50):
        counter.inc((str(number),))
    assert counter.value(("other",)) == 50
    assert len(counter._values) == metrics._MAX_SERIES + 1


@given(st.lists(st.floats(0, 100, allow_nan=False), max_size=50))
def test_a_histogram_exposes_what_prometheus_own_would(values: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    buckets = (0.005, 0.1, 1.0, 5, 60)
    mine = Histogram(ours, "seconds", "Seconds.", (), buckets)
    reference = ReferenceHistogram("seconds", "Seconds.", buckets=buckets, registry=theirs)
    for value in values:
        mine.observe(value)
        reference.observe(value)
    expected = {
        key: value for key, value in samples(theirs).items() if not key[0].endswith("_created")
    }
    assert mine.count() == len(values)
    assert samples(ours) == (pytest.approx(expected) if values else {})
