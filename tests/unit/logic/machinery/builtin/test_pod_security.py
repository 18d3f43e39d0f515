"""Security contexts: identities, profiles and kernel settings that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_security import (
    identity_errors,
    pod_security_errors,
    security_context_errors,
)


def of_container(**context: Any) -> list[str]:
    return [str(error) for error in security_context_errors(context, "c")]


def of_pod(spec: Object | None = None, **context: Any) -> list[str]:
    return [str(error) for error in pod_security_errors(spec or {}, context, "p")]


def fields(texts: list[str]) -> list[str]:
    return [text.split(": ")[0] for text in texts]


@pytest.mark.parametrize(
    ("number", "good"), [(None, True), (0, True), (2**31 - 1, True), (2**31, False), (-1, False)]
)
def test_an_identity_has_31_bits(number: int | None, good: bool) -> None:
    assert (identity_errors(number, "u") == []) is good


@pytest.mark.parametrize("field", ["runAsUser", "runAsGroup"])
def test_both_contexts_run_as_somebody(field: str) -> None:
    assert fields(of_container(**{field: -1})) == [f"c.{field}"]
    assert fields(of_pod({}, **{field: -1})) == [f"p.{field}"]


def test_groups_of_a_pod_are_identities_too() -> None:
    assert fields(of_pod(fsGroup=-1, supplementalGroups=[1, -1])) == [
        "p.fsGroup",
        "p.supplementalGroups[1]",
    ]


@pytest.mark.parametrize(
    ("context", "good"),
    [
        ({"allowPrivilegeEscalation": False}, True),
        ({"privileged": True}, True),
        ({"allowPrivilegeEscalation": True, "privileged": True}, True),
        ({"allowPrivilegeEscalation": False, "privileged": True}, False),
        ({"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}, False),
        ({"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_TIME"]}}, True),
        ({"procMount": "Unmasked"}, True),
        ({"procMount": "Naked"}, False),
    ],
)
def test_a_container_does_not_contradict_itself(context: Object, good: bool) -> None:
    assert (of_container(**context) == []) is good


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ({"type": "RuntimeDefault"}, ""),
        ({"type": "Localhost", "localhostProfile": "a/b.json"}, ""),
        ({}, "type"),
        ({"type": "Strict"}, "type"),
        ({"type": "Localhost"}, "localhostProfile"),
        ({"type": "Localhost", "localhostProfile": "../a"}, "localhostProfile"),
        ({"type": "Unconfined", "localhostProfile": "a"}, "localhostProfile"),
    ],
)
def test_a_seccomp_profile_is_a_file_exactly_when_it_is_local(profile: Object, field: str) -> None:
    wanted = [f"seccompProfile.{field}"] * bool(field)
    assert fields(of_container(seccompProfile=profile)) == [f"c.{name}" for name in wanted]
    assert fields(of_pod(seccompProfile=profile)) == [f"p.{name}" for name in wanted]


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ({"type": "Unconfined"}, ""),
        ({"type": "Localhost", "localhostProfile": "a"}, ""),
        ({}, "type"),
        ({"type": "Strict"}, "type"),
        ({"type": "Localhost"}, "localhostProfile"),
        ({"type": "Localhost", "localhostProfile": " a"}, "localhostProfile"),
        ({"type": "Localhost", "localhostProfile": "a" * 4096}, "localhostProfile"),
        ({"type": "RuntimeDefault", "localhostProfile": "a"}, "localhostProfile"),
    ],
)
def test_an_app_armor_profile_is_named_exactly_when_it_is_local(
    profile: Object, field: str
) -> None:
    assert fields(of_container(appArmorProfile=profile)) == [
        f"c.appArmorProfile.{name}" for name in [field] * bool(field)
    ]


def test_processes_are_shared_with_the_pod_or_with_the_node() -> None:
    (text,) = of_pod({"shareProcessNamespace": True, "hostPID": True})
    assert text.endswith("ShareProcessNamespace and HostPID cannot both be enabled")
    assert of_pod({"shareProcessNamespace": True}) == of_pod({"hostPID": True}) == []


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("kernel.shm_rmid_forced", True),
        ("net/ipv4/tcp_syncookies", True),
        ("a" * 253, True),
        ("a" * 254, False),
        ("Kernel.x", False),
        ("kernel..x", False),
        ("", False),
    ],
)
def test_a_sysctl_has_the_name_of_one(name: str, good: bool) -> None:
    assert (of_pod(sysctls=[{"name": name, "value": "1"}]) == []) is good


def test_a_sysctl_is_set_once() -> None:
    setting = {"name": "kernel.x", "value": "1"}
    assert of_pod(sysctls=[setting, setting]) == ['p.sysctls[1].name: Duplicate value: "kernel.x"']


def test_policies_about_groups_are_of_closed_sets() -> None:
    assert of_pod(fsGroupChangePolicy="Always", supplementalGroupsPolicy="Strict") == []
    assert fields(of_pod(fsGroupChangePolicy="x", supplementalGroupsPolicy="x")) == [
        "p.fsGroupChangePolicy",
        "p.supplementalGroupsPolicy",
    ]
