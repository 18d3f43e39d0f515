"""Security contexts, of pods and of containers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.paths import descending_errors
from skerry.logic.machinery.builtin.rules import Errors, each, one_of, unsupported
from skerry.logic.machinery.names import out_of_range

_MAX_ID = 2**31 - 1
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_CHANGE_POLICIES = ("Always", "OnRootMismatch")
_GROUP_POLICIES = ("Merge", "Strict")
_MAX_PROFILE_LENGTH = 4095  # PATH_MAX without its terminating zero
_MAX_SYSCTL_LENGTH = 253
_SYSCTL = "^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([\\./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$"
_sysctl_form = re.compile(_SYSCTL[1:-1]).fullmatch


def identity_errors(number: int | None, path: str) -> Errors:
    """Refuse what is no user or group id."""
    if number is None or 0 <= number <= _MAX_ID:
        return []
    return each(path, number, [out_of_range(0, _MAX_ID)])


def security_context_errors(context: Object, path: str) -> Errors:
    """Return what is wrong with the security context of a container."""
    errors = _common_errors(context, path)
    mount = context.get("procMount")
    if mount is not None and mount not in _PROC_MOUNTS:
        errors.append(unsupported(f"{path}.procMount", mount, _PROC_MOUNTS))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(FieldError.invalid(path, context, text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN"
            )
            errors.append(FieldError.invalid(path, context, text))
    return errors


def _common_errors(context: Object, path: str) -> Errors:
    errors = identity_errors(context.get("runAsUser"), f"{path}.runAsUser")
    errors += identity_errors(context.get("runAsGroup"), f"{path}.runAsGroup")
    if context.get("seccompProfile") is not None:
        errors += _seccomp_errors(context["seccompProfile"], f"{path}.seccompProfile")
    if context.get("appArmorProfile") is not None:
        errors += _app_armor_errors(context["appArmorProfile"], f"{path}.appArmorProfile")
    return errors


def pod_security_errors(spec: Object, context: Object, path: str) -> Errors:
    """Return what is wrong with the security context of a pod."""
    errors = identity_errors(context.get("fsGroup"), f"{path}.fsGroup")
    errors += _common_errors(context, path)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += identity_errors(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(FieldError.invalid(f"{path}.shareProcessNamespace", True, text))
    errors += _sysctl_errors(context.get("sysctls") or (), f"{path}.sysctls")
    policy = context.get("fsGroupChangePolicy")
    if policy is not None and policy not in _CHANGE_POLICIES:
        errors.append(unsupported(f"{path}.fsGroupChangePolicy", policy, _CHANGE_POLICIES))
    policy = context.get("supplementalGroupsPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        errors.append(unsupported(f"{path}.supplementalGroupsPolicy", policy, _GROUP_POLICIES))
    return errors


def _seccomp_errors(profile: Object, path: str) -> Errors:
    kind, local = profile.get("type"), profile.get("localhostProfile")
    errors = one_of(kind, f"{path}.type", _SECCOMP)
    if kind == "Localhost":
        if local is None:
            text = "must be set when seccomp type is Localhost"
            errors.append(FieldError.required(f"{path}.localhostProfile", text))
        else:
            errors += descending_errors(local, f"{path}.localhostProfile")
    elif local is not None:
        text = "can only be set when seccomp type is Localhost"
        errors.append(FieldError.invalid(f"{path}.localhostProfile", profile, text))
    return errors


def _app_armor_errors(profile: Object, path: str) -> Errors:
    kind, local = profile.get("type"), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if not kind:
        text = "type is required when appArmorProfile is set"
        return [FieldError.required(f"{path}.type", text)]
    if kind not in _SECCOMP:
        return [unsupported(f"{path}.type", kind, _SECCOMP)]
    if kind == "Localhost":
        return _local_profile_errors(local, where)
    if local is not None:
        text = "can only be set when AppArmor type is Localhost"
        return [FieldError.invalid(where, local, text)]
    return []


def _local_profile_errors(local: str | None, path: str) -> Errors:
    if not local:
        return [FieldError.required(path, "must be set when AppArmor type is Localhost")]
    errors: Errors = []
    if local.strip() != local:
        text = "must not be padded with whitespace"
        errors.append(FieldError.invalid(path, local, text))
    if len(local) > _MAX_PROFILE_LENGTH:
        errors.append(FieldError.too_long(path, _MAX_PROFILE_LENGTH))
    return errors


def _sysctl_errors(settings: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, setting in enumerate(settings):
        name, where = setting.get("name") or "", f"{path}[{index}].name"
        if not name:
            errors.append(FieldError.required(where))
        elif len(name) > _MAX_SYSCTL_LENGTH or _sysctl_form(name) is None:
            text = f"must have at most {_MAX_SYSCTL_LENGTH} characters and match regex {_SYSCTL}"
            errors.append(FieldError.invalid(where, name, text))
        elif name in taken:
            errors.append(FieldError.duplicate(where, name))
        taken.add(name)
    return errors
