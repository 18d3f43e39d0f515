"""Limits, metrics, audit and health put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

from skerry.app.process_member import ProcessMember, flow_share
from skerry.app.process_metrics import GroupMetrics, register_restarts
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.metrics import Counter
from skerry.logic.machinery.audit_policy import Policy, PolicyError, parse_policy
from skerry.logic.machinery.decoding import DecodeError, decode_yaml
from skerry.server.admission.webhook_metrics import WebhookMetrics
from skerry.server.engine import PathHandler, Recorder
from skerry.server.flow import FairFlow, FlowSettings
from skerry.server.health import Check, Health, Unhealthy
from skerry.server.metrics import ServerMetrics
from skerry.server.recording import RequestRecorder
from skerry.server.security.audit import AuditLog, AuditSettings
from skerry.store.base import Store, StoreError

# kube-apiserver's ``--etcd-healthcheck-timeout``: probes are not patient for much longer.
_CHECK_SECONDS = 2.0


@dataclass(slots=True)
class Observability:
    """What watches over a server."""

    flow: FairFlow
    recorder: Recorder
    health: Health
    audit: AuditLog | None
    webhooks: WebhookMetrics
    cache_lists: Counter
    paths: Mapping[str, PathHandler] = field(default_factory=dict)
    trees: Mapping[str, PathHandler] = field(default_factory=dict)

    def close(self) -> None:
        """Write what is still to be written."""
        if self.audit is not None:
            self.audit.close()


class AuditPolicyError(Exception):
    """What is wrong with the file of an audit policy, in a sentence."""


def read_policy(file: Path) -> Policy:
    """Return the audit policy in *file*."""
    try:
        return parse_policy(decode_yaml(file.read_bytes()))
    except (OSError, DecodeError, PolicyError) as error:
        raise AuditPolicyError(f"--audit-policy-file {file}: {error}") from error


def build_observability(
    settings: ServerSettings,
    store: Store,
    clock: Clock,
    ids: IdSource,
    member: ProcessMember | None = None,
) -> Observability:
    """Put it together for one server, or for the *member* of a group that serves as one."""
    limits = FlowSettings()
    flow = FairFlow(limits if member is None else flow_share(limits, member.count), clock=clock)
    metrics = ServerMetrics(CollectorRegistry(), flow)
    metrics.register_process()
    audit = None
    if settings.audit_log is not None:
        audit = AuditLog(AuditSettings(settings.audit_log), clock)
    policy = None
    if settings.audit_policy_file is not None:
        policy = read_policy(settings.audit_policy_file)
        if audit is None:
            raise AuditPolicyError("--audit-policy-file says what is written to --audit-log")
    health = Health(
        [
            Check("etcd", lambda: _checked(store.revision())),
            # On a full disk reads go on, and a restart, which is what a liveness probe leads to,
            # frees nothing.
            Check(
                "etcd-readiness",
                lambda: _checked(store.check_writable()),
                live=False,
                health=False,
            ),
        ]
    )
    return Observability(
        flow=flow,
        recorder=RequestRecorder(metrics, flow, clock, ids, audit, policy),
        health=health,
        audit=audit,
        webhooks=WebhookMetrics(metrics.registry),
        cache_lists=metrics.cache_lists,
        paths={"/metrics": _metrics_handler(metrics, member)},
        trees=dict.fromkeys(("/healthz", "/livez", "/readyz"), health.handle),
    )


def _metrics_handler(metrics: ServerMetrics, member: ProcessMember | None) -> PathHandler:
    if member is None:
        return metrics.handle
    register_restarts(metrics.registry, member.restarts)
    return GroupMetrics(metrics.registry, member.peers, member.metrics).handle


async def _checked(answer: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await answer
    except TimeoutError as error:
        raise Unhealthy(f"the store has not answered for {_CHECK_SECONDS:g} s") from error
    except StoreError as error:
        raise Unhealthy(str(error)) from error
