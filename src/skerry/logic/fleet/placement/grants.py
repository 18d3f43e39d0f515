"""LocationGrants as records: who may place what at which Locations.

A grant is about Locations of its own workspace and says nothing of any other. Whose labels count:
those of a Workspace object, which lies in the parent workspace and is written by those who may
write Workspaces there. The administrator of a workspace is not among them by that office, so
nobody labels himself into a grant; but whoever may create children of a workspace labels those as
he likes, which is why a selector is always about the children of one named parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import ENFORCE, LOCATION_GRANTS
from skerry.api.kinds import GroupResource
from skerry.api.objects import Raw
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Location
from skerry.logic.fleet.placement.terms import Terms, matches, read_selector

ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Kinds of objects; None stands for all of them."""

    groups: frozenset[str] | None
    resources: frozenset[str] | None
    namespaced: bool = True
    cluster_scoped: bool = False

    def covers(self, resource: GroupResource, *, namespaced: bool) -> bool:
        """Return whether objects of a type, of that scope, may be placed."""
        if not (self.namespaced if namespaced else self.cluster_scoped):
            return False
        if self.groups is not None and resource.group not in self.groups:
            return False
        return self.resources is None or resource.resource in self.resources


@dataclass(frozen=True, slots=True)
class Children:
    """The direct children of the workspace at *path* whose Workspace objects match."""

    path: str
    terms: Terms


@dataclass(frozen=True, slots=True)
class Grant:
    """A LocationGrant. With ``errors`` it admits nobody, but an enforcing one still enforces."""

    ref: ObjectRef
    enforces: bool = False
    paths: frozenset[str] = frozenset()
    children: tuple[Children, ...] = ()
    location_names: frozenset[str] = frozenset()
    # None: no Location by its labels.
    location_terms: Terms | None = None
    rules: tuple[Rule, ...] = ()
    errors: tuple[str, ...] = ()

    def selects(self, location: Location) -> bool:
        """Return whether a Location is one of those the grant is about."""
        if location.ref.cluster != self.ref.cluster or self.errors:
            return False
        if location.ref.name in self.location_names:
            return True
        return self.location_terms is not None and matches(self.location_terms, location.labels)

    def covers(self, resource: GroupResource, *, namespaced: bool) -> bool:
        """Return whether objects of a type may be placed by those the grant admits."""
        return any(rule.covers(resource, namespaced=namespaced) for rule in self.rules)


def grant_of(obj: Raw) -> Grant:
    """Read a LocationGrant object; what a server without our schema lets through is an error."""
    ref = ObjectRef.of(LOCATION_GRANTS.group_resource, obj)
    spec = obj.get("spec")
    enforces = isinstance(spec, Mapping) and spec.get("mode") == ENFORCE
    try:
        return _read(ref, spec or {})
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        return Grant(ref, enforces, errors=(f"spec: not a LocationGrant: {error}",))


def _read(ref: ObjectRef, spec: Mapping[str, Any]) -> Grant:
    errors: list[str] = []
    workspaces, locations = spec.get("workspaces") or {}, spec.get("locations") or {}
    children: list[Children] = []
    for number, each in enumerate(workspaces.get("childrenOf") or ()):
        read = read_selector(each["selector"], f"spec.workspaces.childrenOf[{number}].selector")
        errors += read.errors
        if read.terms is not None:
            children.append(Children(str(each["path"]), read.terms))
    selected = read_selector(locations.get("selector"), "spec.locations.selector")
    errors += selected.errors
    return Grant(
        ref,
        spec.get("mode") == ENFORCE,
        frozenset(map(str, workspaces.get("paths") or ())),
        tuple(dict.fromkeys(children)),
        frozenset(map(str, locations.get("names") or ())),
        selected.terms,
        tuple(map(_rule, spec.get("rules") or ())),
        tuple(errors),
    )


def _rule(obj: Mapping[str, Any]) -> Rule:
    scope = obj.get("scope") or "Namespaced"
    return Rule(
        _listed(obj["apiGroups"]),
        _listed(obj["resources"]),
        scope in ("Namespaced", ANY),
        scope in ("Cluster", ANY),
    )


def _listed(names: Sequence[str]) -> frozenset[str] | None:
    """Return the names meant; None means all, wherever in the list the asterisk is, as in RBAC."""
    return None if ANY in names else frozenset(names)


def lean_grant(obj: Raw) -> dict[str, Any]:
    """Return the part of a LocationGrant that is read here, to be cached in its stead."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {"metadata": metadata, "spec": obj.get("spec") or {}, "status": obj.get("status") or {}}
