"""Admission webhooks as data: what a configuration says, what is sent, what an answer means.

A webhook is asked with an ``AdmissionReview`` and answers with one. What it answers is believed
only if it is about this very request (``uid``) and of the version that was sent; anything else is
a failure to call it, which its failure policy decides about. The sentences are kube-apiserver's.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.admission.matching import EXEMPT, Match, match_of
from skerry.logic.machinery.patch.values import json_kind
from skerry.logic.machinery.reviews import REVIEW_VERSIONS, ReviewError, type_of_review
from skerry.logic.machinery.webhook_clients import ClientConfig, client_config

_GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = (_GROUP, "mutatingwebhookconfigurations")
VALIDATING: Final = (_GROUP, "validatingwebhookconfigurations")
# A webhook that is broken must not keep anybody from taking it away.
NOT_REVIEWED: Final = EXEMPT | {MUTATING, VALIDATING}

REVIEW_GROUP: Final = "admission.k8s.io"
_REVIEW: Final = "AdmissionReview"
# What one answer may add to the audit log.
_MAX_ANNOTATIONS: Final = 20
_ANNOTATION_CHARACTERS: Final = 1024
# As in Kubernetes: beyond the first, warnings are cut to the second, and the rest is left out.
_WARNING_CHARACTERS: Final = 4096
_CUT_WARNING: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """One entry of a configuration. ``conditions`` is a policy that denies what they select."""

    configuration: str
    name: str
    match: Match
    client: ClientConfig
    conditions: Object | None
    fails_open: bool
    seconds: int
    # Whether it has no effects of its own in a rehearsal.
    harmless: bool
    reinvoked: bool
    version: str


def webhooks_of(configuration: Object) -> Iterator[Webhook]:
    """Yield the webhooks of a stored configuration, in order."""
    name = configuration["metadata"]["name"]
    for raw in configuration.get("webhooks") or ():
        versions = raw.get("admissionReviewVersions") or ()
        yield Webhook(
            name,
            raw["name"],
            match_of({**raw, "resourceRules": raw.get("rules")}),
            client_config(raw.get("clientConfig") or {}),
            _conditions(raw),
            raw.get("failurePolicy") == "Ignore",
            raw.get("timeoutSeconds") or 10,
            raw.get("sideEffects") in ("None", "NoneOnDryRun"),
            raw.get("reinvocationPolicy") == "IfNeeded",
            next((each for each in versions if each in REVIEW_VERSIONS), ""),
        )


def _conditions(raw: Object) -> Object | None:
    """Return a policy whose match conditions are the webhook's, and which denies all they match."""
    if not raw.get("matchConditions"):
        return None
    return {
        "metadata": {"name": raw["name"]},
        "spec": {
            "matchConditions": raw["matchConditions"],
            "failurePolicy": raw.get("failurePolicy") or "Fail",
            "validations": [{"expression": "false", "message": SELECTED}],
        },
    }


# What the conditions' policy says of a request that they select.
SELECTED: Final = "selected"


class CallFailed(Exception):
    """A webhook gave no answer that can be believed; the text says why."""


def review_of(
    webhook: Webhook, uid: str, request: Mapping[str, Any], new: Object | None, old: Object | None
) -> bytes:
    """Return the AdmissionReview to send."""
    asked = {"uid": uid, **request, "object": new, "oldObject": old}
    version = f"{REVIEW_GROUP}/{webhook.version}"
    return orjson.dumps({"kind": _REVIEW, "apiVersion": version, "request": asked})


@dataclass(frozen=True, slots=True)
class Response:
    """What a webhook says of a request."""

    allowed: bool
    status: Mapping[str, Any] = field(default_factory=dict)
    patch: bytes = b""
    patch_type: str = ""
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def response_of(webhook: Webhook, uid: str, answer: Any, *, mutating: bool) -> Response:
    """Return what *answer*, decoded, says; raises ``CallFailed`` if it cannot be believed."""
    group_version, kind = _recognised(answer, webhook.version)
    raw = answer.get("response")
    if raw is not None:
        raw = _typed(raw, _RESPONSE, "AdmissionReview.response")
        raw["patch"] = _decoded(raw.get("patch") or "")
    try:
        _verify(raw, webhook.version, uid, (group_version, kind), mutating=mutating)
    except CallFailed as error:
        raise CallFailed(f"received invalid webhook response: {error}") from error
    patch_type = raw.get("patchType") or ""
    if webhook.version != "v1" and raw["patch"]:
        patch_type = "JSONPatch"
    if patch_type not in ("", "JSONPatch"):
        raise CallFailed(f"unsupported patch type {_quoted(patch_type)}")
    notes = list((raw.get("auditAnnotations") or {}).items())[:_MAX_ANNOTATIONS]
    return Response(
        bool(raw.get("allowed")),
        raw.get("status") or {},
        raw["patch"],
        patch_type,
        list(_presentable(raw.get("warnings") or ())),
        {key[:_CUT_WARNING]: value[:_ANNOTATION_CHARACTERS] for key, value in notes},
    )


def _recognised(answer: Any, version: str) -> tuple[str, str]:
    """Return apiVersion and kind of *answer*, which must be a review of *version*."""
    try:
        return type_of_review(answer, REVIEW_GROUP, _REVIEW, version)
    except ReviewError as error:
        raise CallFailed(f"failed to call webhook: {error}") from error


def _verify(
    raw: Object | None, version: str, uid: str, found: tuple[str, str], *, mutating: bool
) -> None:
    if raw is None:
        raise CallFailed("webhook response was absent")
    if version != "v1":
        return
    said = raw.get("uid") or ""
    if said != uid:
        raise CallFailed(f'expected response.uid="{uid}", got {_quoted(said)}')
    if found != (f"{REVIEW_GROUP}/v1", _REVIEW):
        shown = f"{found[0] or '/'}, Kind={found[1]}"
        wanted = f"{REVIEW_GROUP}/v1, Kind={_REVIEW}"
        raise CallFailed(f"expected webhook response of {wanted}, got {shown}")
    _verify_patch(raw["patch"], raw.get("patchType"), mutating=mutating)


def _verify_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise CallFailed("validating webhook may not return response.patch")
        if patch_type is not None:
            raise CallFailed("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise CallFailed("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise CallFailed("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise CallFailed('webhook returned invalid response.patchType of ""')


def _quoted(text: str) -> str:
    return orjson.dumps(text[:_CUT_WARNING]).decode()


def _presentable(warnings: Sequence[str]) -> Iterator[str]:
    """Yield the warnings that can be headers, as many as Kubernetes would send."""
    left = _WARNING_CHARACTERS
    total = sum(map(len, warnings))
    for text in warnings:
        shown = text[:_CUT_WARNING] if total > _WARNING_CHARACTERS else text
        left -= len(shown)
        if left < 0:
            return
        if shown and shown.isprintable():
            yield shown


# -- what the members of a response are ------------------------------------------------------

_TEXT: Final = (str, "string")
_RESPONSE: Final[Mapping[str, tuple[type, str]]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_STATUS: Final[Mapping[str, tuple[type, str]]] = {
    "status": _TEXT,
    "message": _TEXT,
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
}


def _typed(raw: Any, members: Mapping[str, tuple[type, str]], path: str) -> Object:
    """Return *raw* with its known members, which must be of the types they have in Go."""
    if not isinstance(raw, dict):
        raise _mismatch(raw, f"struct field {path}", "v1.AdmissionResponse")
    struct = "AdmissionResponse.response" if members is _RESPONSE else "Status.response.status"
    typed: Object = {}
    for name, (kind, shown) in members.items():
        value = raw.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _mismatch(value, f"struct field {struct}.{name}", shown)
        typed[name] = value
    if members is _RESPONSE:
        texts = [*typed.get("warnings", ()), *typed.get("auditAnnotations", {}).values()]
        for text in texts:
            if not isinstance(text, str):
                raise _mismatch(text, f"struct field {struct}", "string")
        if "status" in typed:
            typed["status"] = _typed(typed["status"], _STATUS, "status")
    return typed


def _mismatch(value: object, target: str, kind: str) -> CallFailed:
    why = f"json: cannot unmarshal {json_kind(value)} into Go {target} of type {kind}"
    return CallFailed(f"failed to call webhook: {why}")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        wrong = next((at for at, each in enumerate(text) if each not in alphabet), len(text))
        why = f"failed to call webhook: illegal base64 data at input byte {wrong}"
        raise CallFailed(why) from error


# -- refusals --------------------------------------------------------------------------------


def denial_of(webhook: Webhook, status: Mapping[str, Any]) -> tuple[int, str, str, Object]:
    """Return code, reason, message and details of what a webhook's refusal becomes."""
    code = status.get("code") or 0
    if not 400 <= code < 600:
        code = 400
    reason: str = status.get("reason") or ""
    said = f'admission webhook "{webhook.name}" denied the request'
    if why := status.get("message") or reason:
        said += f": {why}"
    else:
        said += " without explanation"
    return code, reason, said, _details(status.get("details") or {})


def _details(raw: Mapping[str, Any]) -> Object:
    """Return the details of a Status as far as they have the form of some."""
    details: Object = {
        name: raw[name]
        for name in ("name", "group", "kind", "uid")
        if isinstance(raw.get(name), str)
    }
    causes = raw.get("causes")
    if isinstance(causes, list):
        details["causes"] = [
            {key: value for key, value in cause.items() if isinstance(value, str)}
            for cause in causes[:_MAX_ANNOTATIONS]
            if isinstance(cause, dict)
        ]
    if isinstance(raw.get("retryAfterSeconds"), int):
        details["retryAfterSeconds"] = raw["retryAfterSeconds"]
    return details
