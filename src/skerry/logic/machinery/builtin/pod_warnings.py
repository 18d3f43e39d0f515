"""Warnings to a client about a pod that is accepted but will surprise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import parsed
from skerry.logic.machinery.builtin.known_specs import KnownSpecs, essence_of
from skerry.logic.machinery.builtin.rules import member
from skerry.logic.machinery.names import dns1123_label
from skerry.logic.machinery.quantity import QuantityError

_GONE_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_GONE_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_GONE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
}
_BYTES = ("memory", "ephemeral-storage")
# Of ports that are alike, a further one is compared with the first few.
_COMPARED_PORTS = 8
_NO_POD = "a null labelSelector results in matching no pod"


def pod_warnings(pod: Object) -> list[str]:
    """Return the warnings a pod earns."""
    metadata = pod.get("metadata") or {}
    named = name_warnings(pod, "the Pod's hostname")
    # Annotations earn warnings as well.
    essence = b"" if metadata.get("annotations") else essence_of(pod)
    if _SILENT.has(essence):
        return named
    found = list(_warnings(metadata, pod.get("spec") or {}, ""))
    if not found:
        _SILENT.add(essence)
    return named + found


_SILENT: Final = KnownSpecs()


def name_warnings(obj: Object, use: str = "Pod names and hostnames") -> list[str]:
    """Return a warning for a name that no host can bear."""
    wrong = dns1123_label((obj.get("metadata") or {}).get("name") or "a")
    if not wrong:
        return []
    why = "which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: this is used in {use}, {why}: [{' '.join(wrong)}]"]


def template_warnings(template: Object, path: str) -> list[str]:
    """Return the warnings a pod template at *path* earns."""
    return list(_warnings(template.get("metadata") or {}, template.get("spec") or {}, f"{path}."))


def _warnings(metadata: Mapping[str, Any], spec: Object, prefix: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _GONE_LABELS:
            yield f"{prefix}spec.nodeSelector[{key}]: {_GONE_LABELS[key]}"
    yield from _spread_warnings(spec, prefix)
    annotations = metadata.get("annotations") or ()
    for key, message in _GONE_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {message}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        for name in volume:
            if name in _GONE_VOLUMES:
                yield f"{prefix}spec.volumes[{index}].{name}: {_GONE_VOLUMES[name]}"
    yield from _repeated(spec, "hostAliases", "ip", prefix)
    yield from _repeated(spec, "imagePullSecrets", "name", prefix)
    yield from _fractions(spec.get("overhead") or {}, f"{prefix}spec.overhead")
    yield from _container_warnings(spec, prefix)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        field = f"{prefix}spec.terminationGracePeriodSeconds"
        yield f"{field}: must be >= 0; negative values are invalid and will be treated as 1"
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _affinity_warnings(spec, kind, prefix)


def _spread_warnings(spec: Object, prefix: str) -> Iterator[str]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{prefix}spec.topologySpreadConstraints[{index}]"
        key = constraint.get("topologyKey")
        if key in _GONE_LABELS:
            yield f"{where}.topologyKey: {key} is {_GONE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_POD}"


def _repeated(spec: Object, field: str, key: str, prefix: str) -> Iterator[str]:
    taken = set()
    for index, item in enumerate(spec.get(field) or ()):
        value = item.get(key) or ""
        if value in taken:
            yield f'{prefix}spec.{field}[{index}].{key}: duplicate {key} "{value}"'
        taken.add(value)


def _fractions(amounts: Object, path: str) -> Iterator[str]:
    for name in _BYTES:
        value = amounts.get(name)
        if value is not None and _is_fraction(value):
            text = f'fractional byte value "{parsed(value)}" is invalid, must be an integer'
            yield f"{path}[{name}]: {text}"


def _is_fraction(value: str | float) -> bool:
    try:
        return bool(parsed(value).milli_value() % 1000)
    except QuantityError:
        return False


def _container_warnings(spec: Object, prefix: str) -> Iterator[str]:
    ports: dict[tuple[object, object], list[tuple[str, Object]]] = {}
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            where = f"{prefix}spec.{group}[{index}]"
            resources = container.get("resources")
            if resources:
                for kind in ("limits", "requests"):
                    yield from _fractions(resources.get(kind) or {}, f"{where}.resources.{kind}")
            yield from _hidden_variables(container.get("env") or (), where)
            for position, port in enumerate(container.get("ports") or ()):
                yield from _port_warnings(port, f"{where}.ports[{position}]", ports)


def _hidden_variables(variables: Sequence[Object], path: str) -> Iterator[str]:
    if len(variables) < 2:
        return
    taken = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name"), variable.get("value") or ""
        if name in taken:
            reference = f"$({name})"
            extends = reference in value and value != reference
            if variable.get("valueFrom") is not None or not extends:
                text = (
                    f'hides previous definition of "{name}", which may be dropped when using apply'
                )
                yield f"{path}.env[{index}]: {text}"
        taken.add(name)


def _port_warnings(
    port: Object, path: str, taken: dict[tuple[object, object], list[tuple[str, Object]]]
) -> Iterator[str]:
    others = taken.setdefault((port.get("containerPort"), port.get("protocol")), [])
    host, address = port.get("hostPort") or 0, port.get("hostIP") or ""
    for field, other in others:
        other_host, other_address = other.get("hostPort") or 0, other.get("hostIP") or ""
        if (host, address) == (other_host, other_address):
            yield f"{path}: duplicate port definition with {field}"
        elif not host or not other_host:
            yield f"{path}: overlapping port definition with {field}"
        elif host == other_host and bool(address) != bool(other_address):
            yield f"{path}: dangerously ambiguous port definition with {field}"
    if len(others) < _COMPARED_PORTS:
        others.append((path, port))


def _affinity_warnings(spec: Object, kind: str, prefix: str) -> Iterator[str]:
    affinity = member(spec, "affinity", kind)
    if not affinity:
        return
    where = f"{prefix}spec.affinity.{kind}"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(affinity.get(required) or ()):
        if term.get("labelSelector") is None:
            yield f"{where}.{required}[{index}].labelSelector: {_NO_POD}"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(affinity.get(preferred) or ()):
        if member(term, "podAffinityTerm", "labelSelector") is None:
            yield f"{where}.{preferred}[{index}].podAffinityTerm.labelSelector: {_NO_POD}"
