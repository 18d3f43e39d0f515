"""Which requests a policy or webhook means.

A request is meant when one of the rules fits its operation, type, scope and name, none of the
excluding rules does, and both selectors match. The namespace selector looks at the Namespace the
object is in, or at the object itself when that is a Namespace; other cluster-scoped objects are in
no namespace and match every such selector. The object selector matches when the new or the old
object does.

A rule with match policy ``Equivalent`` also means requests for the same type at another version;
the expressions then see the object at the version that the rule names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.selectors import Selector

_GROUP: Final = "admissionregistration.k8s.io"
# A policy that denies its own repair would lock everybody out.
EXEMPT: Final = frozenset(
    {
        (_GROUP, "validatingadmissionpolicies"),
        (_GROUP, "validatingadmissionpolicybindings"),
        (_GROUP, "mutatingadmissionpolicies"),
        (_GROUP, "mutatingadmissionpolicybindings"),
    }
)
ANY: Final = "*"
NAMESPACES: Final = ("", "namespaces")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a rule is compared with: one write, and the names its type is served by.

    ``resources`` begins with the one that the request used; the others are equivalent to it.
    """

    operation: str
    resources: Sequence[GroupVersionResource]
    subresource: str
    namespaced: bool
    name: str
    labels: Mapping[str, str]
    old_labels: Mapping[str, str] | None
    # Labels of the Namespace; None where there is none to look at.
    namespace_labels: Mapping[str, str] | None

    @property
    def type(self) -> tuple[str, str]:
        return self.resources[0].group, self.resources[0].resource


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``resourceRules``."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str
    names: frozenset[str]

    def means(self, subject: Subject, resource: GroupVersionResource) -> bool:
        """Tell whether the rule means *subject* when its type is called *resource*."""
        if not _listed(self.operations, subject.operation):
            return False
        if not _listed(self.groups, resource.group) or not _listed(self.versions, resource.version):
            return False
        if self.names and subject.name not in self.names:
            return False
        if not _names_resource(self.resources, resource.resource, subject.subresource):
            return False
        if self.scope == ANY:
            return True
        # A Namespace is cluster-scoped, whatever the request's path says.
        namespaced = subject.namespaced and subject.type != NAMESPACES
        return self.scope == ("Namespaced" if namespaced else "Cluster")


def _listed(names: frozenset[str], name: str) -> bool:
    return ANY in names or name in names


def _names_resource(patterns: frozenset[str], resource: str, subresource: str) -> bool:
    if not subresource:
        return not patterns.isdisjoint((resource, ANY, "*/*"))
    wanted = (f"{resource}/{subresource}", f"{resource}/*", f"*/{subresource}", "*/*")
    return not patterns.isdisjoint(wanted)


@dataclass(frozen=True, slots=True)
class Match:
    """``matchConstraints`` of a policy, or ``matchResources`` of a binding."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    namespaces: Selector
    objects: Selector
    equivalent: bool
    # Whether neither rules nor selectors leave anything out, as in most bindings.
    matches_all: bool = field(init=False)
    # Whether type and operation decide, whatever the object is called and labelled.
    by_type: bool = field(init=False)

    def __post_init__(self) -> None:
        rules = (*self.rules, *self.excluded)
        everything = self.namespaces.empty and self.objects.empty
        object.__setattr__(self, "matches_all", everything and not rules)
        object.__setattr__(self, "by_type", everything and not any(rule.names for rule in rules))

    def matched(self, subject: Subject) -> GroupVersionResource | None:
        """Return the type by which *subject* is meant; None when it is not.

        Without rules every type is meant, as in bindings.
        """
        if self.matches_all:
            return subject.resources[0]
        if not self._selected(subject):
            return None
        candidates = subject.resources if self.equivalent else subject.resources[:1]
        if any(rule.means(subject, each) for rule in self.excluded for each in candidates):
            return None
        if not self.rules:
            return subject.resources[0]
        # The request's own name goes first: nothing is converted without need.
        for each in candidates:
            if any(rule.means(subject, each) for rule in self.rules):
                return each
        return None

    def _selected(self, subject: Subject) -> bool:
        labels = subject.namespace_labels
        if not self.namespaces.empty and labels is not None and not self.namespaces.matches(labels):
            return False
        if self.objects.empty:
            return True
        old = subject.old_labels
        return self.objects.matches(subject.labels) or (
            old is not None and self.objects.matches(old)
        )


def match_of(raw: Mapping[str, Any] | None) -> Match:
    """Read ``matchConstraints`` or ``matchResources`` of a valid object."""
    raw = raw or {}
    return Match(
        tuple(map(_rule, raw.get("resourceRules") or ())),
        tuple(map(_rule, raw.get("excludeResourceRules") or ())),
        Selector.from_label_selector(raw.get("namespaceSelector") or {}),
        Selector.from_label_selector(raw.get("objectSelector") or {}),
        (raw.get("matchPolicy") or "Equivalent") == "Equivalent",
    )


def _rule(raw: Object) -> Rule:
    return Rule(
        frozenset(raw.get("operations") or ()),
        frozenset(raw.get("apiGroups") or ()),
        frozenset(raw.get("apiVersions") or ()),
        frozenset(raw.get("resources") or ()),
        raw.get("scope") or ANY,
        frozenset(raw.get("resourceNames") or ()),
    )
