"""The checks of the restricted level by themselves: what a pod must say, and who is excused."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security import restricted
from skerry.logic.machinery.pod_security.violation import Check


def spec(*containers: Object, **fields: Any) -> Object:
    return {"containers": [{"name": f"c{n}", **c} for n, c in enumerate(containers)], **fields}


def secured(**context: Any) -> Object:
    return {"securityContext": context}


def said(check: Check, whole: Object) -> str:
    found = check({}, whole)
    return "" if found is None else str(found)


@pytest.mark.parametrize(("value", "good"), [(False, True), (True, False), (None, False)])
def test_escalation_is_given_up_aloud(value: bool | None, good: bool) -> None:
    text = said(
        restricted.allow_privilege_escalation, spec(secured(allowPrivilegeEscalation=value))
    )
    wanted = 'container "c0" must set securityContext.allowPrivilegeEscalation=false'
    assert text == ("" if good else f"allowPrivilegeEscalation != false ({wanted})")


def test_all_capabilities_are_dropped_but_one_may_come_back() -> None:
    def of(**capabilities: Any) -> str:
        return said(restricted.capabilities, spec(secured(capabilities=capabilities)))

    assert of(drop=["ALL"]) == of(drop=["ALL"], add=["NET_BIND_SERVICE"]) == ""
    assert of(drop=["CHOWN"]) == (
        'unrestricted capabilities (container "c0" must set '
        'securityContext.capabilities.drop=["ALL"])'
    )
    assert of(drop=["ALL"], add=["CHOWN"]).endswith(
        '(container "c0" must not include "CHOWN" in securityContext.capabilities.add)'
    )
    assert of(add=["CHOWN"]).count(";") == 1


def test_volumes_are_the_pods_own_or_claimed() -> None:
    def of(*volumes: Object) -> str:
        named = [{"name": f"v{n}", **volume} for n, volume in enumerate(volumes)]
        return said(restricted.restricted_volumes, spec({}, volumes=named))

    assert of({"emptyDir": {}}, {"configMap": {}}, {"persistentVolumeClaim": {}}) == ""
    assert of({"hostPath": {}}) == (
        'restricted volume types (volume "v0" uses restricted volume type "hostPath")'
    )
    assert of({"nfs": {}}, {"hostPath": {}}, {"odd": {}}) == (
        'restricted volume types (volumes "v0", "v1", "v2" use restricted volume types '
        '"hostPath", "nfs", "unknown")'
    )


@pytest.mark.parametrize(
    ("pod", "container", "text"),
    [
        (True, None, ""),
        (None, True, ""),
        (None, None, 'pod or container "c0" must set securityContext.runAsNonRoot=true'),
        (False, None, "pod must not set securityContext.runAsNonRoot=false"),
        (True, False, 'container "c0" must not set securityContext.runAsNonRoot=false'),
        # A container may mend what the pod says wrongly; Kubernetes refuses it all the same.
        (False, True, "pod must not set securityContext.runAsNonRoot=false"),
    ],
)
def test_nobody_runs_as_root(pod: bool | None, container: bool | None, text: str) -> None:
    whole = spec(secured(runAsNonRoot=container), **secured(runAsNonRoot=pod))
    assert said(restricted.run_as_non_root, whole) == (
        f"runAsNonRoot != true ({text})" if text else ""
    )


def test_nobody_is_root_by_number() -> None:
    whole = spec(secured(runAsUser=0), secured(runAsUser=1), **secured(runAsUser=0))
    assert said(restricted.run_as_user, whole) == (
        'runAsUser=0 (pod and container "c0" must not set runAsUser=0)'
    )
    assert said(restricted.run_as_user, spec(secured(runAsUser=1), {})) == ""


def test_every_container_has_a_seccomp_profile_of_its_own_or_the_pods() -> None:
    profile = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert said(restricted.seccomp, spec({}, **secured(**profile))) == ""
    assert said(restricted.seccomp, spec(secured(**profile))) == ""
    assert said(restricted.seccomp, spec(secured(**profile), {})).startswith(
        'seccompProfile (pod or container "c1" must set'
    )
    off = {"seccompProfile": {"type": "Unconfined"}}
    assert "must not set" in said(restricted.seccomp, spec({}, **secured(**off)))


def test_pods_of_windows_are_excused() -> None:
    check = restricted.excusing_windows(restricted.allow_privilege_escalation)
    assert check({}, spec({})) is not None
    assert check({}, spec({}, os={"name": "linux"})) is not None
    assert check({}, spec({}, os={"name": "windows"})) is None
