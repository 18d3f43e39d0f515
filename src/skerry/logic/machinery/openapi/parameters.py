"""The query and path parameters of the API, once each, whatever document tells of them."""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter: its name, JSON type, meaning, and where it stands."""

    name: str
    type: str
    description: str
    location: str = "query"


_TABLE = (
    Parameter(
        "allowWatchBookmarks",
        "boolean",
        "Ask for BOOKMARK events, which say how far a watch has come while nothing changes.",
    ),
    Parameter(
        "continue",
        "string",
        "The continue token of the page before, to get the next one. A token that is too old is "
        "answered with 410 and a fresh token.",
    ),
    Parameter(
        "dryRun",
        "string",
        "With All, do everything but store the change. Other values are errors.",
    ),
    Parameter(
        "fieldManager",
        "string",
        "The name under which the fields this request sets are recorded, at most 128 printable "
        "characters. Apply requests must give one.",
    ),
    Parameter(
        "fieldSelector",
        "string",
        "Restrict the list to objects whose fields have these values.",
    ),
    Parameter(
        "fieldValidation",
        "string",
        "What to do about unknown or duplicate fields: Ignore drops them silently, Warn (the "
        "default) drops them and warns, Strict refuses the request.",
    ),
    Parameter(
        "force",
        "boolean",
        "Take over fields that other managers own. For apply requests only.",
    ),
    Parameter(
        "gracePeriodSeconds",
        "integer",
        "How long the object has to end by itself; zero deletes at once. The kind has a default.",
    ),
    Parameter(
        "labelSelector",
        "string",
        "Restrict the list to objects whose labels satisfy this selector.",
    ),
    Parameter(
        "limit",
        "integer",
        "The most objects to return in one answer; what is left is fetched with the continue "
        "token of the answer.",
    ),
    Parameter(
        "orphanDependents",
        "boolean",
        "The older form of propagationPolicy Orphan; only one of the two may be given.",
    ),
    Parameter(
        "pretty",
        "string",
        "With true, the answer is indented for people to read.",
    ),
    Parameter(
        "propagationPolicy",
        "string",
        "What becomes of dependents: Orphan leaves them, Background deletes them afterwards, "
        "Foreground deletes them first.",
    ),
    Parameter(
        "resourceVersion",
        "string",
        "Which state of the data to answer from; the meaning depends on the request.",
    ),
    Parameter(
        "resourceVersionMatch",
        "string",
        "How resourceVersion is applied to a list: Exact or NotOlderThan.",
    ),
    Parameter(
        "sendInitialEvents",
        "boolean",
        "Begin a watch with the present objects as events, ended by a bookmark.",
    ),
    Parameter(
        "timeoutSeconds",
        "integer",
        "End the list or watch after so many seconds.",
    ),
    Parameter(
        "watch",
        "boolean",
        "Answer with a stream of changes in place of a list.",
    ),
    Parameter("namespace", "string", "The namespace of the object.", "path"),
    Parameter("name", "string", "The name of the object.", "path"),
    Parameter("path", "string", "The path within what is proxied to.", "path"),
)

PARAMETERS: dict[str, Parameter] = {parameter.name: parameter for parameter in _TABLE}

LISTING = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
WRITING = ("dryRun", "fieldManager", "fieldValidation")
PATCHING = (*WRITING, "force")
DELETING = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
DELETING_MANY = tuple(
    sorted({*DELETING, *LISTING} - {"allowWatchBookmarks", "watch"}),
)
