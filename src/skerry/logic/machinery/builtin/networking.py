"""Ingresses, their classes, and network policies."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.containers import PROTOCOLS
from skerry.logic.machinery.builtin.paths import address, block_errors
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    immutable,
    member,
    unsupported,
)
from skerry.logic.machinery.builtin.services import ingress_point_errors
from skerry.logic.machinery.names import (
    dns1035_label,
    dns1123_subdomain,
    http_path,
    path_segment,
    port_name,
    port_number,
    wildcard_subdomain,
)
from skerry.logic.machinery.selectors import label_selector_errors

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
# What would be read differently by different proxies.
_AMBIGUOUS = ("//", "/./", "/../", "%2f", "%2F")
_AMBIGUOUS_ENDS = ("/..", "/.")
_MAX_CONTROLLER_LENGTH = 250
_POLICY_TYPES = ("Ingress", "Egress")
_SCOPES = ("Cluster", "Namespace")


def _prepare_ingress(ingress: Object) -> None:
    ingress["status"] = {"loadBalancer": {}}


def _ingress_errors(ingress: Object) -> Errors:
    spec = ingress.get("spec") or {}
    errors: Errors = []
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        errors.append(FieldError.invalid("spec", list(rules), text))
    if backend is not None:
        errors += _backend_errors(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule_errors(rule, f"spec.rules[{index}]")
    for index, section in enumerate(spec.get("tls") or ()):
        errors += _tls_errors(section, f"spec.tls[{index}]")
    name = spec.get("ingressClassName")
    if name is not None:
        errors += each("spec.ingressClassName", name, dns1123_subdomain(name))
    return errors


def _validate_ingress(ingress: Object) -> Errors:
    errors = _ingress_errors(ingress)
    annotation = (member(ingress, "metadata", "annotations") or {}).get(_CLASS_ANNOTATION)
    name = member(ingress, "spec", "ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        text = "must match `ingressClassName` when both are specified"
        errors.append(FieldError.invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, text))
    return errors


def _host_errors(host: str, path: str) -> Errors:
    check = wildcard_subdomain if "*" in host else dns1123_subdomain
    return each(path, host, check(host))


def _tls_errors(section: Object, path: str) -> Errors:
    errors: Errors = []
    for index, host in enumerate(section.get("hosts") or ()):
        errors += _host_errors(host, f"{path}.hosts[{index}]")
    secret = section.get("secretName")
    if secret:
        errors += each(f"{path}.secretName", secret, dns1123_subdomain(secret))
    return errors


def _rule_errors(rule: Object, path: str) -> Errors:
    errors: Errors = []
    host = rule.get("host")
    if host:
        if address(host) is not None:
            text = "must be a DNS name, not an IP address"
            errors.append(FieldError.invalid(f"{path}.host", host, text))
        errors += _host_errors(host, f"{path}.host")
    http = rule.get("http")
    if http is not None:
        paths = http.get("paths") or ()
        if not paths:
            errors.append(FieldError.required(f"{path}.http.paths"))
        for index, item in enumerate(paths):
            errors += _path_errors(item, f"{path}.http.paths[{index}]")
    return errors


def _path_errors(item: Object, path: str) -> Errors:
    kind, target, where = item.get("pathType"), item.get("path") or "", f"{path}.path"
    errors: Errors = []
    if kind is None:
        text = "pathType must be specified"
        return [FieldError.required(f"{path}.pathType", text)]
    if kind not in _PATH_TYPES:
        errors.append(unsupported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not target.startswith("/") and (target or kind != "ImplementationSpecific"):
        errors.append(FieldError.invalid(where, target, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        for bad in _AMBIGUOUS:
            if bad in target:
                errors.append(FieldError.invalid(where, target, f"must not contain '{bad}'"))
        for bad in _AMBIGUOUS_ENDS:
            if target.endswith(bad):
                errors.append(FieldError.invalid(where, target, f"cannot end with '{bad}'"))
    return errors + _backend_errors(item.get("backend") or {}, f"{path}.backend")


def _backend_errors(backend: Object, path: str) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        text = "cannot set both resource and service backends"
        return [FieldError.invalid(path, "", text)]
    if resource is not None:
        return _reference_errors(resource, f"{path}.resource")
    if service is None:
        text = "resource or service backend is required"
        return [FieldError.invalid(path, "", text)]
    name = service.get("name") or ""
    errors = (
        each(f"{path}.service.name", name, dns1035_label(name))
        if name
        else [FieldError.required(f"{path}.service.name")]
    )
    return errors + _backend_port_errors(service.get("port") or {}, path)


def _backend_port_errors(port: Object, path: str) -> Errors:
    name, number = port.get("name"), port.get("number")
    if name and number:
        return [FieldError.invalid(path, "", "cannot set both port name & port number")]
    if name:
        return each(f"{path}.service.port.name", name, port_name(name))
    if number:
        return each(f"{path}.service.port.number", number, port_number(number))
    return [FieldError.required(path, "port name or number is required")]


def _reference_errors(reference: Object, path: str) -> Errors:
    errors: Errors = []
    group = reference.get("apiGroup")
    if group:
        errors += each(f"{path}.apiGroup", group, dns1123_subdomain(group))
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            errors.append(FieldError.required(f"{path}.{field}"))
        else:
            errors += each(f"{path}.{field}", value, path_segment(value))
    return errors


def _validate_ingress_status(new: Object, _: Object) -> Errors:
    points = member(new, "status", "loadBalancer", "ingress") or ()
    return ingress_point_errors(points, "status.loadBalancer.ingress")


def _default_class(ingress_class: Object) -> None:
    parameters = member(ingress_class, "spec", "parameters")
    if parameters is not None:
        absent(parameters, "scope", "Cluster")


def _class_errors(ingress_class: Object) -> Errors:
    spec = ingress_class.get("spec") or {}
    controller, path = spec.get("controller") or "", "spec.controller"
    errors: Errors = []
    if len(controller) > _MAX_CONTROLLER_LENGTH:
        errors.append(FieldError.too_long(path, _MAX_CONTROLLER_LENGTH))
    domain, _, rest = controller.partition("/")
    if not controller:
        errors.append(FieldError.required(path))
    elif not domain or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(FieldError.invalid(path, controller, text))
    else:
        errors += each(path, domain, dns1123_subdomain(domain)) + each(path, rest, http_path(rest))
    parameters = spec.get("parameters")
    return errors if parameters is None else errors + _parameter_errors(parameters)


def _parameter_errors(parameters: Object) -> Errors:
    path = "spec.parameters"
    errors = _reference_errors(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope not in _SCOPES:
        errors.append(unsupported(f"{path}.scope", scope or "", _SCOPES))
    if scope == "Namespace" and not namespace:
        text = "`parameters.scope` is set to 'Namespace'"
        errors.append(FieldError.required(f"{path}.namespace", text))
    if scope == "Cluster" and namespace is not None:
        text = "`parameters.scope` is set to 'Cluster'"
        errors.append(FieldError.forbidden(f"{path}.namespace", text))
    return errors


def _class_update_errors(new: Object, old: Object) -> Errors:
    controller, former = member(new, "spec", "controller"), member(old, "spec", "controller")
    return _class_errors(new) + immutable(controller, former, "spec.controller")


def _default_policy(policy: Object) -> None:
    spec = child(policy, "spec")
    absent(spec, "podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                absent(port, "protocol", "TCP")


def _policy_errors(policy: Object) -> Errors:
    spec = policy.get("spec") or {}
    errors = label_selector_errors(spec.get("podSelector"), "spec.podSelector")
    for direction, field in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            where = f"spec.{direction}[{index}]"
            for position, port in enumerate(rule.get("ports") or ()):
                errors += _policy_port_errors(port, f"{where}.ports[{position}]")
            for position, peer in enumerate(rule.get(field) or ()):
                errors += _peer_errors(peer, f"{where}.{field}[{position}]")
    types = spec.get("policyTypes") or ()
    if len(types) > len(_POLICY_TYPES):
        text = "may not specify more than two policyTypes"
        return [*errors, FieldError.invalid("spec.policyTypes", types, text)]
    for index, kind in enumerate(types):
        if kind not in _POLICY_TYPES:
            errors.append(unsupported(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES))
    return errors


def _policy_port_errors(item: Object, path: str) -> Errors:
    errors: Errors = []
    protocol, port, last = item.get("protocol"), item.get("port"), item.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    if isinstance(port, int):
        errors += each(f"{path}.port", port, port_number(port))
        if last is not None:
            if last < port:
                text = "must be greater than or equal to `port`"
                errors.append(FieldError.invalid(f"{path}.endPort", port, text))
            errors += each(f"{path}.endPort", last, port_number(last))
        return errors
    if last is not None:
        text = "may not be specified when `port` is " + (
            "not specified" if port is None else "non-numeric"
        )
        errors.append(FieldError.invalid(f"{path}.endPort", last, text))
    return errors if port is None else errors + each(f"{path}.port", port, port_name(port))


def _peer_errors(peer: Object, path: str) -> Errors:
    errors: Errors = []
    selectors = [f for f in ("podSelector", "namespaceSelector") if peer.get(f) is not None]
    for field in selectors:
        errors += label_selector_errors(peer[field], f"{path}.{field}")
    block = peer.get("ipBlock")
    if block is not None:
        errors += _ip_block_errors(block, f"{path}.ipBlock")
        if selectors:
            text = "may not specify both ipBlock and another peer"
            errors.append(FieldError.forbidden(path, text))
    elif not selectors:
        errors.append(FieldError.required(path, "must specify a peer"))
    return errors


def _ip_block_errors(block: Object, path: str) -> Errors:
    text = block.get("cidr") or ""
    if not text:
        return [FieldError.required(f"{path}.cidr")]
    errors = block_errors(text, f"{path}.cidr")
    return errors or _except_errors(text, block.get("except") or (), f"{path}.except")


def _except_errors(text: str, excluded: Sequence[str], path: str) -> Errors:
    errors: Errors = []
    whole = ip_network(text, strict=False)
    for index, part_text in enumerate(excluded):
        where = f"{path}[{index}]"
        wrong = block_errors(part_text, where)
        errors += wrong
        if wrong:
            continue
        part = ip_network(part_text, strict=False)
        inside = part.version == whole.version and part.network_address in whole
        if not inside or part.prefixlen <= whole.prefixlen:
            wanted = "must be a strict subset of `cidr`"
            errors.append(FieldError.invalid(where, part_text, wanted))
    return errors


_GROUP = "networking.k8s.io"

RULES: RuleTable = {
    GroupResource(_GROUP, "ingresses"): Rules(
        prepare_create=_prepare_ingress,
        validate_create=_validate_ingress,
        validate_update=lambda new, _: _ingress_errors(new),
        validate_status=_validate_ingress_status,
    ),
    GroupResource(_GROUP, "ingressclasses"): Rules(
        default=_default_class,
        validate_create=_class_errors,
        validate_update=_class_update_errors,
    ),
    GroupResource(_GROUP, "networkpolicies"): Rules(
        default=_default_policy,
        validate_create=_policy_errors,
        validate_update=lambda new, _: _policy_errors(new),
    ),
}
