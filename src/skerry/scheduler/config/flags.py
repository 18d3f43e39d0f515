"""How command-line flags and a configuration file make one configuration.

As in kube-scheduler: with a file, the leader-election flags override it and the deprecated flags
(``--kubeconfig``, ``--kube-api-qps``, ``--profiling`` …) count for nothing; without one, they
change the defaults.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.scheduler.config.load import Configuration, complete, decode
from skerry.scheduler.config.schema import format_duration


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said on the command line; None where nothing was. Times in seconds."""

    leader_elect: bool | None = None
    leader_elect_lease_duration: float | None = None
    leader_elect_renew_deadline: float | None = None
    leader_elect_retry_period: float | None = None
    leader_elect_resource_lock: str | None = None
    leader_elect_resource_name: str | None = None
    leader_elect_resource_namespace: str | None = None
    # Deprecated: only without a file.
    kubeconfig: str | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    kube_api_content_type: str | None = None
    profiling: bool | None = None
    contention_profiling: bool | None = None


def configured(text: str | None, flags: Flags) -> Configuration:
    """Return the effective configuration of a file's *text* (None: no file) and *flags*."""
    document: Object = {} if text is None else copy.deepcopy(decode(text))
    _override(document, "leaderElection", _election(flags))
    if text is None:
        client = {
            "kubeconfig": flags.kubeconfig,
            "qps": flags.kube_api_qps,
            "burst": flags.kube_api_burst,
            "contentType": flags.kube_api_content_type,
        }
        _override(document, "clientConnection", client)
        for key, value in (
            ("enableProfiling", flags.profiling),
            ("enableContentionProfiling", flags.contention_profiling),
        ):
            if value is not None:
                document[key] = value
    return complete(document)


def asked_rate(text: str | None, flags: Flags) -> tuple[float, int] | None:
    """Return the requests per second and the burst that were asked for; None: no limit.

    The default of fifty requests per second is from times when servers could not defend
    themselves, and would be the scheduler's speed; only a figure somebody wrote down counts.
    """
    if text is None:
        qps, burst = flags.kube_api_qps, flags.kube_api_burst
    else:
        client = decode(text).get("clientConnection") or {}
        qps, burst = client.get("qps"), client.get("burst")
    if not qps or qps < 0:
        return None
    return float(qps), burst or _USUAL_BURST


# What the configuration says of itself when nobody does.
_USUAL_BURST = 100


def _election(flags: Flags) -> Object:
    seconds = {
        "leaseDuration": flags.leader_elect_lease_duration,
        "renewDeadline": flags.leader_elect_renew_deadline,
        "retryPeriod": flags.leader_elect_retry_period,
    }
    return {
        "leaderElect": flags.leader_elect,
        "resourceLock": flags.leader_elect_resource_lock,
        "resourceName": flags.leader_elect_resource_name,
        "resourceNamespace": flags.leader_elect_resource_namespace,
        **{
            key: None if value is None else format_duration(value) for key, value in seconds.items()
        },
    }


def _override(document: Object, part: str, values: Object) -> None:
    said = {key: value for key, value in values.items() if value is not None}
    if said:
        document[part] = {**(document.get(part) or {}), **said}
