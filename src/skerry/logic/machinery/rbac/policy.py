"""The RBAC objects of one cluster, indexed by whom they reach.

A decision looks only at the bindings of the asking user and groups, cluster-wide ones first and
then those of the namespace; other users' bindings cost nothing. Aggregated ClusterRoles are
resolved here, from the roles their selectors match, so that they hold from the moment a matching
role exists; whatever is stored in their ``rules`` is the aggregation's own copy and not trusted.

``generation`` changes with every change of the answers, for caches above.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from skerry.kit.steps import Steps, finished
from skerry.logic.machinery.rbac.bindings import Binding, Bindings, RoleKey
from skerry.logic.machinery.rbac.rules import (
    Rule,
    TooManyRights,
    escalation_message,
    rules_of,
    uncovering,
)
from skerry.logic.machinery.selectors import Selector, SelectorError

GROUP = "rbac.authorization.k8s.io"
T = TypeVar("T")


# What one decision looks at, bindings and rules together: a few milliseconds. What lies beyond
# grants nothing. Who has a right by any of thousands of rules has it by the first that says so.
MAX_LOOKED_AT = 10_000
# Roles that are compared with selectors for it, where roles are aggregated.
MAX_MATCHED = 50_000
# Missing roles that a reason names.
_MAX_ERRORS = 20
# Labels, conditions and values of selectors that are read in a millisecond or two, and those that
# one selector may have.
_STEP = 200
_MAX_SELECTOR = 1000
_TOO_MUCH = f"more than {MAX_LOOKED_AT} bindings and rules apply, of which the first were looked at"


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

    @property
    def requirements(self) -> int:
        """How many requirements a role may have to be compared with for its selectors."""
        return sum(len(selector.requirements) + 1 for selector in self.selectors or ()) + 1


class _Looking:
    """One look through rules: what may still be looked at, and what went wrong."""

    __slots__ = ("_errors", "left", "matches_left")

    def __init__(self) -> None:
        self.left = MAX_LOOKED_AT
        self.matches_left = MAX_MATCHED
        self._errors: dict[str, None] = {}

    @property
    def exhausted(self) -> bool:
        return self.left < 0 or self.matches_left < 0

    def at(self, found: Iterable[T]) -> Iterator[T]:
        """Yield from *found* what may still be looked at."""
        for each in found:
            self.left -= 1
            if self.left < 0:
                return
            yield each

    def matches(self, gathering: _Role, cost: int, labels: Mapping[str, str]) -> bool:
        """Tell whether a role of *labels* is gathered, as far as may still be looked."""
        self.matches_left -= cost
        if self.matches_left < 0:
            return False
        return any(selector.matches(labels) for selector in gathering.selectors or ())

    def missed(self, binding: Binding) -> None:
        """Note that the role of a binding is not there."""
        if len(self._errors) < _MAX_ERRORS:
            error = f'{binding.role_kind.lower()}.{GROUP} "{binding.role_name}" not found'
            self._errors[error] = None

    @property
    def errors(self) -> tuple[str, ...]:
        return (*self._errors, _TOO_MUCH) if self.exhausted else tuple(self._errors)


class Policy:
    """The RBAC objects of one cluster. Feed it with ``put`` and ``remove``.

    A policy may inherit another: what that allows is allowed here too, and bindings here may
    name its roles. Roles of its own never change what inherited bindings mean.

    Objects may be very large, so that each is also taken in or forgotten in steps (``putting``,
    ``removing``). Between the steps decisions are made by what the object said before, and from
    one moment on by what it says now.
    """

    def __init__(self, inherits: Policy | None = None) -> None:
        self._inherits = inherits
        self._generation = 0
        self._roles: dict[RoleKey, _Role] = {}
        self._cluster_roles: dict[str, _Role] = {}
        # Their names, in order.
        self._names: list[str] = []
        self._bindings = Bindings(self._changed)
        self._aggregated: dict[str, tuple[Rule, ...]] = {}

    @property
    def generation(self) -> int:
        """A number that changes whenever a decision may."""
        inherited = self._inherits.generation if self._inherits is not None else 0
        return self._generation + inherited

    def put(self, obj: Mapping[str, Any]) -> None:
        """Take in an object of one of ``KINDS``, new or changed."""
        finished(self.putting(obj))

    def putting(self, obj: Mapping[str, Any]) -> Steps[None]:
        """Do what ``put`` does, in steps."""
        if obj["kind"] in ("Role", "ClusterRole"):
            yield from self._putting_role(obj)
        else:
            yield from self._bindings.putting(Binding.of(obj))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object; unknown ones are no matter."""
        finished(self.removing(kind, namespace, name))

    def removing(self, kind: str, namespace: str, name: str) -> Steps[None]:
        """Do what ``remove`` does, in steps."""
        key = RoleKey(namespace, name)
        if kind not in ("Role", "ClusterRole"):
            yield from self._bindings.removing(key)
        elif self._roles.pop(key, None) is not None:
            if not namespace:
                del self._cluster_roles[name]
                del self._names[bisect_left(self._names, name)]
            self._changed()

    def decide(self, user: str, groups: Sequence[str], action: Action) -> Verdict:
        """Decide, and say which binding allowed it, or which roles were missing."""
        if self._inherits is not None:
            inherited = self._inherits.decide(user, groups, action)
            if inherited.allowed:
                return inherited
        looking = _Looking()
        for binding, subject in looking.at(self._bindings.reaching(user, groups, action.namespace)):
            for rule in looking.at(self._rules(binding, looking)):
                if action.allowed_by(rule):
                    return Verdict(True, f"RBAC: allowed by {binding.described(subject)}")
        errors = looking.errors
        return Verdict(False, f"RBAC: {_aggregate(errors)}" if errors else "")

    def rules_for(self, user: str, groups: Sequence[str], namespace: str) -> RulesFor:
        """Return all rules that reach a user in *namespace*, the cluster-wide ones included."""
        looking = _Looking()
        found = tuple(
            rule
            for binding, _ in looking.at(self._bindings.reaching(user, groups, namespace))
            for rule in looking.at(self._rules(binding, looking))
        )
        if self._inherits is None:
            return RulesFor(found, looking.errors)
        inherited = self._inherits.rules_for(user, groups, namespace)
        return RulesFor((*inherited.rules, *found), (*inherited.errors, *looking.errors))

    def role_rules(self, role_kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the effective rules of a role, None when there is no such role.

        Raises TooManyRights where it gathers more than is looked at.
        """
        key = RoleKey(namespace if role_kind == "Role" else "", name)
        role = self._roles.get(key)
        if role is None and self._inherits is not None:
            return self._inherits.role_rules(role_kind, namespace, name)
        if role is None:
            return None
        looking = _Looking()
        rules = self._effective(key, role, looking)
        if looking.exhausted:
            raise TooManyRights(f'ClusterRole "{name}" gathers too much: {_TOO_MUCH}')
        return rules

    def escalation(
        self, user: str, groups: Sequence[str], namespace: str, wanted: Sequence[Rule]
    ) -> str:
        """Return why *user* may not grant *wanted* in *namespace*; empty when they hold it all."""
        return finished(self.escalating(user, groups, namespace, wanted))

    def escalating(
        self, user: str, groups: Sequence[str], namespace: str, wanted: Sequence[Rule]
    ) -> Steps[str]:
        """Do what ``escalation`` does, in steps."""
        held = self.rules_for(user, groups, namespace)
        try:
            missing = yield from uncovering(held.rules, wanted)
        except TooManyRights as error:
            return f'user "{user}" is attempting to grant more than can be compared: {error}'
        if not missing:
            return ""
        message = escalation_message(user, groups, missing)
        if held.errors:
            message += f"; resolution errors: {_aggregate(held.errors)}"
        return message

    def _rules(self, binding: Binding, looking: _Looking) -> tuple[Rule, ...]:
        key = binding.role
        role = self._roles.get(key)
        if role is not None:
            return self._effective(key, role, looking)
        if self._inherits is not None and not key.namespace:
            inherited = self._inherits._role_for(key, looking)
            if inherited is not None:
                return inherited
        looking.missed(binding)
        return ()

    def _role_for(self, key: RoleKey, looking: _Looking) -> tuple[Rule, ...] | None:
        """Return the rules of a ClusterRole for a policy that inherits this one."""
        role = self._roles.get(key)
        return None if role is None else self._effective(key, role, looking)

    def _effective(self, key: RoleKey, role: _Role, looking: _Looking) -> tuple[Rule, ...]:
        if role.selectors is None:
            return role.rules
        cached = self._aggregated.get(key.name)
        if cached is None:
            cached = tuple(dict.fromkeys(self._gathered(key.name, looking)))
            if not looking.exhausted:
                self._aggregated[key.name] = cached
        return cached

    def _gathered(self, name: str, looking: _Looking) -> Iterator[Rule]:
        """Yield the rules of every role that one gathers, and of those that these gather.

        A role adds nothing by aggregating itself. Roles may aggregate each other in a chain of
        any length.
        """
        seen = {name}
        role = self._cluster_roles[name]
        stack = [(role, role.requirements, iter(self._names))]
        while stack:
            gathering, cost, names = stack[-1]
            for found in names:
                if looking.exhausted:
                    return
                role = self._cluster_roles[found]
                if not looking.matches(gathering, cost, role.labels) or found in seen:
                    continue
                seen.add(found)
                if role.selectors is not None:
                    stack.append((role, role.requirements, iter(self._names)))
                    break
                yield from looking.at(role.rules)
            else:
                stack.pop()

    def _putting_role(self, obj: Mapping[str, Any]) -> Steps[None]:
        metadata = obj["metadata"]
        namespace = (metadata.get("namespace") or "") if obj["kind"] == "Role" else ""
        selectors = None
        if obj["kind"] == "ClusterRole" and obj.get("aggregationRule"):
            selectors = yield from _selecting(obj["aggregationRule"])
        role = _Role(rules_of(obj), dict(metadata.get("labels") or {}), selectors)
        key = RoleKey(namespace, metadata["name"])
        known = self._roles.get(key)
        if known != role:
            self._roles[key] = role
            if not namespace:
                self._cluster_roles[key.name] = role
                if known is None:
                    insort(self._names, key.name)
            self._changed()

    def _changed(self) -> None:
        self._generation += 1
        self._aggregated.clear()


def _selecting(rule: Mapping[str, Any]) -> Steps[tuple[Selector, ...]]:
    """Return the selectors of an aggregationRule, read in steps.

    A selector that cannot be read matches nothing: it must not grant more than was meant. Nor
    does one that is too long to be read in a step.
    """
    selectors = []
    read = 0
    for written in rule.get("clusterRoleSelectors") or ():
        length = _length(written)
        read += length
        if read > _STEP:
            yield
            read = length
        try:
            if length > _MAX_SELECTOR:
                raise SelectorError("too long")
            selectors.append(Selector.from_label_selector(written))
        except SelectorError:
            selectors.append(Selector(nothing=True))
    return tuple(selectors)


def _length(selector: Mapping[str, Any] | None) -> int:
    """Return how many labels, conditions and values a LabelSelector has."""
    written = selector or {}
    conditions = written.get("matchExpressions") or ()
    values = sum(len(each.get("values") or ()) for each in conditions)
    return 1 + len(written.get("matchLabels") or ()) + len(conditions) + values


def _aggregate(errors: Sequence[str]) -> str:
    """Return several errors in one line, as Go's error aggregates print."""
    return errors[0] if len(errors) == 1 else "[" + ", ".join(errors) + "]"
