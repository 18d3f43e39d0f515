"""PodSecurity at the server: refusals, warnings, audit annotations and labels."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.configuration import PodSecurityConfiguration
from skerry.logic.machinery.pod_security.policy import PREFIX, LevelVersion, Policy
from skerry.server.http.message import Peer, Request
from skerry.server.request.info import RequestInfo
from skerry.server.security.audit import audit_event
from tests.kit.machinery.pods import hardened
from tests.kit.server.harness import ADMIN, Server, serving
from tests.kit.server.objects import pod
from tests.kit.sim.loop import virtual

NAMESPACES = "/api/v1/namespaces"
WEB = f"{NAMESPACES}/web"
PODS = f"{WEB}/pods"
UNRESTRICTED = (
    'allowPrivilegeEscalation != false (container "main" must set '
    "securityContext.allowPrivilegeEscalation=false), "
    'unrestricted capabilities (container "main" must set '
    'securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to '
    '"RuntimeDefault" or "Localhost")'
)


def labels(**values: str) -> dict[str, str]:
    return {f"{PREFIX}{name.replace('_', '-')}": value for name, value in values.items()}


async def with_namespace(server: Server, **values: str) -> None:
    body = {"metadata": {"name": "web", "labels": labels(**values)}}
    made = await server.create(NAMESPACES, body)
    assert made.status == 201, made.body
    account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False}
    await server.create(f"{WEB}/serviceaccounts", account)


def deployment(name: str, **spec: Any) -> Object:
    template = pod(name, **spec)
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'299 - "{escaped}"'


@virtual
async def test_nothing_changes_without_labels() -> None:
    async with serving() as server:
        await with_namespace(server)
        made = await server.create(PODS, pod("p", hostNetwork=True))
        assert (made.status, made.warnings) == (201, [])


@virtual
async def test_a_pod_that_breaks_the_enforced_level_is_forbidden() -> None:
    async with serving() as server:
        await with_namespace(server, enforce="restricted")
        refused = await server.create(PODS, pod("p"))
        assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
        assert refused.body["message"] == (
            f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {UNRESTRICTED}'
        )
        made = await server.create(PODS, pod("q", containers=[hardened("main")]))
        assert (made.status, made.warnings) == (201, [])
        applied = await server.patch(f"{PODS}/r?fieldManager=me", pod("r"), "apply")
        assert applied.status == 403
        rehearsed = await server.create(f"{PODS}?dryRun=All", pod("p"))
        assert rehearsed.status == 403


@virtual
async def test_the_level_is_that_of_the_version_asked_for() -> None:
    async with serving() as server:
        await with_namespace(server, enforce="restricted", enforce_version="v1.7")
        refused = await server.create(PODS, pod("p"))
        assert 'violates PodSecurity "restricted:v1.7": runAsNonRoot' in refused.body["message"]


@virtual
async def test_warn_warns_of_pods_and_of_what_makes_them() -> None:
    async with serving() as server:
        await with_namespace(server, warn="restricted")
        text = quoted(f'would violate PodSecurity "restricted:latest": {UNRESTRICTED}')
        made = await server.create(PODS, pod("p"))
        assert (made.status, made.warnings) == (201, [text])
        deployments = "/apis/apps/v1/namespaces/web/deployments"
        made = await server.create(deployments, deployment("d"))
        assert (made.status, made.warnings) == (201, [text])
        scaled = await server.patch(f"{deployments}/d/scale", {"spec": {"replicas": 2}})
        assert (scaled.status, scaled.warnings) == (200, [])


@virtual
async def test_enforcing_refuses_no_template_but_warns_of_it() -> None:
    async with serving() as server:
        await with_namespace(server, enforce="baseline")
        body = deployment("d", hostPID=True)
        made = await server.create("/apis/apps/v1/namespaces/web/deployments", body)
        assert made.status == 201
        assert made.warnings == [
            quoted('would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)')
        ]
        cron = {
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": _once(hostIPC=True)}}},
            },
        }
        made = await server.create("/apis/batch/v1/namespaces/web/cronjobs", cron)
        assert made.status == 201
        assert "host namespaces (hostIPC=true)" in made.warnings[0]


def _once(**spec: Any) -> Object:
    found: Object = pod("x", restartPolicy="Never", **spec)["spec"]
    return found


async def asked(server: Server, body: Object) -> Request:
    """Create a pod and return the request, with what it carries to the audit log."""
    headers = {"content-type": "application/json"}
    request = Request("POST", PODS, "", headers, orjson.dumps(body), Peer(user=ADMIN))
    await server.api.engine.handle(request)
    return request


@virtual
async def test_audit_notes_violations_and_lets_them_pass() -> None:
    async with serving() as server:
        await with_namespace(server, audit="baseline")
        request = await asked(server, pod("p", hostNetwork=True))
        expected = {
            f"{PREFIX}enforce-policy": "privileged:latest",
            f"{PREFIX}audit-violations": (
                'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
            ),
        }
        assert request.audit_annotations == expected
        now = datetime(2026, 1, 1, tzinfo=UTC)
        event = audit_event("id", request, RequestInfo(PODS, "create"), ADMIN, 201, now, now)
        assert event["annotations"] == {"authorization.k8s.io/decision": "allow", **expected}


@virtual
async def test_a_refused_pod_is_noted_as_well() -> None:
    async with serving() as server:
        await with_namespace(server, enforce="baseline", audit="restricted")
        request = await asked(server, pod("p", hostNetwork=True))
        assert request.audit_annotations is not None
        assert request.audit_annotations[f"{PREFIX}enforce-policy"] == "baseline:latest"
        assert "audit-violations" in " ".join(request.audit_annotations)


@virtual
@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("enforce", "strict", "must be one of privileged, baseline, restricted"),
        ("warn-version", "1.30", 'must be "latest" or "v1.x"'),
        ("audit", "Baseline", "must be one of privileged, baseline, restricted"),
    ],
)
async def test_a_label_that_makes_no_sense_is_refused_by_name(
    name: str, value: str, detail: str
) -> None:
    async with serving() as server:
        body = {"metadata": {"name": "odd", "labels": {f"{PREFIX}{name}": value}}}
        refused = await server.create(NAMESPACES, body)
        assert (refused.status, refused.body["reason"]) == (422, "Invalid")
        assert refused.body["message"] == (
            f'Namespace "odd" is invalid: metadata.labels[{PREFIX}{name}]: Invalid value: '
            f'"{value}": {detail}'
        )
        patch = {"metadata": {"labels": {f"{PREFIX}{name}": value}}}
        assert (await server.patch(f"{NAMESPACES}/default", patch)).status == 422


@virtual
async def test_raising_a_level_warns_of_pods_that_are_there() -> None:
    async with serving() as server:
        await with_namespace(server)
        for name, spec in (("b", {"hostPID": True}), ("a", {"hostPID": True}), ("fine", {})):
            assert (await server.create(PODS, pod(name, **spec))).status == 201
        raised = await server.patch(WEB, {"metadata": {"labels": labels(enforce="baseline")}})
        assert (raised.status, raised.warnings) == (
            200,
            [
                quoted(
                    'existing pods in namespace "web" violate the new PodSecurity enforce level '
                    '"baseline:latest"'
                ),
                quoted("a (and 1 other pod): host namespaces"),
            ],
        )
        again = await server.patch(WEB, {"metadata": {"labels": {"team": "x"}}})
        assert again.warnings == []
        lowered = await server.patch(WEB, {"metadata": {"labels": labels(enforce="privileged")}})
        assert lowered.warnings == []


@virtual
async def test_more_pods_than_are_checked_are_said_to_be_more() -> None:
    async with serving(pod_security=PodSecurityConfiguration(max_pods_checked=2)) as server:
        await with_namespace(server)
        for number in range(5):
            await server.create(PODS, pod(f"p{number}", hostPID=True))
        raised = await server.patch(WEB, {"metadata": {"labels": labels(enforce="baseline")}})
        assert raised.warnings[0] == quoted(
            "new PodSecurity enforce level only checked against the first 2 of 5 existing pods"
        )


@virtual
async def test_a_running_pod_stays_writable_under_a_stricter_level() -> None:
    async with serving() as server:
        await with_namespace(server)
        await server.create(PODS, pod("p", hostNetwork=True))
        await server.patch(WEB, {"metadata": {"labels": labels(enforce="baseline")}})
        labelled = await server.patch(f"{PODS}/p", {"metadata": {"labels": {"x": "y"}}})
        assert labelled.status == 200
        status = {"status": {"phase": "Running"}}
        assert (await server.patch(f"{PODS}/p/status", status)).status == 200
        image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
        assert (await server.patch(f"{PODS}/p", image, "strategic")).status == 403
        assert (await server.delete(f"{PODS}/p")).status == 200


@virtual
async def test_a_debug_container_is_held_to_the_level() -> None:
    async with serving() as server:
        await with_namespace(server, enforce="baseline")
        assert (await server.create(PODS, pod("p"))).status == 201
        debug = {"name": "d", "image": "x", "securityContext": {"privileged": True}}
        body = {"spec": {"ephemeralContainers": [debug]}}
        refused = await server.patch(f"{PODS}/p/ephemeralcontainers", body, "strategic")
        assert refused.status == 403
        assert 'privileged (container "d"' in refused.body["message"]
        del debug["securityContext"]
        made = await server.patch(f"{PODS}/p/ephemeralcontainers", body, "strategic")
        assert made.status == 200, made.body


@virtual
async def test_defaults_hold_for_every_namespace_and_exemptions_for_whom_they_name() -> None:
    configuration = PodSecurityConfiguration(
        Policy(enforce=LevelVersion("baseline", None)),
        namespaces=frozenset({"default"}),
        runtime_classes=frozenset({"kata"}),
    )
    async with serving(pod_security=configuration) as server:
        await with_namespace(server)
        assert (await server.create(PODS, pod("p", hostPID=True))).status == 403
        assert (
            await server.create(PODS, pod("k", hostPID=True, runtimeClassName="kata"))
        ).status == 201
        account = {"metadata": {"name": "default"}}
        await server.create(f"{NAMESPACES}/default/serviceaccounts", account)
        exempt = await server.create(f"{NAMESPACES}/default/pods", pod("p", hostPID=True))
        assert exempt.status == 201
        labelled = await server.patch(
            f"{NAMESPACES}/default", {"metadata": {"labels": labels(enforce="restricted")}}
        )
        assert labelled.warnings == [
            quoted(
                'namespace "default" is exempt from Pod Security, and the policy '
                "(enforce=restricted:latest) will be ignored"
            )
        ]


@virtual
async def test_an_exempt_user_passes_and_the_audit_log_says_so() -> None:
    configuration = PodSecurityConfiguration(
        Policy(enforce=LevelVersion("restricted", None)), usernames=frozenset({ADMIN.name})
    )
    async with serving(pod_security=configuration) as server:
        await with_namespace(server)
        request = await asked(server, pod("p"))
        assert request.audit_annotations == {f"{PREFIX}exempt": "user"}
