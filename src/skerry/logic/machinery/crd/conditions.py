"""Which names a CustomResourceDefinition gets, and its conditions.

Names are unique within a group: plural, singular and short names among resources, kind and list
kind among kinds. Who came first keeps them. A definition whose names conflict keeps what it has,
has NamesAccepted False, and is not served until the other lets go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from skerry.api.errors import FieldError
from skerry.api.objects import Object, Raw
from skerry.logic.machinery.conditions import set_conditions
from skerry.logic.machinery.crd import definition
from skerry.logic.machinery.crd.definition import mapping, names_of, sequence, spec_of, text


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The names nobody else may have in a group."""

    resources: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Claim:
    """One definition's names, claimed one by one."""

    taken: TakenNames
    accepted: Object
    reason: str = "NoConflicts"
    message: str = "no conflicts found"
    conflict: bool = False
    names: Object = field(default_factory=dict)

    def claim(self, key: str, wanted: str, among: frozenset[str], reason: str) -> None:
        if wanted != self.accepted.get(key) and wanted in among:
            self.refuse(reason, f'"{wanted}" is already in use')
        elif wanted:
            self.names[key] = wanted

    def refuse(self, reason: str, message: str) -> None:
        """Note a conflict; the last one found is the one reported."""
        self.conflict, self.reason, self.message = True, reason, message


def taken_names(crd: Raw, others: Iterable[Raw], reserved: TakenNames | None = None) -> TakenNames:
    """Return the names of *crd*'s group that other definitions have, and reserved ones."""
    group = spec_of(crd).get("group")
    name = mapping(crd.get("metadata")).get("name")
    resources = set(reserved.resources) if reserved else set()
    kinds = set(reserved.kinds) if reserved else set()
    for other in others:
        if spec_of(other).get("group") != group:
            continue
        if mapping(other.get("metadata")).get("name") == name:
            continue
        accepted = mapping(mapping(other.get("status")).get("acceptedNames"))
        resources |= {text(accepted.get("plural")), text(accepted.get("singular"))}
        resources |= set(map(text, sequence(accepted.get("shortNames"))))
        kinds |= {text(accepted.get("kind")), text(accepted.get("listKind"))}
    return TakenNames(frozenset(resources - {""}), frozenset(kinds - {""}))


def names_conditions(crd: Raw, taken: TakenNames) -> tuple[Object, Object]:
    """Return the names *crd* gets and its NamesAccepted condition (without a time)."""
    wanted = names_of(crd)
    accepted = dict(mapping(mapping(crd.get("status")).get("acceptedNames")))
    claim = _Claim(taken, accepted, names={**accepted})
    claim.claim("plural", text(wanted.get("plural")), taken.resources, "PluralConflict")
    claim.claim("singular", text(wanted.get("singular")), taken.resources, "SingularConflict")
    _claim_short_names(claim, wanted)
    claim.claim("kind", text(wanted.get("kind")), taken.kinds, "KindConflict")
    claim.claim("listKind", text(wanted.get("listKind")), taken.kinds, "ListKindConflict")
    categories = list(sequence(wanted.get("categories")))
    claim.names.pop("categories", None)
    if categories:
        claim.names["categories"] = categories
    condition = {
        "type": "NamesAccepted",
        "status": "False" if claim.conflict else "True",
        "reason": claim.reason,
        "message": claim.message,
    }
    return claim.names, condition


def _claim_short_names(claim: _Claim, wanted: Raw) -> None:
    names = [text(name) for name in sequence(wanted.get("shortNames"))]
    held = set(sequence(claim.accepted.get("shortNames")))
    refused = [name for name in names if name not in held and name in claim.taken.resources]
    if refused:
        messages = [f'"{name}" is already in use' for name in dict.fromkeys(refused)]
        message = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
        claim.refuse("ShortNamesConflict", message)
        return
    claim.names.pop("shortNames", None)
    if names:
        claim.names["shortNames"] = names


def non_structural_condition(crd: Raw) -> Object | None:
    """Return the NonStructuralSchema condition of *crd*, None for one that validation lets through.

    Schemas that are not structural are refused; only a definition from before that may preserve
    unknown fields everywhere.
    """
    if not spec_of(crd).get("preserveUnknownFields"):
        return None
    error = FieldError.invalid("spec.preserveUnknownFields", True, "must be false")
    return {
        "type": "NonStructuralSchema",
        "status": "True",
        "reason": "Violations",
        "message": str(error),
    }


def establish(
    crd: Raw, others: Iterable[Raw], now: datetime, reserved: TakenNames | None = None
) -> Object:
    """Return the status *crd* should have beside *others*; equal to what it has if all is well.

    Once established it stays so: a later conflict over new names does not stop what is served.
    """
    status: Object = dict(mapping(crd.get("status")))
    names, names_accepted = names_conditions(crd, taken_names(crd, others, reserved))
    conditions = [names_accepted, _established(crd, names_accepted)]
    non_structural = non_structural_condition(crd)
    if non_structural is not None:
        conditions.append(non_structural)
    kept = [
        dict(mapping(item))
        for item in sequence(status.get("conditions"))
        if mapping(item).get("type") != "NonStructuralSchema" or non_structural is not None
    ]
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status["conditions"] = set_conditions(kept, conditions, moment)
    status["acceptedNames"] = names
    status["storedVersions"] = _stored(crd, status)
    return status


def _established(crd: Raw, names_accepted: Object) -> Object:
    present = definition.condition(crd, "Established")
    if present is not None and present.get("status") == "True":
        return dict(present)
    if names_accepted["status"] == "True":
        return {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }
    return {
        "type": "Established",
        "status": "False",
        "reason": "NotAccepted",
        "message": "not all names are accepted",
    }


def _stored(crd: Raw, status: Raw) -> list[str]:
    stored = [text(version) for version in sequence(status.get("storedVersions"))]
    storage = definition.storage_version(crd)
    return stored if not storage or storage in stored else [*stored, storage]
