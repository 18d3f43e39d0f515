"""Users of causes, looked up in an audit log."""

from __future__ import annotations

import orjson

from skerry.api.objects import Object
from skerry.logic.fleet.history.audit import AuditTrail, audit_event
from tests.kit.decisions import random_history

DELETED = {"kind": "Location", "name": "l1", "change": "deleted"}


def event(verb: str, name: str, user: str, time: str, audit_id: str = "x") -> bytes:
    return orjson.dumps(
        {
            "auditID": audit_id,
            "verb": verb,
            "user": {"username": user},
            "objectRef": {"resource": "locations", "name": name},
            "requestReceivedTimestamp": time,
        }
    )


def record(**cause: str) -> Object:
    return {**random_history(1).records[0], "time": "2026-09-01T14:00:10Z", "cause": cause}


def user(trail: AuditTrail, **cause: str) -> str | None:
    found: str | None = trail.with_users(record(**cause))["cause"].get("user")
    return found


def test_whoever_deleted_the_object_shortly_before_is_found() -> None:
    trail = AuditTrail(
        [
            event("delete", "l1", "bob", "2026-09-01T13:00:00Z"),
            event("delete", "l1", "ann", "2026-09-01T14:00:09Z"),
            event("delete", "l1", "eve", "2026-09-01T14:00:11Z"),
            event("delete", "l2", "mallory", "2026-09-01T14:00:09Z"),
        ]
    )
    assert user(trail, **DELETED) == "ann"
    assert user(trail, **{**DELETED, "name": "l3"}) is None
    assert user(trail, **{**DELETED, "change": "label a=b"}) is None


def test_a_cause_with_an_audit_id_is_found_by_it() -> None:
    trail = AuditTrail([event("patch", "l1", "ann", "2026-09-01T14:00:09Z", "7"), b"", b"\n"])
    assert user(trail, kind="Location", name="l1", auditID="7") == "ann"
    assert user(trail, kind="Location", name="l1", auditID="8", user="bob") == "bob"
    assert trail.unreadable == 0


def test_lines_that_are_no_events_are_counted() -> None:
    assert AuditTrail([b"{", b"[]", b'{"verb":"delete"}', b"3"]).unreadable == 4


def test_other_causes_are_looked_up_too() -> None:
    trail = AuditTrail([event("delete", "l1", "ann", "2026-09-01T14:00:09Z")])
    found = trail.with_users({**record(kind="x", name="y"), "otherCauses": [DELETED]})
    assert found["otherCauses"][0]["user"] == "ann"


def test_a_record_as_an_audit_event_says_who_and_why() -> None:
    found = audit_event(record(kind="Location", name="l1", user="ann"))
    assert found["user"] == {"username": "ann"}
    assert found["annotations"]["edge.kcp.io/cause"] == "Location/l1"
    nobody = audit_event(record(kind="Location", name="l1"))
    assert nobody["user"] == {"username": "system:controller:edge-scheduler"}
