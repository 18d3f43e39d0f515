"""What a syncer must be allowed at the edge: computed from what is placed, nothing more.

Objects of namespaced types are written only in the namespaces of the SyncerConfig, so the rules
for them are bound there; cluster-scoped rules name their objects where they can. ``create``
cannot be limited by name (the name is not known when it is judged), which is Kubernetes' own
limit and the reason why a create rule stands alone.

Where pods are placed, directly or not, the syncer may also read how those pods fare, so that it can
tell why a workload is not well: states of pods, Events, whose a ReplicaSet is, and the last line of
a container that failed. Where a cluster does not grant that, its statuses alone are reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.cause import WITH_CAUSES
from skerry.logic.machinery.edges.scope import DEFINITIONS, NAMESPACES, Names, Scope

# Up to so many namespaces are watched one by one; more would cost more than one wide watch.
MAX_NAMESPACES = 10

_FOLLOW = ("get", "list", "watch")
_CHANGE = ("delete", "patch")
_RBAC = "rbac.authorization.k8s.io"
# Placing a role needs more than writing it: Kubernetes asks who may hand out what it allows.
_HANDING_OUT = {"roles": "escalate", "clusterroles": "escalate"}
_BINDING = {"rolebindings": "roles", "clusterrolebindings": "clusterroles"}


def _rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


# What tells causes: ``edge.syncer.causes`` reads it, and only while something is not well.
_CAUSES = (
    _rule("", ("events", "pods"), ("list", "watch")),
    _rule("", ("pods/log",), ("get",)),
    _rule("apps", ("replicasets",), ("list", "watch")),
)


@dataclass(frozen=True, slots=True)
class EdgeAccess:
    """Rules for the whole edge, and rules for each of some namespaces."""

    everywhere: tuple[Object, ...]
    within: tuple[Object, ...]
    namespaces: tuple[str, ...]


def edge_access(scope: Scope, served: Iterable[GroupResource] = ()) -> EdgeAccess:
    """Return what is needed for *scope*; *served* are the edge's types, for ``*`` upsync rules."""
    everywhere = [
        _rule("", ("namespaces",), (*_FOLLOW, "create", *_CHANGE)),
        _rule(DEFINITIONS.group, (DEFINITIONS.resource,), _FOLLOW),
    ]
    for kind, (_, names) in sorted(scope.clustered.items()):
        everywhere += _cluster_rules(kind, names)
    within = [rule for kind in sorted(scope.namespaced) for rule in _namespaced_rules(kind)]
    if WITH_CAUSES & scope.namespaced.keys():
        within += _CAUSES
    for kind in sorted(_upsync_types(scope, served)):
        everywhere.append(_rule(kind.group, (kind.resource,), _FOLLOW))
    if len(scope.namespaces) > MAX_NAMESPACES:
        return EdgeAccess((*everywhere, *within), (), ())
    return EdgeAccess(tuple(everywhere), tuple(within), tuple(sorted(scope.namespaces)))


def missing_rule(verb: str, kind: GroupResource, namespace: str) -> str:
    """Return the sentence that names what the edge does not allow."""
    where = f" in namespace {namespace!r}" if namespace else ""
    group = kind.group or '""'
    return f"the edge must allow {verb} of {kind.resource} in API group {group}{where}"


def _upsync_types(scope: Scope, served: Iterable[GroupResource]) -> set[GroupResource]:
    named = scope.unserved(())
    return named | scope.upsync_types(set(served))


def _cluster_rules(kind: GroupResource, names: Names) -> list[Object]:
    if kind == NAMESPACES:
        return []
    rules = [_rule(kind.group, (kind.resource,), (*_FOLLOW, "create"))]
    change = _rule(kind.group, (kind.resource,), _CHANGE)
    if names is not None:
        change["resourceNames"] = sorted(names)
    rules.append(change)
    if kind == DEFINITIONS:
        rules += [_instances_rule(name) for name in sorted(names or ())]
    return rules + _rbac_rules(kind)


def _instances_rule(definition: str) -> Object:
    """Return what is needed to know that a definition can go without taking anything along."""
    plural, _, group = definition.partition(".")
    return _rule(group, (plural,), ("list",))


def _namespaced_rules(kind: GroupResource) -> list[Object]:
    rules = [_rule(kind.group, (kind.resource,), (*_FOLLOW, "create", *_CHANGE))]
    return rules + _rbac_rules(kind)


def _rbac_rules(kind: GroupResource) -> list[Object]:
    if kind.group != _RBAC:
        return []
    if kind.resource in _HANDING_OUT:
        return [_rule(_RBAC, (kind.resource,), (_HANDING_OUT[kind.resource],))]
    bound = {_BINDING.get(kind.resource, "roles"), "clusterroles"}
    return [_rule(_RBAC, tuple(sorted(bound)), ("bind",))]
