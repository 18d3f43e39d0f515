"""Which level, at which version, a Namespace asks for in each of the three modes.

A value that cannot be read counts as the strictest level for ``enforce`` and as the most lenient
one for ``audit`` and ``warn``: nothing gets in by a typing error, and nobody is flooded by one. A
new or changed label of that kind is refused when it is written, so this is about labels that were
there before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from skerry.api.errors import FieldError

Level = Literal["privileged", "baseline", "restricted"]
Mode = Literal["enforce", "audit", "warn"]

PREFIX = "pod-security.kubernetes.io/"
MODES: tuple[Mode, ...] = ("enforce", "audit", "warn")
_STRICTNESS: Mapping[str, int] = {"privileged": 0, "baseline": 1, "restricted": 2}
_LEVELS: Mapping[str, Level] = {
    "privileged": "privileged",
    "baseline": "baseline",
    "restricted": "restricted",
}
_BAD_LEVEL = f"must be one of {', '.join(_LEVELS)}"
_BAD_VERSION = 'must be "latest" or "v1.x"'
# Nine digits are more versions than there will be, and still a number that is cheap to read.
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class LevelVersion:
    """A level as it was in a minor version of Kubernetes; None is the latest."""

    level: Level = "privileged"
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is refused, what is noted in the audit log, and what is warned of."""

    enforce: LevelVersion = field(default_factory=LevelVersion)
    audit: LevelVersion = field(default_factory=LevelVersion)
    warn: LevelVersion = field(default_factory=LevelVersion)

    @property
    def is_privileged(self) -> bool:
        """Whether no mode asks for anything."""
        return all(found.level == "privileged" for found in (self.enforce, self.audit, self.warn))


PRIVILEGED = Policy()


def stricter(a: Level, b: Level) -> bool:
    """Tell whether *a* asks for more than *b*."""
    return _STRICTNESS[a] > _STRICTNESS[b]


def parse_level(text: str) -> Level | None:
    """Return the level that *text* names; None when it names none."""
    return _LEVELS.get(text)


def parse_version(text: str) -> tuple[bool, int | None]:
    """Return whether *text* is a version, and its minor number; None stands for the latest."""
    if text == "latest":
        return True, None
    found = _VERSION.fullmatch(text)
    return found is not None, None if found is None else int(found[1])


def policy_of(
    labels: Mapping[str, str], defaults: Policy = PRIVILEGED
) -> tuple[Policy, list[FieldError]]:
    """Return the policy that the labels of a Namespace ask for, and what is wrong with them.

    Whoever sets only ``enforce`` is warned of the same level, so that a Deployment whose pods will
    be refused says so when it is written.
    """
    found: dict[Mode, LevelVersion] = {
        "enforce": defaults.enforce,
        "audit": defaults.audit,
        "warn": defaults.warn,
    }
    errors: list[FieldError] = []
    for mode in MODES:
        found[mode] = _asked(labels, mode, found[mode], errors)
    enforced = parse_level(labels.get(f"{PREFIX}enforce", ""))
    warned = f"{PREFIX}warn" in labels
    if enforced is not None and not warned and stricter(enforced, found["warn"].level):
        found["warn"] = replace(found["warn"], level=enforced)
        if f"{PREFIX}warn-version" not in labels:
            found["warn"] = replace(found["warn"], minor=found["enforce"].minor)
    return Policy(**found), errors


def _asked(
    labels: Mapping[str, str], mode: Mode, default: LevelVersion, errors: list[FieldError]
) -> LevelVersion:
    found, name = default, f"{PREFIX}{mode}"
    if name in labels:
        level = parse_level(labels[name])
        if level is None:
            errors.append(_invalid(name, labels[name], _BAD_LEVEL))
            level = "restricted" if mode == "enforce" else "privileged"
        found = replace(found, level=level)
    name = f"{PREFIX}{mode}-version"
    if name in labels:
        known, minor = parse_version(labels[name])
        if not known:
            errors.append(_invalid(name, labels[name], _BAD_VERSION))
        found = replace(found, minor=minor)
    return found


def _invalid(label: str, value: str, detail: str) -> FieldError:
    return FieldError.invalid(f"metadata.labels[{label}]", value, detail)


def level_error(path: str, value: str) -> FieldError | None:
    """Return what is wrong with a level of a configuration file."""
    return None if value in _LEVELS else FieldError.invalid(path, value, _BAD_LEVEL)


def version_error(path: str, value: str) -> FieldError | None:
    """Return what is wrong with a version of a configuration file."""
    return None if parse_version(value)[0] else FieldError.invalid(path, value, _BAD_VERSION)
