"""Users of causes, from an audit log: whoever deleted an object is nowhere else.

A cause that has an audit ID is looked up by it. A deletion that has none, or one that the log does
not know, is looked for by workspace, resource, name and time: the last request that deleted such
an object before the decision. That is a clue for people and not a proof, since only names are
compared.

Only requests that did something count: of who was refused, or asked what a deletion would do
(``dryRun``), nothing came. An event that says no response code is of a request that has only begun.

A log may be rotated, cut off or someone else's. What cannot be read in it is counted and passed
over, and a cause without a user stays as it was; records are never changed, only copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from skerry.api import edge_audit
from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339

# Where an event says in which logical cluster it happened, on a hub of ours as on a kcp.
_WORKSPACE = "tenancy.kcp.io/workspace"
_SUCCESS = range(200, 300)
# A deletion is decided about at once; beyond this the request was about another object.
_MAX_DELAY = timedelta(minutes=5)


class _Deletion(NamedTuple):
    time: datetime
    user: str
    # Empty where the server has none.
    workspace: str


class AuditTrail:
    """What an audit log says of who did what, as far as records ask."""

    def __init__(self, lines: Iterable[str | bytes]) -> None:
        """*lines* are events as JSON; what is none is counted in ``unreadable``."""
        self._by_id: dict[str, str] = {}
        self._deletions: dict[tuple[str, str], list[_Deletion]] = {}
        self.unreadable = 0
        for line in lines:
            if not line.strip():
                continue
            try:
                self._take(orjson.loads(line))
            except (ValueError, TypeError, AttributeError, KeyError):
                self.unreadable += 1

    def _take(self, event: Mapping[str, Any]) -> None:
        if (event.get("responseStatus") or {}).get("code") not in _SUCCESS:
            return
        user = str((event.get("user") or {}).get("username", ""))
        if event.get("auditID"):
            # The first counts. Clients may choose the ID of a request, and read others' in objects.
            self._by_id.setdefault(str(event["auditID"]), user)
        about = event.get("objectRef") or {}
        if event.get("verb") != "delete" or about.get("subresource") or _is_dry_run(event):
            return
        key = (str(about.get("resource", "")), str(about.get("name", "")))
        time = parse_rfc3339(str(event["requestReceivedTimestamp"]))
        workspace = str((event.get("annotations") or {}).get(_WORKSPACE, ""))
        self._deletions.setdefault(key, []).append(_Deletion(time, user, workspace))

    def with_users(self, record: Object) -> Object:
        """Return a record whose causes have users, where the log knows them.

        The result is for showing: with a user more it has another digest than the record.
        """
        decided = parse_rfc3339(record["time"])
        found = dict(record)
        if "cause" in record:
            found["cause"] = self._known(record["cause"], decided)
        if "otherCauses" in record:
            found["otherCauses"] = [self._known(each, decided) for each in record["otherCauses"]]
        return found

    def _known(self, cause: Object, decided: datetime) -> Object:
        audit_id = str(cause.get("auditID") or "")
        user = self._by_id.get(audit_id, "") or self._deleter(cause, decided)
        return {**cause, "user": user} if user else cause

    def _deleter(self, cause: Object, decided: datetime) -> str:
        """Return who deleted the object of a cause; empty where that was not its change."""
        if cause.get("change") != "deleted":
            return ""
        key = (f"{str(cause.get('kind', '')).lower()}s", str(cause.get("name", "")))
        workspace = str(cause.get("cluster", ""))
        before = [
            each
            for each in self._deletions.get(key, ())
            if timedelta(0) <= decided - each.time <= _MAX_DELAY
            # Where one of them is not known there is nothing to compare.
            and (not workspace or each.workspace in ("", workspace))
        ]
        return max(before).user if before else ""


def _is_dry_run(event: Mapping[str, Any]) -> bool:
    """Tell whether a request only asked what it would do, by its query or by its options."""
    query = parse_qs(urlsplit(str(event.get("requestURI", ""))).query)
    return bool(query.get("dryRun") or (event.get("requestObject") or {}).get("dryRun"))


def audit_event(record: Object) -> Object:
    """Return a record in the form of an audit event, for tools that gather those.

    The user is the cause's, where one is known, and else the controller that decided. No request
    was made, so the event has one time, and its ID is the record's UID.
    """
    cause, reason = record.get("cause") or {}, record.get("reason") or {}
    decided_by = f"system:controller:{(record.get('by') or {}).get('controller', '')}"
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": str(record["metadata"].get("uid", "")),
        "stage": "ResponseComplete",
        "verb": str(record["change"]).lower(),
        "user": {"username": cause.get("user") or decided_by},
        "objectRef": {
            "resource": EDGE_PLACEMENTS.resource,
            "name": record["placement"]["name"],
            "uid": record["placement"]["uid"],
            "apiGroup": EDGE_PLACEMENTS.group,
            "apiVersion": EDGE_PLACEMENTS.version,
        },
        "requestReceivedTimestamp": record["time"],
        "stageTimestamp": record["time"],
        "annotations": {
            edge_audit.RECORD: record["metadata"]["name"],
            edge_audit.REASON: f"{reason.get('code', '')}: {reason.get('text', '')}",
            edge_audit.DESTINATIONS: str((record.get("destinations") or {}).get("count", 0)),
            edge_audit.CAUSE: f"{cause.get('kind', '')}/{cause.get('name', '')}",
            edge_audit.CAUSE_AUDIT_ID: str(cause.get("auditID", "")),
        },
    }
