"""Create what is missing."""

from __future__ import annotations

from skerry.controllers.core.service_account.keys import DEFAULT_NAME, SERVICE_ACCOUNTS
from skerry.controllers.core.service_account.observe import Observed
from skerry.logic.machinery.plan import NOTHING, Create, Plan, Target


def decide(observed: Observed) -> Plan:
    """Give an active namespace its ServiceAccount."""
    if observed.present:
        return NOTHING
    key = observed.key
    wanted = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": DEFAULT_NAME, "namespace": key.name},
    }
    target = Target(SERVICE_ACCOUNTS, DEFAULT_NAME, key.name, key.cluster)
    return Plan([Create(target, wanted, reason="NamespaceActive")])
