"""The dashboard and the alert rules ask for metrics and labels that our processes have."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.runtime.metrics import RuntimeMetrics
from skerry.server.flow import FairFlow
from skerry.server.metrics import ServerMetrics

GRAFANA = Path(__file__).parents[3] / "deploy" / "grafana"
DASHBOARD = json.loads((GRAFANA / "skerry.json").read_text())
ALERTS = yaml.safe_load((GRAFANA / "alerts.yaml").read_text())
_NAME = re.compile(r"[a-z][a-z0-9_]{5,}")
# Of PromQL itself, and of Prometheus.
_WORDS = {"histogram_quantile", "instance", "__rate_interval", "rate_interval"}


def known_names() -> set[str]:
    """Return every name that a scrape of a hub, of controllers or of a syncer may show."""
    registry = CollectorRegistry()
    ServerMetrics(registry, FairFlow())
    runtime = RuntimeMetrics()
    SyncerMetrics(runtime)
    names: set[str] = set()
    for kept in (registry, runtime.registry):
        for metric in kept.collect():
            names |= {metric.name, f"{metric.name}_total"}
            names |= {f"{metric.name}_{each}" for each in ("bucket", "sum", "count")}
    return names


def queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def metrics_in(query: str) -> set[str]:
    """Return the names of metrics in a query: what is no word of PromQL, and has an underscore."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)", " ", query)
    return {name for name in _NAME.findall(bare) if "_" in name} - _WORDS


@pytest.mark.parametrize(("title", "query"), list(queries()), ids=lambda each: each[:40])
def test_every_query_asks_for_a_metric_that_there_is(title: str, query: str) -> None:
    asked = metrics_in(query)
    assert asked, title
    assert asked <= known_names()


def test_the_dashboard_is_what_its_program_makes() -> None:
    made = runpy.run_path(str(GRAFANA / "make.py"))
    assert (GRAFANA / "skerry.json").read_text() == made["text"]()


def test_every_rule_says_what_is_wrong_and_what_to_look_at() -> None:
    rules: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
