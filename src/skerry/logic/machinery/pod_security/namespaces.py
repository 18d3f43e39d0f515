"""What changing the labels of a Namespace means for the pods that are in it already."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.evaluation import reason_of, violations
from skerry.logic.machinery.pod_security.policy import PREFIX, LevelVersion, Policy, stricter


def tightens(new: LevelVersion, old: LevelVersion) -> bool:
    """Tell whether pods that were let in by *old* may be refused by *new*."""
    if new == old or new.level == "privileged":
        return False
    return new.minor != old.minor or stricter(new.level, old.level)


def prioritized(pods: Iterable[Object], exempt_runtime_classes: Collection[str]) -> list[Object]:
    """Return the pods to check: one of each controller first, then the others like them."""
    first: list[Object] = []
    others: list[Object] = []
    controllers: set[str] = set()
    for pod in pods:
        if pod["spec"].get("runtimeClassName") in exempt_runtime_classes:
            continue
        owner = _controller(pod)
        if owner and owner in controllers:
            others.append(pod)
            continue
        controllers.add(owner)
        first.append(pod)
    return first + others


def _controller(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")


@dataclass(slots=True)
class _Alike:
    """Pods that break a level in the same way: how many, and the first by name."""

    name: str
    number: int = 0

    def __str__(self) -> str:
        if self.number == 1:
            return self.name
        others = "1 other pod" if self.number == 2 else f"{self.number - 1} other pods"
        return f"{self.name} (and {others})"


class ExistingPods:
    """Collects, pod by pod, what a new enforce level would refuse."""

    def __init__(self, namespace: str, enforce: LevelVersion) -> None:
        self._namespace = namespace
        self._enforce = enforce
        self._alike: dict[str, _Alike] = {}
        self._checked = 0

    def check(self, pod: Object) -> None:
        """Take one pod into account."""
        self._checked += 1
        found = violations(self._enforce, pod["metadata"], pod["spec"])
        if not found:
            return
        name = pod["metadata"]["name"]
        alike = self._alike.setdefault(reason_of(found), _Alike(name))
        alike.name = min(alike.name, name)
        alike.number += 1

    def warnings(self, total: int) -> list[str]:
        """Return the warnings for whoever changes the level, of *total* pods that there are."""
        found = []
        if self._checked < total:
            found.append(
                "new PodSecurity enforce level only checked against the first "
                f"{self._checked} of {total} existing pods"
            )
        if self._alike:
            found.append(
                f'existing pods in namespace "{self._namespace}" violate the new PodSecurity '
                f'enforce level "{self._enforce}"'
            )
        return found + sorted(f"{alike}: {reason}" for reason, alike in self._alike.items())


def exemption_warning(
    namespace: str, policy: Policy, labels: Mapping[str, str], defaults: Policy
) -> str:
    """Return what to say of labels on a Namespace that is exempt; empty when they ask nothing."""
    if policy.is_privileged or policy == defaults:
        return ""
    modes: Sequence[tuple[str, LevelVersion]] = (
        ("enforce", policy.enforce),
        ("audit", policy.audit),
        ("warn", policy.warn),
    )
    listed = ", ".join(
        f"{mode}={wanted}"
        for mode, wanted in modes
        if wanted.level != "privileged"
        and (f"{PREFIX}{mode}" in labels or f"{PREFIX}{mode}-version" in labels)
    )
    return (
        f'namespace "{namespace}" is exempt from Pod Security, and the policy ({listed}) will be '
        "ignored"
    )
