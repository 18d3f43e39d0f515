"""Every check by itself: what breaks it, in Kubernetes' own words, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.evaluation import detail_of, reason_of, violations
from skerry.logic.machinery.pod_security.policy import Level, LevelVersion
from tests.kit.machinery.pods import container, hardened, spec_of

_AA = "container.apparmor.security.beta.kubernetes.io"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io"


def detail(
    spec: Object,
    level: Level = "baseline",
    minor: int | None = None,
    annotations: dict[str, str] | None = None,
) -> str:
    metadata = {"annotations": annotations} if annotations else {}
    return detail_of(violations(LevelVersion(level, minor), metadata, spec))


def security(**fields: Any) -> Object:
    return {"securityContext": fields}


BASELINE: list[tuple[Object, str]] = [
    (
        spec_of(container(appArmorProfile={"type": "Unconfined"})),
        (
            'forbidden AppArmor profile (container "app" must not set AppArmor profile type to '
            '"Unconfined")'
        ),
    ),
    (
        spec_of(
            container("a", appArmorProfile={"type": "Unconfined"}),
            **security(appArmorProfile={"type": "Unconfined"}),
        ),
        (
            'forbidden AppArmor profile (pod and container "a" must not set AppArmor profile type '
            "to "
            '"Unconfined")'
        ),
    ),
    (
        spec_of(
            container("a", capabilities={"add": ["NET_ADMIN", "CHOWN"]}),
            container("b", capabilities={"add": ["SYS_TIME", "NET_RAW"]}),
        ),
        (
            'non-default capabilities (containers "a", "b" must not include "NET_ADMIN", '
            '"NET_RAW", '
            '"SYS_TIME" in securityContext.capabilities.add)'
        ),
    ),
    (
        spec_of(container(), hostNetwork=True, hostPID=True, hostIPC=True),
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    (spec_of(container(), hostPID=True), "host namespaces (hostPID=true)"),
    (
        spec_of(container(), volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        'hostPath volumes (volume "v")',
    ),
    (
        spec_of(
            container(),
            volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "hostPath": {}}],
        ),
        'hostPath volumes (volumes "v", "w")',
    ),
    (
        spec_of({**container("a"), "ports": [{"containerPort": 1, "hostPort": 80}]}),
        'hostPort (container "a" uses hostPort 80)',
    ),
    (
        spec_of(
            {**container("a"), "ports": [{"hostPort": 9090}, {"hostPort": 0}]},
            {**container("b"), "ports": [{"hostPort": 8080}]},
        ),
        'hostPort (containers "a", "b" use hostPorts 8080, 9090)',
    ),
    (
        spec_of(container("a", privileged=True), initContainers=[container("i", privileged=True)]),
        'privileged (containers "i", "a" must not set securityContext.privileged=true)',
    ),
    (
        spec_of(container("a"), ephemeralContainers=[container("debug", privileged=True)]),
        'privileged (container "debug" must not set securityContext.privileged=true)',
    ),
    (
        spec_of(container("a", procMount="Unmasked")),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        spec_of(container("a", seLinuxOptions={"type": "spc_t", "user": "u", "role": "r"})),
        (
            'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type '
            '"spc_t"; '
            "user may not be set; role may not be set)"
        ),
    ),
    (
        spec_of(
            container("a", seLinuxOptions={"type": "x_t"}),
            **security(seLinuxOptions={"type": "y_t"}),
        ),
        (
            'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: '
            "types "
            '"x_t", "y_t")'
        ),
    ),
    (
        spec_of(container("a", seccompProfile={"type": "Unconfined"})),
        (
            'seccompProfile (container "a" must not set securityContext.seccompProfile.type to '
            '"Unconfined")'
        ),
    ),
    (
        spec_of(container("a"), **security(seccompProfile={"type": "Unconfined"})),
        'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        spec_of(
            container("a"),
            **security(sysctls=[{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]),
        ),
        "forbidden sysctls (kernel.msgmax)",
    ),
    (
        spec_of(
            container("a", windowsOptions={"hostProcess": True}),
            **security(windowsOptions={"hostProcess": True}),
        ),
        (
            'hostProcess (pod and container "a" must not set '
            "securityContext.windowsOptions.hostProcess=true)"
        ),
    ),
]

RESTRICTED: list[tuple[Object, str]] = [
    (
        spec_of(hardened("a", allowPrivilegeEscalation=None)),
        (
            'allowPrivilegeEscalation != false (container "a" must set '
            "securityContext.allowPrivilegeEscalation=false)"
        ),
    ),
    (
        spec_of(
            hardened("a", capabilities={"drop": ["NET_RAW"]}),
            hardened("b", capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}),
        ),
        (
            'unrestricted capabilities (container "a" must set '
            'securityContext.capabilities.drop=["ALL"]; container "b" must not include "CHOWN" in '
            "securityContext.capabilities.add)"
        ),
    ),
    (
        spec_of(
            hardened("a"),
            volumes=[
                {"name": "v", "hostPath": {"path": "/"}},
                {"name": "n", "nfs": {"server": "s", "path": "/"}},
                {"name": "i", "image": {"reference": "x"}},
                {"name": "e", "emptyDir": {}},
            ],
        ),
        (
            'restricted volume types (volumes "v", "n", "i" use restricted volume types '
            '"hostPath", '
            '"nfs", "unknown")'
        ),
    ),
    (
        spec_of(hardened("a", runAsNonRoot=None), hardened("b")),
        'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
    ),
    (
        spec_of(hardened("a", runAsNonRoot=False), **security(runAsNonRoot=False)),
        (
            'runAsNonRoot != true (pod and container "a" must not set '
            "securityContext.runAsNonRoot=false)"
        ),
    ),
    (
        spec_of(hardened("a", runAsUser=0), **security(runAsUser=0)),
        'runAsUser=0 (pod and container "a" must not set runAsUser=0)',
    ),
    (
        spec_of(hardened("a", seccompProfile=None), hardened("b", seccompProfile=None)),
        (
            'seccompProfile (pod or containers "a", "b" must set '
            "securityContext.seccompProfile.type "
            'to "RuntimeDefault" or "Localhost")'
        ),
    ),
    (
        spec_of(hardened("a", seccompProfile={"type": "Unconfined"})),
        (
            'seccompProfile (container "a" must not set securityContext.seccompProfile.type to '
            '"Unconfined")'
        ),
    ),
]


@pytest.mark.parametrize(("spec", "message"), BASELINE, ids=lambda v: v if type(v) is str else "")
def test_baseline_names_what_leads_out_of_a_container(spec: Object, message: str) -> None:
    assert detail(spec) == message
    assert detail(spec, "privileged") == ""


@pytest.mark.parametrize(("spec", "message"), RESTRICTED, ids=lambda v: v if type(v) is str else "")
def test_restricted_names_what_a_pod_does_not_give_up(spec: Object, message: str) -> None:
    assert detail(spec, "restricted") == message


def test_a_plain_pod_breaks_restricted_in_four_ways_and_baseline_in_none() -> None:
    spec = spec_of(container("x"))
    assert detail(spec) == ""
    assert detail(spec, "restricted") == (
        'allowPrivilegeEscalation != false (container "x" must set '
        "securityContext.allowPrivilegeEscalation=false), "
        'unrestricted capabilities (container "x" must set '
        'securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "x" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "x" must set securityContext.seccompProfile.type to '
        '"RuntimeDefault" or "Localhost")'
    )


def test_a_hardened_pod_keeps_every_level_of_every_version() -> None:
    pod_wide = spec_of(
        hardened("a", runAsNonRoot=None, seccompProfile=None),
        **security(runAsNonRoot=True, runAsUser=1000, seccompProfile={"type": "RuntimeDefault"}),
    )
    for spec in (spec_of(hardened()), pod_wide):
        for minor in (None, *range(40)):
            assert detail(spec, "restricted", minor) == ""


def test_the_fields_of_a_container_win_over_those_of_its_pod() -> None:
    spec = spec_of(hardened("a", runAsNonRoot=False), **security(runAsNonRoot=True))
    assert detail(spec, "restricted").startswith('runAsNonRoot != true (container "a" must not')


def test_restricted_checks_replace_the_baseline_ones_they_tighten() -> None:
    spec = spec_of(hardened("a", capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}))
    assert reason_of(violations(LevelVersion("restricted", None), {}, spec)) == (
        "unrestricted capabilities"
    )
    # Before 1.22 there was nothing to tighten it, and the baseline check counted.
    assert reason_of(violations(LevelVersion("restricted", 21), {}, spec)) == (
        "non-default capabilities"
    )


@pytest.mark.parametrize(
    ("minor", "reasons"),
    [
        (0, "runAsNonRoot != true"),
        (8, "allowPrivilegeEscalation != false, runAsNonRoot != true"),
        (19, "allowPrivilegeEscalation != false, runAsNonRoot != true, seccompProfile"),
        (
            22,
            (
                "allowPrivilegeEscalation != false, unrestricted capabilities, "
                "runAsNonRoot != true, "
                "seccompProfile"
            ),
        ),
        (
            99,
            (
                "allowPrivilegeEscalation != false, unrestricted capabilities, "
                "runAsNonRoot != true, "
                "runAsUser=0, seccompProfile"
            ),
        ),
    ],
)
def test_a_level_asks_for_what_it_asked_for_in_its_version(minor: int, reasons: str) -> None:
    spec = spec_of(container("x"), **security(runAsUser=0))
    assert reason_of(violations(LevelVersion("restricted", minor), {}, spec)) == reasons


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_wmem", 32),
    ],
)
def test_the_list_of_safe_sysctls_grew(name: str, since: int) -> None:
    spec = spec_of(container(), **security(sysctls=[{"name": name, "value": "1"}]))
    assert detail(spec, minor=since) == ""
    if since:
        assert detail(spec, minor=since - 1) == f"forbidden sysctls ({name})"


def test_container_engines_have_an_selinux_type_of_their_own_since_1_31() -> None:
    spec = spec_of(container("a", seLinuxOptions={"type": "container_engine_t"}))
    assert detail(spec, minor=31) == ""
    assert 'type "container_engine_t"' in detail(spec, minor=30)


def test_annotations_counted_before_there_were_fields() -> None:
    spec = spec_of(container("a"))
    key = "seccomp.security.alpha.kubernetes.io/pod"
    found = detail(spec, minor=18, annotations={key: "unconfined", f"{_SECCOMP}/a": "no"})
    assert found == (
        f'seccompProfile (forbidden annotations {_SECCOMP}/a="no", {key}="unconfined")'
    )
    assert detail(spec, minor=19, annotations={key: "unconfined"}) == ""
    assert detail(spec, minor=18, annotations={key: "docker/default"}) == ""


def test_app_armor_is_turned_off_by_annotation_too() -> None:
    spec = spec_of(container("a"))
    found = detail(spec, annotations={f"{_AA}/a": "unconfined", f"{_AA}/b": "localhost/x"})
    assert found == (
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
        f'"{_AA}/a="unconfined"")'
    )
    assert detail(spec, annotations={f"{_AA}/a": "runtime/default"}) == ""


def test_windows_pods_are_excused_from_what_they_cannot_say() -> None:
    spec = spec_of(container("a", runAsNonRoot=True), os={"name": "windows"})
    assert detail(spec, "restricted") == ""
    assert "seccompProfile" in detail(spec, "restricted", 24)
