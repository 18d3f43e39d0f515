"""The checks of the baseline level by themselves: what each refuses, and its words."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security import baseline
from skerry.logic.machinery.pod_security.violation import Check


def spec(*containers: Object, **fields: Any) -> Object:
    return {"containers": [{"name": f"c{n}", **c} for n, c in enumerate(containers)], **fields}


def secured(**context: Any) -> Object:
    return {"securityContext": context}


def said(check: Check, whole: Object, **annotations: str) -> str:
    found = check({"annotations": annotations}, whole)
    return "" if found is None else str(found)


CHECKS: list[Check] = [
    baseline.app_armor_profile,
    baseline.capabilities,
    baseline.host_namespaces,
    baseline.host_path_volumes,
    baseline.host_ports,
    baseline.privileged,
    baseline.proc_mount,
    baseline.SELINUX_0,
    baseline.seccomp_annotations,
    baseline.seccomp_profile,
    baseline.windows_host_process,
    lambda metadata, whole: baseline.sysctls(baseline.SYSCTLS_0, metadata, whole),
]


@pytest.mark.parametrize("check", CHECKS)
def test_an_ordinary_pod_breaks_nothing(check: Check) -> None:
    harmless = secured(privileged=False, capabilities={"add": ["CHOWN"]}, procMount="Default")
    assert check({}, spec({}, harmless, {"ports": [{"containerPort": 80}]})) is None
    assert check({}, {}) is None


@pytest.mark.parametrize(
    ("check", "whole", "text"),
    [
        (
            baseline.app_armor_profile,
            spec(secured(appArmorProfile={"type": "Unconfined"})),
            ('forbidden AppArmor profile (container "c0" must not set AppArmor profile type to '
            '"Unconfined")'),
        ),
        (
            baseline.capabilities,
            spec(secured(capabilities={"add": ["SYS_TIME", "CHOWN", "NET_RAW"]})),
            ('non-default capabilities (container "c0" must not include "NET_RAW", "SYS_TIME" in '
            "securityContext.capabilities.add)"),
        ),
        (
            baseline.host_namespaces,
            spec({}, hostNetwork=True, hostIPC=True),
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            baseline.host_path_volumes,
            spec({}, volumes=[{"name": "a", "hostPath": {}}, {"name": "b", "emptyDir": {}}]),
            'hostPath volumes (volume "a")',
        ),
        (
            baseline.host_ports,
            spec({"ports": [{"hostPort": 80}, {"hostPort": 443}]}, {"ports": [{"hostPort": 80}]}),
            'hostPort (containers "c0", "c1" use hostPorts 443, 80)',
        ),
        (
            baseline.host_ports,
            spec({"ports": [{"hostPort": 80}]}),
            'hostPort (container "c0" uses hostPort 80)',
        ),
        (
            baseline.privileged,
            spec({}, secured(privileged=True)),
            'privileged (container "c1" must not set securityContext.privileged=true)',
        ),
        (
            baseline.proc_mount,
            spec(secured(procMount="Unmasked")),
            'procMount (container "c0" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            baseline.SELINUX_0,
            spec({}, **secured(seLinuxOptions={"type": "spc_t", "user": "root"})),
            ('seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; '
            "user may not be set)"),
        ),
        (
            baseline.seccomp_profile,
            spec(secured(seccompProfile={"type": "Unconfined"}),
                 **secured(seccompProfile={"type": "Unconfined"})),
            ('seccompProfile (pod and container "c0" must not set '
            'securityContext.seccompProfile.type to "Unconfined")'),
        ),
        (
            baseline.windows_host_process,
            spec({}, **secured(windowsOptions={"hostProcess": True})),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
    ],
)  # fmt: skip
def test_what_leads_out_of_a_container_is_named(check: Check, whole: Object, text: str) -> None:
    assert said(check, whole) == text


def test_containers_of_every_sort_are_looked_at() -> None:
    bad = secured(privileged=True)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        assert baseline.privileged({}, {group: [{"name": "x", **bad}]}) is not None


@pytest.mark.parametrize(
    ("value", "refused"),
    [("unconfined", True), ("runtime/default", False), ("localhost/x", False), ("", False)],
)
def test_annotations_turned_app_armor_off_before_there_was_a_field(
    value: str, refused: bool
) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c0"
    assert bool(said(baseline.app_armor_profile, spec({}), **{key: value})) is refused


@pytest.mark.parametrize(
    ("key", "value", "refused"),
    [
        ("seccomp.security.alpha.kubernetes.io/pod", "unconfined", True),
        ("seccomp.security.alpha.kubernetes.io/pod", "docker/default", False),
        ("container.seccomp.security.alpha.kubernetes.io/c0", "unconfined", True),
        # Of no container of this pod.
        ("container.seccomp.security.alpha.kubernetes.io/other", "unconfined", False),
    ],
)
def test_annotations_turned_seccomp_off_too(key: str, value: str, refused: bool) -> None:
    assert bool(said(baseline.seccomp_annotations, spec({}), **{key: value})) is refused


def test_kernel_settings_are_allowed_by_version() -> None:
    whole = spec({}, **secured(sysctls=[{"name": "net.ipv4.tcp_rmem"}, {"name": "kernel.x"}]))
    old = baseline.sysctls(baseline.SYSCTLS_29, {}, whole)
    new = baseline.sysctls(baseline.SYSCTLS_32, {}, whole)
    assert str(old) == "forbidden sysctls (net.ipv4.tcp_rmem, kernel.x)"
    assert str(new) == "forbidden sysctls (kernel.x)"
    assert baseline.SYSCTLS_0 < baseline.SYSCTLS_27 < baseline.SYSCTLS_29 < baseline.SYSCTLS_32


def test_labels_of_engines_are_allowed_since_they_run_in_containers() -> None:
    whole = spec(secured(seLinuxOptions={"type": "container_engine_t"}))
    assert baseline.SELINUX_0({}, whole) is not None
    assert baseline.SELINUX_31({}, whole) is None
