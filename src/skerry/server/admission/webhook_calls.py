"""Calling one webhook about one write: whether it is meant, what it is asked, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson

from skerry.api.errors import ApiError, BadRequest, Denied, Forbidden, InternalError, Timeout
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.logic.machinery.admission.webhooks import (
    SELECTED,
    CallFailed,
    Response,
    Webhook,
    denial_of,
    response_of,
    review_of,
)
from skerry.logic.machinery.durations import DurationError, parse_duration
from skerry.logic.machinery.reviews import REVIEW_VERSIONS
from skerry.server.admission.operation import Operation
from skerry.server.admission.policy_run import Applied, Judged, PolicyRun, Surroundings
from skerry.server.admission.subjects import subject_of
from skerry.server.admission.webhook_metrics import WebhookMetrics
from skerry.server.conversion import completed, later
from skerry.server.preparation.pipeline import Stamp
from skerry.server.request.call import Call
from skerry.server.webhook_client import UnusableClient, WebhookClient, WebhookError, reviewed

# All webhooks of a request together; kube-apiserver's figure for requests that write.
_TOTAL_SECONDS: Final = 34.0
_FAILED_OPEN: Final = "failed-open."


class Hook:
    """A webhook of a cluster; its match conditions are compiled when they are first needed."""

    __slots__ = ("cluster", "conditions", "webhook")

    def __init__(self, cluster: str, webhook: Webhook) -> None:
        self.cluster = cluster
        self.webhook = webhook
        conditions = webhook.conditions
        self.conditions = None if conditions is None else Applied(conditions, ())


@dataclass(frozen=True, slots=True)
class Step:
    """One of the two kinds of webhooks, by its names in metrics and in the audit log."""

    metric: str
    prefix: str
    mutating: bool


ADMIT: Final = Step("admit", "mutation.webhook.admission.k8s.io/", mutating=True)
VALIDATE: Final = Step("validating", "validating.webhook.admission.k8s.io/", mutating=False)


@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """What every call needs. *stamp* marks what webhooks are shown as it is marked when stored."""

    client: WebhookClient
    around: Surroundings
    ids: IdSource
    stamp: Stamp
    metrics: WebhookMetrics | None = None

    async def meant(
        self, hook: Hook, operation: Operation, run: PolicyRun, namespace: Object | None, step: Step
    ) -> GroupVersionResource | None:
        """Return the type by which *hook* means *operation*; None when it does not."""
        resource = hook.webhook.match.matched(subject_of(operation, namespace))
        if resource is None:
            return None
        if operation.call.resource.webhook is not None:
            # What a conversion webhook must say is asked for before anybody is called.
            await completed(later(partial(run.inputs_at, resource)))
        if hook.conditions is None:
            return resource
        outcome = await run.outcome(Judged(hook.conditions, hook.cluster, resource, ()))
        name, verb = hook.webhook.name, operation.verb
        if not outcome.denials:
            if self.metrics is not None:
                self.metrics.excluded(name, step.metric, verb)
            return None
        why = outcome.denials[0].message
        if why != SELECTED:
            if self.metrics is not None:
                self.metrics.erroneous(name, step.metric, verb)
            group, kind = operation.type
            named = operation.name
            raise Forbidden.of(group, kind, named, why)
        return resource

    async def ask(
        self,
        hook: Hook,
        operation: Operation,
        run: PolicyRun,
        resource: GroupVersionResource,
        step: Step,
        place: str,
    ) -> Response | None:
        """Return what a webhook that allows has to say; None when its failure is ignored.

        Raises what its refusal, or its failure, becomes. *place* is its place in the order.
        """
        webhook, began = hook.webhook, asyncio.get_running_loop().time()

        def ended(code: int, error: str = "") -> None:
            if self.metrics is None:
                return
            seconds = asyncio.get_running_loop().time() - began
            labels = (webhook.name, step.metric, operation.verb)
            self.metrics.answered(*labels, seconds, code, rejected=bool(error))
            if error:
                self.metrics.rejected(*labels, error, code if error == "no_error" else 0)

        if operation.dry_run and not webhook.harmless:
            ended(0, "apiserver_internal_error")
            raise BadRequest(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            response = await self._response(hook, operation, run, resource, step)
        except (CallFailed, WebhookError) as error:
            ended(500, "" if webhook.fails_open else "calling_webhook_error")
            if not webhook.fails_open:
                why = f'failed calling webhook "{webhook.name}": {error}'
                raise InternalError.of(why) from error
            self._fail_open(webhook, operation, step, place)
            return None
        for text in response.warnings:
            operation.warn(text)
        for key, value in response.annotations.items():
            operation.note(f"{webhook.name}/{key}", value)
        if not response.allowed:
            refusal = Denied(*denial_of(webhook, response.status))
            ended(refusal.code, "no_error")
            raise refusal
        ended(200)
        return response

    def _fail_open(self, webhook: Webhook, operation: Operation, step: Step, place: str) -> None:
        operation.note(f"{_FAILED_OPEN}{step.prefix}{place}", webhook.name)
        if self.metrics is not None:
            self.metrics.failed_open(webhook.name, step.metric)

    async def _response(
        self,
        hook: Hook,
        operation: Operation,
        run: PolicyRun,
        resource: GroupVersionResource,
        step: Step,
    ) -> Response:
        webhook = hook.webhook
        if not webhook.version:
            known = ", ".join(REVIEW_VERSIONS)
            why = f"webhook does not accept known AdmissionReview versions ({known})"
            raise CallFailed(f"could not create admission objects: {why}")
        inputs, uid = run.inputs_at(resource), self.ids.uid()
        cluster = operation.call.info.cluster
        shown = (self.stamped(each, cluster) for each in (inputs.object, inputs.old_object))
        body = review_of(webhook, uid, inputs.request, *shown)
        seconds = min(float(webhook.seconds), _left(operation.call))
        try:
            answer = await reviewed(self.client, webhook.client, hook.cluster, body, seconds)
        except UnusableClient as error:
            raise CallFailed(f"could not get REST client: {error}") from error
        except WebhookError as error:
            _left(operation.call)
            raise CallFailed(f"failed to call webhook: {error}") from error
        return response_of(webhook, uid, answer, mutating=step.mutating)

    def stamped(self, obj: Object | None, cluster: str) -> Object | None:
        """Return *obj* as webhooks are shown it."""
        if obj is None or "metadata" not in obj:
            return obj
        metadata = dict(obj["metadata"])
        if "annotations" in metadata:
            metadata["annotations"] = dict(metadata["annotations"] or {})
        shown = {**obj, "metadata": metadata}
        self.stamp.put(shown, cluster)
        return shown


def _left(call: Call) -> float:
    """Return how many seconds the webhooks of a request still have; ``Timeout`` if none."""
    now = asyncio.get_running_loop().time()
    if not call.deadline:
        seconds = _TOTAL_SECONDS
        if wanted := call.request.query.get("timeout"):
            try:
                seconds = min(seconds, parse_duration(wanted) / 1e9 or seconds)
            except DurationError:
                seconds = _TOTAL_SECONDS
        call.deadline = now + seconds
    left = call.deadline - now
    if left <= 0:
        why = "request did not complete within requested timeout"
        raise Timeout(f"Timeout: {why} - context deadline exceeded")
    return left


def mutation_note(hook: Hook, *, changed: bool) -> str:
    """Return what the audit log says of one call of a mutating webhook."""
    webhook = hook.webhook
    said = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
    return orjson.dumps(said).decode()


def first_error(found: Sequence[ApiError | None]) -> ApiError | None:
    """Return the error of the first webhook, by their order, that has one."""
    return next((each for each in found if each is not None), None)
