"""Binding and eviction of pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid, TooManyRequests
from skerry.api.keys import type_prefix
from skerry.kit.clock import Clock, rfc3339
from skerry.logic.resource import Object
from skerry.logic.selectors import Selector
from skerry.server.codec import decode, dump, encode
from skerry.server.http.message import Answer, Response
from skerry.server.rest.body import decode_body
from skerry.server.rest.call import Call, member
from skerry.server.rest.delete import Deleter
from skerry.server.rest.options import delete_options, write_options
from skerry.server.rest.write import Writer
from skerry.store.base import Store, Write

_SUCCESS = dump({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})


def _sent(call: Call) -> Object:
    request = call.request
    return decode_body(request.body, request.headers.get("content-type", ""))


class BindingHandler:
    """Assigns a pod to a node; also served as the ``bindings`` collection."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def handle(self, call: Call) -> Answer:
        """Answer a POST to pods/NAME/binding."""
        binding = _sent(call)
        if (name := member(binding, "metadata", "name")) and name != call.info.name:
            raise BadRequest("name in URL does not match name in Binding object")
        return await self._bind(call, binding)

    async def collection(self, call: Call) -> Answer:
        """Answer a POST to the ``bindings`` of a namespace: the body names the pod."""
        binding = _sent(call)
        name = member(binding, "metadata", "name")
        pods = call.types.find("", "v1", "pods")
        if not isinstance(name, str) or not name or pods is None:
            raise BadRequest("name must be provided")
        info = replace(call.info, resource="pods", name=name, subresource="binding")
        return await self._bind(replace(call, info=info, resource=pods), binding)

    async def _bind(self, call: Call, binding: Object) -> Answer:
        node = member(binding, "target", "name")
        if not node:
            error = FieldError.required("target.name")
            raise Invalid.of("", "Binding", call.info.name, [error])
        kind = member(binding, "target", "kind") or "Node"
        if kind not in ("Node", "Minion"):
            error = FieldError.not_supported("target.kind", kind, ["Node", "<empty>"])
            raise Invalid.of("", "Binding", call.info.name, [error])
        options = write_options(call.request, "CreateOptions")
        mutate = self._assignment(call, binding, str(node))
        await self._writer.change(call, options, mutate, subresource="binding")
        return Response(status=201, body=_SUCCESS)

    def _assignment(
        self, call: Call, binding: Object, node: str
    ) -> Callable[[Callable[[], Object]], Object]:
        metadata = binding.get("metadata") or {}

        def mutate(live: Callable[[], Object]) -> Object:
            pod = live()
            self._refuse(call, pod, metadata, node)
            pod["spec"]["nodeName"] = node
            if metadata.get("annotations"):
                pod["metadata"].setdefault("annotations", {}).update(metadata["annotations"])
            _set_condition(
                pod,
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": rfc3339(self._clock.now()),
                },
            )
            return pod

        return mutate

    def _refuse(self, call: Call, pod: Object, sent: dict[str, Any], node: str) -> None:
        metadata, name = pod["metadata"], call.info.name
        if (uid := sent.get("uid")) and uid != metadata["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            raise Conflict.of("", "pods/binding", name, why + metadata["uid"])
        if "deletionTimestamp" in metadata:
            why = f"pod {name} is being deleted, cannot be assigned to a host"
            raise Conflict.of("", "pods/binding", name, why)
        if assigned := pod["spec"].get("nodeName"):
            why = f'pod {name} is already assigned to node "{assigned}"'
            raise Conflict.of("", "pods/binding", name, why)
        if pod["spec"].get("schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
            raise Conflict.of("", "pods/binding", name, why)


def _set_condition(pod: Object, condition: dict[str, Any]) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    kept = [c for c in conditions if c.get("type") != condition["type"]]
    pod["status"]["conditions"] = [*kept, condition]


class EvictionHandler:
    """Deletes a pod unless a disruption budget stands against it."""

    def __init__(self, store: Store, deleter: Deleter) -> None:
        self._store = store
        self._deleter = deleter

    async def handle(self, call: Call) -> Answer:
        """Answer a POST to pods/NAME/eviction."""
        eviction = _sent(call)
        if (name := member(eviction, "metadata", "name")) and name != call.info.name:
            raise BadRequest("name in URL does not match name in Eviction object")
        entry = await self._store.get(call.key().path())
        if entry is None:
            raise call.not_found()
        pod = decode(entry.value, entry.revision)
        options = delete_options(call.request, eviction.get("deleteOptions") or {})
        phase = member(pod, "status", "phase")
        if phase not in ("Succeeded", "Failed", "Pending") and not options.dry_run:
            await self._charge(call, pod)
        await self._deleter.delete_object(call, options)
        return Response(status=201, body=_SUCCESS)

    async def _charge(self, call: Call, pod: Object) -> None:
        """Take one disruption from the pod's budget, if it has one."""
        budgets = await self._budgets(call, pod)
        if not budgets:
            return
        if len(budgets) > 1:
            raise BadRequest(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        key, revision, budget = budgets[0]
        status = budget.setdefault("status", {})
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            error = TooManyRequests(
                "Cannot evict pod as it would violate the pod's disruption budget.", 10
            )
            name = budget["metadata"]["name"]
            needed = status.get("desiredHealthy", 0)
            healthy = status.get("currentHealthy", 0)
            error.details["causes"] = [
                {
                    "reason": "DisruptionBudget",
                    "message": f"The disruption budget {name} needs {needed} healthy pods and has "
                    f"{healthy} currently",
                }
            ]
            raise error
        status["disruptionsAllowed"] = allowed - 1
        await self._store.commit([Write(key, encode(budget), expected=revision)])

    async def _budgets(self, call: Call, pod: Object) -> list[tuple[str, int, Object]]:
        prefix = type_prefix("policy", "poddisruptionbudgets", call.info.cluster, call.namespace)
        found = []
        for entry in (await self._store.range(prefix)).entries:
            budget = decode(entry.value, entry.revision)
            selector = Selector.from_label_selector(member(budget, "spec", "selector"))
            if selector.matches(pod["metadata"].get("labels")):
                found.append((entry.key, entry.revision, budget))
        return found


class FinalizeHandler:
    """PUT of namespaces/NAME/finalize: the only way to change a namespace's spec."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def handle(self, call: Call) -> Answer:
        """Answer with the namespace, or with its last state once nothing holds it."""
        sent = _sent(call)
        finalizers = member(sent, "spec", "finalizers") or []
        wanted = member(sent, "metadata", "resourceVersion") or ""
        options = write_options(call.request, "UpdateOptions")

        def mutate(live: Callable[[], Object]) -> Object:
            namespace = live()
            namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
            return namespace

        written = await self._writer.change(
            call, options, mutate, resource_version=wanted, subresource="finalize"
        )
        return self._writer.answer(call, written)
