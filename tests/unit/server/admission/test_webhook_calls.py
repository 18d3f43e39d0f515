"""Webhooks that are broken, or lie: the answer Kubernetes gives, in bounded time and memory.

Each sentence was compared with what kube-apiserver 1.32 says of the same webhook.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from skerry.kit.metrics import exposition
from skerry.server.admission.webhook_metrics import WebhookMetrics
from tests.kit.server.harness import serving
from tests.kit.server.webhooks import (
    Answer,
    allow,
    configuration,
    deny,
    http,
    patching,
    reviewed,
    webhook,
    webhook_server,
)

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
PATCH = base64.b64encode(b'[{"op":"add","path":"/data/x","value":"y"}]').decode()


def without(name: str) -> Answer:
    return lambda review: {key: each for key, each in reviewed(review).items() if key != name}


def saying(**response: Any) -> Answer:
    return lambda review: reviewed(review, **response)


def sending(raw: bytes) -> Answer:
    return lambda _: raw


def with_members(**members: Any) -> Answer:
    return lambda review: {**reviewed(review), **members}


INVALID = "received invalid webhook response: "
FAILED = "failed to call webhook: "
STATUS = orjson.dumps({"kind": "Status", "message": "mine"})
ANSWERS: dict[str, tuple[Answer, str]] = {
    "no uid": (saying(uid=...), f'{INVALID}expected response.uid="UID", got ""'),
    "another uid": (saying(uid="x"), f'{INVALID}expected response.uid="UID", got "x"'),
    "another kind": (
        with_members(kind="Pod"),
        (
            f'{FAILED}no kind "Pod" is registered for version "admission.k8s.io/v1" in scheme '
            '"pkg/runtime/scheme.go:100"'
        ),
    ),
    "an older version": (
        with_members(apiVersion="admission.k8s.io/v1beta1"),
        f"{FAILED}converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    "an unknown version": (
        with_members(apiVersion="admission.k8s.io/v2"),
        (
            f'{FAILED}no kind "AdmissionReview" is registered for version "admission.k8s.io/v2" in '
            'scheme "pkg/runtime/scheme.go:100"'
        ),
    ),
    "no version": (
        without("apiVersion"),
        (
            f"{INVALID}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
            "/, Kind=AdmissionReview"
        ),
    ),
    "no kind": (
        without("kind"),
        (
            f"{INVALID}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
            "admission.k8s.io/v1, Kind="
        ),
    ),
    "no response": (without("response"), f"{INVALID}webhook response was absent"),
    "an empty object": (sending(http(200, b"{}")), f"{INVALID}webhook response was absent"),
    "a wrong type": (
        saying(allowed="yes"),
        (
            f"{FAILED}json: cannot unmarshal string into Go struct field "
            "AdmissionResponse.response.allowed of type bool"
        ),
    ),
    "a list": (sending(http(200, b"[]")), f"{FAILED}couldn't get version/kind; json parse error"),
    "no JSON": (sending(http(200, b"hi")), f"{FAILED}couldn't get version/kind; json parse error"),
    "depth": (sending(http(200, b"[" * 100_000)), f"{FAILED}couldn't get version/kind"),
    "nothing": (
        sending(http(200)),
        f"{FAILED}0-length response with status code: 200 and content type: application/json",
    ),
    "500": (
        sending(http(500, b"broken")),
        f'{FAILED}an error on the server ("broken") has prevented the request from succeeding',
    ),
    "404": (sending(http(404)), f"{FAILED}the server could not find the requested resource"),
    "a status": (sending(http(500, STATUS, content_type="application/json")), f"{FAILED}mine"),
    "a redirection": (
        sending(http(307, location="https://127.0.0.1:1/x")),
        (
            f"{FAILED}the server responded with the status code 307 but did not return more "
            "information"
        ),
    ),
    "a closed connection": (sending(b""), f'{FAILED}Post "URL": EOF'),
    "another protocol": (sending(b"SSH-2.0-x\r\n"), f'{FAILED}Post "URL": the answer is not HTTP'),
    "a bad patch": (saying(patch="!!!"), f"{FAILED}illegal base64 data at input byte 0"),
}


async def refusal(answer: Answer, kind: str = VALIDATING, **more: Any) -> str:
    """Return why a write is refused that a webhook with this answer is asked about."""
    async with webhook_server() as hooks, serving() as server:
        hook = webhook(hooks.on("/x", answer), **more)
        assert (await server.create(kind, configuration(hook))).status == 201
        reply = await server.create(MAPS, {"metadata": {"name": "a"}, "data": {"a": "b"}})
        if reply.status == 201:
            return ""
        assert (reply.status, reply.body["reason"]) == (500, "InternalError")
        [cause] = reply.body["details"]["causes"]
        message = cause["message"]
        assert reply.body["message"] == f"Internal error occurred: {message}"
        for target, review in hooks.asked:
            message = message.replace(review["request"]["uid"], "UID")
            message = message.replace(hooks.url(target), "URL")
        return str(message)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
async def test_an_answer_that_cannot_be_believed_is_a_failure(name: str, kind: str) -> None:
    answer, expected = ANSWERS[name]
    found = await refusal(answer, kind)
    assert found.startswith(f'failed calling webhook "w.example.com": {expected}')


@pytest.mark.parametrize("name", ["another uid", "500", "a redirection", "a closed connection"])
async def test_a_failure_policy_that_ignores_lets_pass(name: str) -> None:
    assert await refusal(ANSWERS[name][0], failurePolicy="Ignore") == ""


@pytest.mark.parametrize(
    ("answer", "kind", "expected"),
    [
        (saying(patch=PATCH), VALIDATING, "validating webhook may not return response.patch"),
        (
            saying(patchType="JSONPatch"),
            VALIDATING,
            "validating webhook may not return response.patchType",
        ),
        (
            saying(patch=PATCH),
            MUTATING,
            "webhook returned response.patch but not response.patchType",
        ),
        (
            saying(patchType="JSONPatch"),
            MUTATING,
            "webhook returned response.patchType but not response.patch",
        ),
    ],
)
async def test_a_patch_comes_with_its_type_and_from_mutating_webhooks(
    answer: Answer, kind: str, expected: str
) -> None:
    assert (await refusal(answer, kind)).endswith(f"{INVALID}{expected}")


async def test_a_patch_is_a_json_patch() -> None:
    found = await refusal(saying(patch=PATCH, patchType="Merge"), MUTATING)
    assert found == 'failed calling webhook "w.example.com": unsupported patch type "Merge"'
    text = base64.b64encode(b'{"a":1}').decode()
    found = await refusal(saying(patch=text, patchType="JSONPatch"), MUTATING)
    assert found == "json: cannot unmarshal object into Go value of type jsonpatch.Patch"


async def test_an_answer_of_megabytes_is_not_read_to_its_end() -> None:
    large = sending(http(200, b'{"a":"' + b"x" * (4 << 20) + b'"}'))
    assert (await refusal(large)).endswith('Post "URL": the answer is larger than it may be')
    # Also where it is the head that never ends.
    endless = b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"y" * (4 << 20)
    assert (await refusal(sending(endless))).endswith("the answer is larger than it may be")


async def test_an_answer_that_drips_ends_with_the_time_it_was_given() -> None:
    """Every byte comes, each a little later: what counts is when the answer is whole."""
    async with webhook_server() as hooks, serving() as server:
        hooks.dripping = True
        hook = webhook(hooks.on("/x", allow), timeoutSeconds=1)
        await server.create(VALIDATING, configuration(hook))
        reply = await server.create(MAPS, {"metadata": {"name": "a"}})
        assert reply.body["message"].endswith('/x?timeout=1s": context deadline exceeded')


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (
            {"url": "https://127.0.0.1:1/x"},
            (
                f'{FAILED}Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: '
                "connection refused"
            ),
        ),
        (
            {"url": "https://127.0.0.1:1/x", "caBundle": "aGVsbG8="},
            (
                "could not get REST client: unable to load root certificates: unable to parse "
                "bytes as PEM block"
            ),
        ),
    ],
)
async def test_a_webhook_that_is_not_there_is_named(client: dict[str, str], expected: str) -> None:
    async with serving() as server:
        await server.create(VALIDATING, configuration(webhook(client)))
        reply = await server.create(MAPS, {"metadata": {"name": "a"}})
        prefix = 'Internal error occurred: failed calling webhook "w.example.com": '
        assert reply.body["message"] == prefix + expected


async def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    async with webhook_server() as hooks, serving() as server:
        client = {"url": hooks.url("/x")}
        await server.create(VALIDATING, configuration(webhook(client)))
        reply = await server.create(MAPS, {"metadata": {"name": "a"}})
        assert reply.body["message"].endswith(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        )
        assert not hooks.asked


async def test_reviews_of_the_older_version_are_sent_to_whom_speaks_no_other() -> None:
    async with webhook_server() as hooks, serving() as server:
        answer = saying(uid=..., patch=PATCH)
        hook = webhook(hooks.on("/x", answer), admissionReviewVersions=["v1beta1"])
        await server.create(MUTATING, configuration(hook))
        reply = await server.create(MAPS, {"metadata": {"name": "a"}, "data": {"a": "b"}})
        assert reply.body["data"] == {"a": "b", "x": "y"}
        assert hooks.reviews("/x")[0]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_calls_are_counted_under_kubernetes_names() -> None:
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry)
    async with webhook_server() as hooks, serving(webhook_metrics=metrics) as server:
        gone = {"url": "https://127.0.0.1:1/x"}
        excluded = [{"name": "c", "expression": "false"}]
        await server.create(
            VALIDATING,
            configuration(
                webhook(hooks.on("/d", deny), "d.example.com"),
                webhook(gone, "g.example.com", failurePolicy="Ignore"),
                webhook(gone, "e.example.com", matchConditions=excluded),
            ),
        )
        patch = patching({"op": "add", "path": "/data/x", "value": "y"})
        await server.create(MUTATING, configuration(webhook(hooks.on("/m", patch))))
        await server.create(MAPS, {"metadata": {"name": "a"}, "data": {"a": "b"}})
    lines = set(exposition(registry).decode().splitlines())
    called = 'name="d.example.com",operation="CREATE"'
    prefix = "apiserver_admission_"
    assert lines >= {
        (
            f'{prefix}webhook_request_total{{code="400",{called},rejected="true",'
            'type="validating"} 1.0'
        ),
        (
            f'{prefix}webhook_rejection_count{{error_type="no_error",{called},rejection_code="400",'
            'type="validating"} 1.0'
        ),
        f'{prefix}webhook_fail_open_count{{name="g.example.com",type="validating"}} 1.0',
        (
            f'{prefix}match_condition_exclusions_total{{kind="webhook",name="e.example.com",'
            'operation="CREATE",type="validating"} 1.0'
        ),
        (
            f'{prefix}webhook_admission_duration_seconds_count{{name="w.example.com",'
            'operation="CREATE",rejected="false",type="admit"} 1.0'
        ),
    }
