"""Rules of edge types that no schema can say: warnings and validation, per kind.

A selector that nothing can satisfy is well formed, and may be meant as a way to place nothing for
now. So it is accepted, with a warning; the condition ``SelectorsSatisfiable`` repeats it in the
status. A grant that admits nobody, or that does not enforce, is such a case too.

What a schema cannot validate in a grant's selectors (the form of keys under ``matchLabels``) is
validated here: a grant that cannot be evaluated must not be stored. So are the schedules, windows
and time zones of guards, and fields of a placement that contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    ENFORCE,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    ROLLOUTS,
    STATUS_QUERIES,
)
from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.fleet.guards.spec import guard_errors, guard_warnings
from skerry.logic.fleet.placement.grants import ANY
from skerry.logic.fleet.placement.records import placement_of
from skerry.logic.fleet.placement.reported_state import reported_state_errors
from skerry.logic.fleet.query.plan import query_errors
from skerry.logic.fleet.rollout.spec import spec_errors
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.selectors import Selector, SelectorError

_Warnings = Callable[[Object], Sequence[str]]
_Errors = Callable[[Object], list[FieldError]]

_PLACEMENTS = EDGE_PLACEMENTS.group_resource
# Kinds that people name in a rule and forget that they are not in any namespace.
_CLUSTER_SCOPED = (
    GroupResource("", "namespaces"),
    GroupResource("", "persistentvolumes"),
    GroupResource("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    GroupResource("apiextensions.k8s.io", "customresourcedefinitions"),
    GroupResource("rbac.authorization.k8s.io", "clusterrolebindings"),
    GroupResource("rbac.authorization.k8s.io", "clusterroles"),
    GroupResource("scheduling.k8s.io", "priorityclasses"),
    GroupResource("storage.k8s.io", "storageclasses"),
)


def with_type_rules(resource: Resource) -> Resource:
    """Return *resource* as served, with the warnings and validation of its kind if it has any."""
    if resource.info.group_resource == _PLACEMENTS:
        return _ruled(resource, placement_warnings, placement_errors)
    if resource.info.group_resource == LOCATION_GRANTS.group_resource:
        return _ruled(resource, grant_warnings, grant_errors)
    if resource.info.group_resource == PLACEMENT_GUARDS.group_resource:
        return _ruled(resource, guard_warnings, guard_errors)
    if resource.info.group_resource == ROLLOUTS.group_resource:
        return _ruled(resource, lambda _: (), spec_errors)
    if resource.info.group_resource == STATUS_QUERIES.group_resource:
        return _ruled(resource, lambda _: (), query_errors)
    return resource


def _ruled(resource: Resource, warnings: _Warnings, errors: _Errors) -> Resource:
    create, update = resource.validate_create, resource.validate_update

    def changed(new: Object, old: Object) -> list[FieldError]:
        """Return what is wrong with a change; what was wrong before may stay as it is."""
        return [] if new.get("spec") == old.get("spec") else errors(new)

    return replace(
        resource,
        warnings=_after(resource.warnings, warnings),
        # Only after the schema: these checks read fields of the right type.
        validate_create=lambda new: create(new) or errors(new),
        validate_update=lambda new, old: update(new, old) or changed(new, old),
    )


def placement_warnings(placement: Object) -> Sequence[str]:
    """Return what is wrong with a valid EdgePlacement, in sentences."""
    read = placement_of(placement)
    return (*read.errors, *read.unsatisfiable)


def placement_errors(placement: Object) -> list[FieldError]:
    """Return the errors in an EdgePlacement that its schema cannot find."""
    return reported_state_errors(placement.get("spec") or {})


def grant_warnings(grant: Object) -> Sequence[str]:
    """Return what a valid LocationGrant may not mean as it is, in sentences."""
    return tuple(_doubts(grant.get("spec") or {}))


def _doubts(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("mode") != ENFORCE:
        yield "spec.mode: Observe refuses nothing and admits nobody; Enforce does"
    workspaces, locations = spec.get("workspaces") or {}, spec.get("locations") or {}
    if not workspaces.get("paths") and not workspaces.get("childrenOf"):
        yield "spec.workspaces: names no workspace, so the grant admits nobody"
    if not locations.get("names") and locations.get("selector") is None:
        yield "spec.locations: selects no Location, so the grant admits nobody"
    for number, rule in enumerate(spec.get("rules") or ()):
        yield from _rule_doubts(f"spec.rules[{number}]", rule)


def _rule_doubts(path: str, rule: Mapping[str, Any]) -> Iterator[str]:
    groups, resources, scope = rule["apiGroups"], rule["resources"], rule.get("scope")
    if scope not in ("Cluster", ANY):
        named = [
            each.resource
            for each in _CLUSTER_SCOPED
            if each.resource in resources and (each.group in groups or ANY in groups)
        ]
        if named:
            yield f"{path}.scope: Namespaced does not admit {', '.join(named)}"
    elif ANY in groups and ANY in resources:
        yield f"{path}: admits every cluster-scoped object, roles and webhooks included"


def grant_errors(grant: Object) -> list[FieldError]:
    """Return the errors in a LocationGrant that its schema cannot find."""
    spec = grant.get("spec") or {}
    found = [("spec.locations.selector", (spec.get("locations") or {}).get("selector"))]
    for number, each in enumerate((spec.get("workspaces") or {}).get("childrenOf") or ()):
        found.append((f"spec.workspaces.childrenOf[{number}].selector", each.get("selector")))
    return [error for path, selector in found for error in _selector_errors(selector, path)]


def _selector_errors(selector: Mapping[str, Any] | None, path: str) -> Sequence[FieldError]:
    try:
        Selector.from_label_selector(selector, path)
    except SelectorError as error:
        return error.errors
    return ()


def _after(first: _Warnings, then: _Warnings) -> _Warnings:
    return lambda obj: (*first(obj), *then(obj))
