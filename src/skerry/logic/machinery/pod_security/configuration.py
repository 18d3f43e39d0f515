"""Defaults and exemptions: the PodSecurity part of an AdmissionConfiguration file.

    apiVersion: apiserver.config.k8s.io/v1
    kind: AdmissionConfiguration
    plugins:
    - name: PodSecurity
      configuration:
        apiVersion: pod-security.admission.config.k8s.io/v1
        kind: PodSecurityConfiguration
        defaults: {enforce: baseline, enforce-version: latest}
        exemptions: {usernames: [], runtimeClasses: [], namespaces: [kube-system]}

Anything but the PodSecurity plugin is refused by name: a rule that is written down and not kept is
worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.api.errors import FieldError
from skerry.logic.machinery.pod_security.policy import (
    MODES,
    LevelVersion,
    Mode,
    Policy,
    level_error,
    parse_level,
    parse_version,
    version_error,
)

_FILE = ("apiserver.config.k8s.io/v1", "AdmissionConfiguration")
_PLUGIN = ("pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration")
_EXEMPTIONS = ("usernames", "runtimeClasses", "namespaces")


class ConfigurationError(Exception):
    """A file that cannot be used; the text names the field."""


@dataclass(frozen=True, slots=True)
class PodSecurityConfiguration:
    """What holds where a Namespace says nothing, and whom no policy concerns."""

    defaults: Policy = field(default_factory=Policy)
    usernames: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    # As Kubernetes: a Namespace with more pods than this is warned about by a sample.
    max_pods_checked: int = 3000


def parse_configuration(document: Any) -> PodSecurityConfiguration:
    """Return what a decoded file says; raises ``ConfigurationError``."""
    _require(document, "", _FILE, {"plugins"})
    found = PodSecurityConfiguration()
    for index, plugin in enumerate(_list(document, "plugins", "")):
        path = f"plugins[{index}]"
        if not isinstance(plugin, dict) or plugin.get("name") != "PodSecurity":
            name = plugin.get("name") if isinstance(plugin, dict) else plugin
            raise ConfigurationError(f"{path}.name: {name!r} is unknown; want PodSecurity")
        if unknown := sorted(set(plugin) - {"name", "configuration"}):
            raise ConfigurationError(f"{path}.{unknown[0]}: unknown field")
        found = _plugin(plugin.get("configuration"), f"{path}.configuration")
    return found


def _plugin(document: Any, path: str) -> PodSecurityConfiguration:
    _require(document, path, _PLUGIN, {"defaults", "exemptions"})
    exemptions = _mapping(document, "exemptions", path, set(_EXEMPTIONS))
    users, classes, namespaces = (
        _names(exemptions, name, f"{path}.exemptions") for name in _EXEMPTIONS
    )
    return PodSecurityConfiguration(_defaults(document, path), users, classes, namespaces)


def _defaults(document: Mapping[str, Any], path: str) -> Policy:
    known = {*MODES, *(f"{mode}-version" for mode in MODES)}
    said = _mapping(document, "defaults", path, known)
    found: dict[Mode, LevelVersion] = {}
    for mode in MODES:
        level = str(said.get(mode) or "privileged")
        version = str(said.get(f"{mode}-version") or "latest")
        where = f"{path}.defaults"
        _refuse(level_error(f"{where}.{mode}", level))
        _refuse(version_error(f"{where}.{mode}-version", version))
        found[mode] = LevelVersion(parse_level(level) or "restricted", parse_version(version)[1])
    return Policy(**found)


def _refuse(error: FieldError | None) -> None:
    if error is not None:
        raise ConfigurationError(str(error))


def _require(document: Any, path: str, wanted: tuple[str, str], known: set[str]) -> None:
    where = path or "file"
    if not isinstance(document, dict):
        raise ConfigurationError(f"{where}: want a {wanted[1]}")
    said = (document.get("apiVersion"), document.get("kind"))
    if said != wanted:
        raise ConfigurationError(f"{where}: {said[0]} {said[1]}: want {wanted[0]} {wanted[1]}")
    if unknown := sorted(set(document) - known - {"apiVersion", "kind"}):
        raise ConfigurationError(f"{where}.{unknown[0]}: unknown field")


def _mapping(
    document: Mapping[str, Any], name: str, path: str, known: set[str]
) -> Mapping[str, Any]:
    found = document.get(name) or {}
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path}.{name}: want a mapping")
    if unknown := sorted(set(found) - known):
        raise ConfigurationError(f"{path}.{name}.{unknown[0]}: unknown field")
    return found


def _list(document: Mapping[str, Any], name: str, path: str) -> list[Any]:
    found = document.get(name) or []
    if not isinstance(found, list):
        raise ConfigurationError(f"{path}.{name}: want a list".lstrip("."))
    return found


def _names(document: Mapping[str, Any], name: str, path: str) -> frozenset[str]:
    found = _list(document, name, path)
    for index, item in enumerate(found):
        if not isinstance(item, str) or not item:
            raise ConfigurationError(f"{path}.{name}[{index}]: {item!r}: want a name")
        if item in found[:index]:
            raise ConfigurationError(f"{path}.{name}[{index}]: Duplicate value: {item!r}")
    return frozenset(found)
