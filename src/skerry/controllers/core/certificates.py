"""Signs approved requests for certificates, and approves those of kubelets that may have one.

Reads CertificateSigningRequests of Kubernetes' own signers. Writes ``status.certificate``, the
condition ``Failed`` where there is none to be had, and ``Approved`` for kubelets whose right to it
a SubjectAccessReview says. Everything else waits for a person.

Invariant: a request that is approved and not failed gets a certificate, once.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.certificate_signers import SIGNERS, Subject, approvals
from skerry.logic.machinery.plan import NOTHING, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.workqueue import WorkQueue

NAME = "certificatesigningrequest-controller"
REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
_REVIEWS = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
_REQUESTER = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Signing:
    """How requests are read and signed: whom one is for; the certificate, or why there is none."""

    subject: Callable[[Spec], Subject]
    signed: Callable[[Spec], tuple[bytes, str]]


# -- observe and decide -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """A request, why it may be approved without a person, if so, and what signing came to."""

    obj: Object
    approval: str = ""
    certificate: bytes = b""
    failure: str = ""


def is_open(obj: Object) -> bool:
    """Tell whether one of our signers still has to do with a request."""
    status = obj.get("status") or {}
    found = {each.get("type") for each in status.get("conditions") or ()}
    return (
        (obj.get("spec") or {}).get("signerName") in SIGNERS
        and not status.get("certificate")
        and found.isdisjoint(("Denied", "Failed"))
    )


def is_approved(obj: Object) -> bool:
    """Tell whether somebody approved a request."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Approved" for each in conditions)


def decide(observed: Observed) -> Plan:
    """Write down what was found."""
    obj = observed.obj
    status = obj.get("status") or {}
    target = Target(REQUESTS, obj["metadata"]["name"])

    def with_condition(kind: str, reason: str, message: str, subresource: str) -> Plan:
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        conditions = [*(status.get("conditions") or ()), condition]
        changed = {**obj, "status": {**status, "conditions": conditions}}
        return Plan([Update(target, changed, reason, subresource=subresource)])

    if observed.approval:
        return with_condition("Approved", "AutoApproved", observed.approval, "approval")
    if observed.failure:
        return with_condition("Failed", "SignerValidationFailure", observed.failure, "status")
    if not observed.certificate:
        return NOTHING
    encoded = base64.b64encode(observed.certificate).decode()
    changed = {**obj, "status": {**status, "certificate": encoded}}
    return Plan([Update(target, changed, "Signed", subresource="status")])


# -- controller -------------------------------------------------------------------------------


async def _approval(client: Client, obj: Object, signing: Signing) -> str:
    """Return why the sender of a request may have it approved at once; empty if it may not."""
    spec = obj["spec"]
    for subresource, sentence in approvals(spec, signing.subject(spec)):
        requester = {name: spec[field] for name, field in _REQUESTER.items() if field in spec}
        attributes = {
            "group": REQUESTS.group,
            "version": "*",
            "resource": REQUESTS.resource,
            "subresource": subresource,
            "verb": "create",
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {**requester, "resourceAttributes": attributes},
        }
        answer = await client.create(_REVIEWS, review)
        if (answer.get("status") or {}).get("allowed"):
            return sentence
    return ""


def build(context: ControllerContext, signing: Signing) -> Controller[Key, Observed]:
    """Return the controller."""
    requests = context.factory.informer(REQUESTS)
    queue: WorkQueue[Key] = context.queue(NAME)

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None and is_open(new):
            queue.add(key_of(new))

    requests.add_handler(handle)

    async def observe(key: Key) -> Observed | None:
        obj = requests.index.get(key)
        if obj is None or not is_open(obj):
            return None
        if not is_approved(obj):
            return Observed(obj, approval=await _approval(context.client, obj, signing))
        certificate, failure = signing.signed(obj["spec"])
        return Observed(obj, certificate=certificate, failure=failure)

    reconciler = Reconciler(observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [requests])
