"""Which FlowSchema a request falls to, by the rules of API Priority and Fairness.

Schemas are asked in the order of their ``matchingPrecedence``, then of their names; the first with
a rule for both the user and the request wins. One that refers to a priority level that is not
there is passed over. ``exempt`` and ``catch-all`` always exist, be it in the imagination: every
request of a user falls to one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object, Raw
from skerry.logic.machinery.conditions import condition

GROUP = "flowcontrol.apiserver.k8s.io"
API_VERSION = f"{GROUP}/v1"
SCHEMAS, LEVELS = "flowschemas", "prioritylevelconfigurations"
EXEMPT, CATCH_ALL = "exempt", "catch-all"
DANGLING = "Dangling"
_ALL = "*"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request FlowSchemas look at; ``path`` counts where ``resource`` is empty."""

    user: str
    groups: tuple[str, ...]
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    path: str = ""


def level_name(schema: Raw) -> str:
    """Return the name of the PriorityLevelConfiguration that a FlowSchema refers to."""
    spec = schema.get("spec") or {}
    return str((spec.get("priorityLevelConfiguration") or {}).get("name") or "")


@dataclass(frozen=True, slots=True)
class LevelLimits:
    """What a PriorityLevelConfiguration lends and borrows, and how many requests wait there.

    ``queue`` is of one flow, ``max_waiting`` of all of them; both are 0 where nobody waits.
    """

    lendable_percent: int = 0
    borrowing_percent: int | None = None
    queue: int = 0
    max_waiting: int = 0

    def lendable(self, nominal: int) -> int:
        """Return how many of its seats others may borrow while they are idle."""
        return round(nominal * self.lendable_percent / 100)

    def borrowed(self, nominal: int, limit: int) -> int:
        """Return how many seats it may borrow; *limit* where it names none."""
        percent = self.borrowing_percent
        return limit if percent is None else round(nominal * percent / 100)


def level_limits(level: Raw) -> LevelLimits | None:
    """Return the limits of a PriorityLevelConfiguration; None of one that is exempt."""
    spec = level.get("spec") or {}
    if spec.get("type") != "Limited":
        return None
    limited = spec.get("limited") or {}
    response = limited.get("limitResponse") or {}
    queuing = (response.get("queuing") or {}) if response.get("type") == "Queue" else {}
    length = int(queuing.get("queueLengthLimit") or 0)
    borrowing = limited.get("borrowingLimitPercent")
    return LevelLimits(
        int(limited.get("lendablePercent") or 0),
        None if borrowing is None else int(borrowing),
        # A flow is dealt a hand of the queues.
        length * int(queuing.get("handSize") or 0),
        length * int(queuing.get("queues") or 0),
    )


def nominal_seats(levels: Mapping[str, Raw], seats: int) -> dict[str, int]:
    """Return how many of *seats* the shares of each level stand for."""
    shares = {name: _nominal_shares(level) for name, level in levels.items()}
    total = sum(shares.values()) or 1
    return {name: math.ceil(seats * share / total) for name, share in shares.items()}


def _nominal_shares(level: Raw) -> int:
    spec = level.get("spec") or {}
    limits = spec.get("limited") or spec.get("exempt") or {}
    return int(limits.get("nominalConcurrencyShares") or 0)


def distinguisher(schema: Raw) -> str:
    """Return what tells the flows of a FlowSchema apart; empty where it has but one."""
    return str(((schema.get("spec") or {}).get("distinguisherMethod") or {}).get("type") or "")


def in_order(schemas: Iterable[Object], levels: Mapping[str, Raw]) -> list[Object]:
    """Return those of *schemas* whose level is one of *levels*, in the order they are asked."""
    usable = [schema for schema in schemas if level_name(schema) in levels]
    return sorted(usable, key=_precedence)


def _precedence(schema: Raw) -> tuple[int, str]:
    name = str(schema["metadata"]["name"])
    # Nothing may come before the one or after the other.
    if name == EXEMPT:
        return 0, name
    if name == CATCH_ALL:
        return 1 << 31, name
    return int((schema.get("spec") or {}).get("matchingPrecedence") or 0), name


def names_namespaces(schemas: Iterable[Raw]) -> bool:
    """Tell whether it matters to any of *schemas* in which namespace something is asked for."""
    return any(
        name != _ALL
        for schema in schemas
        for rule in _items(schema.get("spec"), "rules")
        for resources in _items(rule, "resourceRules")
        for name in _items(resources, "namespaces")
    )


def matching(schemas: Iterable[Object], asked: Asked) -> Object | None:
    """Return the first of *schemas* that the request falls to."""
    return next((schema for schema in schemas if _matches(schema, asked)), None)


def _matches(schema: Raw, asked: Asked) -> bool:
    return any(
        any(_is_subject(subject, asked) for subject in _items(rule, "subjects"))
        and _covers(rule, asked)
        for rule in _items(schema.get("spec"), "rules")
    )


def _is_subject(subject: Raw, asked: Asked) -> bool:
    kind = subject.get("kind")
    if kind == "User":
        return _named(subject, "user") in (_ALL, asked.user)
    if kind == "Group":
        name = _named(subject, "group")
        return name == _ALL or name in asked.groups
    if kind != "ServiceAccount":
        return False
    account = subject.get("serviceAccount") or {}
    prefix = f"{_ACCOUNT}{account.get('namespace')}:"
    if account.get("name") == _ALL:
        return asked.user.startswith(prefix)
    return asked.user == prefix + str(account.get("name"))


def _named(subject: Raw, field: str) -> Any:
    return (subject.get(field) or {}).get("name")


def _covers(rule: Raw, asked: Asked) -> bool:
    if not asked.resource:
        return any(
            _contains(each, "verbs", asked.verb)
            and any(_leads_to(url, asked.path) for url in _items(each, "nonResourceURLs"))
            for each in _items(rule, "nonResourceRules")
        )
    resource = asked.resource
    if asked.subresource:
        resource += f"/{asked.subresource}"
    return any(
        _contains(each, "verbs", asked.verb)
        and _contains(each, "resources", resource)
        and _contains(each, "apiGroups", asked.group)
        and _is_within(each, asked.namespace)
        for each in _items(rule, "resourceRules")
    )


def _is_within(rule: Raw, namespace: str) -> bool:
    if not namespace:
        return bool(rule.get("clusterScope"))
    return _contains(rule, "namespaces", namespace)


def _leads_to(url: str, path: str) -> bool:
    """Tell whether *path* is *url* or below it: a star at its end adds nothing to that."""
    if url in (_ALL, path):
        return True
    return path.startswith(f"{url.removesuffix('*').removesuffix('/')}/")


def _contains(rule: Raw, field: str, wanted: str) -> bool:
    values = _items(rule, field)
    return wanted in values or values == [_ALL]


def _items(obj: Raw | None, field: str) -> Sequence[Any]:
    return (obj or {}).get(field) or ()


def dangling(schema: Raw, levels: Mapping[str, Raw]) -> Object:
    """Return the condition that says whether the level a FlowSchema refers to is missing."""
    name = level_name(schema)
    refers = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
    if name in levels:
        return condition(DANGLING, False, "Found", f"{refers} and it exists")
    return condition(DANGLING, True, "NotFound", f"{refers} but there is no such object")
