"""Taints and the tolerations for them: of nodes, and of Locations.

A taint keeps away whoever does not tolerate it: ``NoSchedule`` newcomers, ``NoExecute`` also who
is there, and with ``PreferNoSchedule`` a place is the last resort.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
# Those that keep away altogether.
REPELLING: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})


class Taint(NamedTuple):
    """A mark that keeps away whoever does not tolerate it."""

    key: str
    value: str
    effect: str

    @property
    def text(self) -> str:
        """As kubectl writes it: ``key=value:Effect``."""
        name = f"{self.key}={self.value}" if self.value else self.key
        return f"{name}:{self.effect}"

    def __str__(self) -> str:
        """As the messages of kube-scheduler name it."""
        return f"{{{self.key}: {self.value}}}"


class Toleration(NamedTuple):
    """Indifference to some taints; an empty effect stands for any, an empty operator for Equal."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether *taint* keeps nobody away who has this toleration.

        An empty key stands for any only with ``Exists``; with another operator no server takes it.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        equal = self.operator in ("", "Equal") and self.value == taint.value
        return bool(self.key) and equal


def taints_of(listed: Iterable[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    """Read ``spec.taints``."""
    return tuple(
        Taint(each.get("key") or "", each.get("value") or "", each.get("effect") or "")
        for each in listed or ()
    )


def tolerations_of(listed: Iterable[Mapping[str, Any]] | None) -> tuple[Toleration, ...]:
    """Read ``spec.tolerations``."""
    return tuple(
        Toleration(
            each.get("key") or "",
            each.get("operator") or "",
            each.get("value") or "",
            each.get("effect") or "",
        )
        for each in listed or ()
    )


def untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Iterator[Taint]:
    """Yield the taints with one of *effects* that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(each.tolerates(taint) for each in tolerations):
            yield taint


def first_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Taint | None:
    """Return the first taint with one of *effects* that nothing tolerates."""
    return next(untolerated(taints, tolerations, effects), None)
