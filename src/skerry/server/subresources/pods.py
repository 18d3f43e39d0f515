"""Binding of pods, and the end of namespaces."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import set_conditions
from skerry.logic.machinery.decoding import Limits
from skerry.server.admission.requests import RequestJudge
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Response
from skerry.server.preparation import prepare
from skerry.server.preparation.pipeline import LiveObject, Mutate, Mutation, required
from skerry.server.request.body import decode_body
from skerry.server.request.call import Call, member
from skerry.server.request.options import WriteOptions, write_options
from skerry.server.rest.write import Writer

# A namespace with as many labels and annotations as it may have.
_LIMITS = Limits(nodes=10_000)
_SUCCESS = dump(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


class BindingHandler:
    """Assigns a pod to a node; also served as the ``bindings`` collection."""

    def __init__(self, writer: Writer, clock: Clock, judge: RequestJudge) -> None:
        self._writer = writer
        self._clock = clock
        self._judge = judge

    async def handle(self, call: Call) -> Answer:
        """Answer a POST to pods/NAME/binding."""
        options, binding = await self._asked(call)
        if (name := member(binding, "metadata", "name")) and name != call.info.name:
            raise BadRequest("name in URL does not match name in Binding object")
        return await self._bind(call, binding, options, call)

    async def collection(self, call: Call) -> Answer:
        """Answer a POST to the ``bindings`` of a namespace: the body names the pod."""
        options, binding = await self._asked(call)
        name = member(binding, "metadata", "name")
        pods = call.types.find("", "v1", "pods")
        if not isinstance(name, str) or not name or pods is None:
            raise BadRequest("name must be provided")
        info = replace(call.info, resource="pods", name=name, subresource="binding")
        return await self._bind(replace(call, info=info, resource=pods), binding, options, call)

    async def _asked(self, call: Call) -> tuple[WriteOptions, Object]:
        """Return what was asked for, as clients' rules change it."""
        binding = {"target": {}, **prepare.sent_as(call.request, prepare.BINDING)}
        options = write_options(call.request, "CreateOptions")
        return options, await self._judge.changed(call, binding, dry_run=options.dry_run)

    async def _bind(
        self, call: Call, binding: Object, options: WriteOptions, asked: Call
    ) -> Answer:
        """Bind the pod that *call* is about; clients' rules judge it as it was *asked* for."""
        node = member(binding, "target", "name")
        if not node:
            error = FieldError.required("target.name")
            raise Invalid.of("", "Binding", call.info.name, [error])
        kind = member(binding, "target", "kind") or "Node"
        if kind not in ("Node", "Minion"):
            error = FieldError.not_supported("target.kind", kind, ["Node", "<empty>"])
            raise Invalid.of("", "Binding", call.info.name, [error])
        await self._judge.judge(asked, binding, dry_run=options.dry_run)
        # As in Kubernetes, whoever binds does not come to own the pod's node name.
        assignment = self._assignment(call, binding, str(node))
        mutation = Mutation(assignment, tracked=True, trusted=True, sparing=True)
        work = self._writer.own_work(call, options, mutation)
        await self._writer.change(call, options, work, subresource="binding")
        return Response(status=201, body=_SUCCESS)

    def _assignment(self, call: Call, binding: Object, node: str) -> Mutate:
        metadata = binding.get("metadata") or {}

        def mutate(live: LiveObject) -> Object:
            pod = required(live)
            self._refuse(call, pod, metadata, node)
            known, status = pod["metadata"], pod.get("status") or {}
            annotations = {
                **(known.get("annotations") or {}),
                **(metadata.get("annotations") or {}),
            }
            scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            conditions = set_conditions(
                status.get("conditions") or (), [scheduled], rfc3339(self._clock.now())
            )
            return {
                **pod,
                "metadata": {**known, "annotations": annotations} if annotations else {**known},
                "spec": {**pod["spec"], "nodeName": node},
                "status": {**status, "conditions": conditions},
            }

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


class FinalizeHandler:
    """PUT of namespaces/NAME/finalize: the only way to change a namespace's spec."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def handle(self, call: Call) -> Answer:
        """Answer with the namespace, or with its last state once nothing holds it."""
        request = call.request
        sent = decode_body(request.body, request.headers.get("content-type", ""), _LIMITS)
        prepare.recognise(call, sent)
        prepare.conform(call, sent, write_options(request, "UpdateOptions"))
        finalizers = member(sent, "spec", "finalizers") or []
        wanted = member(sent, "metadata", "resourceVersion") or ""
        options = write_options(call.request, "UpdateOptions")

        def mutate(live: LiveObject) -> Object:
            namespace = required(live)
            namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
            return namespace

        work = self._writer.own_work(call, options, Mutation(mutate, resource_version=wanted))
        written = await self._writer.change(call, options, work, subresource="finalize")
        return await self._writer.answer(call, written)
