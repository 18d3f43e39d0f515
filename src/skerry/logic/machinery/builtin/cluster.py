"""Nodes, leases, priority classes, and types that are data with a name rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import (
    amount_errors,
    canonical_list,
    resource_name_errors,
)
from skerry.logic.machinery.builtin.paths import block_errors
from skerry.logic.machinery.builtin.pod_scheduling import EFFECTS
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    fresh_status,
    immutable,
    member,
    non_negative,
    one_of,
    text_at,
    truth_at,
)
from skerry.logic.machinery.names import (
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    label_value,
    path_segment,
    qualified_name,
)
from skerry.logic.machinery.schema.lists import repetitions

_PREEMPTION = ("PreemptLowerPriority", "Never")
_SYSTEM_PREFIX = "system-"
_SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_MAX_USER_PRIORITY = 1000000000


# Nodes.


# What a kubelet tells of its machine; empty until it does.
_NODE_FACTS = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


def _default_node(node: Object) -> None:
    status = child(node, "status")
    absent(child(child(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0)
    facts = child(status, "nodeInfo")
    for name in _NODE_FACTS:
        absent(facts, name, "")
    canonical_list(status, "capacity")
    canonical_list(status, "allocatable")
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    spec = child(node, "spec")
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def _node_errors(node: Object) -> Errors:
    errors = _taint_errors(member(node, "spec", "taints") or ())
    errors += _capacity_errors(node)
    blocks = member(node, "spec", "podCIDRs") or ()
    path = "spec.podCIDRs"
    wrong: Errors = []
    repeated = repetitions(blocks)
    for index, block in enumerate(blocks):
        wrong += block_errors(block, f"{path}[{index}]")
        if index in repeated:
            wrong.append(FieldError.duplicate(f"{path}[{index}]", block))
    if not wrong and len(blocks) > 1:
        families = {ip_network(block, strict=False).version for block in blocks}
        if len(families) != len(blocks):
            text = "may specify no more than one CIDR for each IP family"
            wrong.append(FieldError.invalid(path, blocks, text))
    return errors + wrong


def _taint_errors(taints: Sequence[Object]) -> Errors:
    errors: Errors = []
    taken: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        # Kubernetes reports taints below the metadata.
        path = f"metadata.taints[{index}]"
        key, value, effect = (taint.get(f) or "" for f in ("key", "value", "effect"))
        errors += each(f"{path}.key", key, qualified_name(key))
        wrong = label_value(value)
        if wrong:
            errors.append(FieldError.invalid(f"{path}.value", value, ";".join(wrong)))
        errors += one_of(effect, f"{path}.effect", EFFECTS)
        if (key, effect) in taken:
            duplicate = FieldError.duplicate(path, taint)
            text = f"{duplicate.message}: taints must be unique by key and effect pair"
            errors.append(FieldError(duplicate.type, path, text))
        taken.add((key, effect))
    return errors


def _capacity_errors(node: Object) -> Errors:
    errors: Errors = []
    for field in ("capacity", "allocatable"):
        for resource, value in (member(node, "status", field) or {}).items():
            path = f"status.{field}[{resource}]"
            errors += resource_name_errors(resource, path) + amount_errors(resource, value, path)
    return errors


def _node_update_errors(new: Object, old: Object) -> Errors:
    errors = _node_errors(new)
    addresses = member(new, "status", "addresses") or []
    for index in sorted(repetitions(addresses)):
        errors.append(FieldError.duplicate(f"status.addresses[{index}]", addresses[index]))
    for field, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        before = member(old, "spec", field)
        if before and before != member(new, "spec", field):
            text = f'node updates may not change {shown} except from "" to valid'
            errors.append(FieldError.forbidden(f"spec.{field}", text))
    return errors


# Leases.


def _lease_errors(lease: Object) -> Errors:
    spec = lease.get("spec") or {}
    errors: Errors = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        text = "must be greater than 0"
        errors.append(FieldError.invalid("spec.leaseDurationSeconds", duration, text))
    errors += non_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
    if spec.get("preferredHolder") and not spec.get("strategy"):
        text = "may only be specified if `strategy` is defined"
        errors.append(FieldError.forbidden("spec.preferredHolder", text))
    return errors


# Priority classes.


def _default_priority(priority: Object) -> None:
    absent(priority, "value", 0)
    if not priority.get("preemptionPolicy"):
        priority["preemptionPolicy"] = "PreemptLowerPriority"


def _priority_errors(priority: Object) -> Errors:
    name, value = member(priority, "metadata", "name") or "", priority.get("value") or 0
    errors: Errors = []
    if name.startswith(_SYSTEM_PREFIX):
        errors += _system_priority_errors(name, value, bool(priority.get("globalDefault")))
    elif value > _MAX_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_MAX_USER_PRIORITY}"
        errors.append(FieldError.forbidden("value", text))
    policy = priority.get("preemptionPolicy")
    if policy is not None:
        errors += one_of(policy, "preemptionPolicy", _PREEMPTION)
    return errors


def _system_priority_errors(name: str, value: int, is_default: bool) -> Errors:
    wanted = _SYSTEM_PRIORITIES.get(name)
    if wanted is None:
        why = f"{name} is not a known system priority class"
    elif value != wanted:
        why = f"value of {name} PriorityClass must be {wanted}"
    elif is_default:
        why = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    text = (
        f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. "
        f"error: {why}"
    )
    return [FieldError.forbidden("metadata.name", text)]


def _priority_update_errors(new: Object, old: Object) -> Errors:
    errors: Errors = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(FieldError.forbidden("value", "may not be changed in an update."))
    policy, former = new.get("preemptionPolicy"), old.get("preemptionPolicy")
    return errors + immutable(policy, former, "preemptionPolicy")


# Certificate requests.

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
    "data encipherment", "decipher only", "digital signature", "email protection",
    "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
    "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth",
    "signing", "timestamping",
)  # fmt: skip


def _certificate_errors(request: Object) -> Errors:
    spec = request.get("spec") or {}
    errors: Errors = []
    if not spec.get("request"):
        errors.append(
            FieldError.invalid("spec.request", "", "PEM block type must be CERTIFICATE REQUEST")
        )
    usages = spec.get("usages") or ()
    if not usages:
        errors.append(FieldError.required("spec.usages"))
    repeated = repetitions(usages)
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(FieldError.not_supported(f"spec.usages[{index}]", usage, _USAGES))
        if index in repeated:
            errors.append(FieldError.duplicate(f"spec.usages[{index}]", usage))
    signer = spec.get("signerName") or ""
    if not signer:
        errors.append(FieldError.required("spec.signerName"))
    elif signer.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(FieldError.invalid("spec.signerName", signer, text))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(FieldError.invalid("spec.expirationSeconds", seconds, text))
    return errors


def _certificate_update_errors(new: Object, old: Object) -> Errors:
    spec, former = new.get("spec"), old.get("spec")
    return immutable(spec, former, "spec")


# Aggregated API servers.


def _api_service_errors(obj: Object) -> Errors:
    return [*_api_service_names(obj), *_api_service_clients(obj.get("spec") or {})]


def _api_service_names(obj: Object) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    wanted, name = f"{version}.{group}", obj["metadata"].get("name") or ""
    if name and name != wanted:
        why = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        yield FieldError.invalid("metadata.name", name, why)
    if not group and version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        yield FieldError.required("spec.group", why)
    if group:
        yield from (
            FieldError.invalid("spec.group", group, why) for why in dns1123_subdomain(group)
        )
    for why in dns1035_label(version):
        yield FieldError.invalid("spec.version", version, why)
    for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        priority = spec.get(field) or 0
        if not 0 < priority <= limit:
            why = f"must be positive and less than {limit}"
            yield FieldError.invalid(f"spec.{field}", priority, why)


def _api_service_clients(spec: Object) -> Iterator[FieldError]:
    service, bundle = spec.get("service"), spec.get("caBundle") or ""
    careless = bool(spec.get("insecureSkipTLSVerify"))
    if service is None:
        if bundle:
            size = len(bundle) * 3 // 4 - bundle[-2:].count("=")
            why = "local APIServices may not have a caBundle"
            yield FieldError.invalid("spec.caBundle", f"{size} bytes", why)
        if careless:
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield FieldError.invalid("spec.insecureSkipTLSVerify", True, why)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield FieldError.required(f"spec.service.{field}")
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        yield FieldError.invalid("spec.service.port", port, why)
    if careless and bundle:
        why = "may not be true if caBundle is present"
        yield FieldError.invalid("spec.insecureSkipTLSVerify", True, why)


def _default_api_service(service: Object) -> None:
    where = member(service, "spec", "service")
    if where is not None:
        absent(where, "port", 443)


# Runtime classes.


def _runtime_errors(runtime: Object) -> Errors:
    handler = runtime.get("handler") or ""
    return each("handler", handler, dns1123_label(handler))


def _runtime_update_errors(new: Object, old: Object) -> Errors:
    return immutable(new.get("handler"), old.get("handler"), "handler")


_DATA = Rules(counts_generation=False)

RULES: RuleTable = {
    GroupResource("", "nodes"): Rules(
        default=_default_node,
        validate_create=_node_errors,
        validate_update=_node_update_errors,
        validate_status=_node_update_errors,
        counts_generation=False,
        status_at_creation=True,
        selectable_fields={"spec.unschedulable": truth_at("spec", "unschedulable")},
    ),
    GroupResource("coordination.k8s.io", "leases"): Rules(
        validate_create=_lease_errors,
        validate_update=lambda new, _: _lease_errors(new),
        counts_generation=False,
    ),
    GroupResource("scheduling.k8s.io", "priorityclasses"): Rules(
        default=_default_priority,
        validate_create=_priority_errors,
        validate_update=_priority_update_errors,
    ),
    GroupResource("certificates.k8s.io", "certificatesigningrequests"): Rules(
        prepare_create=fresh_status,
        validate_create=_certificate_errors,
        validate_update=_certificate_update_errors,
        counts_generation=False,
        selectable_fields={"spec.signerName": text_at("spec", "signerName")},
    ),
    GroupResource("apiregistration.k8s.io", "apiservices"): Rules(
        default=_default_api_service,
        prepare_create=fresh_status,
        check_name=path_segment,
        validate_create=_api_service_errors,
        validate_update=lambda new, _: _api_service_errors(new),
        counts_generation=False,
    ),
    GroupResource("node.k8s.io", "runtimeclasses"): Rules(
        default=lambda runtime: canonical_list(runtime.get("overhead") or {}, "podFixed"),
        validate_create=_runtime_errors,
        validate_update=_runtime_update_errors,
        counts_generation=False,
    ),
    GroupResource("", "bindings"): _DATA,
    GroupResource("", "componentstatuses"): _DATA,
    GroupResource("authentication.k8s.io", "tokenreviews"): _DATA,
    GroupResource("authentication.k8s.io", "selfsubjectreviews"): _DATA,
    GroupResource("authorization.k8s.io", "subjectaccessreviews"): _DATA,
    GroupResource("authorization.k8s.io", "localsubjectaccessreviews"): _DATA,
    GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"): _DATA,
    GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"): _DATA,
}
