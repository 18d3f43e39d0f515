"""ValidatingAdmissionPolicies, applied.

A policy is in force from the write of its binding on: policies and bindings are kept up by the
dispatcher, and their writers are answered only when it has seen them. In a workspace, its own
policies apply to everything there, and those of an exporter's workspace also to the types that it
exports. Objects that are inert where they are (copies on their way to an edge) are judged where
they take effect.

Most requests meet no policy; they cost one look into a table. Where one is met, matching comes
first, then the object as it will be stored, then expressions; what takes long is done by a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery.admission.matching import EXEMPT, Subject
from skerry.logic.machinery.admission.policies import Binding, binding_of
from skerry.server.admission.operation import Operation
from skerry.server.admission.policy_run import (
    Applied,
    Judged,
    PolicyRun,
    Surroundings,
)
from skerry.server.admission.requests import is_internal
from skerry.server.admission.subjects import namespace_of, subject_of
from skerry.server.change import Change
from skerry.server.observed import ObservedObjects
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Store

_GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = (_GROUP, "validatingadmissionpolicies")
BINDINGS: Final = (_GROUP, "validatingadmissionpolicybindings")


# After how many policies that have nothing to say others are let in: usually 150 microseconds.
_POLICIES_PER_TURN = 16
# Types and operations that a cluster's policies are remembered for.
_MAX_TYPES: Final = 1000


class PolicySource:
    """The policies of every cluster that are bound, kept up from two observed types."""

    def __init__(self) -> None:
        self._policies = ObservedObjects(*POLICIES)
        self._bindings = ObservedObjects(*BINDINGS)
        # Empty where no policy is in force anywhere.
        self.bound: Mapping[tuple[str, str], object] = self._bindings.by_place
        self._applied: dict[str, Candidates] = {}

    def ignore(self, inert: Callable[[Object], bool]) -> None:
        """Leave out policies and bindings that have no effect here; call before ``follow``."""
        self._policies.inert = self._bindings.inert = inert

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read what is there and keep it up; call before the dispatcher runs."""
        for observed in (self._policies, self._bindings):
            await observed.follow(store, dispatcher)
            # After the objects themselves: what was made of them is made anew when needed.
            dispatcher.observe(observed.prefix, self._changed, self._applied.clear)

    def _changed(self, change: Change) -> None:
        self._applied.pop(ObjectKey.parse(change.event.key).cluster, None)

    def of(self, cluster: str) -> Candidates:
        """Return the policies of *cluster* that have bindings."""
        bindings = self._bindings.within(cluster)
        if not bindings:
            return _NONE
        known = self._applied.get(cluster)
        if known is None:
            policies = self._policies.within(cluster)
            found = _applied(policies, bindings)
            known = self._applied[cluster] = Candidates(cluster, found)
        return known


class Candidates:
    """The policies of a cluster that have bindings.

    Most of them mean a type and an operation, whatever the object: that is found out once.
    """

    def __init__(self, cluster: str, policies: Iterable[Applied]) -> None:
        self._cluster = cluster
        self._policies = tuple(policies)
        self._by_type: dict[object, list[tuple[Applied, Judged | None]]] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def matching(self, subject: Subject) -> list[Judged]:
        """Return the policies that mean *subject*, by name."""
        key = (subject.operation, subject.subresource, subject.namespaced, *subject.resources)
        known = self._by_type.get(key)
        if known is None:
            if len(self._by_type) >= _MAX_TYPES:
                self._by_type.clear()
            known = self._by_type[key] = list(self._settled(subject))
        found = (judged or self._judged(applied, subject) for applied, judged in known)
        return [judged for judged in found if judged is not None]

    def _settled(self, subject: Subject) -> Iterator[tuple[Applied, Judged | None]]:
        """Give the policies that may mean such requests, judged where that settles it."""
        for applied in self._policies:
            judged = self._judged(applied, subject) if applied.by_type else None
            if judged is not None or not applied.by_type:
                yield applied, judged

    def _judged(self, applied: Applied, subject: Subject) -> Judged | None:
        resource = applied.match.matched(subject)
        if resource is None:
            return None
        bindings = [each for each in applied.bindings if each.match.matched(subject)]
        return Judged(applied, self._cluster, resource, bindings) if bindings else None


def _applied(policies: Mapping[str, Object], bindings: Mapping[str, Object]) -> Iterator[Applied]:
    bound: dict[str, list[Binding]] = {}
    for _, obj in sorted(bindings.items()):
        binding = binding_of(obj)
        bound.setdefault(binding.policy, []).append(binding)
    for name, obj in sorted(policies.items()):
        if name in bound:
            yield Applied(obj, bound[name])


_NONE: Final = Candidates("", ())


class PolicyAdmission:
    """Judges writes by the policies of their cluster; see the module's text."""

    def __init__(self, source: PolicySource, around: Surroundings) -> None:
        self._source = source
        self._around = around

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to judge by."""
        return not self._source.bound

    async def validate(self, operation: Operation, seen: Callable[[], Object]) -> None:
        """Raise the first denial; warn and note what other actions ask for."""
        found = self._in_force(operation)
        if not found:
            return
        around = self._around
        namespace = await namespace_of(operation, around.namespaces, around.store)
        subject = subject_of(operation, namespace)
        judged = _matching(found, subject)
        if judged:
            run = PolicyRun(around, replace(operation, obj=seen()), namespace)
            for number, each in enumerate(judged, 1):
                if not run.is_fine(each):
                    await run.judge(each)
                elif number % _POLICIES_PER_TURN == 0:
                    await asyncio.sleep(0)

    def _in_force(self, operation: Operation) -> list[Candidates]:
        """Return the policies that may concern *operation*, by their clusters."""
        call = operation.call
        cluster = call.info.cluster
        found = [self._source.of(cluster)]
        if call.resource.identity:
            exporter = self._around.exporter(call)
            if exporter and exporter != cluster:
                found.append(self._source.of(exporter))
        if not any(found) or operation.type in EXEMPT:
            return []
        if is_internal(operation) or self._around.inert(cluster, operation.obj):
            return []
        return found


def _matching(found: Sequence[Candidates], subject: Subject) -> list[Judged]:
    if len(found) == 1:
        return found[0].matching(subject)
    return [judged for each in found for judged in each.matching(subject)]
