"""Roles and bindings as objects; what they allow is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import Errors, Rules, RuleTable, child, each, unsupported
from skerry.logic.machinery.names import dns1123_subdomain, path_segment
from skerry.logic.machinery.selectors import label_selector_errors

GROUP = "rbac.authorization.k8s.io"


def rule_errors(rule: Object, path: str, *, namespaced: bool) -> Errors:
    """Return what is wrong with one PolicyRule."""
    errors: Errors = []
    if not rule.get("verbs"):
        text = "verbs must contain at least one value"
        errors.append(FieldError.required(f"{path}.verbs", text))
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            errors.append(FieldError.invalid(where, urls, text))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(FieldError.invalid(where, urls, text))
        return errors
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        errors.append(FieldError.required(f"{path}.apiGroups", text))
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        errors.append(FieldError.required(f"{path}.resources", text))
    return errors


def _role_errors(*, namespaced: bool) -> Callable[[Object], Errors]:
    def check(role: Object) -> Errors:
        errors: Errors = []
        for index, rule in enumerate(role.get("rules") or ()):
            errors += rule_errors(rule, f"rules[{index}]", namespaced=namespaced)
        aggregation = role.get("aggregationRule")
        return errors if aggregation is None else errors + _aggregation_errors(aggregation)

    return check


def _aggregation_errors(aggregation: Object) -> Errors:
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [FieldError.required(path, text)]
    errors: Errors = []
    for index, selector in enumerate(selectors):
        errors += label_selector_errors(selector, f"{path}[{index}]")
    return errors


def _default_binding(binding: Object) -> None:
    reference = child(binding, "roleRef")
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def _binding_errors(*, namespaced: bool) -> Callable[[Object], Errors]:
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def check(binding: Object) -> Errors:
        reference = binding.get("roleRef") or {}
        errors: Errors = []
        if reference.get("apiGroup") != GROUP:
            group = reference.get("apiGroup") or ""
            errors.append(unsupported("roleRef.apiGroup", group, (GROUP,)))
        if reference.get("kind") not in kinds:
            errors.append(unsupported("roleRef.kind", reference.get("kind") or "", kinds))
        name = reference.get("name") or ""
        if not name:
            errors.append(FieldError.required("roleRef.name"))
        else:
            errors += each("roleRef.name", name, path_segment(name))
        for index, subject in enumerate(binding.get("subjects") or ()):
            errors += _subject_errors(subject, f"subjects[{index}]", namespaced)
        return errors

    return check


def _subject_errors(subject: Object, path: str, namespaced: bool) -> Errors:
    errors: Errors = []
    kind, name, group = (subject.get(f) or "" for f in ("kind", "name", "apiGroup"))
    if not name:
        errors.append(FieldError.required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            errors += each(f"{path}.name", name, dns1123_subdomain(name))
        if group:
            errors.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(FieldError.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(unsupported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        known = ("ServiceAccount", "User", "Group")
        errors.append(unsupported(f"{path}.kind", kind, known))
    return errors


def _binding_update_errors(*, namespaced: bool) -> Callable[[Object, Object], Errors]:
    check = _binding_errors(namespaced=namespaced)

    def check_update(new: Object, old: Object) -> Errors:
        errors = check(new)
        if new.get("roleRef") != old.get("roleRef"):
            text = "cannot change roleRef"
            errors.append(FieldError.invalid("roleRef", new.get("roleRef"), text))
        return errors

    return check_update


def _role_rules(*, namespaced: bool) -> Rules:
    check = _role_errors(namespaced=namespaced)
    return Rules(
        validate_create=check,
        validate_update=lambda new, _: check(new),
        check_name=path_segment,
        counts_generation=False,
    )


def _binding_rules(*, namespaced: bool) -> Rules:
    return Rules(
        default=_default_binding,
        validate_create=_binding_errors(namespaced=namespaced),
        validate_update=_binding_update_errors(namespaced=namespaced),
        check_name=path_segment,
        counts_generation=False,
    )


RULES: RuleTable = {
    GroupResource(GROUP, "roles"): _role_rules(namespaced=True),
    GroupResource(GROUP, "clusterroles"): _role_rules(namespaced=False),
    GroupResource(GROUP, "rolebindings"): _binding_rules(namespaced=True),
    GroupResource(GROUP, "clusterrolebindings"): _binding_rules(namespaced=False),
}
