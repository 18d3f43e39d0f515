"""Counters, gauges and histograms that cost next to nothing to change.

prometheus_client exposes them; it would spend most of a microsecond on each change, guarding
against threads. Ours are plain dictionaries from label values to numbers, read when scraped.
Change them from one thread (the event loop's) only.

Label values come from known sets: what is served, verbs, codes; never from the text of a request
that was refused. Beyond that every metric has a bound on its series, since tenants define types of
their own: further label values are counted together under ``other``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

Labels = tuple[str, ...]

# Built-in types, verbs and codes come to a few hundred; the rest is room for tenants' types.
# A histogram's series costs about a kilobyte, so a metric stays within 2 MB.
_MAX_SERIES = 2000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Series(Collector):
    """What all metrics have: a name, label names and bounded label values."""

    def __init__(
        self, registry: CollectorRegistry, name: str, meaning: str, labels: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        registry.register(self)

    def _bounded(self, known: Mapping[Labels, object], values: Labels) -> Labels:
        if len(values) != len(self.labels):
            raise ValueError(f"metric {self.name}: want values of {self.labels}, found {values!r}")
        return values if len(known) < _MAX_SERIES else ("other",) * len(values)

    def describe(self) -> Iterable[Metric]:
        """Name the metric without collecting it, for the registry's check on duplicates."""
        return [Metric(self.name.removesuffix("_total"), self.meaning, "untyped")]


class _Number(_Series):
    """One number for each combination of label values."""

    _family: type[CounterMetricFamily | GaugeMetricFamily]

    def __init__(
        self, registry: CollectorRegistry, name: str, meaning: str, labels: Sequence[str] = ()
    ) -> None:
        self._values: dict[Labels, float] = {}
        super().__init__(registry, name, meaning, labels)

    def _add(self, values: Labels = (), amount: float = 1) -> None:
        known = self._values
        try:
            known[values] += amount
        except KeyError:
            values = self._bounded(known, values)
            known[values] = known.get(values, 0) + amount

    def value(self, values: Labels = ()) -> float:
        """Return the present number, 0 when there was none yet."""
        return self._values.get(values, 0)

    def collect(self) -> Iterable[Metric]:
        family = self._family(self.name, self.meaning, labels=self.labels)
        for values, number in self._values.copy().items():
            family.add_metric(values, number)
        yield family


class Counter(_Number):
    """A number that only grows. Its name ends in ``_total``."""

    _family = CounterMetricFamily
    inc = _Number._add


class Gauge(_Number):
    """A number that goes up and down."""

    _family = GaugeMetricFamily
    add = _Number._add

    def set(self, number: float, values: Labels = ()) -> None:
        if values not in self._values:
            values = self._bounded(self._values, values)
        self._values[values] = number


class Reading(_Series):
    """Numbers that are asked for when scraped: a counter's where the name ends in ``_total``,
    else a gauge's."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        meaning: str,
        labels: Sequence[str],
        read: Callable[[], Mapping[Labels, float]],
    ) -> None:
        self._read = read
        super().__init__(registry, name, meaning, labels)

    def collect(self) -> Iterable[Metric]:
        counts = self.name.endswith("_total")
        made = CounterMetricFamily if counts else GaugeMetricFamily
        family = made(self.name, self.meaning, labels=self.labels)
        for values, number in self._read().items():
            family.add_metric(values, number)
        yield family


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return *count* bucket bounds, each *factor* times the one before."""
    return tuple(start * factor**index for index in range(count))


def _decimal(bound: float) -> str:
    return str(float(bound))


class Histogram(_Series):
    """How often values fell below each of some bounds."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        meaning: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        bound_text: Callable[[float], str] = _decimal,
    ) -> None:
        """*bound_text* writes a bound as the label ``le`` has it."""
        self._bounds = tuple(buckets)
        self._bound_text = bound_text
        # Per series: how many in each bucket alone, the last being above all bounds; their sum.
        self._values: dict[Labels, tuple[list[int], list[float]]] = {}
        super().__init__(registry, name, meaning, labels)

    def observe(self, value: float, values: Labels = ()) -> None:
        found = self._values.get(values)
        if found is None:
            values = self._bounded(self._values, values)
            found = self._values.setdefault(values, ([0] * (len(self._bounds) + 1), [0.0]))
        found[0][bisect_left(self._bounds, value)] += 1
        found[1][0] += value

    def count(self, values: Labels = ()) -> int:
        """Return how many values were observed."""
        found = self._values.get(values)
        return 0 if found is None else sum(found[0])

    def series(self) -> list[Labels]:
        """Return the label values that something was observed for."""
        return list(self._values)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
        for values, (counts, total) in self._values.copy().items():
            family.add_metric(values, self._cumulative(counts), total[0])
        yield family

    def _cumulative(self, counts: Sequence[int]) -> list[tuple[str, float]]:
        below = 0
        buckets: list[tuple[str, float]] = []
        for bound, number in zip((*self._bounds, float("inf")), counts, strict=True):
            below += number
            buckets.append(("+Inf" if bound == float("inf") else self._bound_text(bound), below))
        return buckets


def exposition(registry: CollectorRegistry) -> bytes:
    """Return everything registered, in Prometheus' text format.

    Takes some microseconds a line, so a server with much to tell calls it in another thread: the
    metrics above are copied, in one step each, before they are read.
    """
    return generate_latest(registry)
