"""What is counted of webhooks."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from skerry.kit.metrics import exposition
from skerry.server.admission.webhook_metrics import WebhookMetrics


def test_codes_beyond_600_are_counted_together() -> None:
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry)
    for code in (600, 601, 99_999):
        metrics.answered("w", "admit", "CREATE", 0.1, code, rejected=True)
        metrics.rejected("w", "admit", "CREATE", "no_error", code)
    text = exposition(registry).decode()
    assert 'request_total{code="600",name="w"' in text
    assert 'rejection_code="600",type="admit"} 3.0' in text
    assert "99999" not in text


def test_conditions_are_counted_as_a_webhooks() -> None:
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry)
    metrics.excluded("w", "validating", "UPDATE")
    metrics.erroneous("w", "validating", "UPDATE")
    metrics.failed_open("w", "validating")
    labels = '{kind="webhook",name="w",operation="UPDATE",type="validating"} 1.0'
    lines = exposition(registry).decode().splitlines()
    assert f"apiserver_admission_match_condition_exclusions_total{labels}" in lines
    assert f"apiserver_admission_match_condition_evaluation_errors_total{labels}" in lines
