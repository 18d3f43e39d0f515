"""The policies that mean one write, judged one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import orjson

from skerry.api.errors import (
    ApiError,
    Forbidden,
    Invalid,
    RequestEntityTooLarge,
    named,
    qualified,
)
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object, labels_of
from skerry.logic.machinery.admission.environment import Check, Verdict
from skerry.logic.machinery.admission.evaluation import (
    Denial,
    Inputs,
    Outcome,
    is_satisfied,
    judge,
)
from skerry.logic.machinery.admission.matching import match_of
from skerry.logic.machinery.admission.policies import Binding, Policy, policy_of
from skerry.logic.machinery.admission.remote import Verdicts, decoded, encoded
from skerry.logic.machinery.cel.typed import Scope
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.selectors import Selector
from skerry.logic.machinery.work import LongWork
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.admission.policy_inputs import inputs_of, objects_of
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode
from skerry.server.observed import ObservedObjects
from skerry.server.offload.messages import Check as CheckTask
from skerry.server.offload.offload import Offload
from skerry.server.request.call import Call
from skerry.server.request.options import WriteOptions
from skerry.server.request.versions import from_storage
from skerry.server.security.tokens import service_account_user
from skerry.store.base import Store

_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
# So many evaluations, each of up to a few milliseconds, before others are served.
_EVALUATIONS_PER_TURN: Final = 4
# What may be spent on a policy that probably has nothing to say: some 200 microseconds.
_QUICK_UNITS: Final = 2000
# Objects that a selector of parameters is held against at a time.
_PARAMS_PER_PAGE: Final = 100
# Beyond so many characters nothing is added to what the audit log gets of one request: a policy
# may be held against any number of parameters, or of objects that go together.
_MAX_NOTED: Final = 64 * 1024
# A policy may ask 28 times; its worker is asked again after each answer.
_MAX_ROUNDS: Final = 30

_ERRORS: Final[Mapping[str, type[ApiError]]] = {
    "Invalid": Invalid,
    "Forbidden": Forbidden,
    "RequestEntityTooLarge": RequestEntityTooLarge,
}


class Applied:
    """A policy with its bindings. It is compiled when it is first needed."""

    __slots__ = ("bindings", "by_type", "compiled", "heavy", "match", "raw")

    def __init__(self, raw: Object, bindings: Sequence[Binding]) -> None:
        self.raw = raw
        self.match = match_of((raw.get("spec") or {}).get("matchConstraints"))
        self.bindings = bindings
        # Whether the type of a request and what is done to it tell if it is meant.
        self.by_type = self.match.by_type and all(each.match.matches_all for each in bindings)
        # Compiling it takes too long for the loop: workers judge by it.
        self.heavy = False
        self.compiled: Policy | None = None

    def policy(self) -> Policy:
        """Return the policy compiled; within a limit of work this may take too long."""
        if self.compiled is None:
            self.compiled = policy_of(self.raw)
        return self.compiled


class Judged(NamedTuple):
    """A policy that means a request, by the type it means it, and those of its bindings that do."""

    applied: Applied
    cluster: str
    resource: GroupVersionResource
    bindings: Sequence[Binding]


class Types(Protocol):
    """Who knows the types of clusters."""

    def types(self, cluster: str) -> TypeSet:
        """Return what *cluster* serves now."""


def _never(_: str, __: Mapping[str, Any]) -> bool:
    return False


def _no_exporter(_: Call) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What policies look at beside the request.

    *inert* tells of objects that have no effect in a cluster; *exporter* returns the cluster that
    exports the type of a request, empty when it is the cluster's own.
    """

    store: Store
    types: Types
    namespaces: ObservedObjects
    authorizer: Authorizer
    offload: Offload
    inert: Callable[[str, Mapping[str, Any]], bool] = _never
    exporter: Callable[[Call], str] = _no_exporter


class _ConfigurationError(Exception):
    """A policy or binding cannot be applied as it stands; the text says why."""

    def __init__(self, why: str, *, of_policy: bool = False) -> None:
        super().__init__(f"failed to configure {'policy' if of_policy else 'binding'}: {why}")
        self.of_policy = of_policy


class PolicyRun:
    """All policies that mean one request."""

    def __init__(
        self, around: Surroundings, operation: Operation, namespace: Object | None
    ) -> None:
        self._around = around
        self._operation = operation
        self._namespace = namespace
        self._inputs: dict[GroupVersionResource, Inputs] = {}
        # What all policies without anything of their own look at; the object alone, and all.
        self._objects: dict[GroupVersionResource, Scope] = {}
        self._scopes: dict[GroupVersionResource, Scope] = {}
        self._evaluations = 0

    def is_fine(self, judged: Judged) -> bool:
        """Tell whether a policy plainly has nothing to say, as is nearly always so.

        False says nothing yet: then it is judged in full.
        """
        policy = judged.applied.compiled
        if policy is None or policy.shortcut is None:
            return False
        shortcut, resource = policy.shortcut, judged.resource
        scopes = self._objects if shortcut.objects_only else self._scopes
        scope = scopes.get(resource)
        if scope is None:
            if shortcut.objects_only:
                obj, old = objects_of(self._operation, resource)
                scope = {"object": obj, "oldObject": old}
            else:
                scope = self.inputs_at(resource).scope(self._decide)
            scopes[resource] = scope
        return is_satisfied(shortcut, scope, _QUICK_UNITS)

    async def judge(self, judged: Judged) -> None:
        name = judged.applied.raw["metadata"]["name"]
        fails_open = (judged.applied.raw.get("spec") or {}).get("failurePolicy") == "Ignore"
        for binding in judged.bindings:
            shown = f"ValidatingAdmissionPolicy '{name}' with binding '{binding.name}'"
            try:
                params = await self._params(judged, binding)
            except _ConfigurationError as error:
                if not fails_open:
                    about = f"ValidatingAdmissionPolicy '{name}'" if error.of_policy else shown
                    raise self._refusal(about, Denial(str(error))) from error
                continue
            for each in params:
                outcome = await self._evaluated(judged, each)
                self._act(name, shown, binding, outcome)

    # Parameters.

    async def _params(self, judged: Judged, binding: Binding) -> Sequence[Object | None]:
        kind = (judged.applied.raw.get("spec") or {}).get("paramKind")
        reference = binding.params
        if not kind or reference is None:
            return [None]
        found = self._around.types.types(judged.cluster).by_kind.get(
            (kind["apiVersion"], kind["kind"])
        )
        if found is None:
            group, _, version = kind["apiVersion"].rpartition("/")
            shown = f"{group}/{version}, Kind={kind['kind']}"
            why = f"failed to find resource referenced by paramKind: '{shown}'"
            raise _ConfigurationError(why, of_policy=True)
        namespace = self._params_namespace(found, reference)
        params = await self._found_params(judged.cluster, found, namespace, reference)
        if not params:
            if reference.get("parameterNotFoundAction") == "Allow":
                return []
            why = "no params found for policy binding with `Deny` parameterNotFoundAction"
            raise _ConfigurationError(why)
        return params

    def _params_namespace(self, kind: Resource, reference: Mapping[str, Any]) -> str:
        wanted = reference.get("namespace") or ""
        if not kind.info.namespaced:
            if wanted:
                why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                raise _ConfigurationError(why)
            return ""
        namespace: str = wanted or self._operation.call.namespace
        if not namespace:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped"
            raise _ConfigurationError(f"{why} resources")
        return namespace

    async def _found_params(
        self, cluster: str, kind: Resource, namespace: str, reference: Mapping[str, Any]
    ) -> list[Object | None]:
        store, stored = self._around.store, (kind.stored_group, kind.storage_resource)
        name = reference.get("name")
        if name:
            entry = await store.get(ObjectKey(*stored, cluster, namespace, name).path())
            return (
                [] if entry is None else [from_storage(kind, decode(entry.value, entry.revision))]
            )
        selector = Selector.from_label_selector(reference.get("selector") or {})
        prefix = type_prefix(*stored, cluster, namespace, scoped=True)
        found: list[Object | None] = []
        after = ""
        while True:
            page = await store.range(prefix, limit=_PARAMS_PER_PAGE, after=after)
            for entry in page.entries:
                obj = decode(entry.value, entry.revision)
                if selector.matches(labels_of(obj)):
                    found.append(from_storage(kind, obj))
            if not page.more:
                return found
            after = page.entries[-1].key
            await asyncio.sleep(0)

    # Evaluation.

    async def outcome(self, judged: Judged) -> Outcome:
        """Return what a policy without parameters finds, and do nothing about it."""
        return await self._evaluated(judged, None)

    async def _evaluated(self, judged: Judged, params: Object | None) -> Outcome:
        self._evaluations += 1
        if self._evaluations % _EVALUATIONS_PER_TURN == 0:
            await asyncio.sleep(0)
        inputs = self.inputs_at(judged.resource)
        applied, offload = judged.applied, self._around.offload
        if not applied.heavy:
            try:
                policy = applied.compiled or offload.short(applied.policy)
            except LongWork:
                applied.heavy = True
            else:
                try:
                    return offload.short(lambda: judge(policy, inputs, params, self._decide))
                except LongWork:
                    pass
        return await self._evaluated_by_worker(applied, inputs, params)

    async def _evaluated_by_worker(
        self, applied: Applied, inputs: Inputs, params: Object | None
    ) -> Outcome:
        worker = self._around.offload.worker(self._operation.call, WriteOptions())
        if worker is None:
            # A type that only this process knows: it takes as long as its limits allow.
            return judge(applied.policy(), inputs, params, self._decide)
        verdicts: Verdicts = []
        for _ in range(_MAX_ROUNDS):
            task = CheckTask("policy", encoded(applied.raw, inputs, params, verdicts))
            answer = decoded((await worker.do(task)).text)
            if isinstance(answer, Outcome):
                return answer
            verdicts.append((answer, self._decide(answer)))
        return Outcome([Denial("too many questions to the authorizer")])

    def inputs_at(self, resource: GroupVersionResource) -> Inputs:
        """Return what is seen of the request when its type is called *resource*."""
        known = self._inputs.get(resource)
        if known is None:
            known = self._inputs[resource] = inputs_of(self._operation, resource, self._namespace)
        return known

    def _decide(self, check: Check) -> Verdict:
        call = self._operation.call
        cluster, user = call.info.cluster, call.user
        if check.account is not None:
            user = service_account_user(*check.account, cluster=cluster)
            user = msgspec.structs.replace(user, groups=(*user.groups, "system:authenticated"))
        if check.path:
            asked = Attributes(cluster, check.verb, path=check.path)
        else:
            asked = Attributes(
                cluster,
                check.verb,
                check.group,
                "*",
                check.resource,
                check.subresource,
                check.namespace,
                check.name,
            )
        decision = self._around.authorizer.authorize(user, asked)
        return Verdict(decision.allowed, decision.reason)

    # What follows from it.

    def _act(self, policy: str, shown: str, binding: Binding, outcome: Outcome) -> None:
        operation = self._operation
        for key, value in outcome.annotations:
            _note_annotation(operation, key, value)
        for denial in outcome.denials:
            if "Deny" in binding.actions:
                raise self._refusal(shown, denial)
            if "Warn" in binding.actions:
                operation.warn(f"Validation failed for {shown}: {denial.message}")
            if "Audit" in binding.actions:
                _note_failure(operation, policy, binding, denial)

    def _refusal(self, shown: str, denial: Denial) -> ApiError:
        operation = self._operation
        group, resource = operation.type
        name = operation.name or "Unknown"
        said = f"{shown} denied request: {denial.message}"
        return _ERRORS.get(denial.reason, Invalid)(
            f'{qualified(group, resource)} "{name}" is forbidden: {said}',
            details={**named(group, resource, name), "causes": [{"message": said}]},
        )


def _note_annotation(operation: Operation, key: str, value: str) -> None:
    """Note a value once: also where several parameters, or a second attempt, find the same."""
    before = operation.noted(key)
    if before is None:
        operation.note(key, value)
    elif len(before) < _MAX_NOTED and value not in before.split(", "):
        operation.note(key, f"{before}, {value}")


def _note_failure(operation: Operation, policy: str, binding: Binding, denial: Denial) -> None:
    before = operation.noted(_FAILURES) or "[]"
    known = orjson.loads(before)
    failure = {
        "message": denial.message,
        "policy": policy,
        "binding": binding.name,
        "expressionIndex": denial.index,
        "validationActions": list(binding.actions),
    }
    if len(before) < _MAX_NOTED and failure not in known:
        operation.note(_FAILURES, orjson.dumps([*known, failure]).decode())
