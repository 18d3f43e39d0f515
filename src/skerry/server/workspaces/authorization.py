"""Who may do what where: entering a workspace, RBAC inside it, and an exporter's upper bound.

1. Members of ``system:masters`` may do everything, and only they may read across clusters.
2. The logical cluster must exist and be Initializing or Ready. The user must be in the groups it
   requires, if it does, and have the verb ``access`` on ``/`` there. ServiceAccounts of the
   cluster itself need neither; those of others never have it.
3. What an export's maximal permission policy does not allow, nobody may do to its types.
4. RBAC: the bootstrap policy, which counts everywhere, and the cluster's own.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from skerry.logic.resource import Object
from skerry.logic.workspaces.names import ADMIN_GROUP, SYSTEM_ADMIN, WILDCARD
from skerry.logic.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.access import Attributes, Decision
from skerry.server.http.message import User
from skerry.server.security.authentication import impersonation_attributes
from skerry.server.security.authorization import MASTERS, RbacAuthorizer
from skerry.server.workspaces.state import HubState

_DENIED = Decision(False, "access denied")
_ALLOWED = Decision(True)
_BOUND_PREFIX = "apis.kcp.io:binding:"
_PHASES = ("Initializing", "Ready")
# Groups whose rights do not end at a cluster; only masters may act as their members.
_ABOVE_CLUSTERS = frozenset({MASTERS, ADMIN_GROUP})


def in_required_groups(required: str | None, groups: Collection[str]) -> bool:
    """Tell whether a member of *groups* has those a workspace requires.

    Semicolons separate alternatives, commas what one of them demands together. Administrators of
    all clusters need none.
    """
    if required is None or ADMIN_GROUP in groups:
        return True
    alternatives = (set(each.split(",")) for each in required.split(";"))
    return any(each <= set(groups) for each in alternatives)


class HubAuthorizer:
    """Decides for every cluster of a hub."""

    def __init__(self, rbac: RbacAuthorizer, state: HubState) -> None:
        self._rbac = rbac
        self._state = state

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if MASTERS in user.groups:
            return _ALLOWED
        if ":" in attributes.resource:
            # Rights are to a type, whichever way it is named.
            attributes = replace(attributes, resource=attributes.resource.partition(":")[0])
        if attributes.verb == "impersonate" and attributes.name in _ABOVE_CLUSTERS:
            # An administrator of one workspace must not become one of all.
            return _DENIED
        cluster = attributes.cluster
        if cluster == SYSTEM_ADMIN and attributes.path:
            return self._rbac.authorize(user, attributes)
        if cluster == WILDCARD or not self._may_enter(user, attributes):
            return _DENIED
        if not self._within_policy(user, attributes):
            return _DENIED
        decision = self._rbac.authorize(user, attributes)
        return decision if decision.allowed else _DENIED

    def impersonation_home(self, user: User, wanted: User, cluster: str) -> str:
        """Return the cluster that *wanted* is scoped to when *user* may impersonate it there.

        A right that a workspace gave ends with that workspace. Only who holds it by the policy of
        all clusters impersonates users of all clusters. A ServiceAccount is one cluster's.
        """
        if wanted.name.startswith(ACCOUNT_PREFIX):
            return cluster
        if MASTERS in user.groups:
            return ""
        needed = impersonation_attributes(wanted, SYSTEM_ADMIN)
        held = all(self._rbac.authorize(user, each).allowed for each in needed)
        return "" if held and not user.home else cluster

    def _may_enter(self, user: User, attributes: Attributes) -> bool:
        known = self._state.clusters.get(attributes.cluster)
        if known is None or known.phase not in _PHASES:
            return False
        if user.name.startswith(ACCOUNT_PREFIX):
            # A ServiceAccount's token holds in its own cluster only, so it is at home here.
            return True
        if not in_required_groups(known.required_groups, user.groups):
            return False
        entering = Attributes(cluster=attributes.cluster, verb="access", path="/")
        return self._rbac.authorize(user, entering).allowed

    def _within_policy(self, user: User, attributes: Attributes) -> bool:
        """Whether the export the type comes from lets anybody do this, and this user."""
        if not attributes.resource:
            return True
        export = self._exporting(attributes)
        if export is None:
            return True
        cluster, obj = export
        policy = (obj.get("spec") or {}).get("maximalPermissionPolicy") or {}
        if "local" not in policy:
            return True
        bearer = User(
            _BOUND_PREFIX + user.name,
            user.uid,
            tuple(_BOUND_PREFIX + group for group in user.groups),
        )
        return self._rbac.authorize(bearer, replace(attributes, cluster=cluster)).allowed

    def _exporting(self, attributes: Attributes) -> tuple[str, Object] | None:
        for binding in (self._state.bindings.get(attributes.cluster) or {}).values():
            for bound in binding.bound:
                if (bound.group, bound.resource) == (attributes.group, attributes.resource):
                    key = (binding.export_cluster, binding.export_name)
                    export = self._state.exports.get(key)
                    return None if export is None else (binding.export_cluster, export)
        return None
