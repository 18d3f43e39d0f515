"""Webhook configurations as objects: defaults, and what is refused.

What an object was allowed before it stays allowed by an update that does not touch it, as in
Kubernetes: side effects and review versions that were accepted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.admission.policies import Scopes
from skerry.logic.machinery.admission.webhooks import MUTATING, VALIDATING
from skerry.logic.machinery.builtin.admission import condition_errors, rule_errors
from skerry.logic.machinery.builtin.rules import Errors, Rules, RuleTable, each, one_of, unsupported
from skerry.logic.machinery.names import dns1035_label, dns1123_subdomain
from skerry.logic.machinery.reviews import REVIEW_VERSIONS
from skerry.logic.machinery.selectors import label_selector_errors
from skerry.logic.machinery.webhook_clients import client_errors, default_client

_NO_EFFECTS: Final = ("None", "NoneOnDryRun")
_ALL_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_ACCEPTED: Final = ", ".join(REVIEW_VERSIONS)


def _default(configuration: Object) -> None:
    for webhook in configuration.get("webhooks") or ():
        webhook["failurePolicy"] = webhook.get("failurePolicy") or "Fail"
        webhook["matchPolicy"] = webhook.get("matchPolicy") or "Equivalent"
        for selector in ("namespaceSelector", "objectSelector"):
            if webhook.get(selector) is None:
                webhook[selector] = {}
        if webhook.get("timeoutSeconds") is None:
            webhook["timeoutSeconds"] = 10
        for rule in webhook.get("rules") or ():
            rule["scope"] = rule.get("scope") or "*"
        default_client(webhook.get("clientConfig"))


def _default_mutating(configuration: Object) -> None:
    _default(configuration)
    for webhook in configuration.get("webhooks") or ():
        webhook["reinvocationPolicy"] = webhook.get("reinvocationPolicy") or "Never"


def _errors(configuration: Object) -> Errors:
    return _checked(configuration, {})


def _update_errors(new: Object, old: Object) -> Errors:
    return _checked(new, old)


def _checked(configuration: Object, old: Mapping[str, Any]) -> Errors:
    before = old.get("webhooks") or ()
    effects: Sequence[str] = _NO_EFFECTS
    if any(each.get("sideEffects") not in _NO_EFFECTS for each in before):
        effects = _ALL_EFFECTS
    known_versions = all(_has_known_version(each) for each in before)
    conditions = [each.get("matchConditions") for each in before]
    webhooks = configuration.get("webhooks") or ()
    unchanged = bool(before) and conditions == [each.get("matchConditions") for each in webhooks]
    errors: Errors = []
    seen: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        errors += _webhook_errors(webhook, path, effects)
        if not unchanged:
            given = webhook.get("matchConditions") or ()
            errors += condition_errors(given, Scopes({}), f"{path}.matchConditions")
        versions = webhook.get("admissionReviewVersions") or ()
        errors += _version_errors(versions, f"{path}.admissionReviewVersions", known_versions)
        name = webhook.get("name") or ""
        if name and name in seen:
            errors.append(FieldError.duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _webhook_errors(webhook: Mapping[str, Any], path: str, effects: Sequence[str]) -> Errors:
    errors = _name_errors(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        errors += rule_errors(rule, f"{path}.rules[{index}]")
    errors += one_of(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    errors += one_of(webhook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    given = webhook.get("sideEffects")
    if given is None:
        text = f"must specify one of {', '.join(effects)}"
        errors.append(FieldError.required(f"{path}.sideEffects", text))
    elif given not in effects:
        errors.append(unsupported(f"{path}.sideEffects", given, effects))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        errors.append(FieldError.invalid(f"{path}.timeoutSeconds", seconds, text))
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(webhook.get(selector), f"{path}.{selector}")
    policy = webhook.get("reinvocationPolicy")
    if policy is not None:
        errors += one_of(policy, f"{path}.reinvocationPolicy", ("IfNeeded", "Never"))
    return errors + client_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")


def _name_errors(name: str, path: str) -> Errors:
    if not name:
        return [FieldError.required(path)]
    wrong = dns1123_subdomain(name)
    if wrong:
        return each(path, name, wrong)
    if name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        return [FieldError.invalid(path, name, text)]
    return []


def _has_known_version(webhook: Mapping[str, Any]) -> bool:
    versions = webhook.get("admissionReviewVersions") or ()
    return not versions or not set(REVIEW_VERSIONS).isdisjoint(versions)


def _version_errors(versions: Sequence[str], path: str, known: bool) -> Errors:
    if not versions:
        return [FieldError.required(path, f"must specify one of {_ACCEPTED}")]
    errors: Errors = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(FieldError.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += each(f"{path}[{index}]", version, dns1035_label(version))
    if known and seen.isdisjoint(REVIEW_VERSIONS):
        text = f"must include at least one of {_ACCEPTED}"
        shown = ", ".join(f'"{each}"' for each in versions)
        errors.append(
            FieldError("FieldValueInvalid", path, f"Invalid value: []string{{{shown}}}: {text}")
        )
    return errors


RULES: RuleTable = {
    GroupResource(*MUTATING): Rules(
        default=_default_mutating,
        validate_create=_errors,
        validate_update=_update_errors,
        compiles=True,
    ),
    GroupResource(*VALIDATING): Rules(
        default=_default,
        validate_create=_errors,
        validate_update=_update_errors,
        compiles=True,
    ),
}
