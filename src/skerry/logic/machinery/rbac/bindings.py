"""Bindings: whom a role reaches, and where.

The index holds an entry for each subject of each binding, and a binding may have very many. So it
is changed in steps, and a binding counts from the moment at which it is *live*: before that its
entries are there and reach nobody, and a binding that was removed or replaced reaches nobody from
that moment, though its entries are cleared away afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from skerry.kit.steps import Steps, pieces
from skerry.logic.machinery.rbac.rules import read_all

# Subjects that are taken in, or cleared away, in a millisecond.
_STEP = 500


class RoleKey(NamedTuple):
    """A Role by namespace and name; of a ClusterRole the namespace is empty."""

    namespace: str
    name: str


class Subject(msgspec.Struct, frozen=True, gc=False):
    """Whom a binding names."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


@dataclass(slots=True, eq=False)
class Binding:
    """A RoleBinding, or with an empty namespace a ClusterRoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]
    live: bool = False

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Binding:
        """Read a binding object."""
        metadata = obj["metadata"]
        reference = obj.get("roleRef") or {}
        return cls(
            (metadata.get("namespace") or "") if obj["kind"] == "RoleBinding" else "",
            metadata["name"],
            reference.get("kind") or "",
            reference.get("name") or "",
            read_all(obj.get("subjects"), Subject),
        )

    @property
    def key(self) -> RoleKey:
        return RoleKey(self.namespace, self.name)

    @property
    def role(self) -> RoleKey:
        return RoleKey(self.namespace if self.role_kind == "Role" else "", self.role_name)

    def says_the_same(self, other: Binding) -> bool:
        """Tell whether *other*, of the same name, grants the same to the same."""
        return self.role == other.role and (self.role_kind, self.subjects) == (
            other.role_kind,
            other.subjects,
        )

    def reaches(self, subject: Subject) -> tuple[str, str, str]:
        """Return who *subject* is in requests, and in which namespace it is reached.

        A ServiceAccount is the user it acts as; without a namespace the binding's own is meant.
        """
        if subject.kind == "ServiceAccount":
            account = f"system:serviceaccount:{self._home(subject)}:{subject.name}"
            return "User", account, self.namespace
        return subject.kind, subject.name, self.namespace

    def _home(self, subject: Subject) -> str:
        return subject.namespace or self.namespace

    def described(self, subject: Subject) -> str:
        """Return how this binding reaches *subject*, as decisions tell it."""
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        whom = subject.name
        if subject.kind == "ServiceAccount":
            whom = f"{whom}/{self._home(subject)}"
        return f'{kind} "{name}" of {self.role_kind} "{self.role_name}" to {subject.kind} "{whom}"'


class Bindings:
    """All bindings of one cluster, by whom they reach; *changed* is called as soon as that does."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._live: dict[RoleKey, Binding] = {}
        # kind and name of who asks, and the namespace ("" for the whole cluster)
        self._reach: dict[tuple[str, str, str], dict[Binding, Subject]] = {}

    def putting(self, binding: Binding) -> Steps[None]:
        """Take in a binding, new or changed."""
        old = self._live.get(binding.key)
        if old is not None and old.says_the_same(binding):
            return
        for number, subjects in enumerate(pieces(binding.subjects, _STEP)):
            if number:
                yield
            for subject in subjects:
                if subject.name:
                    self._reach.setdefault(binding.reaches(subject), {})[binding] = subject
        binding.live = True
        self._live[binding.key] = binding
        if old is not None:
            old.live = False
        self._changed()
        if old is not None:
            yield from self._clearing(old)

    def removing(self, key: RoleKey) -> Steps[None]:
        """Forget a binding; an unknown one is no matter."""
        old = self._live.pop(key, None)
        if old is not None:
            old.live = False
            self._changed()
            yield from self._clearing(old)

    def _clearing(self, old: Binding) -> Steps[None]:
        """Clear away a binding that reaches nobody any more."""
        for number, subjects in enumerate(pieces(old.subjects, _STEP)):
            if number:
                yield
            for subject in subjects:
                reached = old.reaches(subject)
                found = self._reach.get(reached, {})
                found.pop(old, None)
                if not found:
                    self._reach.pop(reached, None)

    def reaching(
        self, user: str, groups: Sequence[str], namespace: str
    ) -> Iterator[tuple[Binding, Subject]]:
        """Yield what reaches a user: in the whole cluster first, then in *namespace*."""
        for place in ("", namespace) if namespace else ("",):
            yield from self._of("User", user, place)
            for group in groups:
                yield from self._of("Group", group, place)

    def _of(self, kind: str, name: str, namespace: str) -> Iterator[tuple[Binding, Subject]]:
        for binding, subject in self._reach.get((kind, name, namespace), {}).items():
            if binding.live:
                yield binding, subject
