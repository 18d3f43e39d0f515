"""What is measured of admission webhooks, under Kubernetes' names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from skerry.kit.metrics import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
# Codes beyond are counted together, as in Kubernetes.
_MAX_CODE = 600


class WebhookMetrics:
    """All of them. The registry is injected: tests and embedded servers have their own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        called = ("name", "type", "operation")
        self._seconds = Histogram(
            registry,
            "apiserver_admission_webhook_admission_duration_seconds",
            "How long admission webhooks took.",
            (*called, "rejected"),
            _SECONDS,
        )
        self._requests = Counter(
            registry,
            "apiserver_admission_webhook_request_total",
            "Calls of admission webhooks by answer.",
            (*called, "code", "rejected"),
        )
        # These two end in _count, which the exposition leaves alone in gauges only.
        self._rejections = Gauge(
            registry,
            "apiserver_admission_webhook_rejection_count",
            "Requests rejected by admission webhooks, or because calling one failed.",
            (*called, "error_type", "rejection_code"),
        )
        self._open = Gauge(
            registry,
            "apiserver_admission_webhook_fail_open_count",
            "Calls of admission webhooks that failed and were ignored.",
            ("name", "type"),
        )
        self._excluded = Counter(
            registry,
            "apiserver_admission_match_condition_exclusions_total",
            "Requests that match conditions kept from a webhook.",
            ("name", "kind", "type", "operation"),
        )
        self._erroneous = Counter(
            registry,
            "apiserver_admission_match_condition_evaluation_errors_total",
            "Match conditions that could not be evaluated.",
            ("name", "kind", "type", "operation"),
        )

    def answered(
        self, name: str, step: str, operation: str, seconds: float, code: int, *, rejected: bool
    ) -> None:
        """Count one call, which ended as *code* says."""
        shown = "true" if rejected else "false"
        self._seconds.observe(seconds, (name, step, operation, shown))
        self._requests.inc((name, step, operation, str(min(code, _MAX_CODE)), shown))

    def rejected(self, name: str, step: str, operation: str, error: str, code: int) -> None:
        """Count a rejected request: *error* is ``no_error`` when the webhook itself rejected it."""
        self._rejections.add((name, step, operation, error, str(min(code, _MAX_CODE))))

    def failed_open(self, name: str, step: str) -> None:
        """Count a failed call that the failure policy ignores."""
        self._open.add((name, step))

    def excluded(self, name: str, step: str, operation: str) -> None:
        """Count a request that match conditions left out."""
        self._excluded.inc((name, "webhook", step, operation))

    def erroneous(self, name: str, step: str, operation: str) -> None:
        """Count match conditions that failed."""
        self._erroneous.inc((name, "webhook", step, operation))
