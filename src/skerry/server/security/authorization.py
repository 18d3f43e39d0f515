"""What users may do: RBAC per cluster, with decisions remembered.

Each logical cluster has a policy of its own; objects of one count only there. Store events feed
``put`` and ``remove``. A decision that was made is a dictionary hit until the policy of its
cluster changes. Most rules name no objects, so a decision is first made for no name at all: when
that is allowed it holds for every name, and reading a million different pods leaves one entry.

What is kept is bounded by its size, for all clusters together, and refusals apart from the rest:
anybody may ask for whatever they invent, and be refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.errors import ApiError, Forbidden, NotFound, named, qualified
from skerry.kit.steps import Steps, finished
from skerry.logic.machinery.rbac.policy import GROUP, Action, Policy, RulesFor
from skerry.logic.machinery.rbac.rules import FULL_AUTHORITY, Rule, TooManyRights, rules_of
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP
from skerry.server.access import Attributes, Decision
from skerry.server.user import User

MASTERS = "system:masters"
_ADMINISTRATORS = frozenset((MASTERS, ADMIN_GROUP))
# A decision takes some 400 bytes beside its names. 100,000 of them are far more than a server has
# users times their habits.
_ENTRY_BYTES = 400
_DECISIONS_BYTES = 40 * 1024 * 1024
_REFUSALS_BYTES = 2 * 1024 * 1024
# Longer names are nobody's habit; a decision about one is made each time.
_MAX_KEPT_LENGTH = 1024
_ALLOWED_MASTER = Decision(True)
_DENIED = Decision(False)
RESOURCES = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}

# No policy has this generation.
_UNKNOWN = (-2, _DENIED)
_Key = tuple[str, tuple[str, ...], str, str, str, str, str, str, str]


class _Cluster:
    """The policy of one cluster and the decisions made under it."""

    __slots__ = ("decisions", "generation", "policy")

    def __init__(self, inherits: Policy | None = None) -> None:
        self.policy = Policy(inherits)
        self.generation = -1
        self.decisions: dict[_Key, Decision] = {}


class RbacAuthorizer:
    """Decides by RBAC; members of ``system:masters`` may do everything.

    The policy of the cluster named *shared*, if one is named, counts in every other one too. Users
    are judged as the cluster sees them (``User.seen_from``), whoever asks.
    """

    def __init__(
        self,
        shared: str = "",
        *,
        decisions_bytes: int = _DECISIONS_BYTES,
        refusals_bytes: int = _REFUSALS_BYTES,
    ) -> None:
        self._shared_name = shared
        self._decisions_limit = decisions_bytes
        self._refusals_limit = refusals_bytes
        self.reset()

    def reset(self) -> None:
        """Forget every object."""
        self._clusters: dict[str, _Cluster] = {}
        self._decisions_bytes = self._refusals_bytes = 0
        # What was refused, and under which generation of the cluster's policy.
        self._refusals: dict[tuple[_Cluster, _Key], tuple[int, Decision]] = {}
        self._shared = _Cluster() if self._shared_name else None
        if self._shared is not None:
            self._clusters[self._shared_name] = self._shared

    # Feeding.

    def put(self, cluster: str, kind: str, obj: Mapping[str, Any]) -> None:
        """Take in a Role, RoleBinding, ClusterRole or ClusterRoleBinding, new or changed."""
        finished(self.putting(cluster, kind, obj))

    def putting(self, cluster: str, kind: str, obj: Mapping[str, Any]) -> Steps[None]:
        """Do what ``put`` does, in steps."""
        if obj.get("kind") != kind:
            obj = {**obj, "kind": kind}
        return self._cluster(cluster).policy.putting(obj)

    def removing(self, cluster: str, kind: str, namespace: str, name: str) -> Steps[None]:
        """Forget one object, in steps; it grants nothing from the first of them."""
        if cluster in self._clusters:
            yield from self._clusters[cluster].policy.removing(kind, namespace, name)

    def remove_cluster(self, cluster: str) -> None:
        """Forget a whole cluster."""
        self._clusters.pop(cluster, None)

    # Deciding.

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Decide; a denial's reason names roles that bindings refer to in vain."""
        if MASTERS in user.groups:
            return _ALLOWED_MASTER
        cluster = self._clusters.get(attributes.cluster) or self._shared
        if cluster is None:
            return _DENIED
        if user.home:
            user = user.seen_from(attributes.cluster)
        decisions = cluster.decisions
        if cluster.generation != cluster.policy.generation:
            decisions.clear()
            cluster.generation = cluster.policy.generation
        a = attributes
        key = (user.name, user.groups, a.verb, a.group, a.resource, a.subresource, a.namespace, "",
               a.path)  # fmt: skip
        decision = decisions.get(key)
        if decision is not None:
            return decision
        decision = self._refused(cluster, key) or self._decide(cluster, key)
        if decision.allowed or not a.name:
            return decision
        key = (*key[:7], a.name, a.path)
        return decisions.get(key) or self._refused(cluster, key) or self._decide(cluster, key)

    def _refused(self, cluster: _Cluster, key: _Key) -> Decision | None:
        generation, decision = self._refusals.get((cluster, key), _UNKNOWN)
        return decision if generation == cluster.generation else None

    def _decide(self, cluster: _Cluster, key: _Key) -> Decision:
        user, groups, verb, group, resource, subresource, namespace, name, path = key
        action = Action(verb, group, resource, subresource, namespace, name, path)
        verdict = cluster.policy.decide(user, groups, action)
        decision = Decision(verdict.allowed, verdict.reason)
        length = len(user) + sum(map(len, key[2:]))
        if length <= _MAX_KEPT_LENGTH:
            self._keep(cluster, key, decision, length + sum(map(len, groups)) + _ENTRY_BYTES)
        return decision

    def _keep(self, cluster: _Cluster, key: _Key, decision: Decision, size: int) -> None:
        if decision.allowed:
            self._decisions_bytes += size
            if self._decisions_bytes > self._decisions_limit:
                for each in self._clusters.values():
                    each.decisions.clear()
                self._decisions_bytes = size
            cluster.decisions[key] = decision
            return
        self._refusals_bytes += size
        if self._refusals_bytes > self._refusals_limit:
            self._refusals.clear()
            self._refusals_bytes = size
        self._refusals[(cluster, key)] = (cluster.generation, decision)

    def rules_for(self, user: User, cluster: str, namespace: str) -> RulesFor:
        """Return everything *user* may do in a namespace, for rules reviews."""
        user = user.seen_from(cluster)
        found = self._cluster(cluster).policy.rules_for(user.name, user.groups, namespace)
        if MASTERS in user.groups:
            return RulesFor((*FULL_AUTHORITY, *found.rules), found.errors)
        return found

    def cluster_role_rules(self, cluster: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a ClusterRole, gathered; None when there is no such role.

        Raises TooManyRights where it gathers more than is looked at.
        """
        return self._cluster(cluster).policy.role_rules("ClusterRole", "", name)

    # Nobody may hand out what they do not hold.

    def check_write(
        self, user: User, cluster: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> Steps[None]:
        """Raise Forbidden unless *user* may write this RBAC object; in steps.

        *old* is the object before, None on create. Call it on create and update, after plain
        authorization. A change that grants nothing new passes.
        """
        if MASTERS in user.groups:
            return
        user = user.seen_from(cluster)
        if obj["kind"] in ("Role", "ClusterRole"):
            yield from self._check_role(user, cluster, obj, old)
        elif obj["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            yield from self._check_binding(user, cluster, obj, old)

    def _check_role(
        self, user: User, cluster: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> Steps[None]:
        aggregation = obj.get("aggregationRule")
        unchanged = old is not None and (
            old.get("rules") == obj.get("rules") and old.get("aggregationRule") == aggregation
        )
        if unchanged or self._may(user, cluster, "escalate", obj["kind"], obj):
            return
        namespace = obj["metadata"].get("namespace", "")
        yield from self._check_held(user, cluster, obj, namespace, rules_of(obj))
        policy = self._cluster(cluster).policy
        if aggregation and policy.escalation(user.name, user.groups, "", FULL_AUTHORITY):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise _forbidden(obj, why)

    def _check_binding(
        self, user: User, cluster: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> Steps[None]:
        reference = obj.get("roleRef") or {}
        unchanged = old is not None and (
            old.get("subjects") == obj.get("subjects") and old.get("roleRef") == reference
        )
        kind, name = reference.get("kind", ""), reference.get("name", "")
        namespace = obj["metadata"].get("namespace", "")
        role = {"metadata": {"name": name, "namespace": namespace if kind == "Role" else ""}}
        if unchanged or self._may(user, cluster, "bind", kind, role, namespace):
            return
        try:
            rules = self._cluster(cluster).policy.role_rules(kind, namespace, name)
        except TooManyRights as error:
            raise _forbidden(obj, f'user "{user.name}" may not grant it: {error}') from error
        if rules is None:
            raise NotFound.of(GROUP, RESOURCES.get(kind, kind.lower()), name)
        yield from self._check_held(user, cluster, obj, namespace, rules)

    def _may(
        self,
        user: User,
        cluster: str,
        verb: str,
        kind: str,
        role: Mapping[str, Any],
        namespace: str | None = None,
    ) -> bool:
        metadata = role["metadata"]
        asked = Attributes(
            cluster,
            verb,
            GROUP,
            "v1",
            RESOURCES.get(kind, ""),
            "",
            metadata.get("namespace", "") if namespace is None else namespace,
            # Without one it is refused later, or given one.
            metadata.get("name") or "",
        )
        return self.authorize(user, asked).allowed

    def _check_held(
        self,
        user: User,
        cluster: str,
        obj: Mapping[str, Any],
        namespace: str,
        wanted: Sequence[Rule],
    ) -> Steps[None]:
        policy = self._cluster(cluster).policy
        why = yield from policy.escalating(user.name, user.groups, namespace, wanted)
        if why:
            raise _forbidden(obj, why)

    def _cluster(self, name: str) -> _Cluster:
        found = self._clusters.get(name)
        if found is None:
            inherited = self._shared.policy if self._shared is not None else None
            found = self._clusters[name] = _Cluster(inherited)
        return found


def is_administrator(user: User) -> bool:
    """Tell whether *user* administers the hub itself, and so every workspace."""
    return not _ADMINISTRATORS.isdisjoint(user.groups)


def forbidden(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return the denial of an action, in the words kubectl users know."""
    return Forbidden(_message(user, attributes, reason), details=_details(attributes))


def _message(user: User, attributes: Attributes, reason: str) -> str:
    why = _why(user, attributes) + (f": {reason}" if reason else "")
    if not attributes.resource:
        return f"forbidden: {why}"
    resource = qualified(attributes.group, attributes.resource)
    name = f' "{attributes.name}"' if attributes.name else ""
    return f"{resource}{name} is forbidden: {why}"


def _why(user: User, attributes: Attributes) -> str:
    if not attributes.resource:
        return f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = "at the cluster scope"
    if attributes.namespace:
        where = f'in the namespace "{attributes.namespace}"'
    return (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" '
        f'in API group "{attributes.group}" {where}'
    )


def _details(attributes: Attributes) -> dict[str, Any]:
    if not attributes.resource:
        return {}
    details = named(attributes.group, attributes.resource, attributes.name)
    if not attributes.name:
        del details["name"]
    return details


def _forbidden(obj: Mapping[str, Any], why: str) -> ApiError:
    return Forbidden.of(GROUP, RESOURCES[obj["kind"]], obj["metadata"].get("name", ""), why)
