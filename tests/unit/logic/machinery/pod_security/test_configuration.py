"""Defaults and exemptions from a file, and what is said of a file that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.pod_security.configuration import (
    ConfigurationError,
    parse_configuration,
)
from skerry.logic.machinery.pod_security.policy import LevelVersion

PLUGIN = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
}


def file(**plugin: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "PodSecurity", "configuration": {**PLUGIN, **plugin}}],
    }


def test_a_file_gives_defaults_and_exemptions() -> None:
    found = parse_configuration(
        file(
            defaults={"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted"},
            exemptions={
                "usernames": ["system:admin"],
                "runtimeClasses": ["kata"],
                "namespaces": ["kube-system"],
            },
        )
    )
    assert found.defaults.enforce == LevelVersion("baseline", 30)
    assert found.defaults.warn == LevelVersion("restricted", None)
    assert found.defaults.audit == LevelVersion("privileged", None)
    assert found.usernames == {"system:admin"}
    assert found.runtime_classes == {"kata"}
    assert found.namespaces == {"kube-system"}


def test_an_empty_configuration_changes_nothing() -> None:
    assert parse_configuration(file()).defaults.is_privileged
    assert parse_configuration({**file(), "plugins": []}).defaults.is_privileged


WHERE = "plugins[0].configuration"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "file: want a AdmissionConfiguration"),
        ({"kind": "Pod"}, "file: None Pod: want apiserver.config.k8s.io/v1 AdmissionConfiguration"),
        ({**file(), "plugins": {}}, None),
        ({**file(), "plugins": "x"}, "plugins: want a list"),
        ({**file(), "plugins": [{"name": "ImagePolicy"}]}, "plugins[0].name: 'ImagePolicy'"),
        ({**file(), "plugins": [3]}, "plugins[0].name: 3 is unknown"),
        ({**file(), "other": 1}, "file.other: unknown field"),
        (file(defaults={"enforce": "none"}), f"{WHERE}.defaults.enforce: Invalid value"),
        (file(defaults={"warn-version": "1"}), f"{WHERE}.defaults.warn-version: Invalid value"),
        (file(defaults={"deny": "x"}), f"{WHERE}.defaults.deny: unknown field"),
        (file(defaults=[]), None),
        (file(defaults="x"), f"{WHERE}.defaults: want a mapping"),
        (file(exemptions={"users": []}), f"{WHERE}.exemptions.users: unknown field"),
        (file(exemptions={"usernames": [""]}), f"{WHERE}.exemptions.usernames[0]: ''"),
        (file(exemptions={"namespaces": ["a", "a"]}), "namespaces[1]: Duplicate value: 'a'"),
        (file(more=1), f"{WHERE}.more: unknown field"),
    ],
)
def test_a_wrong_file_is_refused_by_the_field_that_is_wrong(
    document: Any, message: str | None
) -> None:
    if message is None:
        parse_configuration(document)
        return
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(document)
    assert message in str(refused.value)
