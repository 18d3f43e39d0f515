"""Policy rules: what one allows, and whether some cover others.

A rule speaks of resources or of paths, never of both at once in a request. Absent resource names
mean every name; an absent list of anything else means nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Rule:
        """Read a PolicyRule object."""
        return cls(
            tuple(obj.get("verbs") or ()),
            tuple(obj.get("apiGroups") or ()),
            tuple(obj.get("resources") or ()),
            tuple(obj.get("resourceNames") or ()),
            tuple(obj.get("nonResourceURLs") or ()),
        )

    def to_object(self) -> dict[str, Any]:
        """Return the PolicyRule object, without empty lists other than ``verbs``."""
        obj: dict[str, Any] = {"verbs": list(self.verbs)}
        for name, values in (
            ("apiGroups", self.api_groups),
            ("resources", self.resources),
            ("resourceNames", self.resource_names),
            ("nonResourceURLs", self.non_resource_urls),
        ):
            if values:
                obj[name] = list(values)
        return obj

    def allows_resource(
        self, verb: str, group: str, resource: str, subresource: str, name: str
    ) -> bool:
        """Tell whether the rule allows *verb* on a resource, or on its *subresource*."""
        return (
            _has(self.verbs, verb)
            and _has(self.api_groups, group)
            and self._reaches(resource, subresource)
            and (not self.resource_names or name in self.resource_names)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        """Tell whether the rule allows *verb* on a path that is no resource."""
        return _has(self.verbs, verb) and any(
            _path_covers(pattern, path) for pattern in self.non_resource_urls
        )

    def _reaches(self, resource: str, subresource: str) -> bool:
        resources = self.resources
        if not subresource:
            return resource in resources or ALL in resources
        return (
            ALL in resources
            or f"{resource}/{subresource}" in resources
            or f"{ALL}/{subresource}" in resources
        )

    def __str__(self) -> str:
        """Return the rule as denials of escalation show it."""
        named = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        shown = (f"{name}:{quoted_list(values)}" for name, values in named if values)
        return "{" + ", ".join(shown) + "}"


# What one must hold to use an aggregationRule, which can gather anything.
FULL_AUTHORITY = (
    Rule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), non_resource_urls=(ALL,)),
)


def rules_of(obj: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules of a Role or ClusterRole object as they are written there."""
    return tuple(Rule.of(rule) for rule in obj.get("rules") or ())


def quoted_list(values: Iterable[str]) -> str:
    """Return strings as Go prints a list of them: ``["a" "b"]``."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def uncovered(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the parts of *wanted* that nothing in *held* covers, one right per rule.

    Empty means that who holds *held* may grant *wanted*. A right counts as held only if a single
    rule gives it.
    """
    return [
        right
        for rule in wanted
        for right in _rights(rule)
        if not any(_covers(owned, right) for owned in held)
    ]


def compacted(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules with verbs on the same thing gathered into one, for people to read."""
    verbs: dict[Rule, list[str]] = {}
    for rule in rules:
        subject = Rule((), rule.api_groups, rule.resources, (), ())
        if rule.resource_names or rule.non_resource_urls or not rule.resources:
            subject = rule
        known = verbs.setdefault(subject, [])
        known.extend(verb for verb in rule.verbs if verb not in known)
    return [
        Rule(tuple(found), s.api_groups, s.resources, s.resource_names, s.non_resource_urls)
        for s, found in verbs.items()
    ]


def escalation_message(user: str, groups: Sequence[str], missing: Iterable[Rule]) -> str:
    """Return why *user* may not grant rights that include *missing*, in Kubernetes' words."""
    listed = "\n".join(sorted({str(rule) for rule in compacted(missing)}))
    return (
        f'user "{user}" (groups={quoted_list(groups)}) is attempting to grant RBAC permissions '
        f"not currently held:\n{listed}"
    )


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ALL in values


def _path_covers(pattern: str, path: str) -> bool:
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))


def _rights(rule: Rule) -> Iterator[Rule]:
    """Yield the rule taken apart: one verb on one thing each."""
    for verb in rule.verbs:
        for group in rule.api_groups:
            for resource in rule.resources:
                for name in rule.resource_names or (None,):
                    names = () if name is None else (name,)
                    yield Rule((verb,), (group,), (resource,), names)
        for url in rule.non_resource_urls:
            yield Rule((verb,), non_resource_urls=(url,))


def _covers(owned: Rule, right: Rule) -> bool:
    """Tell whether *owned* includes a single *right*; wildcards in the right must be owned as
    such."""
    if not _has(owned.verbs, right.verbs[0]):
        return False
    if right.non_resource_urls:
        wanted = right.non_resource_urls[0]
        return any(_path_covers(pattern, wanted) for pattern in owned.non_resource_urls)
    resource, _, subresource = right.resources[0].partition("/")
    return (
        _has(owned.api_groups, right.api_groups[0])
        and owned._reaches(resource, subresource)
        and (not owned.resource_names or right.resource_names[:1] in _singles(owned))
    )


def _singles(owned: Rule) -> list[tuple[str, ...]]:
    return [(name,) for name in owned.resource_names]
