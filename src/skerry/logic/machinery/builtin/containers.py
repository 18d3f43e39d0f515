"""Containers: ports, environment, mounts, resources, probes and life-cycle handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import (
    amount_errors,
    container_resource_errors,
    is_huge_page,
    overcommits,
    parsed,
)
from skerry.logic.machinery.builtin.downward import (
    field_reference_errors,
    resource_reference_errors,
)
from skerry.logic.machinery.builtin.mounts import device_errors, mount_errors
from skerry.logic.machinery.builtin.pod_security import security_context_errors
from skerry.logic.machinery.builtin.rules import Errors, each, non_negative, one_of, unsupported
from skerry.logic.machinery.names import (
    config_map_key,
    dns1123_label,
    dns1123_subdomain,
    http_header_name,
    port_name,
    port_number,
    relaxed_env_var_name,
)
from skerry.logic.machinery.quantity import QuantityError

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_SCHEMES = ("HTTP", "HTTPS")
_MORE_THAN_ONE = "may not have more than one field specified at a time"


def container_errors(
    container: Object,
    path: str,
    volumes: Mapping[str, Object],
    restart_policy: str,
    claims: Collection[str] = (),
) -> Errors:
    """Return what is wrong with a container of any sort, apart from its probes and handlers."""
    errors: Errors = []
    name = container.get("name") or ""
    if not name:
        errors.append(FieldError.required(f"{path}.name"))
    else:
        errors += each(f"{path}.name", name, dns1123_label(name))
    if not container.get("image"):
        errors.append(FieldError.required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy")
    if policy not in _MESSAGE_POLICIES:
        errors += one_of(policy, f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES)
    for field, check in _PARTS.items():
        part = container.get(field)
        if part:
            errors += check(part, f"{path}.{field}")
    errors += mount_errors(container, path, volumes)
    errors += device_errors(container, path, volumes)
    if container.get("imagePullPolicy") not in _PULL_POLICIES:
        policy = container.get("imagePullPolicy")
        errors += one_of(policy, f"{path}.imagePullPolicy", _PULL_POLICIES)
    if container.get("resizePolicy"):
        where = f"{path}.resizePolicy"
        errors += _resize_errors(container["resizePolicy"], where, restart_policy)
    resources = container.get("resources")
    if resources and resources.get("claims"):
        errors += _claim_errors(resources["claims"], f"{path}.resources.claims", claims)
    return errors


def _port_errors(ports: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, port in enumerate(ports):
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        name, protocol = port.get("name"), port.get("protocol")
        if 0 < number <= 65535 and not host and not name and protocol in PROTOCOLS:
            continue
        where = f"{path}[{index}]"
        if name:
            wrong = port_name(name)
            errors += each(f"{where}.name", name, wrong)
            if not wrong and name in taken:
                errors.append(FieldError.duplicate(f"{where}.name", name))
            taken.add(name)
        errors += _required_port_errors(number, f"{where}.containerPort")
        if host:
            errors += each(f"{where}.hostPort", host, port_number(host))
        if protocol not in PROTOCOLS:
            errors += one_of(protocol, f"{where}.protocol", PROTOCOLS)
    return errors


def _required_port_errors(number: int, path: str) -> Errors:
    return each(path, number, port_number(number)) if number else [FieldError.required(path)]


def host_port_errors(containers: Sequence[Object], path: str) -> Errors:
    """Refuse two containers that want the same port of the node."""
    errors: Errors = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort")
            if not host:
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP') or ''}/{host}"
            if key in taken:
                where = f"{path}[{index}].ports[{position}].hostPort"
                errors.append(FieldError.duplicate(where, key))
            taken.add(key)
    return errors


def _env_errors(variables: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    for index, variable in enumerate(variables):
        name = variable.get("name")
        wrong = relaxed_env_var_name(name) if name else None
        if wrong is None:
            errors.append(FieldError.required(f"{path}[{index}].name"))
        elif wrong:
            errors += each(f"{path}[{index}].name", name, wrong)
        if variable.get("valueFrom") is not None:
            errors += _value_source_errors(variable, f"{path}[{index}].valueFrom")
    return errors


def _value_source_errors(variable: Object, path: str) -> Errors:
    errors: Errors = []
    source = variable["valueFrom"]
    given = [name for name in _VALUE_SOURCES if source.get(name) is not None]
    for name in given:
        errors += _VALUE_SOURCES[name](source[name], f"{path}.{name}")
    if not given:
        text = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
            "`secretKeyRef`"
        )
        errors.append(FieldError.invalid(path, "", text))
    elif variable.get("value"):
        text = "may not be specified when `value` is not empty"
        errors.append(FieldError.invalid(path, "", text))
    elif len(given) > 1:
        errors.append(FieldError.invalid(path, "", _MORE_THAN_ONE))
    return errors


def _key_reference_errors(reference: Object, path: str) -> Errors:
    name, key = reference.get("name") or "", reference.get("key") or ""
    errors = each(f"{path}.name", name, dns1123_subdomain(name))
    if not key:
        return [*errors, FieldError.required(f"{path}.key")]
    return errors + each(f"{path}.key", key, config_map_key(key))


_VALUE_SOURCES: dict[str, Callable[[Object, str], Errors]] = {
    "fieldRef": field_reference_errors,
    "resourceFieldRef": resource_reference_errors,
    "configMapKeyRef": _key_reference_errors,
    "secretKeyRef": _key_reference_errors,
}


def _env_from_errors(sources: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        prefix = source.get("prefix")
        if prefix:
            errors += each(f"{where}.prefix", prefix, relaxed_env_var_name(prefix))
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            referred = source[name].get("name") or ""
            errors += (
                each(f"{where}.{name}.name", referred, dns1123_subdomain(referred))
                if referred
                else [FieldError.required(f"{where}.{name}.name")]
            )
        if not given:
            text = "must specify one of: `configMapRef` or `secretRef`"
            errors.append(FieldError.invalid(path, "", text))
        elif len(given) > 1:
            errors.append(FieldError.invalid(path, "", _MORE_THAN_ONE))
    return errors


def resource_errors(
    resources: Object,
    path: str,
    name_errors: Callable[[str, str], Errors] = container_resource_errors,
) -> Errors:
    """Return what is wrong with limits and requests: names, amounts, and their order."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: Errors = []
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            where = f"{path}.{group}[{name}]"
            errors += name_errors(name, where)
            errors += amount_errors(name, value, where)
    for name, value in requests.items():
        errors += _request_errors(name, value, limits.get(name), path)
    named = {*limits, *requests}
    if any(map(is_huge_page, named)) and not named & {"cpu", "memory"}:
        errors.append(FieldError.forbidden(path, "HugePages require cpu or memory"))
    return errors


def _request_errors(name: str, value: str | float, limit: str | float | None, path: str) -> Errors:
    if limit is None:
        if overcommits(name):
            return []
        text = "Limit must be set for non overcommitable resources"
        return [FieldError.required(f"{path}.limits", text)]
    if limit == value:
        return []
    try:
        wanted, maximum = parsed(value), parsed(limit)
    except QuantityError:
        return []
    if wanted != maximum and not overcommits(name):
        text = f"must be equal to {name} limit of {maximum}"
    elif wanted > maximum:
        text = f"must be less than or equal to {name} limit of {maximum}"
    else:
        return []
    return [FieldError.invalid(f"{path}.requests", str(wanted), text)]


# A pod has a few; every claim that is not among them would list all of them.
_LISTED_CLAIMS = 50


def _claim_errors(claims: Sequence[Object], path: str, known: Collection[str]) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    listed = ", ".join(sorted(known)[:_LISTED_CLAIMS])
    for index, claim in enumerate(claims):
        name, where = claim.get("name") or "", f"{path}[{index}]"
        if not name:
            errors.append(FieldError.required(where))
            continue
        key = f"{name}/{claim['request']}" if claim.get("request") else name
        if key in taken or name in taken:
            errors.append(FieldError.duplicate(where, key))
        taken.add(key)
        if name not in known:
            rest = f": {listed}" if known else " which is empty"
            text = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{rest}'
            errors.append(FieldError("FieldValueNotFound", where, text))
    return errors


def _resize_errors(policies: Sequence[Object], path: str, restart_policy: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, policy in enumerate(policies):
        resource, action = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in taken:
            errors.append(FieldError.duplicate(f"{path}[{index}]", resource))
        taken.add(resource)
        errors += one_of(resource, path, ("cpu", "memory"))
        errors += one_of(action, path, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and action != "NotRequired":
            text = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(FieldError.invalid(path, action, text))
    return errors


_PARTS: dict[str, Callable[[Any, str], Errors]] = {
    "ports": _port_errors,
    "env": _env_errors,
    "envFrom": _env_from_errors,
    "resources": resource_errors,
    "securityContext": security_context_errors,
}


def handler_and_probe_errors(container: Object, path: str, grace_seconds: int | None) -> Errors:
    """Return what is wrong with what the kubelet is to ask and tell a container."""
    errors: Errors = []
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                where = f"{path}.lifecycle.{name}"
                errors += _handler_errors(lifecycle[name], where, grace_seconds)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            errors += _probe_errors(probe, f"{path}.{name}", name, grace_seconds)
    return errors


_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def _probe_errors(probe: Object, path: str, name: str, grace_seconds: int | None) -> Errors:
    errors = _handler_errors(probe, path, grace_seconds)
    for field in _PROBE_NUMBERS:
        if (probe.get(field) or 0) < 0:
            errors += non_negative(probe[field], f"{path}.{field}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        text = "must be greater than 0"
        errors.append(FieldError.invalid(f"{path}.terminationGracePeriodSeconds", grace, text))
    if name == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            errors.append(FieldError.invalid(f"{path}.terminationGracePeriodSeconds", grace, text))
    elif probe.get("successThreshold") != 1:
        threshold = probe.get("successThreshold") or 0
        errors.append(FieldError.invalid(f"{path}.successThreshold", threshold, "must be 1"))
    return errors


def _handler_errors(handler: Object, path: str, grace_seconds: int | None) -> Errors:
    errors: Errors = []
    found = False
    for name, check in _HANDLERS.items():
        action = handler.get(name)
        if action is None:
            continue
        if found:
            text = "may not specify more than 1 handler type"
            errors.append(FieldError.forbidden(f"{path}.{name}", text))
        else:
            errors += check(action, f"{path}.{name}")
        found = True
    if handler.get("sleep") is not None and grace_seconds is not None:
        errors += _sleep_errors(
            handler["sleep"].get("seconds") or 0, f"{path}.sleep", grace_seconds
        )
    elif not found:
        errors.append(FieldError.required(path, "must specify a handler type"))
    return errors


def _exec_errors(action: Object, path: str) -> Errors:
    return [] if action.get("command") else [FieldError.required(f"{path}.command")]


def _http_errors(action: Object, path: str) -> Errors:
    errors: Errors = []
    if not action.get("path"):
        errors.append(FieldError.required(f"{path}.path"))
    errors += port_reference_errors(action.get("port"), f"{path}.port")
    if action.get("scheme") not in _SCHEMES:
        errors.append(unsupported(f"{path}.scheme", action.get("scheme") or "", _SCHEMES))
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        errors += each(f"{path}.httpHeaders", name, http_header_name(name))
    return errors


def port_reference_errors(port: int | str | None, path: str) -> Errors:
    """Refuse what neither numbers nor names a port."""
    if isinstance(port, str):
        return each(path, port, port_name(port))
    return each(path, port or 0, port_number(port or 0))


def _socket_errors(action: Object, path: str) -> Errors:
    return port_reference_errors(action.get("port"), f"{path}.port")


def _sleep_errors(seconds: int, path: str, grace_seconds: int) -> Errors:
    if 0 < seconds <= grace_seconds:
        return []
    text = (
        f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace_seconds}). "
        "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
    )
    return [FieldError.invalid(path, seconds, text)]


_HANDLERS: dict[str, Callable[[Object, str], Errors]] = {
    "exec": _exec_errors,
    "httpGet": _http_errors,
    "tcpSocket": _socket_errors,
    "grpc": _socket_errors,
}
