"""Pod specs, in pods and in templates: the whole of what Kubernetes refuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import container_resource_errors
from skerry.logic.machinery.builtin.containers import (
    container_errors,
    handler_and_probe_errors,
    host_port_errors,
    resource_errors,
)
from skerry.logic.machinery.builtin.metadata import annotation_errors
from skerry.logic.machinery.builtin.paths import address_errors
from skerry.logic.machinery.builtin.pod_scheduling import scheduling_errors
from skerry.logic.machinery.builtin.pod_security import pod_security_errors
from skerry.logic.machinery.builtin.rules import Errors, each, one_of, unsupported
from skerry.logic.machinery.builtin.storage import claim_spec_errors
from skerry.logic.machinery.builtin.volumes import volume_errors
from skerry.logic.machinery.names import (
    dns1123_label,
    dns1123_subdomain,
    out_of_range,
    qualified_name,
)
from skerry.logic.machinery.selectors import label_errors

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MAX_DEADLINE = 2**31 - 1
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LENGTH = 2048
_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pod_spec_errors(spec: Object, path: str, pod_name: str = "", *, is_pod: bool = False) -> Errors:
    """Return what is wrong with a pod spec; *is_pod* where it is not merely a template."""
    errors: Errors = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(FieldError.required(f"{path}.terminationGracePeriodSeconds"))
    volumes: Mapping[str, Object] = {}
    if spec.get("volumes"):
        volumes, wrong = volume_errors(
            spec["volumes"], f"{path}.volumes", claim_spec_errors, pod_name
        )
        errors += wrong
    errors += _all_container_errors(spec, path, volumes)
    if spec.get("hostNetwork"):
        errors += _host_network_errors(spec, path, is_pod)
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        errors += one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", RESTART_POLICIES)
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        errors += one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    if spec.get("nodeSelector"):
        errors += label_errors(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("securityContext"):
        context = spec["securityContext"]
        errors += pod_security_errors(spec, context, f"{path}.securityContext")
    errors += scheduling_errors(spec, path)
    return errors + _rest_errors(spec, path)


def _all_container_errors(spec: Object, path: str, volumes: Mapping[str, Object]) -> Errors:
    claims = {claim.get("name") or "" for claim in spec.get("resourceClaims") or ()}
    containers = spec.get("containers") or ()
    errors = _container_list_errors(spec, containers, f"{path}.containers", volumes, claims)
    if spec.get("initContainers"):
        errors += _init_errors(spec, f"{path}.initContainers", volumes, claims)
    if spec.get("ephemeralContainers"):
        errors += _ephemeral_errors(spec, f"{path}.ephemeralContainers", volumes, claims)
    return errors


def _container_list_errors(
    spec: Object,
    containers: Sequence[Object],
    path: str,
    volumes: Mapping[str, Object],
    claims: Collection[str],
) -> Errors:
    if not containers:
        return [FieldError.required(path)]
    errors: Errors = []
    taken: set[str] = set()
    grace, policy = spec.get("terminationGracePeriodSeconds"), spec.get("restartPolicy") or ""
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        errors += container_errors(container, where, volumes, policy, claims)
        name = container.get("name") or ""
        if name in taken:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        taken.add(name)
        errors += handler_and_probe_errors(container, where, grace)
        if container.get("restartPolicy") is not None:
            text = "may not be set for non-init containers"
            errors.append(FieldError.forbidden(f"{where}.restartPolicy", text))
    return errors + host_port_errors(containers, path)


def _init_errors(
    spec: Object, path: str, volumes: Mapping[str, Object], claims: Collection[str]
) -> Errors:
    errors: Errors = []
    taken = {container.get("name") for container in spec.get("containers") or ()}
    grace, policy = spec.get("terminationGracePeriodSeconds"), spec.get("restartPolicy") or ""
    for index, container in enumerate(spec["initContainers"]):
        where = f"{path}[{index}]"
        errors += container_errors(container, where, volumes, policy, claims)
        own_policy, name = container.get("restartPolicy"), container.get("name")
        if own_policy not in (None, "Always"):
            errors.append(unsupported(f"{where}.restartPolicy", own_policy, ("Always",)))
        if name and name in taken:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        taken.add(name)
        errors += host_port_errors([container], path)
        if own_policy == "Always":
            errors += handler_and_probe_errors(container, where, grace)
        else:
            errors += [
                FieldError.forbidden(f"{where}.{field}", _NOT_FOR_INIT)
                for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                if container.get(field) is not None
            ]
    return errors


def _ephemeral_errors(
    spec: Object, path: str, volumes: Mapping[str, Object], claims: Collection[str]
) -> Errors:
    errors: Errors = []
    others = {
        container.get("name")
        for group in ("containers", "initContainers")
        for container in spec.get(group) or ()
    }
    taken = set(others)
    for index, container in enumerate(spec["ephemeralContainers"]):
        where = f"{path}[{index}]"
        errors += container_errors(
            container, where, volumes, spec.get("restartPolicy") or "", claims
        )
        errors += image_space_errors([container], path)
        name, target = container.get("name"), container.get("targetContainerName")
        if name in taken:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        taken.add(name)
        if target and target not in others:
            errors.append(FieldError.not_found(f"{where}.targetContainerName", target))
        errors += _ephemeral_field_errors(container, where)
    return errors


def _ephemeral_field_errors(container: Object, path: str) -> Errors:
    errors = [
        FieldError.forbidden(f"{path}.{field}", _EPHEMERAL)
        for field in _NOT_EPHEMERAL
        if container.get(field)
    ]
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                where = f"{path}.volumeMounts[{index}].{field}"
                errors.append(FieldError.forbidden(where, _EPHEMERAL))
    return errors


def image_space_errors(containers: Sequence[Object], path: str) -> Errors:
    """Refuse images padded with blanks; templates may carry them, pods not."""
    return [
        FieldError.invalid(
            f"{path}[{index}].image",
            container["image"],
            "must not have leading or trailing whitespace",
        )
        for index, container in enumerate(containers)
        if container.get("image") and container["image"] != container["image"].strip()
    ]


def _host_network_errors(spec: Object, path: str, is_pod: bool) -> Errors:
    errors: Errors = []
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if (is_pod or host) and host != port.get("containerPort"):
                field = f"{path}.containers[{index}].ports[{position}].hostPort"
                text = "must match `containerPort` when `hostNetwork` is true"
                errors.append(FieldError.invalid(field, host, text))
    return errors


# Names a pod spec may give, and what each must look like.
_NAMES = {
    "serviceAccountName": dns1123_subdomain,
    "nodeName": dns1123_subdomain,
    "hostname": dns1123_label,
    "subdomain": dns1123_label,
    "priorityClassName": dns1123_subdomain,
    "runtimeClassName": dns1123_subdomain,
}


def _rest_errors(spec: Object, path: str) -> Errors:
    errors: Errors = []
    for field, check in _NAMES.items():
        name = spec.get(field)
        if name:
            errors += each(f"{path}.{field}", name, check(name))
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if any(value for field, value in secret.items() if field != "name"):
            text = "only name may be set"
            errors.append(FieldError.invalid(f"{path}.imagePullSecrets[{index}]", secret, text))
    errors += _dns_errors(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        where = f"{path}.readinessGates[{index}].conditionType"
        errors += each(where, kind, qualified_name(kind))
    return errors + _number_errors(spec, path) + _option_errors(spec, path)


def _number_errors(spec: Object, path: str) -> Errors:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is None or 1 <= deadline <= _MAX_DEADLINE:
        return []
    text = out_of_range(1, _MAX_DEADLINE)
    return [FieldError.invalid(f"{path}.activeDeadlineSeconds", deadline, text)]


def _option_errors(spec: Object, path: str) -> Errors:
    errors: Errors = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        where = f"{path}.hostAliases[{index}]"
        errors += address_errors(alias.get("ip") or "", f"{where}.ip")
        for position, name in enumerate(alias.get("hostnames") or ()):
            errors += each(f"{where}.hostnames[{position}]", name, dns1123_subdomain(name))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION:
        errors += one_of(policy, f"{path}.preemptionPolicy", _PREEMPTION)
    if spec.get("overhead"):
        amounts = {"limits": spec["overhead"]}
        errors += resource_errors(amounts, f"{path}.overhead", container_resource_errors)
    system = spec.get("os")
    if system is not None:
        errors += _system_errors(system.get("name") or "", f"{path}.os")
    if spec.get("hostUsers") is False:
        for field, shown in (
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ):
            if spec.get(field):
                text = "when `pod.Spec.HostUsers` is false"
                errors.append(FieldError.forbidden(f"{path}.{shown}", text))
    return errors


def _system_errors(name: str, path: str) -> Errors:
    if not name:
        return [FieldError.required(f"{path}.name", "cannot be empty")]
    if name not in ("linux", "windows"):
        return [unsupported(path, name, ("linux", "windows"))]
    return []


def _dns_errors(spec: Object, path: str) -> Errors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            text = "must provide `dnsConfig` when `dnsPolicy` is None"
            return [FieldError.required(path, text)]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [FieldError.required(f"{path}.nameservers", text)]
    if not config:
        return []
    errors: Errors = []
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > _MAX_NAMESERVERS:
        text = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(FieldError.invalid(f"{path}.nameservers", servers, text))
    for index, server in enumerate(servers):
        errors += address_errors(server, f"{path}.nameservers[{index}]")
    errors += _search_errors(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(FieldError.required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _search_errors(searches: Sequence[str], path: str) -> Errors:
    errors: Errors = []
    if len(searches) > _MAX_SEARCHES:
        text = f"must not have more than {_MAX_SEARCHES} search paths"
        errors.append(FieldError.invalid(path, searches, text))
    if len(" ".join(searches)) > _MAX_SEARCH_LENGTH:
        text = (
            f"must not have more than {_MAX_SEARCH_LENGTH} characters (including spaces) in the "
            "search list"
        )
        errors.append(FieldError.invalid(path, searches, text))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        errors += each(f"{path}[{index}]", name, dns1123_subdomain(name))
    return errors


def pod_annotation_errors(annotations: Mapping[str, str], spec: Object, path: str) -> Errors:
    """Return what is wrong with the annotations Kubernetes itself reads of a pod."""
    errors: Errors = []
    if _MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(FieldError.invalid(f"{path}[{_MIRROR}]", annotations[_MIRROR], text))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_cost(cost):
        text = "must be a 32bit integer"
        errors.append(FieldError.invalid(f"{path}[{_DELETION_COST}]", cost, text))
    return errors


def _is_cost(text: str) -> bool:
    # Kubernetes wants the form it would print itself: no plus sign, no leading zeros.
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return False
    return str(int(text)) == text and -(2**31) <= int(text) < 2**31


def template_errors(template: Object, path: str) -> Errors:
    """Return what is wrong with a pod template."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors: Errors = []
    if metadata.get("labels"):
        errors += label_errors(metadata["labels"], f"{path}.labels")
    annotations = metadata.get("annotations")
    if annotations:
        errors += annotation_errors(annotations, f"{path}.annotations")
        errors += pod_annotation_errors(annotations, spec, f"{path}.annotations")
    errors += pod_spec_errors(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(FieldError.forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors
