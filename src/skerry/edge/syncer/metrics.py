"""What a syncer counts beyond what every controller counts.

Gauges say how things stand now and are set by whoever keeps that; counters are of this process and
begin at zero with it. Both outlive sessions: a session that ends leaves its last numbers, and the
next one writes over that of a state when it first counts something in it. ``held`` and
``identity_changed`` are set when a report is made (``reporting``), and not when they change.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from skerry.runtime.metrics import RuntimeMetrics


class SyncerMetrics:
    """One per process, on the registry of the runtime's metrics."""

    def __init__(self, runtime: RuntimeMetrics | None = None) -> None:
        self.runtime = runtime or RuntimeMetrics()
        kept = self.runtime.registry
        # By the word of ``SyncOutcome.state``; what is Gone is not counted.
        self.objects = Gauge(
            "skerry_syncer_objects", "Objects that go down, by state.", ["state"], registry=kept
        )
        self.heartbeats = Counter(
            "skerry_syncer_heartbeats_total", "Heartbeats, by result.", ["result"], registry=kept
        )
        self.held = Gauge(
            "skerry_syncer_deletions_held", "Deletions that wait for a person.", registry=kept
        )
        self.identity_changed = Gauge(
            "skerry_syncer_hub_identity_changed",
            "1 while the hub answers from a store we do not know.",
            registry=kept,
        )
        # Either a status with its marks (``status``) or marks alone (``mark``): one for each write.
        self.returned = Counter(
            "skerry_syncer_returned_total",
            "Statuses and marks written in the mailbox.",
            ["what"],
            registry=kept,
        )
        self.certificates = Counter(
            "skerry_syncer_certificate_requests_total",
            "Requests for a certificate at the hub, by result.",
            ["result"],
            registry=kept,
        )
        self.certificate_expiration = Gauge(
            "skerry_syncer_certificate_expiration_timestamp_seconds",
            "When the certificate for the hub ends; 0 without one.",
            registry=kept,
        )
        self.tunnel_connected = Gauge(
            "skerry_syncer_tunnel_connected",
            "1 while the tunnel to the hub is open.",
            registry=kept,
        )
        self.tunnel_sessions = Counter(
            "skerry_syncer_tunnel_sessions_total",
            "Sessions that came through the tunnel, by what they do.",
            ["action"],
            registry=kept,
        )
