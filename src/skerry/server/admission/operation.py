"""What admission sees: one write about to happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.server.request.call import Call
from skerry.store.base import Write

Verb = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Operation(msgspec.Struct):
    """One write. Admission may change ``obj``, refuse by raising, or add to ``writes``, which are
    committed with the object or not at all; when one of them finds its key changed meanwhile the
    whole operation is tried again from the start."""

    call: Call
    verb: Verb
    obj: Object
    old: Object | None = None
    dry_run: bool = False
    subresource: str = ""
    writes: list[Write] = msgspec.field(default_factory=list)
    # Whether ``obj`` is what was asked for, which is carried out and never stored.
    asked: bool = False
    # Group and resource, which nearly every rule asks for.
    type: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        info = self.call.resource.info
        self.type = (info.group, info.resource)

    @property
    def name(self) -> str:
        """The name of what is written; of what is asked for, the one in the request's path."""
        path, name = self.call.info.name, self.obj["metadata"].get("name")
        found: str = (path or name) if self.asked else (name or path)
        return found

    def forbidden(self, why: str) -> Forbidden:
        """Return the refusal of this write."""
        return Forbidden.of(*self.type, self.obj["metadata"].get("name") or "", why)

    def warn(self, text: str) -> None:
        """Warn the client once, however often a contended write is tried."""
        if text not in self.call.warnings:
            self.call.warnings.append(text)

    def note(self, key: str, value: str) -> None:
        """Have the audit log say something of this request."""
        request = self.call.request
        if request.audit_annotations is None:
            request.audit_annotations = {}
        request.audit_annotations[key] = value

    def noted(self, key: str) -> str | None:
        """Return what the audit log is to say under *key* already."""
        return (self.call.request.audit_annotations or {}).get(key)


class Admission(Protocol):
    """One rule of the server's own about writes.

    One that concerns some types only may name them in ``TYPES``; it is not asked about others.
    """

    async def admit(self, operation: Operation) -> None:
        """Let *operation* pass, adjust it, or raise an ApiError."""


class Validation(Protocol):
    """Rules of the clients' own about writes, which judge and change nothing."""

    @property
    def is_idle(self) -> bool:
        """Whether there are none at present."""

    async def validate(self, operation: Operation, seen: Callable[[], Object]) -> None:
        """Let *operation* pass or raise an ApiError.

        *seen* returns the object in the form that it is judged in: complete and valid.
        """


class Validations:
    """Several kinds of clients' rules, one after the other."""

    def __init__(self, *parts: Validation) -> None:
        self._parts = parts

    @property
    def is_idle(self) -> bool:
        # Asked at every write; a generator would cost as much as the answers.
        for part in self._parts:  # noqa: SIM110
            if not part.is_idle:
                return False
        return True

    async def validate(self, operation: Operation, seen: Callable[[], Object]) -> None:
        for part in self._parts:
            if not part.is_idle:
                await part.validate(operation, seen)


class Chain:
    """Rules applied in order, to each write those that may concern its type."""

    def __init__(self, rules: Sequence[Admission]) -> None:
        self._others = _concerning(rules, None)
        self._by_type = {
            each: _concerning(rules, each) for rule in rules for each in _types(rule) or ()
        }

    async def admit(self, operation: Operation) -> None:
        for rule in self._by_type.get(operation.type, self._others):
            await rule.admit(operation)


def _types(rule: Admission) -> frozenset[tuple[str, str]] | None:
    found: frozenset[tuple[str, str]] | None = getattr(rule, "TYPES", None)
    return found


def _concerning(rules: Sequence[Admission], kind: tuple[str, str] | None) -> tuple[Admission, ...]:
    """Return the rules that may concern writes of *kind*; of none that any of them names."""
    return tuple(rule for rule in rules if (types := _types(rule)) is None or kind in types)


class ByType:
    """Rules that each concern one type: a write of any other costs one look."""

    def __init__(self, rules: Mapping[tuple[str, str], Admission]) -> None:
        self._rules = dict(rules)

    async def admit(self, operation: Operation) -> None:
        rule = self._rules.get(operation.type)
        if rule is not None:
            await rule.admit(operation)
