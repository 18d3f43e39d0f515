"""What is written to the audit log, by the rules of an ``audit.k8s.io/v1`` Policy.

The first rule that matches a request decides its level; where none does, nothing is written, as in
kube-apiserver. Levels are ``None``, ``Metadata`` and ``Request``. ``RequestResponse`` is refused
when the file is read: answers are not recorded, and a log with less than it seems to have is worse
than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE, METADATA, REQUEST = "None", "Metadata", "Request"
_LEVELS = (NONE, METADATA, REQUEST)
_STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
# The one that is written.
STAGE = "ResponseComplete"
_POLICY_FIELDS = frozenset(
    ("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
)
_LISTS = ("users", "userGroups", "verbs", "namespaces", "nonResourceURLs", "omitStages")
_RULE_FIELDS = frozenset((*_LISTS, "level", "resources", "omitManagedFields"))
_GROUP_FIELDS = frozenset(("group", "resources", "resourceNames"))


class PolicyError(ValueError):
    """What is wrong with a policy, by field."""


@dataclass(frozen=True, slots=True)
class Audited:
    """A request as rules see it. For paths that are no resources ``resource`` is empty."""

    user: str
    groups: Sequence[str]
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class GroupResources:
    """Resources of one API group; an empty list of either means all."""

    group: str
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def matches(self, request: Audited) -> bool:
        if self.group != request.group:
            return False
        if not self.resources:
            return True
        if self.names and request.name not in self.names:
            return False
        return any(_is_resource(each, request) for each in self.resources)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; an empty list of any field means that it does not matter."""

    level: str
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    omitted: bool = False
    omit_managed_fields: bool | None = None

    def matches(self, request: Audited) -> bool:
        if self.users and request.user not in self.users:
            return False
        if self.user_groups and not any(each in self.user_groups for each in request.groups):
            return False
        if self.verbs and request.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return bool(request.resource) and self._matches_resource(request)
        if self.paths:
            return not request.resource and any(_is_path(p, request.path) for p in self.paths)
        return True

    def _matches_resource(self, request: Audited) -> bool:
        if self.namespaces and request.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.matches(request) for each in self.resources)


@dataclass(frozen=True, slots=True)
class Decision:
    """How much is written of a request."""

    level: str
    omit_managed_fields: bool = False


NOTHING = Decision(NONE)
METADATA_OF_ALL = Decision(METADATA)


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules, the first of which that matches decides."""

    rules: tuple[Rule, ...] = ()
    omitted: bool = False
    omit_managed_fields: bool = False

    def decide(self, request: Audited) -> Decision:
        """Return how much is written of *request*."""
        for rule in self.rules:
            if rule.matches(request):
                if self.omitted or rule.omitted or rule.level == NONE:
                    return NOTHING
                omit = rule.omit_managed_fields
                return Decision(rule.level, self.omit_managed_fields if omit is None else omit)
        return NOTHING


def parse_policy(document: Any) -> Policy:
    """Return the policy a file holds; PolicyError names the field that makes no sense."""
    policy = _object(document, "policy", _POLICY_FIELDS)
    for name, wanted in (("apiVersion", "audit.k8s.io/v1"), ("kind", "Policy")):
        if policy.get(name) != wanted:
            raise PolicyError(f"{name}: {policy.get(name)!r}: want {wanted!r}")
    listed = _list(policy, "rules", "rules")
    if not listed:
        raise PolicyError("rules: want one at least; without any nothing would be written")
    return Policy(
        tuple(_rule(rule, f"rules[{index}]") for index, rule in enumerate(listed)),
        STAGE in _stages(policy, "omitStages"),
        _flag(policy, "omitManagedFields", "omitManagedFields") or False,
    )


def _rule(document: Any, where: str) -> Rule:
    rule = _object(document, where, _RULE_FIELDS)
    level = rule.get("level")
    if level == "RequestResponse":
        raise PolicyError(
            f"{where}.level: RequestResponse: answers are not recorded; want Request or Metadata"
        )
    if level not in _LEVELS:
        raise PolicyError(f"{where}.level: {level!r}: want one of {', '.join(_LEVELS)}")
    texts = {name: _texts(rule, name, f"{where}.{name}") for name in _LISTS}
    resources = tuple(
        _group(each, f"{where}.resources[{index}]")
        for index, each in enumerate(_list(rule, "resources", f"{where}.resources"))
    )
    if texts["nonResourceURLs"] and (resources or texts["namespaces"]):
        raise PolicyError(
            f"{where}.nonResourceURLs: rules are for resources or for other paths, not for both"
        )
    for path in texts["nonResourceURLs"]:
        if path != "*" and (not path.startswith("/") or "*" in path[:-1]):
            raise PolicyError(f"{where}.nonResourceURLs: {path!r}: want a path, '*' at its end")
    return Rule(
        level,
        texts["users"],
        texts["userGroups"],
        texts["verbs"],
        resources,
        texts["namespaces"],
        texts["nonResourceURLs"],
        STAGE in _stages(rule, f"{where}.omitStages"),
        _flag(rule, "omitManagedFields", f"{where}.omitManagedFields"),
    )


def _group(document: Any, where: str) -> GroupResources:
    found = _object(document, where, _GROUP_FIELDS)
    group = found.get("group", "")
    if not isinstance(group, str) or "/" in group:
        raise PolicyError(f"{where}.group: {group!r}: want an API group without its version")
    resources = _texts(found, "resources", f"{where}.resources")
    names = _texts(found, "resourceNames", f"{where}.resourceNames")
    if names and not resources:
        raise PolicyError(f"{where}.resourceNames: needs resources")
    return GroupResources(group, resources, names)


def _stages(document: Mapping[str, Any], where: str) -> tuple[str, ...]:
    stages = _texts(document, "omitStages", where)
    for stage in stages:
        if stage not in _STAGES:
            raise PolicyError(f"{where}: {stage!r}: want some of {', '.join(_STAGES)}")
    return stages


def _object(document: Any, where: str, known: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise PolicyError(f"{where}: {type(document).__name__}: want an object")
    unknown = sorted(str(name) for name in document if name not in known)
    if unknown:
        raise PolicyError(f"{where}: unknown field {unknown[0]!r}")
    return document


def _list(document: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = document.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise PolicyError(f"{where}: {type(found).__name__}: want a list")
    return found


def _texts(document: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    found = _list(document, name, where)
    for index, each in enumerate(found):
        if not isinstance(each, str):
            raise PolicyError(f"{where}[{index}]: {each!r}: want a string")
    return tuple(found)


def _flag(document: Mapping[str, Any], name: str, where: str) -> bool | None:
    found = document.get(name)
    if found is not None and not isinstance(found, bool):
        raise PolicyError(f"{where}: {found!r}: want true or false")
    return found


def _is_resource(text: str, request: Audited) -> bool:
    """Tell whether a rule's ``pods``, ``pods/log``, ``pods/*``, ``*/log`` or ``*`` is meant."""
    if text == "*":
        return True
    resource, _, subresource = text.partition("/")
    if not subresource:
        return resource == request.resource and not request.subresource
    if subresource == "*":
        return resource == request.resource
    return subresource == request.subresource and resource in ("*", request.resource)


def _is_path(text: str, path: str) -> bool:
    return path.startswith(text[:-1]) if text.endswith("*") else path == text
