"""When a failed pod fails its Job, and when enough indexes have succeeded."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.logic.machinery.builtin.rules import Errors, each, non_negative, unsupported
from skerry.logic.machinery.names import qualified_name
from skerry.logic.machinery.schema.lists import repetitions

_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_MAX_PATTERNS = 20
_MAX_INDEXES_LENGTH = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")


def _required_word(value: str, path: str, supported: Sequence[str]) -> Errors:
    if not value:
        listed = " ".join(f'"{word}"' for word in supported)
        return [FieldError.required(path, f"valid values: [{listed}]")]
    return [] if value in supported else [unsupported(path, value, supported)]


def failure_policy_errors(spec: Object, path: str) -> Errors:
    """Return what is wrong with ``podFailurePolicy``."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors: Errors = []
    if len(rules) > _MAX_RULES:
        errors.append(FieldError.too_many(f"{path}.rules", len(rules), _MAX_RULES))
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {c.get("name") for g in ("containers", "initContainers") for c in pod.get(g) or ()}
    for index, rule in enumerate(rules):
        errors += _rule_errors(spec, rule, f"{path}.rules[{index}]", names)
    return errors


def _rule_errors(spec: Object, rule: Object, path: str, names: set[str | None]) -> Errors:
    action = rule.get("action") or ""
    errors = _required_word(action, f"{path}.action", _ACTIONS)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        text = "requires the backoffLimitPerIndex to be set"
        errors.append(FieldError.invalid(f"{path}.action", action, text))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        errors += _exit_code_errors(codes, f"{path}.onExitCodes", names)
    if conditions:
        errors += _condition_errors(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(FieldError("FieldValueInvalid", path, f"Invalid value: {text}"))
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(FieldError("FieldValueInvalid", path, f"Invalid value: {text}"))
    return errors


def _exit_code_errors(codes: Object, path: str, names: set[str | None]) -> Errors:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    errors = _required_word(operator, f"{path}.operator", _OPERATORS)
    name, where = codes.get("containerName"), f"{path}.values"
    if name is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(FieldError.invalid(f"{path}.containerName", name, text))
    if not values:
        errors.append(FieldError.invalid(where, values, "at least one value is required"))
    elif len(values) > _MAX_EXIT_CODES:
        errors.append(FieldError.too_many(where, len(values), _MAX_EXIT_CODES))
    repeated = repetitions(values)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            text = "must not be 0 for the In operator"
            errors.append(FieldError.invalid(f"{where}[{index}]", value, text))
        if index in repeated:
            errors.append(FieldError.duplicate(f"{where}[{index}]", value))
    if values != sorted(values):
        errors.append(FieldError.invalid(where, values, "must be ordered"))
    return errors


def _condition_errors(conditions: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    if len(conditions) > _MAX_PATTERNS:
        errors.append(FieldError.too_many(path, len(conditions), _MAX_PATTERNS))
    for index, pattern in enumerate(conditions):
        kind = pattern.get("type") or ""
        errors += each(f"{path}[{index}].type", kind, qualified_name(kind))
        status = pattern.get("status") or ""
        errors += _required_word(status, f"{path}[{index}].status", _STATUSES)
    return errors


def success_policy_errors(spec: Object, path: str) -> Errors:
    """Return what is wrong with ``successPolicy``."""
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        return [FieldError.invalid(path, policy, "requires indexed completion mode")]
    rules = policy.get("rules") or ()
    errors: Errors = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(FieldError.required(f"{path}.rules", text))
    if len(rules) > _MAX_RULES:
        errors.append(FieldError.too_many(f"{path}.rules", len(rules), _MAX_RULES))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        errors += _success_errors(rule, f"{path}.rules[{index}]", completions)
    return errors


def _success_errors(rule: Object, path: str, completions: int) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: Errors = []
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(FieldError.required(path, text))
    total: int | None = None
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > _MAX_INDEXES_LENGTH:
            errors.append(FieldError.too_long(where, _MAX_INDEXES_LENGTH))
        try:
            total = index_count(indexes, completions)
        except ValueError as error:
            text = f"error parsing succeededIndexes: {error}"
            errors.append(FieldError.invalid(where, indexes, text))
            total = 0
    if count is not None:
        errors += _success_count_errors(count, f"{path}.succeededCount", completions, total)
    return errors


def _success_count_errors(count: int, path: str, completions: int, total: int | None) -> Errors:
    errors = non_negative(count, path)
    if count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(FieldError.invalid(path, count, text))
    if total is not None and count > total:
        text = (
            f"must be less than or equal to {total} (the number of indexes in the specified "
            "succeededIndexes field)"
        )
        errors.append(FieldError.invalid(path, count, text))
    return errors


def index_count(text: str, completions: int) -> int:
    """Return how many indexes ``1,3-5`` names; a ValueError says why it names none."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        if interval.count("-") > 1:
            raise ValueError(
                f'the fragment "{interval}" violates the requirement that an index interval can '
                "have at most two parts separated by '-'"
            )
        first, _, second = interval.partition("-")
        start = _index(first, completions)
        end = _index(second, completions) if "-" in interval else start
        if start > end or (start == end and "-" in interval):
            raise ValueError(f"non-increasing order, previous: {start}, current: {end}")
        if start <= last:
            raise ValueError(f"non-increasing order, previous: {last}, current: {start}")
        total, last = total + end - start + 1, end
    return total


def _index(text: str, completions: int) -> int:
    index = whole_number(text)
    if index is None:
        raise ValueError(f'cannot convert string to integer for index: "{text[:64]}"')
    if index >= completions:
        raise ValueError(f'too large index: "{text}"')
    return index
