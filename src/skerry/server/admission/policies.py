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
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class PolicySource:
    """The policies of every cluster that are bound, kept up from two observed types."""

    def __init__(self) -> None:
        self._policies = ObservedObjects(*POLICIES)
        self._bindings = ObservedObjects(*BINDINGS)
        # Empty where no policy is in force anywhere.
        self.bound: Mapping[tuple[str, str], object] = self._bindings.by_place
        self._applied: dict[str, tuple[Applied, ...]] = {}

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

    def of(self, cluster: str) -> Sequence[Applied]:
        """Return the policies of *cluster* that have bindings, by name."""
        bindings = self._bindings.within(cluster)
        if not bindings:
            return ()
        known = self._applied.get(cluster)
        if known is None:
            policies = self._policies.within(cluster)
            known = self._applied[cluster] = tuple(_applied(policies, bindings))
        return known


def _applied(policies: Mapping[str, Object], bindings: Mapping[str, Object]) -> Iterator[Applied]:
    bound: dict[str, list[Binding]] = {}
    for _, obj in sorted(bindings.items()):
        binding = binding_of(obj)
        bound.setdefault(binding.policy, []).append(binding)
    for name, obj in sorted(policies.items()):
        if name in bound:
            yield Applied(obj, bound[name])


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
        judged = list(_matching(found, subject))
        if judged:
            run = PolicyRun(around, replace(operation, obj=seen()), namespace)
            for number, each in enumerate(judged, 1):
                if not run.is_fine(each):
                    await run.judge(each)
                elif number % _POLICIES_PER_TURN == 0:
                    await asyncio.sleep(0)

    def _in_force(self, operation: Operation) -> list[tuple[str, Applied]]:
        """Return the policies that may concern *operation*, each with its cluster."""
        call = operation.call
        cluster = call.info.cluster
        found = [(cluster, each) for each in self._source.of(cluster)]
        if call.resource.identity:
            exporter = self._around.exporter(call)
            if exporter and exporter != cluster:
                found += [(exporter, each) for each in self._source.of(exporter)]
        if not found or operation.type in EXEMPT or self._around.inert(cluster, operation.obj):
            return []
        if is_internal(operation):
            return []
        return found


def _matching(found: Sequence[tuple[str, Applied]], subject: Subject) -> Iterator[Judged]:
    for cluster, applied in found:
        resource = applied.match.matched(subject)
        if resource is not None:
            bindings = [
                each
                for each in applied.bindings
                if each.match.matches_all or each.match.matched(subject)
            ]
            if bindings:
                yield Judged(applied, cluster, resource, bindings)
