"""What a Job's policies say of pods that failed, and of indexes that succeeded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.logic.workloads.indexes import parse_indexes

FAIL_JOB, FAIL_INDEX, IGNORE = "FailJob", "FailIndex", "Ignore"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule of ``podFailurePolicy`` does about a failure, and why."""

    action: str
    message: str = ""


COUNTED = Verdict("Count")


def verdict_of(spec: Object, pod: Object) -> Verdict:
    """Return what the first rule that matches says of a pod that failed."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        why = _match(rule, pod)
        if why is not None:
            action = str(rule["action"])
            return Verdict(action, f"{why} matching {action} rule at index {number}")
    return COUNTED


def _match(rule: Object, pod: Object) -> str | None:
    """Return what of a failed pod a rule is about; None when it is about another."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    named = f"{metadata.get('namespace', '')}/{metadata['name']}"
    if rule.get("onExitCodes") is not None:
        for container, code in _exits(status):
            if _is_meant(rule["onExitCodes"], container, code):
                return f"Container {container} for pod {named} failed with exit code {code}"
        return None
    wanted = [(each["type"], each["status"]) for each in rule.get("onPodConditions") or ()]
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) in wanted:
            return f"Pod {named} has condition {condition['type']}"
    return None


def _exits(status: Object) -> Iterator[tuple[str, int]]:
    """Yield containers of a pod that failed, and with which code."""
    for group in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(group) or ():
            ended = (each.get("state") or {}).get("terminated")
            if ended and ended.get("exitCode"):
                yield each["name"], int(ended["exitCode"])


def _is_meant(requirement: Object, container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    return (code in requirement["values"]) is (requirement["operator"] == "In")


def failures_before(pod: Object) -> int:
    """Return how often the index of *pod* had failed before it."""
    return _number(pod, FAILURES)


def failure_counts(spec: Object, replaced: Object | None) -> dict[str, str]:
    """Return the annotations of a pod that replaces *replaced*, which failed."""
    counted = ignored = 0
    if replaced is not None:
        passed_over = verdict_of(spec, replaced).action == IGNORE
        counted = failures_before(replaced) + (not passed_over)
        ignored = _number(replaced, IGNORED_FAILURES) + passed_over
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def _number(pod: Object, annotation: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isdigit() else 0


def index_failed(spec: Object, pod: Object) -> bool:
    """Tell whether a pod that failed was the last try of its index."""
    verdict = verdict_of(spec, pod)
    if verdict.action == FAIL_INDEX:
        return True
    return verdict.action != IGNORE and failures_before(pod) >= int(spec["backoffLimitPerIndex"])


def success_of(spec: Object, succeeded: set[int]) -> str | None:
    """Return which rule of ``successPolicy`` is met by the indexes that succeeded."""
    rules: Sequence[Object] = (spec.get("successPolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is None:
            met = count is not None and len(succeeded) >= count
        else:
            wanted = parse_indexes(rule["succeededIndexes"])
            found = len(wanted & succeeded)
            met = found == len(wanted) or (count is not None and found >= count)
        if met and succeeded:
            return f"Matched rules at index {number}"
    return None
