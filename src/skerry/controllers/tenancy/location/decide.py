"""Tell the counts when they are others."""

from __future__ import annotations

from skerry.api.kcp.resources import LOCATIONS
from skerry.controllers.tenancy.location.observe import Observed
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target


def decide(observed: Observed) -> Plan:
    """Correct the status of a Location that counts wrongly."""
    if observed.reported == observed.counted:
        return NOTHING
    instances, available = observed.counted
    action = Patch(
        Target(LOCATIONS, observed.ref.name, cluster=observed.ref.cluster),
        {"status": {"instances": instances, "availableInstances": available}},
        reason="InstancesChanged",
        subresource="status",
        retry_on_conflict=True,
        absent_is_fine=True,
    )
    return Plan([action])
