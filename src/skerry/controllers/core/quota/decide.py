"""Write the status that is true, if it is not what is there."""

from __future__ import annotations

import copy
from datetime import datetime

from skerry.controllers.core.quota.keys import QUOTAS
from skerry.controllers.core.quota.observe import Observed
from skerry.logic.machinery import quota as rules
from skerry.logic.machinery.plan import NOTHING, Plan, Target, Update

# Pods that overstay their grace period stop counting without any event.
_OVERSTAY_LOOK_SECONDS = 30.0


def decide(observed: Observed, now: datetime) -> Plan:
    """Make ``status`` tell the limits and what is used of them."""
    quota = observed.quota
    used = rules.as_text(rules.used_by(quota, observed.content, now))
    hard = dict((quota.get("spec") or {}).get("hard") or {})
    terminating = any(
        counted.object["metadata"].get("deletionGracePeriodSeconds") for counted in observed.content
    )
    again = _OVERSTAY_LOOK_SECONDS if terminating else None
    status = quota.get("status") or {}
    if status.get("hard") == hard and status.get("used") == used:
        return NOTHING if again is None else Plan(requeue_after_seconds=again)
    wanted = copy.deepcopy(quota)
    wanted["status"] = {"hard": hard, "used": used}
    key = observed.key
    target = Target(QUOTAS, key.name, key.namespace, key.cluster)
    update = Update(target, wanted, reason="UsageChanged", subresource="status")
    return Plan([update], requeue_after_seconds=again)
