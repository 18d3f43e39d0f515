"""What a completed configuration must satisfy; every error is collected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.names import qualified_name
from skerry.scheduler.cache.resources import is_extended
from skerry.scheduler.config.args import CHECKS
from skerry.scheduler.config.schema import GROUP_VERSION, POINTS, parse_duration

_REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def configuration_errors(config: Object) -> list[FieldError]:
    """Return everything wrong with a configuration that has its defaults."""
    errors = _client_errors(config["clientConnection"])
    errors += _election_errors(config["leaderElection"])
    if config["parallelism"] <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(FieldError.invalid("parallelism", config["parallelism"], detail))
    errors += _profiles_errors(config["profiles"])
    errors += _percentage_errors(config, "percentageOfNodesToScore")
    errors += _backoff_errors(config)
    errors += _extenders_errors(config.get("extenders") or ())
    return errors


def _client_errors(client: Object) -> list[FieldError]:
    if client["burst"] >= 0:
        return []
    return [FieldError.invalid("clientConnection.burst", client["burst"], "must be non-negative")]


def _election_errors(election: Object) -> list[FieldError]:
    if not election["leaderElect"]:
        return []
    errors: list[FieldError] = []
    lease, renew, retry = (
        parse_duration(election[name]) for name in ("leaseDuration", "renewDeadline", "retryPeriod")
    )
    for name, seconds in (
        ("leaseDuration", lease),
        ("renewDeadline", renew),
        ("retryPeriod", retry),
    ):
        if seconds <= 0:
            where = f"leaderElection.{name}"
            errors.append(FieldError.invalid(where, election[name], "must be greater than zero"))
    if lease <= renew:
        detail = "LeaseDuration must be greater than RenewDeadline"
        where = "leaderElection.leaseDuration"
        errors.append(FieldError.invalid(where, election["renewDeadline"], detail))
    if renew <= retry:
        detail = "RenewDeadline must be greater than RetryPeriod"
        where = "leaderElection.renewDeadline"
        errors.append(FieldError.invalid(where, election["retryPeriod"], detail))
    for name in ("resourceLock", "resourceNamespace", "resourceName"):
        if not election[name]:
            detail = f"{name} is required"
            errors.append(FieldError.invalid(f"leaderElection.{name}", election[name], detail))
    if election["resourceLock"] != "leases":
        detail = 'resourceLock value must be "leases"'
        where = "leaderElection.resourceLock"
        errors.append(FieldError.invalid(where, election["resourceLock"], detail))
    return errors


def _profiles_errors(profiles: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        name = profile.get("schedulerName", "")
        if not name:
            errors.append(FieldError.required(f"{path}.schedulerName"))
        errors += _percentage_errors(profile, f"{path}.percentageOfNodesToScore")
        errors += _plugin_errors(profile, path)
        if name in seen:
            other = f"profiles[{seen[name]}].schedulerName"
            # The other field's path is printed bare, as a path and not as a string.
            text = f"Duplicate value: {other}"
            errors.append(FieldError("FieldValueDuplicate", f"{path}.schedulerName", text))
        seen[name] = index
    return errors + _queue_sort_errors(profiles)


def _percentage_errors(holder: Object, path: str) -> list[FieldError]:
    value = holder.get("percentageOfNodesToScore")
    if value is None or 0 <= value <= 100:
        return []
    return [FieldError.invalid(path, value, "not in valid range [0-100]")]


def _removed(path: str, name: str) -> list[FieldError]:
    if name not in _REMOVED:
        return []
    detail = (
        f'was invalid in version "{GROUP_VERSION}" '
        f'(KubeSchedulerConfiguration is version "{GROUP_VERSION}")'
    )
    return [FieldError.invalid(path, name, detail)]


def _plugin_errors(profile: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for point in POINTS:
        if point == "multiPoint":
            continue
        for index, ref in enumerate(profile["plugins"][point].get("enabled", ())):
            errors += _removed(f"{path}.plugins.{point}.enabled[{index}]", ref["name"])
    seen: set[str] = set()
    for index, item in enumerate(profile["pluginConfig"]):
        where, name = f"{path}.pluginConfig[{index}]", item.get("name", "")
        if name in seen:
            errors.append(FieldError.duplicate(where, name))
        seen.add(name)
        removed = _removed(where, name)
        errors += removed
        check = CHECKS.get(name)
        if check is not None and not removed:
            errors += check(item["args"], f"{where}.args")
    return errors


def _queue_sort_errors(profiles: Sequence[Object]) -> list[FieldError]:
    """Return errors unless all profiles share one queue order: there is only one queue."""
    errors: list[FieldError] = []
    canon = profiles[0]["plugins"]["queueSort"]
    enabled = canon.get("enabled", ())
    if len(enabled) > 1:
        where = "profiles[0].plugins.queueSort.Enabled"
        detail = "only one queue sort plugin can be enabled"
        errors.append(FieldError.invalid(where, len(enabled), detail))
    name = enabled[0]["name"] if enabled else None
    args = _args(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        detail = "queueSort must be the same for all profiles"
        own = profile["plugins"]["queueSort"]
        if own != canon:
            where = f"profiles[{index}].plugins.queueSort"
            errors.append(FieldError.invalid(where, own, detail))
        if name and _args(profile, name) != args:
            where = f"profiles[{index}].pluginConfig.args"
            errors.append(FieldError.invalid(where, _args(profile, name), detail))
    return errors


def _args(profile: Object, name: str | None) -> Any:
    return next((i.get("args") for i in profile["pluginConfig"] if i.get("name") == name), None)


def _backoff_errors(config: Object) -> list[FieldError]:
    first, maximum = config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"]
    errors: list[FieldError] = []
    if first <= 0:
        where = "podInitialBackoffSeconds"
        errors.append(FieldError.invalid(where, first, "must be greater than 0"))
    if maximum < first:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(FieldError.invalid("podMaxBackoffSeconds", maximum, detail))
    return errors


def _extenders_errors(extenders: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    managed: set[str] = set()
    binders = 0
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        weight = extender.get("weight", 0)
        if extender.get("prioritizeVerb") and weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(FieldError.invalid(f"{path}.weight", weight, detail))
        binders += bool(extender.get("bindVerb"))
        for number, resource in enumerate(extender.get("managedResources") or ()):
            where = f"{path}.managedResources[{number}].name"
            name = resource.get("name", "")
            errors += _extended_name_errors(name, where)
            if name in managed:
                detail = "duplicate extender managed resource name"
                errors.append(FieldError.invalid(where, name, detail))
            managed.add(name)
    if binders > 1:
        text = f"found {binders} extenders implementing bind"
        detail = "only one extender can implement bind"
        errors.append(FieldError.invalid("extenders", text, detail))
    return errors


def _extended_name_errors(name: str, path: str) -> list[FieldError]:
    found = [FieldError.invalid(path, name, detail) for detail in qualified_name(name)]
    if not found and not is_extended(name):
        found.append(FieldError.invalid(path, name, "is an invalid extended resource name"))
    return found
