"""Which checks a level has in a version, and what they find in a pod."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security import baseline, restricted
from skerry.logic.machinery.pod_security.policy import LevelVersion
from skerry.logic.machinery.pod_security.restricted import excusing_windows
from skerry.logic.machinery.pod_security.violation import Check, Violation


@dataclass(frozen=True, slots=True)
class _Rule:
    """A check by its name, as it was from each minor version on; sorted by version.

    A restricted check may replace a baseline one, of which it asks more.
    """

    name: str
    since: Sequence[tuple[int, Check]]
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        found = None
        for first, check in self.since:
            if first <= minor:
                found = check
        return found


# By name: violations are reported in this order, baseline first.
_BASELINE = (
    _Rule("appArmorProfile", [(0, baseline.app_armor_profile)]),
    _Rule("capabilities_baseline", [(0, baseline.capabilities)]),
    _Rule("hostNamespaces", [(0, baseline.host_namespaces)]),
    _Rule("hostPathVolumes", [(0, baseline.host_path_volumes)]),
    _Rule("hostPorts", [(0, baseline.host_ports)]),
    _Rule("privileged", [(0, baseline.privileged)]),
    _Rule("procMount", [(0, baseline.proc_mount)]),
    _Rule("seLinuxOptions", [(0, baseline.SELINUX_0), (31, baseline.SELINUX_31)]),
    _Rule(
        "seccompProfile_baseline",
        [(0, baseline.seccomp_annotations), (19, baseline.seccomp_profile)],
    ),
    _Rule(
        "sysctls",
        [
            (0, partial(baseline.sysctls, baseline.SYSCTLS_0)),
            (27, partial(baseline.sysctls, baseline.SYSCTLS_27)),
            (29, partial(baseline.sysctls, baseline.SYSCTLS_29)),
            (32, partial(baseline.sysctls, baseline.SYSCTLS_32)),
        ],
    ),
    _Rule("windowsHostProcess", [(0, baseline.windows_host_process)]),
)
_RESTRICTED = (
    _Rule(
        "allowPrivilegeEscalation",
        [
            (8, restricted.allow_privilege_escalation),
            (25, excusing_windows(restricted.allow_privilege_escalation)),
        ],
    ),
    _Rule(
        "capabilities_restricted",
        [(22, restricted.capabilities), (25, excusing_windows(restricted.capabilities))],
        replaces="capabilities_baseline",
    ),
    _Rule("restrictedVolumes", [(0, restricted.restricted_volumes)], replaces="hostPathVolumes"),
    _Rule("runAsNonRoot", [(0, restricted.run_as_non_root)]),
    _Rule("runAsUser", [(23, restricted.run_as_user)]),
    _Rule(
        "seccompProfile_restricted",
        [(19, restricted.seccomp), (25, excusing_windows(restricted.seccomp))],
        replaces="seccompProfile_baseline",
    ),
)
# The newest version in which a check changed: every later one asks for the same.
_NEWEST = max(first for rule in (*_BASELINE, *_RESTRICTED) for first, _ in rule.since)


def violations(wanted: LevelVersion, metadata: Mapping[str, Any], spec: Object) -> list[Violation]:
    """Return every way in which a pod, or what a template makes, breaks a level."""
    minor = _NEWEST if wanted.minor is None else min(wanted.minor, _NEWEST)
    found = (check(metadata, spec) for check in _checks(wanted.level, minor))
    return [violation for violation in found if violation is not None]


@functools.cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    if level == "privileged":
        return ()
    rules = [*_BASELINE]
    if level == "restricted":
        added = [rule for rule in _RESTRICTED if rule.at(minor) is not None]
        replaced = {rule.replaces for rule in added}
        rules = [*(rule for rule in _BASELINE if rule.name not in replaced), *added]
    return tuple(check for rule in rules if (check := rule.at(minor)) is not None)


def detail_of(found: Sequence[Violation]) -> str:
    """Return what is said of one object: each reason with its detail."""
    return ", ".join(map(str, found))


def reason_of(found: Sequence[Violation]) -> str:
    """Return what is said of many pods at once: the reasons alone."""
    return ", ".join(violation.reason for violation in found)
