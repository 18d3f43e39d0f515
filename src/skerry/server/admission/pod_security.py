"""PodSecurity: refuses, notes and warns of pods that break the level of their Namespace.

Runs after everything that changes pods and before quota. Objects that are *inert* here (copies on
their way to an edge) are judged where they take effect, and an inert Namespace asks for nothing.
Which objects of a cluster are inert is not for whoever writes them to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.keys import type_prefix
from skerry.api.objects import Object, labels_of
from skerry.logic.machinery.pod_security.configuration import PodSecurityConfiguration
from skerry.logic.machinery.pod_security.evaluation import detail_of, violations
from skerry.logic.machinery.pod_security.namespaces import (
    ExistingPods,
    exemption_warning,
    prioritized,
    tightens,
)
from skerry.logic.machinery.pod_security.policy import PREFIX, LevelVersion, Policy, policy_of
from skerry.logic.machinery.pod_security.subjects import (
    IGNORED_SUBRESOURCES,
    TEMPLATES,
    is_significant,
    template_of,
)
from skerry.logic.machinery.pod_security.violation import Violation
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store

_PODS, _NAMESPACES = ("", "pods"), ("", "namespaces")
_CONCERNED = frozenset({_PODS, _NAMESPACES, *TEMPLATES})
# About two milliseconds of decoding and checking between which others are served.
_PODS_PER_STEP = 25


def _never(_: str, __: Mapping[str, Any]) -> bool:
    return False


class PodSecurityAdmission:
    """See the module's text."""

    TYPES: ClassVar = _CONCERNED

    def __init__(
        self,
        store: Store,
        namespaces: ObservedObjects,
        configuration: PodSecurityConfiguration,
        inert: Callable[[str, Mapping[str, Any]], bool] = _never,
    ) -> None:
        self._store = store
        self._namespaces = namespaces
        self._configuration = configuration
        self._inert = inert

    async def admit(self, operation: Operation) -> None:
        kind = operation.type
        if kind not in _CONCERNED or operation.verb == "DELETE":
            return
        if self._inert(operation.call.info.cluster, operation.obj):
            return
        if kind == _NAMESPACES:
            await self._admit_namespace(operation)
        elif kind == _PODS:
            await self._admit_pod(operation)
        elif not operation.subresource:
            await self._admit_template(operation)

    # Pods, and what makes them.

    async def _admit_pod(self, operation: Operation) -> None:
        if operation.subresource in IGNORED_SUBRESOURCES or self._is_exempt(operation):
            return
        pod, old = operation.obj, operation.old
        if old is not None and not is_significant(pod, old):
            return
        policy, errors = await self._policy(operation)
        if not policy.is_privileged or errors:
            metadata, spec = pod["metadata"], pod.get("spec") or {}
            self._evaluate(operation, policy, errors, metadata, spec, enforced=True)

    async def _admit_template(self, operation: Operation) -> None:
        template = template_of(operation.type, operation.obj)
        if template is None or self._is_exempt(operation):
            return
        policy, errors = await self._policy(operation)
        if errors or policy.audit.level != "privileged" or policy.warn.level != "privileged":
            metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
            self._evaluate(operation, policy, errors, metadata, spec, enforced=False)

    def _is_exempt(self, operation: Operation) -> bool:
        call, configuration = operation.call, self._configuration
        if call.namespace in configuration.namespaces:
            operation.note(f"{PREFIX}exempt", "namespace")
        elif call.user.principal in configuration.usernames:
            operation.note(f"{PREFIX}exempt", "user")
        else:
            return False
        return True

    async def _policy(self, operation: Operation) -> tuple[Policy, list[FieldError]]:
        call = operation.call
        cluster = call.info.cluster
        namespace = await self._namespaces.find(self._store, cluster, call.namespace) or {}
        if self._inert(call.info.cluster, namespace):
            return Policy(), []
        labels = (namespace.get("metadata") or {}).get("labels") or {}
        return policy_of(labels, self._configuration.defaults)

    def _evaluate(
        self,
        operation: Operation,
        policy: Policy,
        errors: list[FieldError],
        metadata: Mapping[str, Any],
        spec: Object,
        *,
        enforced: bool,
    ) -> None:
        if spec.get("runtimeClassName") in self._configuration.runtime_classes:
            operation.note(f"{PREFIX}exempt", "runtimeClass")
            return
        if errors:
            faults = ", ".join(map(str, errors))
            operation.note(f"{PREFIX}error", f"Failed to parse policy: {faults}")
        known: dict[LevelVersion, list[Violation]] = {}

        def found(wanted: LevelVersion) -> str:
            if wanted not in known:
                known[wanted] = violations(wanted, metadata, spec)
            return detail_of(known[wanted])

        if detail := found(policy.audit):
            text = f'would violate PodSecurity "{policy.audit}": {detail}'
            operation.note(f"{PREFIX}audit-violations", text)
        if enforced:
            operation.note(f"{PREFIX}enforce-policy", str(policy.enforce))
            if detail := found(policy.enforce):
                why = f'violates PodSecurity "{policy.enforce}": {detail}'
                group, resource = operation.type
                raise Forbidden.of(group, resource, operation.obj["metadata"]["name"], why)
        if detail := found(policy.warn):
            operation.warn(f'would violate PodSecurity "{policy.warn}": {detail}')

    # Namespaces.

    async def _admit_namespace(self, operation: Operation) -> None:
        if operation.subresource:
            return
        new, old = operation.obj, operation.old
        labels, name = labels_of(new), new["metadata"].get("name", "")
        defaults = self._configuration.defaults
        policy, errors = policy_of(labels, defaults)
        before, former = policy_of(labels_of(old or {}), defaults)
        if errors and (old is None or errors != former):
            raise Invalid.of("", "Namespace", name, errors)
        if old is not None and not tightens(policy.enforce, before.enforce):
            return
        if name in self._configuration.namespaces:
            if text := exemption_warning(name, policy, labels, defaults):
                operation.warn(text)
        elif old is not None:
            await self._warn_of_existing(operation, name, policy.enforce)

    async def _warn_of_existing(
        self, operation: Operation, namespace: str, enforce: LevelVersion
    ) -> None:
        """Warn of pods that would be refused now; they stay, and their successors will not come."""
        prefix = type_prefix("", "pods", operation.call.info.cluster, namespace)
        limit = self._configuration.max_pods_checked
        page = await self._store.range(prefix, limit=limit)
        pods: list[Object] = []
        for number, entry in enumerate(page.entries):
            pod = decode(entry.value, entry.revision)
            if not self._inert(operation.call.info.cluster, pod):
                pods.append(pod)
            if number % _PODS_PER_STEP == 0:
                await asyncio.sleep(0)
        found = ExistingPods(namespace, enforce)
        chosen = prioritized(pods, self._configuration.runtime_classes)
        for number, pod in enumerate(chosen):
            found.check(pod)
            if number % _PODS_PER_STEP == 0:
                await asyncio.sleep(0)
        total = len(chosen)
        if page.more:
            total += await self._store.count(prefix) - len(page.entries)
        for text in found.warnings(total):
            operation.warn(text)
