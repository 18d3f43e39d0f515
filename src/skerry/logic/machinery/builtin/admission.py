"""ValidatingAdmissionPolicies and their bindings as objects: defaults, and what is refused.

Expressions are compiled here, when they are written, so that a policy which is stored can be
applied. What they cost is limited when they run, not here, as in Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.admission.policies import (
    BOOL,
    STRING,
    STRING_OR_NULL,
    ExpressionError,
    Scopes,
    compiled,
)
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    child,
    each,
    one_of,
    unsupported,
)
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.names import dns1123_subdomain, qualified_name
from skerry.logic.machinery.selectors import label_selector_errors

_GROUP: Final = "admissionregistration.k8s.io"
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_MAX_CONDITIONS: Final = 64
_MAX_ANNOTATIONS: Final = 20
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
        *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"),
        "while",
    )
)
_SAME_TWICE: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the "
    "API response and headers serves no purpose)"
)


# -- defaults --------------------------------------------------------------------------------


def _default_match(match: Object) -> None:
    for selector in ("namespaceSelector", "objectSelector"):
        if match.get(selector) is None:
            match[selector] = {}
    match["matchPolicy"] = match.get("matchPolicy") or "Equivalent"
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(rules) or ():
            rule["scope"] = rule.get("scope") or "*"


def _default_policy(policy: Object) -> None:
    spec = child(policy, "spec")
    spec["failurePolicy"] = spec.get("failurePolicy") or "Fail"
    if spec.get("matchConstraints") is not None:
        _default_match(spec["matchConstraints"])


def _default_binding(binding: Object) -> None:
    spec = child(binding, "spec")
    if spec.get("matchResources") is not None:
        _default_match(spec["matchResources"])


# -- what both have --------------------------------------------------------------------------


def _required(path: str, text: str = "") -> FieldError:
    return FieldError.required(path, text)


def _go_list(kind: str, values: Sequence[str]) -> str:
    """Return a list of strings as Kubernetes shows one inside an error."""
    quoted = ", ".join(f'"{value}"' for value in values)
    return f"[]{kind}{{{quoted}}}"


def _invalid_list(path: str, kind: str, values: Sequence[str], text: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, f"Invalid value: {_go_list(kind, values)}: {text}")


def _match_errors(match: Mapping[str, Any], path: str) -> Errors:
    errors: Errors = []
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(match.get(selector), f"{path}.{selector}")
    if match.get("matchPolicy"):
        errors += one_of(match["matchPolicy"], f"{path}.matchPolicy", ("Equivalent", "Exact"))
    for rules in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(rules) or ()):
            errors += rule_errors(rule, f"{path}.{rules}[{index}]")
    return errors


def rule_errors(rule: Mapping[str, Any], path: str) -> Errors:
    """Return what is wrong with a rule that says which requests are meant."""
    errors = _operation_errors(rule.get("operations") or (), f"{path}.operations")
    for name, shown in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or ()
        if not values:
            errors.append(_required(f"{path}.{name}"))
        if "*" in values and len(values) > 1:
            why = f"if '*' is present, must not specify other {shown}"
            errors.append(_invalid_list(f"{path}.{name}", "string", values, why))
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            errors.append(_required(f"{path}.apiVersions[{index}]"))
    errors += _resource_errors(rule.get("resources") or (), f"{path}.resources")
    if rule.get("scope"):
        errors += one_of(rule["scope"], f"{path}.scope", ("*", "Cluster", "Namespaced"))
    first = {
        name: index for index, name in reversed(list(enumerate(rule.get("resourceNames") or ())))
    }
    return errors + [
        FieldError.duplicate(f"{path}.resourceNames[{index}]", name)
        for index, name in enumerate(rule.get("resourceNames") or ())
        if first[name] != index
    ]


def _operation_errors(operations: Sequence[str], path: str) -> Errors:
    if not operations:
        return [_required(path)]
    errors: Errors = []
    if "*" in operations and len(operations) > 1:
        why = "if '*' is present, must not specify other operations"
        kind = "admissionregistration.OperationType"
        errors.append(_invalid_list(path, kind, operations, why))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(unsupported(f"{path}[{index}]", operation, _OPERATIONS))
    return errors


def _resource_errors(resources: Sequence[str], path: str) -> Errors:
    """Return what is wrong with the resources of a rule; later ones repeat what earlier ones mean,
    and not the other way round, as in Kubernetes."""
    if not resources:
        return [_required(path)]
    errors: Errors = []
    patterns: set[str] = set()
    names_one = False
    for index, resource in enumerate(resources):
        where = f"{path}[{index}]"
        if not resource:
            errors.append(_required(where))
            continue
        name, slash, below = resource.partition("/")
        if not slash:
            names_one = resource != "*"
            continue
        for covering in (f"{name}/*", f"*/{below}"):
            if covering in patterns:
                why = f"if '{covering}' is present, must not specify {resource}"
                errors.append(FieldError.invalid(where, resource, why))
        if "*" in (name, below):
            patterns.add(resource)
    if "*/*" in resources and len(resources) > 1:
        why = "if '*/*' is present, must not specify other resources"
        errors.append(_invalid_list(path, "string", resources, why))
    if "*" in resources and names_one:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(_invalid_list(path, "string", resources, why))
    return errors


# -- policies --------------------------------------------------------------------------------


def _policy_errors(policy: Object) -> Errors:
    spec = policy.get("spec") or {}
    errors: Errors = []
    if spec.get("failurePolicy"):
        errors += one_of(spec["failurePolicy"], "spec.failurePolicy", ("Fail", "Ignore"))
    if spec.get("paramKind") is not None:
        errors += _param_kind_errors(spec["paramKind"])
    match = spec.get("matchConstraints")
    if match is None:
        errors.append(_required("spec.matchConstraints"))
    else:
        if not match.get("resourceRules"):
            errors.append(_required("spec.matchConstraints.resourceRules"))
        errors += _match_errors(match, "spec.matchConstraints")
    return errors + _expression_errors(policy["metadata"].get("name") or "", spec)


def _expression_errors(name: str, spec: Mapping[str, Any]) -> Errors:
    scopes = Scopes(spec)
    errors = condition_errors(spec.get("matchConditions") or (), scopes, "spec.matchConditions")
    for index, variable in enumerate(spec.get("variables") or ()):
        errors += _variable_errors(variable, f"spec.variables[{index}]", scopes)
    validations = spec.get("validations") or ()
    annotations = spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        text = "validations or auditAnnotations must contain at least one item"
        errors += [_required(f"spec.{part}", text) for part in ("validations", "auditAnnotations")]
    for index, validation in enumerate(validations):
        errors += _validation_errors(validation, f"spec.validations[{index}]", scopes)
    if len(annotations) > _MAX_ANNOTATIONS:
        text = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        errors.append(FieldError.invalid("spec.auditAnnotations", len(annotations), text))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        errors += _annotation_errors(annotation, path, name, scopes)
        key = annotation.get("key") or ""
        if key in seen:
            errors.append(FieldError.duplicate(f"{path}.key", key))
        seen.add(key)
    return errors


def _compiles(
    text: str, path: str, scope: dict[str, CelType], wanted: Sequence[str] = ()
) -> Errors:
    try:
        compiled(text, scope, wanted)
    except ExpressionError as error:
        return [FieldError.invalid(path, text, str(error))]
    return []


def condition_errors(conditions: Sequence[Mapping[str, Any]], scopes: Scopes, path: str) -> Errors:
    """Return what is wrong with the match conditions at *path*."""
    if len(conditions) > _MAX_CONDITIONS:
        return [FieldError.too_many(path, len(conditions), _MAX_CONDITIONS)]
    errors: Errors = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        text = (condition.get("expression") or "").strip()
        if not text:
            errors.append(_required(f"{where}.expression"))
        else:
            given = condition["expression"]
            errors += _compiles(given, f"{where}.expression", scopes.conditions, BOOL)
        name = condition.get("name") or ""
        if not name:
            errors.append(_required(f"{where}.name"))
            continue
        errors += each(f"{where}.name", name, qualified_name(name))
        if name in seen:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        seen.add(name)
    return errors


def _variable_errors(variable: Mapping[str, Any], path: str, scopes: Scopes) -> Errors:
    errors: Errors = []
    name, text = variable.get("name") or "", variable.get("expression") or ""
    if not name.strip():
        errors.append(_required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER(name) or name in _RESERVED:
        text_ = "name is not a valid CEL identifier"
        errors.append(FieldError.invalid(f"{path}.name", name, text_))
    if not text.strip():
        errors.append(_required(f"{path}.expression", "expression is not specified"))
        return errors
    try:
        scopes.declare(name, compiled(text, scopes.validations).type)
    except ExpressionError as error:
        errors.append(FieldError.invalid(f"{path}.expression", text, str(error)))
    return errors


def _validation_errors(validation: Mapping[str, Any], path: str, scopes: Scopes) -> Errors:
    errors: Errors = []
    text = validation.get("expression") or ""
    if not text.strip():
        errors.append(_required(f"{path}.expression", "expression is not specified"))
    else:
        errors += _compiles(text, f"{path}.expression", scopes.validations, BOOL)
    computed = validation.get("messageExpression") or ""
    if computed:
        where = f"{path}.messageExpression"
        if not computed.strip():
            errors.append(FieldError.invalid(where, computed, "must be non-empty if specified"))
        else:
            errors += _compiles(computed, where, scopes.messages, STRING)
    message = validation.get("message") or ""
    if message:
        where = f"{path}.message"
        if not message.strip():
            why = "message must be non-empty if specified"
            errors.append(FieldError.invalid(where, message, why))
        elif "\n" in message.strip():
            why = "message must not contain line breaks"
            errors.append(FieldError.invalid(where, message, why))
    elif "\n" in text.strip() and not computed:
        why = "message must be specified if expression contains line breaks"
        errors.append(_required(f"{path}.message", why))
    reason = validation.get("reason")
    if reason and reason not in _REASONS:
        errors.append(unsupported(f"{path}.reason", reason, _REASONS))
    return errors


def _annotation_errors(
    annotation: Mapping[str, Any], path: str, policy: str, scopes: Scopes
) -> Errors:
    key, text = annotation.get("key") or "", annotation.get("valueExpression") or ""
    shown = f"{policy}/{key}"
    errors = each(f"{path}.key", shown, qualified_name(shown))
    if not text.strip():
        why = "valueExpression is not specified"
        return [*errors, _required(f"{path}.valueExpression", why)]
    return errors + _compiles(text, f"{path}.valueExpression", scopes.validations, STRING_OR_NULL)


def _param_kind_errors(kind: Mapping[str, Any]) -> Errors:
    path = "spec.paramKind"
    errors: Errors = []
    version = kind.get("apiVersion") or ""
    if not version:
        errors.append(_required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        errors.append(FieldError.invalid(f"{path}.apiVersion", version, why))
    if not kind.get("kind"):
        errors.append(_required(f"{path}.kind"))
    return errors


# -- bindings --------------------------------------------------------------------------------


def _binding_errors(binding: Object) -> Errors:
    spec = binding.get("spec") or {}
    errors: Errors = []
    policy = spec.get("policyName") or ""
    if not policy:
        errors.append(_required("spec.policyName"))
    else:
        errors += each("spec.policyName", policy, dns1123_subdomain(policy))
    if spec.get("paramRef") is not None:
        errors += _param_ref_errors(spec["paramRef"])
    if spec.get("matchResources") is not None:
        errors += _match_errors(spec["matchResources"], "spec.matchResources")
    return errors + _action_errors(spec.get("validationActions") or ())


def _param_ref_errors(reference: Mapping[str, Any]) -> Errors:
    path = "spec.paramRef"
    errors: Errors = []
    name, selector = reference.get("name") or "", reference.get("selector")
    if name and selector is not None:
        why = "name and selector are mutually exclusive"
        errors += [FieldError.forbidden(f"{path}.{part}", why) for part in ("name", "selector")]
    elif not name and selector is None:
        errors.append(_required(path, "one of name or selector must be specified"))
    errors += label_selector_errors(selector, f"{path}.selector")
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(_required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        where = f"{path}.parameterNotFoundAction"
        errors.append(unsupported(where, action, ("Deny", "Allow")))
    return errors


def _action_errors(actions: Sequence[str]) -> Errors:
    path = "spec.validationActions"
    if not actions:
        return [_required(path, "at least one validation action is required")]
    errors: Errors = []
    seen: set[str] = set()
    for index, action in enumerate(actions):
        where = f"{path}[{index}]"
        if action not in _ACTIONS:
            errors.append(unsupported(where, action, _ACTIONS))
        if action in seen:
            errors.append(FieldError.duplicate(where, action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        kind = "admissionregistration.ValidationAction"
        errors.append(_invalid_list(path, kind, actions, _SAME_TWICE))
    return errors


def _on_update(check: Any) -> Any:
    return lambda new, _: check(new)


RULES: RuleTable = {
    GroupResource(_GROUP, "validatingadmissionpolicies"): Rules(
        default=_default_policy,
        validate_create=_policy_errors,
        validate_update=_on_update(_policy_errors),
        compiles=True,
    ),
    GroupResource(_GROUP, "validatingadmissionpolicybindings"): Rules(
        default=_default_binding,
        validate_create=_binding_errors,
        validate_update=_on_update(_binding_errors),
    ),
}
