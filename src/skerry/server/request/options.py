"""Query parameters of each verb, checked and named."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from skerry.api.errors import BadRequest, FieldError, Gone, Invalid
from skerry.kit.text import whole_number
from skerry.logic.machinery.selectors import FieldSelector, Selector, SelectorError
from skerry.server.http.message import Request
from skerry.server.request.info import truth

_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Background", "Foreground", "Orphan")
_META = "meta.k8s.io"


class WriteOptions(msgspec.Struct, frozen=True):
    """How a write is to be done."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    force: bool = False


class DeleteOptions(msgspec.Struct, frozen=True):
    """How a delete is to be done; what was not said is None."""

    dry_run: bool = False
    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class ListOptions(msgspec.Struct, frozen=True):
    """What a list or watch selects, and from when."""

    labels: Selector
    fields: FieldSelector
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_key: str = ""
    continue_revision: int = 0
    continue_remaining: int | None = None
    # When the first page was read, by the clock on the wall.
    continue_began: float = 0.0
    timeout_seconds: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def write_options(request: Request, kind: str) -> WriteOptions:
    """Return the options of a create, update or patch; *kind* names them in errors."""
    query = request.query
    if not query:
        return WriteOptions(field_manager=manager_of(request))
    errors: list[FieldError] = []
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATIONS:
        errors.append(FieldError.not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        errors.append(FieldError.too_long("fieldManager", 128))
    elif any(not c.isprintable() for c in manager):
        detail = "should only contain printable characters"
        errors.append(FieldError.invalid("fieldManager", manager, detail))
    dry_run = _dry_run(query.get("dryRun"), errors)
    if errors:
        raise Invalid.of(_META, kind, "", errors)
    return WriteOptions(
        dry_run=dry_run,
        field_validation=validation or "Warn",
        field_manager=manager or manager_of(request),
        force=truth(query.get("force")),
    )


def manager_of(request: Request) -> str:
    """Return the field manager an unnamed writer gets: its user agent up to the slash."""
    agent = request.headers.get("user-agent", "").split("/", 1)[0][:128]
    if not agent.isprintable():
        agent = "".join(c for c in agent if c.isprintable())
    return agent or "unknown"


def delete_options(request: Request, body: Mapping[str, Any]) -> DeleteOptions:
    """Return the options of a delete: the body's, else the query's."""
    query = request.query
    errors: list[FieldError] = []
    dry_run_values = body.get("dryRun") or ([query["dryRun"]] if "dryRun" in query else [])
    dry_run = False
    for dry_run_value in dry_run_values:
        dry_run = _dry_run(dry_run_value, errors)
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or None
    if propagation is not None and propagation not in _PROPAGATIONS:
        errors.append(FieldError.not_supported("propagationPolicy", propagation, _PROPAGATIONS))
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in query:
        orphan = truth(query["orphanDependents"])
    if orphan is not None:
        if propagation is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(FieldError.invalid("propagationPolicy", propagation, detail))
        propagation = "Orphan" if orphan else "Background"
    grace = body.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = _integer(query["gracePeriodSeconds"], "gracePeriodSeconds")
    if grace is not None and not isinstance(grace, int):
        raise BadRequest("gracePeriodSeconds: want a whole number")
    if errors:
        raise Invalid.of(_META, "DeleteOptions", "", errors)
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        dry_run=dry_run,
        grace_seconds=grace,
        propagation=propagation,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )


def _dry_run(value: str | None, errors: list[FieldError]) -> bool:
    if not value:
        return False
    if value != "All":
        errors.append(FieldError.not_supported("dryRun", value, ["All"]))
    return True


def list_options(request: Request) -> ListOptions:
    """Return the options of a list or watch."""
    query = request.query
    if not query:
        return EVERYTHING
    token = query.get("continue", "")
    key, revision, remaining, began = decode_continue(token) if token else ("", 0, None, 0.0)
    resource_version = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        labels=_label_selector(query.get("labelSelector", "")),
        fields=_field_selector(query.get("fieldSelector", "")),
        resource_version=resource_version,
        match=match,
        limit=max(0, _integer(query.get("limit", "0") or "0", "limit")),
        continue_key=key,
        continue_revision=revision,
        continue_remaining=remaining,
        continue_began=began,
        timeout_seconds=_timeout(query),
        bookmarks=truth(query.get("allowWatchBookmarks")),
        initial_events=None if initial is None else truth(initial),
    )
    _check(options, watching=truth(query.get("watch")), continued=bool(token))
    return options


EVERYTHING = ListOptions(labels=Selector.parse(""), fields=FieldSelector.parse(""))


def _check(options: ListOptions, *, watching: bool, continued: bool) -> None:
    """Refuse combinations that Kubernetes refuses."""
    errors: list[FieldError] = []
    version = options.resource_version
    if version and whole_number(version) is None:
        errors.append(FieldError.invalid("resourceVersion", version, "must be a valid number"))
    if watching:
        _check_watch(options, errors)
    else:
        _check_list(options, errors, continued=continued)
    if continued and version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    if errors:
        raise Invalid.of(_META, "ListOptions", "", errors)


def _check_list(options: ListOptions, errors: list[FieldError], *, continued: bool) -> None:
    version, match = options.resource_version, options.match
    field = "resourceVersionMatch"
    if options.initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        errors.append(FieldError.forbidden("sendInitialEvents", detail))
    if not match:
        return
    if match not in ("Exact", "NotOlderThan"):
        errors.append(FieldError.not_supported(field, match, ["Exact", "NotOlderThan", ""]))
    elif not version:
        detail = f"{field} is forbidden unless resourceVersion is provided"
        errors.append(FieldError.forbidden(field, detail))
    elif continued:
        detail = f"{field} is forbidden when continue is provided"
        errors.append(FieldError.forbidden(field, detail))
    elif match == "Exact" and version == "0":
        detail = f'{field} "Exact" is forbidden for resourceVersion "0"'
        errors.append(FieldError.forbidden(field, detail))


def _check_watch(options: ListOptions, errors: list[FieldError]) -> None:
    match, initial = options.match, options.initial_events
    if match and initial is None:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(FieldError.forbidden("resourceVersionMatch", detail))
    if initial is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(FieldError.forbidden("resourceVersionMatch", detail))


def _label_selector(text: str) -> Selector:
    try:
        return Selector.parse(text)
    except SelectorError as error:
        raise BadRequest(str(error)) from error


def _field_selector(text: str) -> FieldSelector:
    try:
        return FieldSelector.parse(text)
    except SelectorError as error:
        raise BadRequest(str(error)) from error


def _timeout(query: Mapping[str, str]) -> int | None:
    text = query.get("timeoutSeconds")
    return None if not text else max(0, _integer(text, "timeoutSeconds"))


def _integer(text: str, field: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadRequest(f"{field}: {text!r} is not a whole number") from error


# In place of a revision: whichever is the newest, since that of the first page is gone.
ANY_REVISION: Final = -1


def encode_continue(
    key: str, revision: int, remaining: int | None = None, began: float = 0.0
) -> str:
    """Return the token that goes on after *key* in the snapshot at *revision*, where *remaining*
    items follow if that is known; *began* is when the first page was read."""
    token: dict[str, Any] = {"v": "meta.k8s.io/v1", "rv": revision, "start": key}
    if remaining is not None:
        token["left"] = remaining
    if began:
        token["at"] = int(began)
    return base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("=")


def decode_continue(token: str) -> tuple[str, int, int | None, float]:
    """Return key, revision, items left and beginning that a continue token stands for."""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        parsed = orjson.loads(raw)
        key, revision, left = parsed["start"], parsed["rv"], parsed.get("left")
        began = parsed.get("at", 0)
        if not isinstance(key, str) or not isinstance(revision, int) or not isinstance(began, int):
            raise ValueError(token)
        if revision <= 0 and revision != ANY_REVISION:
            raise ValueError(token)
        if not isinstance(left, int | None):
            raise ValueError(token)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise invalid_continue() from error
    return key, revision, left, float(began)


def invalid_continue() -> BadRequest:
    """Say that a continue token is none of ours."""
    return BadRequest("continue key is not valid: encoded continue token is invalid")


def expired_continue(key: str) -> Gone:
    """Say that the snapshot of a list is no longer kept, and how it may go on after *key*."""
    return Gone(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.",
        proceed=encode_continue(key, ANY_REVISION),
    )
