"""Metrics of several processes as those of one.

What is counted adds up, and so do most gauges (requests in flight, open watches, memory). Of what
every process knows of the whole, one process's word is enough; a start is the earliest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

# The same in every process, up to how fresh it is.
_ALIKE = frozenset(
    {
        "apiserver_storage_objects",
        "python_info",
        "process_max_fds",
        "skerry_server_process_restarts",
    }
)
_EARLIEST = frozenset({"process_start_time_seconds"})
# What only grows: an end of one process must not take it back.
_LASTING = frozenset({"counter", "histogram"})

_Labels = tuple[tuple[str, str], ...]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One number, with its name and labels."""

    name: str
    labels: _Labels
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """The samples of one metric."""

    name: str
    meaning: str
    kind: str
    samples: list[Sample]


def families_of(registry: CollectorRegistry) -> list[Family]:
    """Return everything registered, as of now."""
    return [
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            [
                Sample(each.name, tuple(sorted(each.labels.items())), each.value)
                for each in metric.samples
            ],
        )
        for metric in registry.collect()
    ]


def lasting(families: Iterable[Family]) -> list[Family]:
    """Return the families whose numbers only grow."""
    return [family for family in families if family.kind in _LASTING]


def summed(parts: Sequence[Sequence[Family]]) -> list[Family]:
    """Return the metrics of a whole whose processes have *parts*."""
    found: dict[str, tuple[Family, dict[tuple[str, _Labels], float]]] = {}
    for families in parts:
        for family in families:
            _, numbers = found.setdefault(family.name, (family, {}))
            together = _together(family.name)
            for sample in family.samples:
                key = (sample.name, sample.labels)
                known = numbers.get(key)
                numbers[key] = sample.value if known is None else together(known, sample.value)
    return [
        Family(
            family.name,
            family.meaning,
            family.kind,
            [Sample(name, labels, value) for (name, labels), value in numbers.items()],
        )
        for family, numbers in found.values()
    ]


def _together(name: str) -> Callable[[float, float], float]:
    if name in _ALIKE:
        return max
    return min if name in _EARLIEST else operator.add


class _Given(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.meaning, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric


def exposition_of(families: Sequence[Family]) -> bytes:
    """Return *families* in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Given(families))
    return generate_latest(registry)
