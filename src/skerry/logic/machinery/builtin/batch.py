"""Jobs."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.job_policies import failure_policy_errors, success_policy_errors
from skerry.logic.machinery.builtin.likeness import same
from skerry.logic.machinery.builtin.pod_defaults import default_template
from skerry.logic.machinery.builtin.pod_spec import template_errors
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    immutable,
    member,
    number_at,
    unsupported,
)
from skerry.logic.machinery.builtin.workload_parts import (
    MISMATCH,
    count_errors,
    named_workload_warnings,
    selects,
)
from skerry.logic.machinery.names import dns1123_label, dns1123_subdomain, http_path
from skerry.logic.machinery.selectors import label_errors, label_selector_errors

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_UID_LABEL = "batch.kubernetes.io/controller-uid"
_MAX_BACKOFF = 2**31 - 1
_INDEXED = "Indexed"
_COMPLETION_MODES = ("NonIndexed", _INDEXED)
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MAX_PARALLELISM = 100_000
_MANY_COMPLETIONS = 100_000
_MAX_MANY_PARALLEL = 10_000
_MAX_MANAGER_LENGTH = 63


def _default_job_spec(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    absent(spec, "parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    absent(spec, "backoffLimit", _MAX_BACKOFF if per_index else 6)
    absent(spec, "completionMode", "NonIndexed")
    absent(spec, "suspend", False)
    policy = spec.get("podFailurePolicy")
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    absent(spec, "podReplacementPolicy", "Failed" if policy else "TerminatingOrFailed")
    absent(spec, "manualSelector", False)
    default_template(spec)


def _default_job(job: Object) -> None:
    spec = child(job, "spec")
    labels = member(spec, "template", "metadata", "labels")
    metadata = child(job, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    _default_job_spec(spec)


def _prepare_job(job: Object) -> None:
    """Give the job the selector by which it knows its pods.

    Needs the name and the uid, which the caller must have assigned.
    """
    job["status"] = {}
    spec = child(job, "spec")
    if spec.get("manualSelector"):
        return
    metadata = child(job, "metadata")
    labels = child(child(child(spec, "template"), "metadata"), "labels")
    for label in _NAME_LABELS:
        labels.setdefault(label, metadata.get("name") or "")
    for label in _UID_LABELS:
        labels.setdefault(label, metadata.get("uid") or "")
    matched = child(child(spec, "selector"), "matchLabels")
    matched.setdefault(_UID_LABEL, metadata.get("uid") or "")
    if not metadata.get("labels") and not label_errors(labels, "metadata.labels"):
        metadata["labels"] = dict(labels)


_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def job_spec_errors(spec: Object, path: str) -> Errors:
    """Return what is wrong with a job, standing alone or in a template."""
    errors = count_errors(spec, _COUNTS, path)
    if spec.get("managedBy") is not None:
        errors += _manager_errors(spec["managedBy"], f"{path}.managedBy")
    errors += _mode_errors(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += failure_policy_errors(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        errors += success_policy_errors(spec, f"{path}.successPolicy")
    errors += _replacement_errors(spec, f"{path}.podReplacementPolicy")
    errors += template_errors(spec.get("template") or {}, f"{path}.template")
    return errors + _restart_errors(spec, f"{path}.template.spec.restartPolicy")


def _manager_errors(manager: str, path: str) -> Errors:
    errors: Errors = []
    domain, _, rest = manager.partition("/")
    if not manager:
        errors.append(FieldError.required(path))
    elif not domain or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(FieldError.invalid(path, manager, text))
    else:
        errors += [FieldError.invalid(path, domain, text) for text in dns1123_subdomain(domain)]
        errors += [FieldError.invalid(path, rest, text) for text in http_path(rest)]
    if len(manager) > _MAX_MANAGER_LENGTH:
        errors.append(FieldError.too_long(path, _MAX_MANAGER_LENGTH))
    return errors


def _mode_errors(spec: Object, path: str) -> Errors:
    mode = spec.get("completionMode") or "NonIndexed"
    errors: Errors = []
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        text = "when maxFailedIndexes is specified"
        errors.append(FieldError.required(f"{path}.backoffLimitPerIndex", text))
    if mode not in _COMPLETION_MODES:
        errors.append(unsupported(f"{path}.completionMode", mode, _COMPLETION_MODES))
    if mode == _INDEXED:
        return errors + _indexed_errors(spec, path)
    if mode == "NonIndexed":
        errors += [
            FieldError.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    return errors


def _indexed_errors(spec: Object, path: str) -> Errors:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    errors: Errors = []
    if completions is None:
        text = f"when completion mode is {_INDEXED}"
        errors.append(FieldError.required(f"{path}.completions", text))
    if parallelism > _MAX_PARALLELISM:
        text = (
            f"must be less than or equal to {_MAX_PARALLELISM} when completion mode is {_INDEXED}"
        )
        errors.append(FieldError.invalid(f"{path}.parallelism", parallelism, text))
    if completions is not None and failed is not None and failed > completions:
        text = "must be less than or equal to completions"
        errors.append(FieldError.invalid(f"{path}.maxFailedIndexes", failed, text))
    if failed is not None and failed > _MAX_PARALLELISM:
        text = f"must be less than or equal to {_MAX_PARALLELISM}"
        errors.append(FieldError.invalid(f"{path}.maxFailedIndexes", failed, text))
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        errors += _many_errors(parallelism, failed, path)
    return errors


def _many_errors(parallelism: int, failed: int | None, path: str) -> Errors:
    errors: Errors = []
    detail = (
        f"must be less than or equal to {_MAX_MANY_PARALLEL} when completions are above "
        f"{_MANY_COMPLETIONS} and used with backoff limit per index"
    )
    if failed is None:
        text = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        errors.append(FieldError.required(f"{path}.maxFailedIndexes", text))
    elif failed > _MAX_MANY_PARALLEL:
        errors.append(FieldError.invalid(f"{path}.maxFailedIndexes", failed, detail))
    if parallelism > _MAX_MANY_PARALLEL:
        errors.append(FieldError.invalid(f"{path}.parallelism", parallelism, detail))
    return errors


def _replacement_errors(spec: Object, path: str) -> Errors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return [] if policy in allowed else [unsupported(path, policy, allowed)]


def _restart_errors(spec: Object, path: str) -> Errors:
    policy = member(spec, "template", "spec", "restartPolicy") or ""
    if policy in ("", "Always"):
        return [FieldError.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [unsupported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        return [FieldError.invalid(path, policy, text)]
    return []


def _selector_errors(spec: Object) -> Errors:
    selector, labels = spec.get("selector"), member(spec, "template", "metadata", "labels") or {}
    if selector is None:
        mismatch = FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH)
        return [FieldError.required("spec.selector"), mismatch]
    errors = label_selector_errors(selector, "spec.selector")
    if not errors and not selects(selector, labels):
        errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    return errors


def _generated_selector_errors(job: Object) -> Errors:
    """Refuse labels and selectors that contradict the generated ones."""
    spec, metadata = job.get("spec") or {}, job.get("metadata") or {}
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    errors: Errors = []
    labels = member(spec, "template", "metadata", "labels") or {}
    expected = dict.fromkeys(_UID_LABELS, metadata.get("uid") or "")
    expected |= dict.fromkeys(_NAME_LABELS, metadata.get("name") or "")
    if not metadata.get("uid"):
        errors.append(FieldError.required("metadata.uid"))
    for label, value in expected.items():
        field = "spec.template.metadata.labels"
        if label not in labels:
            errors.append(FieldError.required(field, f"must have label {label}"))
        elif labels[label] != value:
            text = f"must be '{value}'"
            errors.append(FieldError.invalid(f"{field}[{label}]", labels[label], text))
    # A malformed selector is reported elsewhere.
    if not label_selector_errors(spec["selector"]) and not selects(spec["selector"], expected):
        text = "`selector` not auto-generated"
        errors.append(FieldError.invalid("spec.selector", spec["selector"], text))
    return errors


def _validate_job(job: Object) -> Errors:
    spec = job.get("spec") or {}
    errors = _generated_selector_errors(job)
    errors += job_spec_errors(spec, "spec") + _selector_errors(spec)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == _INDEXED and completions > 0:
        name = member(job, "metadata", "name") or ""
        host = f"{name}-{completions - 1}"
        if dns1123_label(host):
            text = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(FieldError.invalid("metadata.name", name, text))
    return errors


_FIXED = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
          "successPolicy")  # fmt: skip


def _validate_job_update(new: Object, old: Object) -> Errors:
    spec, former = new.get("spec") or {}, old.get("spec") or {}
    errors = job_spec_errors(spec, "spec") + _selector_errors(spec)
    errors += _completion_change_errors(spec, former)
    template = spec.get("template") or {}
    if not same(template, _comparable_template(template, old)):
        errors.append(FieldError.invalid("spec.template", template, "field is immutable"))
    for field in _FIXED:
        if not same(spec.get(field), former.get(field)):
            errors += immutable(spec.get(field), former.get(field), f"spec.{field}")
    return errors


def _completion_change_errors(spec: Object, former: Object) -> Errors:
    completions, field = spec.get("completions"), "spec.completions"
    if completions == former.get("completions"):
        return []
    if spec.get("completionMode") != _INDEXED:
        return [FieldError.invalid(field, completions, "field is immutable")]
    if completions is not None and completions != spec.get("parallelism"):
        text = "can only be modified in tandem with spec.parallelism"
        return [FieldError.invalid(field, completions, text)]
    return []


_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")


def _comparable_template(template: Object, old: Object) -> Object:
    """Return the old template, with what a suspended and never started job may still change."""
    former: Object = member(old, "spec", "template") or {}
    started = member(old, "status", "startTime") is not None
    if started or not member(old, "spec", "suspend"):
        return former
    spec, new_spec = dict(former.get("spec") or {}), template.get("spec") or {}
    for field in _SCHEDULING:
        spec[field] = new_spec.get(field)
    affinity = {**(spec.get("affinity") or {})}
    affinity["nodeAffinity"] = member(new_spec, "affinity", "nodeAffinity")
    spec["affinity"] = {k: v for k, v in affinity.items() if v is not None} or None
    return {**former, "metadata": template.get("metadata"), "spec": spec}


def _is_true(job: Object, kind: str) -> bool:
    conditions: Sequence[Object] = member(job, "status", "conditions") or ()
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


_CONTRADICTIONS = (
    ("Complete", "Failed"),
    ("Complete", "FailureTarget"),
    ("SuccessCriteriaMet", "Failed"),
    ("SuccessCriteriaMet", "FailureTarget"),
)


def _validate_job_status(new: Object, old: Object) -> Errors:
    status, former = new.get("status") or {}, old.get("status") or {}
    numbers = ("active", "succeeded", "failed", "ready", "terminating")
    errors = count_errors(status, numbers, "status")
    for one, other in _CONTRADICTIONS:
        if _is_true(new, one) and _is_true(new, other):
            text = f"cannot set {one}=True and {other}=true conditions"
            errors.append(_bare("status.conditions", text))
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is_true(old, kind) and not _is_true(new, kind):
            text = f"cannot disable the terminal {kind}=True condition"
            errors.append(_bare("status.conditions", text))
    for field in ("failed", "succeeded"):
        if (status.get(field) or 0) < (former.get(field) or 0):
            text = f"cannot decrease the {field} counter"
            errors.append(FieldError.invalid(f"status.{field}", status.get(field) or 0, text))
    return errors + _finished_errors(new, status, former)


def _bare(field: str, text: str) -> FieldError:
    """Return a refusal that shows no value."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {text}")


def _finished_errors(job: Object, status: Object, former: Object) -> Errors:
    errors: Errors = []
    complete, finished = _is_true(job, "Complete"), _is_true(job, "Failed")
    ended, ended_before = status.get("completionTime"), former.get("completionTime")
    if ended and not complete:
        text = "cannot set completionTime when there is no Complete=True condition"
        errors.append(FieldError.invalid("status.completionTime", ended, text))
    if complete and not ended:
        text = "completionTime is required for Complete jobs"
        errors.append(FieldError.required("status.completionTime", text))
    if ended and ended_before and ended != ended_before:
        text = "completionTime cannot be mutated"
        errors.append(FieldError.invalid("status.completionTime", ended, text))
    if (complete or finished) and status.get("active"):
        text = "active>0 is invalid for finished job"
        errors.append(FieldError.invalid("status.active", status["active"], text))
    if (complete or finished) and not status.get("startTime"):
        text = "startTime is required for finished job"
        errors.append(FieldError.required("status.startTime", text))
    if (status.get("ready") or 0) > (status.get("active") or 0):
        text = "cannot set more ready pods than active"
        errors.append(FieldError.invalid("status.ready", status.get("ready") or 0, text))
    return errors


RULES: RuleTable = {
    GroupResource("batch", "jobs"): Rules(
        default=_default_job,
        prepare_create=_prepare_job,
        validate_create=_validate_job,
        validate_update=_validate_job_update,
        validate_status=_validate_job_status,
        warnings=named_workload_warnings,
        selectable_fields={"status.successful": number_at("status", "succeeded")},
    ),
}
