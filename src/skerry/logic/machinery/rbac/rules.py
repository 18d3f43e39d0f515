"""Policy rules: what one allows, and whether some cover others.

A rule speaks of resources or of paths, never of both at once in a request. Absent resource names
mean every name; an absent list of anything else means nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import islice, product
from math import prod
from operator import and_
from typing import Any, TypeVar

import msgspec

from skerry.kit.steps import Steps

ALL = "*"

S = TypeVar("S", bound=msgspec.Struct)


class Rule(msgspec.Struct, frozen=True, gc=False):
    """One PolicyRule. There may be very many: they are read in one go, and are no work for the
    search for garbage."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = msgspec.field(default=(), name="apiGroups")
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = msgspec.field(default=(), name="resourceNames")
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Rule:
        """Read a PolicyRule object."""
        return rules_of({"rules": [obj]})[0]

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
    return read_all(obj.get("rules"), Rule)


def read_all(written: Sequence[Mapping[str, Any]] | None, kind: type[S]) -> tuple[S, ...]:
    """Return the entries of a list as structs. A null in one says nothing, as its absence would.

    What cannot be read is as if it were empty: it must not grant anything, nor stop the reading.
    """
    try:
        return msgspec.convert(written or (), tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return tuple(_read(each, kind) for each in written or ())


def _read(written: Any, kind: type[S]) -> S:
    if isinstance(written, Mapping):
        written = {name: value for name, value in written.items() if value is not None}
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError:
        return kind()


def quoted_list(values: Iterable[str]) -> str:
    """Return strings as Go prints a list of them: ``["a" "b"]``."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


# A rule of a hundred verbs, groups and resources each stands for a million rights. Those that no
# rule in sight tells apart are looked at together; what is left is limited: a thousand rights take
# a millisecond, and people write rules that stand for dozens.
MAX_RIGHTS = 10_000
_MAX_MISSING = 100
# Paths are looked up by every length that a held pattern has; people write patterns of a few.
MAX_PREFIXES = 100_000
# Rules that are compared in a millisecond or two.
_STEP = 500
# So few are not worth being gathered, and are reported in the order in which they are written.
_FEW_VALUES = 10


class TooManyRights(ValueError):
    """The rules stand for more rights than are compared one by one."""


def uncovering(held: Sequence[Rule], wanted: Iterable[Rule]) -> Steps[list[Rule]]:
    """Return in steps the parts of *wanted* that nothing in *held* covers, one right per rule.

    Empty means that who holds *held* may grant *wanted*. A right counts as held only if a single
    rule gives it. Of very many missing rights the first are returned. Raises TooManyRights.
    """
    owned = _Owned()
    for number, rule in enumerate(held):
        owned.add(1 << number, rule)
        if number % _STEP == _STEP - 1:
            yield
    missing: list[Rule] = []
    left = MAX_RIGHTS
    for number, rule in enumerate(wanted, start=1):
        if number % _STEP == 0:
            yield
        if owned.covers(rule):
            continue
        for places, rights in (
            (owned.of_resources(rule), _resource_right),
            (owned.of_paths(rule), _path_right),
        ):
            # What all held rules treat alike is one; the order is that of the rule.
            left -= prod(len(place) for place in places)
            if left < 0:
                raise TooManyRights(
                    f"the rules combine more than {MAX_RIGHTS} verbs, groups, resources and names"
                )
            missing += islice(
                (
                    rights(*values)
                    for together in product(*places)
                    if not reduce(and_, (mask for mask, _ in together))
                    for values in product(*(values for _, values in together))
                ),
                _MAX_MISSING - len(missing),
            )
    return missing


# The held rules a value belongs to, as bits, and the values that belong to the same.
_Alike = tuple[int, tuple[Any, ...]]


class _Owned:
    """Held rules, each a bit; every value that a rule may name knows the bits of those rules."""

    def __init__(self) -> None:
        self._verbs: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._names: dict[str, int] = {}
        # Of the rules that give every name, having none.
        self._unnamed = 0
        self._urls: dict[str, int] = {}
        # Patterns without their star, and how long they are.
        self._prefixes: dict[str, int] = {}
        self._lengths: dict[int, None] = {}
        self._prefixes_left = MAX_PREFIXES

    def add(self, bit: int, rule: Rule) -> None:
        """Take in a held rule under a bit of its own."""
        if not rule.resource_names:
            self._unnamed |= bit
        for values, masks in (
            (rule.verbs, self._verbs),
            (rule.api_groups, self._groups),
            (rule.resources, self._resources),
            (rule.resource_names, self._names),
            (rule.non_resource_urls, self._urls),
        ):
            for value in values:
                masks[value] = masks.get(value, 0) | bit
        for url in rule.non_resource_urls:
            if url.endswith(ALL):
                prefix = url.rstrip(ALL)
                self._prefixes[prefix] = self._prefixes.get(prefix, 0) | bit
                self._lengths[len(prefix)] = None

    def covers(self, rule: Rule) -> bool:
        """Tell whether one held rule gives all of *rule*, which is what most roles ask for."""
        verbs = -1
        for verb in rule.verbs:
            verbs &= _either(self._verbs, verb, ALL)
        if rule.api_groups and rule.resources:
            mask = verbs
            for group in rule.api_groups:
                mask &= _either(self._groups, group, ALL)
            for resource in rule.resources:
                mask &= self._resource(resource)
            for name in rule.resource_names:
                mask &= self._unnamed | self._names.get(name, 0)
            if not (mask if rule.resource_names else mask & self._unnamed):
                return False
        if rule.non_resource_urls:
            for url in rule.non_resource_urls:
                verbs &= self._url(url)
            return verbs != 0
        return True

    def of_resources(self, rule: Rule) -> list[list[_Alike]]:
        """Return the verbs, groups, resources and names of *rule*, those alike together."""
        return [
            _alike(rule.verbs, lambda verb: _either(self._verbs, verb, ALL)),
            _alike(rule.api_groups, lambda group: _either(self._groups, group, ALL)),
            _alike(rule.resources, self._resource),
            # Only a rule without names gives what is asked for without one.
            _alike(rule.resource_names, lambda name: self._unnamed | self._names.get(name, 0))
            or [(self._unnamed, (None,))],
        ]

    def of_paths(self, rule: Rule) -> list[list[_Alike]]:
        """Return the verbs and paths of *rule*, those alike together."""
        return [
            _alike(rule.verbs, lambda verb: _either(self._verbs, verb, ALL)),
            _alike(rule.non_resource_urls, self._url),
        ]

    def _resource(self, written: str) -> int:
        resource, _, subresource = written.partition("/")
        if not subresource:
            return _either(self._resources, resource, ALL)
        exact = f"{resource}/{subresource}"
        return _either(self._resources, exact, ALL, f"{ALL}/{subresource}")

    def _url(self, url: str) -> int:
        mask = self._urls.get(url, 0)
        lengths = [length for length in self._lengths if length <= len(url)]
        self._prefixes_left -= len(lengths)
        if self._prefixes_left < 0:
            raise TooManyRights(f"the paths are compared with more than {MAX_PREFIXES} patterns")
        for length in lengths:
            mask |= self._prefixes.get(url[:length], 0)
        return mask


def _either(masks: Mapping[str, int], *values: str) -> int:
    mask = 0
    for value in values:
        mask |= masks.get(value, 0)
    return mask


def _alike(values: Sequence[str], mask_of: Callable[[str], int]) -> list[_Alike]:
    """Return *values* in order; where there are many, those of one mask together."""
    if len(values) <= _FEW_VALUES:
        return [(mask_of(value), (value,)) for value in values]
    together: dict[int, list[str]] = {}
    for value in values:
        together.setdefault(mask_of(value), []).append(value)
    return [(mask, tuple(found)) for mask, found in together.items()]


def _resource_right(verb: str, group: str, resource: str, name: str | None) -> Rule:
    return Rule((verb,), (group,), (resource,), () if name is None else (name,))


def _path_right(verb: str, url: str) -> Rule:
    return Rule((verb,), non_resource_urls=(url,))


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
