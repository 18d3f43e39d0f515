"""Bounds on what a namespace may use: ResourceQuotas, LimitRanges, PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import (
    amount_errors,
    canonical_list,
    container_resource_errors,
    is_huge_page,
    overcommits,
    parsed,
    quantity_errors,
    quota_resource_errors,
    resource_name_errors,
)
from skerry.logic.machinery.builtin.rules import (
    IMMUTABLE,
    Errors,
    Rules,
    RuleTable,
    child,
    each,
    fresh_status,
    member,
    unsupported,
)
from skerry.logic.machinery.builtin.workload_parts import (
    above_hundred_errors,
    count_errors,
    share_errors,
)
from skerry.logic.machinery.names import path_segment, qualified_name
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import label_selector_errors

_TERMINATING = ("Terminating", "NotTerminating")
_BEST_EFFORT = ("BestEffort", "NotBestEffort")
_SCOPES = frozenset((*_TERMINATING, *_BEST_EFFORT, "PriorityClass", "CrossNamespacePodAffinity"))
_POD_SCOPED = frozenset(
    (
        "cpu", "memory", "ephemeral-storage", "pods",
        "requests.cpu", "requests.memory", "requests.ephemeral-storage",
        "limits.cpu", "limits.memory", "limits.ephemeral-storage",
    )
)  # fmt: skip
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


# Quotas.


def _default_quota(quota: Object) -> None:
    canonical_list(quota.get("spec") or {}, "hard")
    for field in ("hard", "used"):
        canonical_list(quota.get("status") or {}, field)


def _scope_fits(scope: str, resource: str) -> bool:
    """Tell whether *scope* narrows *resource*; only pods have scopes."""
    if scope == "BestEffort":
        return resource == "pods"
    return resource in _POD_SCOPED or is_huge_page(resource.removeprefix("requests."))


# Each is counted whenever something in the namespace changes.
MAX_HARD = 500


def _quota_errors(quota: Object) -> Errors:
    spec = quota.get("spec") or {}
    errors: Errors = []
    hard = spec.get("hard") or {}
    if len(hard) > MAX_HARD:
        return [FieldError.too_many("spec.hard", len(hard), MAX_HARD)]
    for resource, value in hard.items():
        path = f"spec.hard[{resource}]"
        errors += quota_resource_errors(resource, path) + amount_errors(resource, value, path)
    scopes = spec.get("scopes") or ()
    if scopes:
        errors += _scope_errors(scopes, hard)
    selector = spec.get("scopeSelector")
    if selector is not None:
        errors += _scope_selector_errors(selector, hard, spec.get("scopes") or [])
    return errors


def _scope_errors(scopes: Sequence[str], hard: Iterable[str]) -> Errors:
    path = "spec.scopes"
    unknown = sum(scope not in _SCOPES for scope in scopes)
    # Each would show all of them.
    errors = [FieldError.invalid(path, scopes, "unsupported scope")] * unknown if unknown else []
    errors += _misfit_errors(scopes, hard, path, scopes)
    return errors + _conflict_errors(scopes, path, scopes)


def _misfit_errors(scopes: Iterable[str], hard: Iterable[str], path: str, shown: object) -> Errors:
    """Refuse resources that a scope does not narrow, once for each of the few scopes there are."""
    text = "unsupported scope applied to resource"
    plain = [r for r in sorted(hard) if "/" not in r and not quota_resource_errors(r, path)]
    return [
        FieldError.invalid(path, shown, text)
        for scope in dict.fromkeys(scopes)
        if scope in _SCOPES
        for resource in plain
        if not _scope_fits(scope, resource)
    ]


def _conflict_errors(scopes: Iterable[str], path: str, shown: object) -> Errors:
    named = set(scopes)
    return [
        FieldError.invalid(path, shown, "conflicting scopes")
        for pair in (_BEST_EFFORT, _TERMINATING)
        if named.issuperset(pair)
    ]


def _scope_selector_errors(selector: Object, hard: Iterable[str], scopes: Sequence[str]) -> Errors:
    path = "spec.scopeSelector.matchExpressions"
    errors: Errors = []
    items = selector.get("matchExpressions") or ()
    for item in items:
        scope = item.get("scopeName") or ""
        if scope not in _SCOPES:
            errors.append(FieldError.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += _scope_operator_errors(item, scope, path)
    errors += _misfit_errors((i.get("scopeName") or "" for i in items), hard, path, selector)
    return errors + _conflict_errors((i.get("scopeName") or "" for i in items), path, scopes)


def _scope_operator_errors(item: Object, scope: str, path: str) -> Errors:
    operator, values = item.get("operator") or "", item.get("values") or []
    errors: Errors = []
    if scope != "PriorityClass" and scope in _SCOPES and operator != "Exists":
        text = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        errors.append(FieldError.invalid(f"{path}.operator", operator, text))
    if operator in ("In", "NotIn"):
        if not values:
            text = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            errors.append(FieldError.required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            errors.append(FieldError.invalid(f"{path}.values", values, text))
    else:
        text = "not a valid selector operator"
        errors.append(FieldError.invalid(f"{path}.operator", operator, text))
    return errors


def _quota_update_errors(new: Object, old: Object) -> Errors:
    errors = _quota_errors(new)
    scopes, former = member(new, "spec", "scopes") or [], member(old, "spec", "scopes") or []
    if set(scopes) != set(former):
        errors.append(FieldError.invalid("spec.scopes", scopes, IMMUTABLE))
    return errors


def _quota_status_errors(new: Object, _: Object) -> Errors:
    errors: Errors = []
    status = new.get("status") or {}
    for field in ("hard", "used"):
        for resource, value in (status.get(field) or {}).items():
            path = f"status.{field}[{resource}]"
            errors += quota_resource_errors(resource, path) + amount_errors(resource, value, path)
    return errors


# Limit ranges.


def _default_limit_range(limit_range: Object) -> None:
    for item in member(limit_range, "spec", "limits") or ():
        for field in _LISTS:
            canonical_list(item, field)
        if item.get("type") == "Container":
            _default_container_limits(item)


def _default_container_limits(item: Object) -> None:
    """Let the maximum be the default limit, and that (or the minimum) the default request."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _limit_range_errors(limit_range: Object) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, item in enumerate(member(limit_range, "spec", "limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type") or ""
        errors += _limit_type_errors(kind, f"{path}.type")
        if kind in taken:
            errors.append(FieldError.duplicate(f"{path}.type", kind))
        taken.add(kind)
        errors += _limit_item_errors(item, kind, path)
    return errors


def _limit_type_errors(kind: str, path: str) -> Errors:
    errors = each(path, kind, qualified_name(kind))
    if not errors and "/" not in kind and kind not in _LIMIT_TYPES:
        text = "must be a standard limit type or fully qualified"
        errors.append(FieldError.invalid(path, kind, text))
    return errors


def _limit_item_errors(item: Object, kind: str, path: str) -> Errors:
    errors: Errors = []
    check = container_resource_errors if kind in ("Pod", "Container") else resource_name_errors
    for field in _LISTS:
        amounts = item.get(field) or {}
        if amounts and kind == "Pod" and field in ("default", "defaultRequest"):
            text = "may not be specified when `type` is 'Pod'"
            errors.append(FieldError.forbidden(f"{path}.{field}", text))
            continue
        for resource, value in amounts.items():
            where = f"{path}.{field}[{resource}]"
            errors += check(resource, where) + quantity_errors(value, where)
    if kind == "PersistentVolumeClaim":
        bounds = {**(item.get("min") or {}), **(item.get("max") or {})}
        if "storage" not in bounds:
            text = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(FieldError.required(f"{path}.limits", text))
    return errors or _order_errors(item, path)


# Lesser list, its name in words, greater list, its name, and the list the complaint is about.
_ORDER = (
    ("min", "min value", "max", "max value", "min"),
    ("min", "min value", "defaultRequest", "default request value", "defaultRequest"),
    ("defaultRequest", "default request value", "max", "max value", "defaultRequest"),
    ("defaultRequest", "default request value", "default", "default limit value", "defaultRequest"),
    ("min", "min value", "default", "default value", "default"),
    ("default", "default value", "max", "max value", "default"),
)


def _order_errors(item: Object, path: str) -> Errors:
    """Refuse bounds that contradict each other; all amounts have been found readable."""
    lists = {
        field: {name: parsed(value) for name, value in (item.get(field) or {}).items()}
        for field in _LISTS
    }
    errors: Errors = []
    for resource in sorted({name for amounts in lists.values() for name in amounts}):
        for lesser, lesser_words, greater, greater_words, field in _ORDER:
            small, large = lists[lesser].get(resource), lists[greater].get(resource)
            if small is not None and large is not None and small > large:
                text = f"{lesser_words} {small} is greater than {greater_words} {large}"
                about = lists[field][resource]
                errors.append(FieldError.invalid(f"{path}.{field}[{resource}]", str(about), text))
        errors += _ratio_errors(lists, resource, path)
    return errors


def _ratio_errors(lists: Mapping[str, Mapping[str, Quantity]], resource: str, path: str) -> Errors:
    errors: Errors = []
    ratio = lists["maxLimitRequestRatio"].get(resource)
    field = f"{path}.maxLimitRequestRatio[{resource}]"
    minimum, maximum = lists["min"].get(resource), lists["max"].get(resource)
    if ratio is not None and ratio < Quantity.of(1):
        errors.append(FieldError.invalid(field, str(ratio), f"ratio {ratio} is less than 1"))
    if ratio is not None and minimum and maximum is not None:
        bound = maximum.milli_value() / minimum.milli_value()
        if ratio.milli_value() / 1000 > bound:
            text = f"ratio {ratio} is greater than max/min = {bound:f}"
            errors.append(FieldError.invalid(field, str(ratio), text))
    limit, request = lists["default"].get(resource), lists["defaultRequest"].get(resource)
    if limit is not None and request is not None and limit != request and not overcommits(resource):
        text = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        where = f"{path}.defaultRequest[{resource}]"
        errors.append(FieldError.invalid(where, str(request), text))
    return errors


# Disruption budgets.


def _budget_errors(budget: Object) -> Errors:
    spec = budget.get("spec") or {}
    errors: Errors = []
    given = [f for f in ("minAvailable", "maxUnavailable") if spec.get(f) is not None]
    if len(given) == 2:
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(FieldError.invalid("spec", spec, text))
    for field in given:
        errors += share_errors(spec[field], f"spec.{field}")
        errors += above_hundred_errors(spec[field], f"spec.{field}")
    errors += label_selector_errors(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    known = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in known:
        errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, known))
    return errors


def _budget_status_errors(new: Object, _: Object) -> Errors:
    numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return count_errors(new.get("status") or {}, numbers, "status")


def _default_budget(budget: Object) -> None:
    """Show the numbers the server always shows, though nothing has been counted yet."""
    status = child(budget, "status")
    for field in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"):
        status.setdefault(field, 0)


def _prepare_budget(budget: Object) -> None:
    fresh_status(budget)
    _default_budget(budget)


RULES: RuleTable = {
    GroupResource("", "resourcequotas"): Rules(
        default=_default_quota,
        prepare_create=fresh_status,
        validate_create=_quota_errors,
        validate_update=_quota_update_errors,
        validate_status=_quota_status_errors,
        counts_generation=False,
    ),
    GroupResource("", "limitranges"): Rules(
        default=_default_limit_range,
        validate_create=_limit_range_errors,
        validate_update=lambda new, _: _limit_range_errors(new),
        counts_generation=False,
    ),
    GroupResource("policy", "poddisruptionbudgets"): Rules(
        default=_default_budget,
        prepare_create=_prepare_budget,
        validate_create=_budget_errors,
        validate_update=lambda new, _: _budget_errors(new),
        validate_status=_budget_status_errors,
        # Kubernetes has no other rule for these names than that a path must hold them.
        check_name=path_segment,
    ),
}
