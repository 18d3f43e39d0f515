"""What all workloads have in common: a selector, a template, counts and percentages."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.likeness import same
from skerry.logic.machinery.builtin.pod_spec import template_errors
from skerry.logic.machinery.builtin.pod_warnings import name_warnings, template_warnings
from skerry.logic.machinery.builtin.rules import (
    Errors,
    immutable,
    member,
    non_negative,
    unsupported,
)
from skerry.logic.machinery.names import percent
from skerry.logic.machinery.selectors import Selector, label_selector_errors

MISMATCH = "`selector` does not match template `labels`"
_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"


# What a workload says about its pods.


def selects(selector: Object, labels: Object) -> bool:
    """Tell whether a valid LabelSelector object selects *labels*."""
    if selector.get("matchExpressions"):
        return Selector.from_label_selector(selector).matches(labels)
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def selector_errors(spec: Object, kind: str) -> Errors:
    """Refuse a missing or empty selector, and a malformed one."""
    selector = spec.get("selector")
    if selector is None:
        return [FieldError.required("spec.selector")]
    errors = label_selector_errors(selector, "spec.selector")
    if errors and kind != "daemonset":
        errors.append(FieldError.invalid("spec.selector", selector, "invalid label selector"))
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        text = f"empty selector is invalid for {kind}"
        errors.append(FieldError.invalid("spec.selector", selector, text))
    return errors


def template_match_errors(spec: Object) -> Errors:
    """Refuse a template whose pods the workload would not recognise as its own."""
    selector, labels = spec.get("selector"), member(spec, "template", "metadata", "labels") or {}
    if selector is not None and (label_selector_errors(selector) or selects(selector, labels)):
        return []
    return [FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH)]


def set_template_errors(spec: Object, kind: str) -> Errors:
    """Judge the template of a set of pods; with a malformed selector nobody looks at it."""
    if label_selector_errors(spec.get("selector") or {}):
        return []
    errors = template_match_errors(spec)
    errors += template_errors(spec.get("template") or {}, "spec.template")
    return errors + kept_running_errors(spec, kind)


def kept_running_errors(spec: Object, kind: str) -> Errors:
    """Refuse templates of pods that end by themselves."""
    pod = member(spec, "template", "spec") or {}
    errors: Errors = []
    if pod.get("restartPolicy") != "Always":
        policy = pod.get("restartPolicy") or ""
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(FieldError.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return errors


def count_errors(spec: Object, fields: Sequence[str], path: str = "spec") -> Errors:
    """Refuse numbers below zero."""
    errors: Errors = []
    for field in fields:
        value = spec.get(field)
        if value is not None and value < 0:
            errors += non_negative(value, f"{path}.{field}")
    return errors


def selector_change_errors(new: Object, old: Object) -> Errors:
    """Refuse to let a workload adopt other pods."""
    before, after = member(old, "spec", "selector"), member(new, "spec", "selector")
    return [] if same(after, before) else immutable(after, before, "spec.selector")


# Numbers or percentages.


def share_errors(value: int | str, path: str) -> Errors:
    """Refuse what is neither a count nor a percentage."""
    if isinstance(value, str):
        return [FieldError.invalid(path, value, text) for text in percent(value)]
    return non_negative(value, path)


def share(value: int | str) -> int:
    """Return the number in a count or percentage, zero where it is neither."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if not percent(value) else 0


def above_hundred_errors(value: int | str, path: str) -> Errors:
    """Refuse a percentage of more than everything."""
    if isinstance(value, str) and not percent(value) and int(value[:-1]) > 100:
        return [FieldError.invalid(path, value, "must not be greater than 100%")]
    return []


# Status, where replicas of one sort cannot outnumber those of another.


def status_errors(new: Object, parts: Sequence[str], others: Sequence[str] = ()) -> Errors:
    """Refuse more available replicas than ready ones."""
    status = new.get("status") or {}
    errors = count_errors(
        status, ("observedGeneration", "replicas", *parts, *others, "collisionCount"), "status"
    )
    replicas = status.get("replicas") or 0
    for field in parts:
        if (status.get(field) or 0) > replicas:
            errors.append(
                FieldError.invalid(f"status.{field}", status.get(field) or 0, _MORE_THAN_REPLICAS)
            )
    return errors


def availability_errors(new: Object, text: str = "cannot be greater than readyReplicas") -> Errors:
    """Refuse more available replicas than ready ones."""
    status = new.get("status") or {}
    available = status.get("availableReplicas") or 0
    if available <= (status.get("readyReplicas") or 0):
        return []
    return [FieldError.invalid("status.availableReplicas", available, text)]


def collision_errors(new: Object, old: Object) -> Errors:
    """Refuse to forget collisions of hashes."""
    count = member(new, "status", "collisionCount") or 0
    if count >= (member(old, "status", "collisionCount") or 0):
        return []
    return [FieldError.invalid("status.collisionCount", count, "cannot be decremented")]


def workload_warnings(obj: Object) -> list[str]:
    """Return the warnings the template earns."""
    return template_warnings(member(obj, "spec", "template") or {}, "spec.template")


def named_workload_warnings(obj: Object) -> list[str]:
    """Return the warnings of the template, and one for a name no host can bear."""
    return [*name_warnings(obj), *workload_warnings(obj)]
