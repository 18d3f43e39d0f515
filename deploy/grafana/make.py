"""Writes the dashboard: rows of panels, each one query. Run it after changing a query here.

The alert rules beside it are written by hand. ``tests/unit/app/test_grafana.py`` compares both with
the metrics that our processes have, and the written dashboard with what this makes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "skerry.json"
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3


class Panel(NamedTuple):
    """One graph."""

    title: str
    query: str
    legend: str = ""
    unit: str = "short"


def _rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{more}[$__rate_interval]))"


def _high(metric: str, by: str) -> str:
    return f"histogram_quantile(0.99, {_rate(f'{metric}_bucket', f'le, {by}')})"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Hub": (
        Panel(
            "Requests", _rate("apiserver_request_total", "verb, code"), "{{verb}} {{code}}", "reqps"
        ),
        Panel("Request p99", _high("apiserver_request_duration_seconds", "verb"), "{{verb}}", "s"),
        Panel(
            "Refused with 429",
            "rate(apiserver_flowcontrol_rejected_requests_total[$__rate_interval])",
        ),
        Panel("Watches", "apiserver_registered_watchers", "{{kind}}"),
        Panel("Watch events", _rate("apiserver_watch_events_total", "kind"), "{{kind}}"),
        Panel(
            "Store p99", _high("etcd_request_duration_seconds", "operation"), "{{operation}}", "s"
        ),
        Panel("Objects", "topk(10, apiserver_storage_objects)", "{{resource}}"),
        Panel(
            "Without credentials that hold",
            _rate("apiserver_request_total", "verb", '{code="401"}'),
        ),
        Panel("Requests in flight", "apiserver_current_inflight_requests"),
    ),
    "Controllers": (
        Panel("Queue depth", "workqueue_depth", "{{name}}"),
        Panel(
            "Wait in the queue, p99",
            _high("workqueue_queue_duration_seconds", "name"),
            "{{name}}",
            "s",
        ),
        Panel("Work, p99", _high("workqueue_work_duration_seconds", "name"), "{{name}}", "s"),
        Panel("Retries", _rate("workqueue_retries_total", "name"), "{{name}}"),
        Panel(
            "Reconciliations",
            _rate("controller_runtime_reconcile_total", "controller, result"),
            "{{controller}} {{result}}",
        ),
        Panel("Who leads", "leader_election_master_status", "{{name}}"),
        Panel("Objects in caches", "skerry_informer_objects", "{{name}}"),
        Panel(
            "Actions of plans",
            _rate("skerry_plan_actions_total", "controller, verb"),
            "{{controller}} {{verb}}",
        ),
        Panel("Lists begun", _rate("reflector_lists_total", "name"), "{{name}}"),
    ),
    "Syncers": (
        Panel("Objects, by state", "sum by (state) (skerry_syncer_objects)", "{{state}}"),
        Panel("Heartbeats", _rate("skerry_syncer_heartbeats_total", "result"), "{{result}}"),
        Panel("Deletions that wait for a person", "skerry_syncer_deletions_held", "{{instance}}"),
        Panel("Statuses written", _rate("skerry_syncer_returned_total", "what"), "{{what}}"),
        Panel(
            "Certificate ends in",
            "skerry_syncer_certificate_expiration_timestamp_seconds - time()",
            "{{instance}}",
            "s",
        ),
        Panel(
            "Hub answers from another store", "skerry_syncer_hub_identity_changed", "{{instance}}"
        ),
    ),
}


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend or "__auto"}],
    }


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        place = {"x": 0, "y": y, "w": _WIDTH * _COLUMNS, "h": 1}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place, "panels": []}
        )
        y += 1
        for at, panel in enumerate(row):
            x = at % _COLUMNS * _WIDTH
            panels.append(_panel(len(panels) + 1, panel, x, y + at // _COLUMNS * _HEIGHT))
        y += -(-len(row) // _COLUMNS) * _HEIGHT
    datasource = {
        "name": "datasource",
        "type": "datasource",
        "query": "prometheus",
        "label": "Data source",
    }
    return {
        "uid": "skerry",
        "title": "skerry",
        "tags": ["skerry"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [datasource]},
        "panels": panels,
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
