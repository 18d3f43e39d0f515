"""Customization: an object as one destination wants it, or why it is not sent there.

An object asks for it by annotation. ``edge.kcp.io/expand-parameters`` expands ``%(name)`` in its
strings by the labels and annotations of the destination's Location; ``edge.kcp.io/customizer``
names a Customizer, whose replacements (a JSONPath and a value each, expanded too if the Customizer
asks for it) are then applied in order. A Customizer is looked for in the object's own namespace
unless it is named with another.

A person who asks for customization and gets the object as it was has been misled: an edge would
run with another edge's settings. So whatever cannot be done as asked withholds the object from
that destination and says why. With ``strict=False`` it is sent as far as it could be customized,
as KubeStellar did, with a note on each thing left undone.

With a Customizer that expands parameters, at a Location with the labels ``n=3`` and ``city=oslo``:

    path             value          the outcome
    $.spec.replicas  %(n)           the number 3: a value is JSON, read after it was expanded
    $.data.where     "%(city)"      the text oslo
    $.data.where     %(city)        withheld: InvalidReplacementValue, for oslo is no JSON
    $.data.where     %(town)        withheld: MissingParameter
    $.metadata.name  "oslo"         withheld: IdentityReplaced

A parameter that nobody gives is missed only where path or value cannot be read because of it.
Inside text, of the object as of ``"%(town)"``, it stays as it stands and is sent (``parameters``).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.edge import CUSTOMIZER, EXPAND_PARAMETERS
from skerry.api.objects import Object
from skerry.logic.fleet.customization.parameters import (
    Values,
    expanded,
    expanded_text,
    location_values,
    missing_names,
)
from skerry.logic.fleet.customization.paths import Path, parse_path
from skerry.logic.fleet.customization.replacement import UnreachablePath, replaced
from skerry.logic.machinery.jsonpath import JSONPathError, Members

CUSTOMIZER_NOT_FOUND = "CustomizerNotFound"
LOCATION_NOT_FOUND = "LocationNotFound"
INVALID_PATH = "InvalidReplacementPath"
INVALID_VALUE = "InvalidReplacementValue"
MISSING_PARAMETER = "MissingParameter"
IDENTITY_REPLACED = "IdentityReplaced"


class CustomizerName(NamedTuple):
    """Where a Customizer is, within the object's workspace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be done as asked: one CamelCase word, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Customized:
    """The object to send. ``undone`` is empty when everything asked for was done."""

    object: Object
    undone: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Withheld:
    """Nothing to send, and why."""

    problem: Problem


def customizer_name(obj: Mapping[str, Any]) -> CustomizerName | None:
    """Return the Customizer an object names; a name alone is one in the object's namespace."""
    text = _annotations(obj).get(CUSTOMIZER, "")
    if not text:
        return None
    namespace, slash, name = text.partition("/")
    if slash:
        return CustomizerName(namespace, name)
    return CustomizerName(obj["metadata"].get("namespace", ""), text)


def wants_parameters(obj: Mapping[str, Any]) -> bool:
    """Tell whether an object (or a Customizer) asks for its parameters to be expanded."""
    return _annotations(obj).get(EXPAND_PARAMETERS) == "true"


def wants_customization(obj: Mapping[str, Any]) -> bool:
    """Tell whether an object may differ from place to place."""
    return wants_parameters(obj) or customizer_name(obj) is not None


def customize(
    obj: Object,
    customizer: Object | None,
    location: Mapping[str, Any] | None,
    *,
    strict: bool = True,
) -> Customized | Withheld:
    """Return *obj* as *location* wants it; *obj* itself stays as it is.

    *customizer* is the one the object names, None when there is none such. *location* is asked
    for only where parameters are to be expanded. An object that asks for nothing is returned
    itself and not as a copy, by which callers know that nothing was done.
    """
    if not wants_customization(obj):
        return Customized(obj)
    work = _Customization(obj, location)
    work.expand()
    work.apply(customizer)
    if strict and work.problems:
        return Withheld(work.problems[0])
    return Customized(work.object, tuple(work.problems))


@dataclass(frozen=True, slots=True)
class _Customizer:
    """A Customizer at one Location: the parameters it has there, and whether it asks for any."""

    name: str
    values: Values
    asks: bool

    def missing(self, text: str) -> Problem | None:
        """Return that *text* has a parameter nobody gives; None when it has none."""
        names = missing_names(text, self.values)
        if not names:
            return None
        if not self.asks:
            how = f"annotate the Customizer with {EXPAND_PARAMETERS}=true"
            return Problem(MISSING_PARAMETER, f"%({names[0]}) is not expanded: {how}")
        listed = ", ".join(repr(each) for each in names)
        text = f"the Location has neither a label nor an annotation {listed}"
        return Problem(MISSING_PARAMETER, text)


class _Customization:
    """One object on its way to one Location.

    It is expanded first, so replacements find it expanded and have the last word. Each of them is
    made or not by itself: one that fails is noted, and those after it are made all the same.
    """

    def __init__(self, obj: Object, location: Mapping[str, Any] | None) -> None:
        self.object: Object = copy.deepcopy(obj)
        self.problems: list[Problem] = []
        self._identity = _identity(obj)
        # As the object was written: who looked the Customizer up knew no other name.
        self._name = customizer_name(obj)
        self._location = location

    def expand(self) -> None:
        if wants_parameters(self.object):
            values = self._values("the object asks for parameters")
            if values is not None:
                self.object = expanded(self.object, values)

    def apply(self, customizer: Object | None) -> None:
        name = self._name
        if name is None:
            return
        if customizer is None:
            self._problem(CUSTOMIZER_NOT_FOUND, f"there is no Customizer {name}")
            return
        values: Values | None = {}
        if wants_parameters(customizer):
            values = self._values(f"Customizer {name} asks for parameters")
        if values is None:
            return
        work = _Customizer(str(name), values, asks=wants_parameters(customizer))
        for replacement in customizer.get("replacements") or ():
            self._replace(replacement, work)

    def _values(self, who: str) -> Values | None:
        if self._location is not None:
            return location_values(self._location)
        self._problem(LOCATION_NOT_FOUND, f"{who} but the Location is not there")
        return None

    def _replace(self, replacement: Mapping[str, str], by: _Customizer) -> None:
        name, values = by.name, by.values
        path_text = expanded_text(replacement["path"], values)
        value_text = expanded_text(replacement["value"], values)
        try:
            value = json.loads(value_text, parse_constant=_refused)
        except ValueError as error:
            # A parameter that is not there explains more than what the parser stumbled on.
            found = by.missing(replacement["value"])
            why = found or Problem(INVALID_VALUE, f"the value is not JSON: {error}")
            message = f"Customizer {name}, path {path_text!r}: {why.message}"
            self._problem(why.reason, message)
            return
        try:
            path = parse_path(path_text)
            # Replacing changes the object itself; few paths can lead where that must be undone.
            kept = copy.deepcopy(self.object) if _touches_identity(path) else None
            result = replaced(self.object, path, value)
        except (JSONPathError, UnreachablePath) as error:
            found = by.missing(replacement["path"])
            why = found or Problem(INVALID_PATH, str(error))
            self._problem(why.reason, f"Customizer {name}: {why.message}")
            return
        if kept is not None and (_identity(result) != self._identity or not _plain(result)):
            self.object = kept
            message = (
                f"Customizer {name}, path {path_text!r}: kind, name and namespace cannot be "
                "replaced, and labels and annotations are text"
            )
            self._problem(IDENTITY_REPLACED, message)
            return
        self.object = result

    def _problem(self, reason: str, message: str) -> None:
        self.problems.append(Problem(reason, message))


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _identity(obj: Any) -> tuple[Any, ...]:
    """Return what says which object it is; nothing of what is no object any more."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return ()
    metadata = obj["metadata"]
    return obj.get("apiVersion"), obj.get("kind"), metadata.get("namespace"), metadata.get("name")


def _touches_identity(path: Path) -> bool:
    """Tell whether *path* may reach what identifies an object, or its labels."""
    if not path.steps:
        return True
    first = path.steps[0]
    if not isinstance(first, Members):
        return True
    return any(name in ("apiVersion", "kind", "metadata") for name in first.names)


def _plain(obj: Object) -> bool:
    """Tell whether labels and annotations are still maps from text to text."""
    for name in ("labels", "annotations"):
        found = obj["metadata"].get(name)
        if found is not None and not (
            isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
        ):
            return False
    return True


def _refused(text: str) -> Any:
    """Refuse ``NaN`` and ``Infinity``, which Python reads and JSON does not have."""
    raise ValueError(f"{text} is no JSON value")
