"""The RBAC objects of one cluster, indexed by whom they reach.

A decision looks only at the bindings of the asking user and groups, cluster-wide ones first and
then those of the namespace; other users' bindings cost nothing. Aggregated ClusterRoles are
resolved here, from the roles their selectors match, so that they hold from the moment a matching
role exists; whatever is stored in their ``rules`` is the aggregation's own copy and not trusted.

``generation`` changes with every change of the answers, for caches above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skerry.logic.machinery.rbac.rules import (
    Rule,
    TooManyRights,
    escalation_message,
    rules_of,
    uncovered,
)
from skerry.logic.machinery.selectors import Selector, SelectorError

GROUP = "rbac.authorization.k8s.io"
KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


class RoleKey(NamedTuple):
    """A Role by namespace and name; of a ClusterRole the namespace is empty."""

    namespace: str
    name: str


class SubjectKey(NamedTuple):
    """A user or a group, as requests carry them; a ServiceAccount is the user it acts as."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a binding names."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def key(self) -> SubjectKey:
        if self.kind == "ServiceAccount":
            return SubjectKey("User", f"system:serviceaccount:{self.namespace}:{self.name}")
        return SubjectKey(self.kind, self.name)

    def __str__(self) -> str:
        shown = f"{self.name}/{self.namespace}" if self.kind == "ServiceAccount" else self.name
        return f'{self.kind} "{shown}"'


@dataclass(frozen=True, slots=True)
class Binding:
    """A RoleBinding, or with an empty namespace a ClusterRoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Binding:
        """Read a binding object. A ServiceAccount without namespace means the binding's own."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if obj["kind"] == "RoleBinding" else ""
        reference = obj.get("roleRef") or {}
        subjects = tuple(
            Subject(
                subject.get("kind", ""),
                subject.get("name", ""),
                subject.get("namespace") or namespace,
            )
            for subject in obj.get("subjects") or ()
        )
        return cls(
            namespace,
            metadata["name"],
            reference.get("kind", ""),
            reference.get("name", ""),
            subjects,
        )

    @property
    def role(self) -> RoleKey:
        return RoleKey(self.namespace if self.role_kind == "Role" else "", self.role_name)

    def described(self, subject: Subject) -> str:
        """Return how this binding reaches *subject*, as decisions tell it."""
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        return f'{kind} "{name}" of {self.role_kind} "{self.role_name}" to {subject}'


@dataclass(frozen=True, slots=True)
class Action:
    """What is asked: a verb on a resource, or with ``path`` on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def allowed_by(self, rule: Rule) -> bool:
        if self.path:
            return rule.allows_path(self.verb, self.path)
        return rule.allows_resource(
            self.verb, self.group, self.resource, self.subresource, self.name
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer and its reason: the binding that allowed, or the roles that were not found."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RulesFor:
    """Everything a user may do somewhere; ``errors`` name the roles that could not be read."""

    rules: tuple[Rule, ...]
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class _Role:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    # None unless the role is aggregated.
    selectors: tuple[Selector, ...] | None = None


class Policy:
    """The RBAC objects of one cluster. Feed it with ``put`` and ``remove``.

    A policy may inherit another: what that allows is allowed here too, and bindings here may
    name its roles. Roles of its own never change what inherited bindings mean.
    """

    def __init__(self, inherits: Policy | None = None) -> None:
        self._inherits = inherits
        self._generation = 0
        self._roles: dict[RoleKey, _Role] = {}
        self._bindings: dict[RoleKey, Binding] = {}
        # subject → namespace ("" for the whole cluster) → binding name → binding and subject
        self._reach: dict[SubjectKey, dict[str, dict[str, tuple[Binding, Subject]]]] = {}
        self._aggregated: dict[str, tuple[Rule, ...]] = {}

    @property
    def generation(self) -> int:
        """A number that changes whenever a decision may."""
        inherited = self._inherits.generation if self._inherits is not None else 0
        return self._generation + inherited

    def put(self, obj: Mapping[str, Any]) -> None:
        """Take in an object of one of ``KINDS``, new or changed."""
        if obj["kind"] in ("Role", "ClusterRole"):
            self._put_role(obj)
        else:
            self._put_binding(Binding.of(obj))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object; unknown ones are no matter."""
        key = RoleKey(namespace, name)
        if kind in ("Role", "ClusterRole"):
            if self._roles.pop(key, None) is not None:
                self._changed()
        elif key in self._bindings:
            self._drop_binding(key)
            self._changed()

    def decide(self, user: str, groups: Sequence[str], action: Action) -> Verdict:
        """Decide, and say which binding allowed it, or which roles were missing."""
        if self._inherits is not None:
            inherited = self._inherits.decide(user, groups, action)
            if inherited.allowed:
                return inherited
        errors: list[str] = []
        for binding, subject in self._reaching(user, groups, action.namespace):
            rules = self._rules(binding, errors)
            for rule in rules:
                if action.allowed_by(rule):
                    return Verdict(True, f"RBAC: allowed by {binding.described(subject)}")
        return Verdict(False, f"RBAC: {_aggregate(errors)}" if errors else "")

    def rules_for(self, user: str, groups: Sequence[str], namespace: str) -> RulesFor:
        """Return all rules that reach a user in *namespace*, the cluster-wide ones included."""
        errors: list[str] = []
        found = [
            rule
            for binding, _ in self._reaching(user, groups, namespace)
            for rule in self._rules(binding, errors)
        ]
        if self._inherits is None:
            return RulesFor(tuple(found), tuple(errors))
        inherited = self._inherits.rules_for(user, groups, namespace)
        return RulesFor((*inherited.rules, *found), (*inherited.errors, *errors))

    def role_rules(self, role_kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the effective rules of a role, None when there is no such role."""
        key = RoleKey(namespace if role_kind == "Role" else "", name)
        role = self._roles.get(key)
        if role is None and self._inherits is not None:
            return self._inherits.role_rules(role_kind, namespace, name)
        return None if role is None else self._effective(key, role)

    def escalation(
        self, user: str, groups: Sequence[str], namespace: str, wanted: Sequence[Rule]
    ) -> str:
        """Return why *user* may not grant *wanted* in *namespace*; empty when they hold it all."""
        held = self.rules_for(user, groups, namespace)
        try:
            missing = uncovered(held.rules, wanted)
        except TooManyRights as error:
            return f'user "{user}" is attempting to grant more than can be compared: {error}'
        if not missing:
            return ""
        message = escalation_message(user, groups, missing)
        if held.errors:
            message += f"; resolution errors: {_aggregate(held.errors)}"
        return message

    def _reaching(
        self, user: str, groups: Sequence[str], namespace: str
    ) -> Iterator[tuple[Binding, Subject]]:
        reach = self._reach
        found = [reach.get(SubjectKey("User", user))]
        found += [reach.get(SubjectKey("Group", group)) for group in groups]
        for places in found:
            if places is not None and "" in places:
                yield from places[""].values()
        if namespace:
            for places in found:
                if places is not None and namespace in places:
                    yield from places[namespace].values()

    def _rules(self, binding: Binding, errors: list[str]) -> tuple[Rule, ...]:
        key = binding.role
        role = self._roles.get(key)
        if role is None and self._inherits is not None and not key.namespace:
            inherited = self._inherits.role_rules(binding.role_kind, "", key.name)
            if inherited is not None:
                return inherited
        if role is None:
            kind = binding.role_kind.lower()
            error = f'{kind}.{GROUP} "{binding.role_name}" not found'
            if error not in errors:
                errors.append(error)
            return ()
        return self._effective(key, role)

    def _effective(self, key: RoleKey, role: _Role) -> tuple[Rule, ...]:
        if role.selectors is None:
            return role.rules
        cached = self._aggregated.get(key.name)
        if cached is None:
            cached = tuple(dict.fromkeys(self._gathered(key.name, role.selectors, {key.name})))
            self._aggregated[key.name] = cached
        return cached

    def _gathered(
        self, name: str, selectors: tuple[Selector, ...], seen: set[str]
    ) -> Iterator[Rule]:
        """Yield the rules of every role the selectors match, and of those they aggregate.

        *seen* ends cycles: a role adds nothing by aggregating itself.
        """
        for key in sorted(self._roles):
            role = self._roles[key]
            if key.namespace or key.name in seen:
                continue
            if any(selector.matches(role.labels) for selector in selectors):
                seen.add(key.name)
                if role.selectors is None:
                    yield from role.rules
                else:
                    yield from self._gathered(key.name, role.selectors, seen)

    def _put_role(self, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if obj["kind"] == "Role" else ""
        selectors = aggregation_selectors(obj) if obj["kind"] == "ClusterRole" else None
        role = _Role(rules_of(obj), dict(metadata.get("labels") or {}), selectors)
        key = RoleKey(namespace, metadata["name"])
        if self._roles.get(key) != role:
            self._roles[key] = role
            self._changed()

    def _put_binding(self, binding: Binding) -> None:
        key = RoleKey(binding.namespace, binding.name)
        if self._bindings.get(key) == binding:
            return
        if key in self._bindings:
            self._drop_binding(key)
        self._bindings[key] = binding
        for subject in binding.subjects:
            places = self._reach.setdefault(subject.key, {})
            places.setdefault(binding.namespace, {})[binding.name] = (binding, subject)
        self._changed()

    def _drop_binding(self, key: RoleKey) -> None:
        binding = self._bindings.pop(key)
        for subject in binding.subjects:
            places = self._reach.get(subject.key, {})
            named = places.get(binding.namespace, {})
            named.pop(binding.name, None)
            if not named:
                places.pop(binding.namespace, None)
            if not places:
                self._reach.pop(subject.key, None)

    def _changed(self) -> None:
        self._generation += 1
        self._aggregated.clear()


def aggregation_selectors(cluster_role: Mapping[str, Any]) -> tuple[Selector, ...] | None:
    """Return the selectors of an aggregated ClusterRole; None when it is not aggregated.

    A selector that cannot be read matches nothing: it must not grant more than was meant.
    """
    rule = cluster_role.get("aggregationRule")
    if not rule:
        return None
    selectors = []
    for written in rule.get("clusterRoleSelectors") or ():
        try:
            selectors.append(Selector.from_label_selector(written))
        except SelectorError:
            selectors.append(Selector(nothing=True))
    return tuple(selectors)


def _aggregate(errors: Sequence[str]) -> str:
    """Return several errors in one line, as Go's error aggregates print."""
    return errors[0] if len(errors) == 1 else "[" + ", ".join(errors) + "]"
