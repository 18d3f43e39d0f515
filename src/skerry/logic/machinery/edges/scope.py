"""What a SyncerConfig covers, compiled once and asked per object.

``*`` counts only when it stands alone in its list. An empty or absent list in an upsync rule
matches nothing, except that cluster-scoped objects have no namespace to match. Absent
``objects`` of a cluster-scoped rule mean all; an empty list means none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef

EVERY = "*"

# Types that hold others: what is inside goes when they go.
NAMESPACES = GroupResource("", "namespaces")
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")

Names = frozenset[str] | None  # None: all names


def _names(raw: Iterable[str] | None) -> Names:
    found = frozenset(raw or ())
    return None if found == {EVERY} else found


def _either(one: Names, other: Names) -> Names:
    return None if one is None or other is None else one | other


def _in(name: str, names: Names) -> bool:
    return names is None or name in names


@dataclass(frozen=True, slots=True)
class UpsyncRule:
    """One set of edge-born objects."""

    group: str
    resources: Names
    namespaces: Names
    names: Names

    def covers_type(self, kind: GroupResource) -> bool:
        return kind.group == self.group and _in(kind.resource, self.resources)

    def covers(self, ref: ObjectRef) -> bool:
        if not self.covers_type(ref.group_resource) or not _in(ref.name, self.names):
            return False
        return not ref.namespace or _in(ref.namespace, self.namespaces)


@dataclass(frozen=True, slots=True)
class Scope:
    """What goes down and what comes up."""

    namespaces: frozenset[str] = frozenset()
    # Versions by type, of objects in those namespaces.
    namespaced: Mapping[GroupResource, str] = field(default_factory=dict)
    # Version and names by type, of cluster-scoped objects.
    clustered: Mapping[GroupResource, tuple[str, Names]] = field(default_factory=dict)
    upsync: tuple[UpsyncRule, ...] = ()

    def types(self) -> dict[GroupResource, GroupVersionResource]:
        """Return every type that is followed in the mailbox, Namespaces included."""
        found = {NAMESPACES: "v1"} if self.namespaces else {}
        found |= {kind: version for kind, (version, _) in self.clustered.items()}
        if self.namespaces:
            found |= dict(self.namespaced)
        return {
            kind: GroupVersionResource(kind.group, version, kind.resource)
            for kind, version in found.items()
        }

    def covers(self, ref: ObjectRef) -> bool:
        """Tell whether *ref* goes down when the mailbox has it."""
        kind = ref.group_resource
        if ref.namespace:
            return ref.namespace in self.namespaces and kind in self.namespaced
        if kind == NAMESPACES and ref.name in self.namespaces:
            return True
        rule = self.clustered.get(kind)
        return rule is not None and _in(ref.name, rule[1])

    def brings_up(self, ref: ObjectRef) -> bool:
        """Tell whether *ref*, found at the edge, comes up."""
        return any(rule.covers(ref) for rule in self.upsync)

    def upsync_types(self, served: Collection[GroupResource]) -> set[GroupResource]:
        """Return which of the types *served* at the edge may have objects that come up."""
        return {kind for kind in served if any(rule.covers_type(kind) for rule in self.upsync)}

    def unserved(self, served: Collection[GroupResource]) -> set[GroupResource]:
        """Return upsync types named outright that the edge does not serve."""
        named = {
            GroupResource(rule.group, resource)
            for rule in self.upsync
            for resource in rule.resources or ()
        }
        return named - set(served)

    def upsync_namespaces(self, kind: GroupResource) -> Names:
        """Return the namespaces in which objects of *kind* may come up."""
        found: set[str] = set()
        for rule in self.upsync:
            if rule.covers_type(kind):
                if rule.namespaces is None:
                    return None
                found |= rule.namespaces
        return frozenset(found)


NOTHING = Scope()


def scope_of(spec: Mapping[str, Any] | None) -> Scope:
    """Return what the ``spec`` of a SyncerConfig says."""
    spec = spec or {}
    within = spec.get("namespaceScope") or {}
    return Scope(
        namespaces=frozenset(within.get("namespaces") or ()),
        namespaced={
            GroupResource(raw.get("group", ""), raw["resource"]): raw["apiVersion"]
            for raw in within.get("resources") or ()
        },
        clustered=dict(_clustered(spec.get("clusterScope") or ())),
        upsync=tuple(_rule(raw) for raw in spec.get("upsync") or ()),
    )


def united(scopes: Iterable[Scope]) -> Scope:
    """Return what any of *scopes* covers; several SyncerConfigs count together."""
    total = NOTHING
    for scope in scopes:
        clustered = dict(total.clustered)
        for kind, (version, names) in scope.clustered.items():
            known = clustered.get(kind, (version, frozenset()))
            clustered[kind] = (version, _either(known[1], names))
        total = Scope(
            total.namespaces | scope.namespaces,
            {**total.namespaced, **scope.namespaced},
            clustered,
            total.upsync + scope.upsync,
        )
    return total


def _clustered(
    rules: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[GroupResource, tuple[str, Names]]]:
    found: dict[GroupResource, tuple[str, Names]] = {}
    for raw in rules:
        kind = GroupResource(raw.get("group", ""), raw["resource"])
        objects = raw.get("objects")
        names: Names = None if objects is None else _names(objects)
        known = found.get(kind, ("", frozenset()))
        found[kind] = (raw["apiVersion"], _either(known[1], names))
    yield from found.items()


def _rule(raw: Mapping[str, Any]) -> UpsyncRule:
    return UpsyncRule(
        str(raw.get("apiGroup") or ""),
        _names(raw.get("resources")),
        _names(raw.get("namespaces")),
        _names(raw.get("names")),
    )
