"""Who may do what where: entering a workspace, RBAC inside it, and an exporter's upper bound.

1. Members of ``system:masters`` may do everything, and only they may read across clusters.
2. Everybody else is judged as the cluster sees them: a ServiceAccount or an impersonated user of
   another cluster is a foreign principal (``User.seen_from``).
3. The logical cluster must exist and be Initializing or Ready. The user must be in the groups it
   requires, if it does, and have the verb ``access`` on ``/`` there. ServiceAccounts of the
   cluster itself need neither.
4. What an export's maximal permission policy does not allow, nobody may do to its types. Nobody
   writes the status of exports and bindings.
5. RBAC: the bootstrap policy, which counts everywhere, and the cluster's own.

What one cluster asks another about (``bind``, ``use``) is a *deep* question: 5 alone answers it,
and whether the cluster is closed. Giving somebody an API is not letting them in.

Edges and bootstrap credentials have rules of their own, and none of these.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from msgspec.structs import replace

from skerry.api.edge_identity import NARROW_GROUPS, REQUESTS, SIGNER
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, SYSTEM_ADMIN, WILDCARD
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX, BOUND_PREFIX, SCOPED
from skerry.server.access import Attributes, Decision
from skerry.server.security.authentication import impersonation_attributes
from skerry.server.security.authorization import MASTERS, RbacAuthorizer
from skerry.server.user import User
from skerry.server.workspaces.edge_authorization import EdgeAuthorizer, is_for_approvers
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import APIS, HubState

_DENIED = Decision(False, "access denied")
_GRANTED = Decision(True, "access granted")
_ALLOWED = Decision(True)
_PHASES = ("Initializing", "Ready")
# Types of the group apis.kcp.io whose status nobody else writes.
_SERVERS = frozenset({"apibindings", "apiexports"})
# Names that the hub itself gives out, and by which it decides: only masters impersonate them.
_RESERVED = (MASTERS, "system:kcp:", "system:edge")


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

    def __init__(self, rbac: RbacAuthorizer, state: HubState, mailboxes: Mailboxes) -> None:
        self._rbac = rbac
        self._state = state
        self._mailboxes = mailboxes
        self._edges = EdgeAuthorizer(mailboxes)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if MASTERS in user.groups:
            return _ALLOWED
        if ":" in attributes.resource:
            # Rights are to a type, whichever way it is named.
            attributes = replace(attributes, resource=attributes.resource.partition(":")[0])
        if len(user.groups) == 1 and user.groups in NARROW_GROUPS:
            return self._edges.authorize(user, attributes)
        if attributes.claimed:
            return _GRANTED if self._within_claim(user, attributes) else _DENIED
        if attributes.verb == "impersonate" and attributes.name.startswith(_RESERVED):
            # An administrator of one workspace must not become one of all.
            return _DENIED
        cluster = attributes.cluster
        if cluster == SYSTEM_ADMIN and attributes.path:
            return self._rbac.authorize(user, attributes)
        if cluster == WILDCARD or not self._may_reach(user, attributes):
            return self._as_approver(user, attributes)
        if not attributes.deep and (
            _is_servers(attributes) or not self._within_policy(user, attributes)
        ):
            return _DENIED
        if self._rbac.authorize(user, attributes).allowed:
            # Which roles there are is no business of who asks.
            return _GRANTED
        return self._as_approver(user, attributes)

    def _may_reach(self, user: User, attributes: Attributes) -> bool:
        """Whether RBAC of the cluster is to be asked at all."""
        if attributes.deep:
            return not self._is_shut(user, attributes.cluster)
        return self._may_enter(user, attributes)

    def _is_shut(self, user: User, cluster: str) -> bool:
        """Whether *cluster* is a closed mailbox: whatever was granted inside has ended."""
        known = self._state.clusters.get(cluster)
        closed = known is not None and self._mailboxes.is_closed(known)
        return closed and ADMIN_GROUP not in user.groups

    def _as_approver(self, user: User, attributes: Attributes) -> Decision:
        """Decide for whoever may let edges in, which is granted where their SyncTargets are.

        They read and decide about requests for certificates in the mailboxes, and revoke.
        """
        known = self._state.clusters.get(attributes.cluster)
        if known is None or known.mailbox is None or not is_for_approvers(attributes):
            return _DENIED
        mailbox = self._mailboxes.mailbox(known.name)
        if mailbox is None or mailbox.cluster == known.name:
            return _DENIED
        approving = Attributes(
            cluster=mailbox.cluster, verb="approve", group=REQUESTS.group, resource="signers",
            name=SIGNER,
        )  # fmt: skip
        return self.authorize(user, approving)

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
        return "" if held else cluster

    def _may_enter(self, user: User, attributes: Attributes) -> bool:
        known = self._state.clusters.get(attributes.cluster)
        if known is None or known.phase not in _PHASES:
            return False
        if known.mailbox is not None and self._mailboxes.is_closed(known):
            # Whatever was granted inside, by whomever, has ended.
            return ADMIN_GROUP in user.groups
        if user.home == attributes.cluster and user.name.startswith(ACCOUNT_PREFIX):
            return True
        if user.home:
            user = user.seen_from(attributes.cluster)
        if not in_required_groups(known.required_groups, user.groups):
            return False
        return self._rbac.authorize(user, _entering(attributes.cluster)).allowed

    def _within_policy(self, user: User, attributes: Attributes) -> bool:
        """Whether the export the type comes from lets anybody do this, and this user."""
        if not attributes.resource:
            return True
        export = self._exporting(attributes)
        return export is None or self._allows(*export, user, attributes)

    def _within_claim(self, user: User, attributes: Attributes) -> bool:
        """Whether every exporter of a claimed type lets this user do this.

        Exports that share a key share an identity, and which of them a workspace has bound makes
        no difference. Where there is none any more, nobody can say what would be allowed.
        """
        exports = self._state.identified(attributes.claimed)
        return bool(exports) and all(self._allows(*each, user, attributes) for each in exports)

    def _allows(self, cluster: str, export: Object, user: User, attributes: Attributes) -> bool:
        """Whether the policy of *export*, if it has one, allows it."""
        policy = (export.get("spec") or {}).get("maximalPermissionPolicy") or {}
        if "local" not in policy:
            return True
        asked = replace(attributes, cluster=cluster, claimed="")
        return self._rbac.authorize(_bearer(user, cluster), asked).allowed

    def _exporting(self, attributes: Attributes) -> tuple[str, Object] | None:
        for binding in (self._state.bindings.get(attributes.cluster) or {}).values():
            for bound in binding.bound:
                if (bound.group, bound.resource) == (attributes.group, attributes.resource):
                    key = (binding.export_cluster, binding.export_name)
                    export = self._state.exports.get(key)
                    return None if export is None else (binding.export_cluster, export)
        return None


def _is_servers(attributes: Attributes) -> bool:
    """Whether only the server does this: others read what it says there, and believe it."""
    return (
        attributes.subresource == "status"
        and attributes.group == APIS
        and attributes.resource in _SERVERS
        and attributes.verb != "get"
    )


@lru_cache(maxsize=1024)
def _entering(cluster: str) -> Attributes:
    return Attributes(cluster=cluster, verb="access", path="/")


def _bearer(user: User, cluster: str) -> User:
    """Return as whom the policy of an export in *cluster* knows *user*.

    Foreign principals are in no group there. For exporters that leave the decision to whoever
    binds, all of them together have one of their own.
    """
    if user.home and user.home != cluster:
        return _bound_user(user.principal, (SCOPED,))
    return _bound_user(user.name, user.groups)


@lru_cache(maxsize=4096)
def _bound_user(name: str, groups: tuple[str, ...]) -> User:
    return User(BOUND_PREFIX + name, groups=tuple(BOUND_PREFIX + group for group in groups))
