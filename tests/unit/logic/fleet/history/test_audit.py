"""Users of causes, looked up in an audit log."""

from __future__ import annotations

import orjson
import pytest

from skerry.api.objects import Object
from skerry.logic.fleet.history.audit import AuditTrail, audit_event
from tests.kit.decisions import random_history

DELETED = {"kind": "Location", "name": "l1", "change": "deleted"}


def event(verb: str, name: str, user: str, time: str, audit_id: str = "x", **more: object) -> bytes:
    return orjson.dumps(
        {
            "auditID": audit_id,
            "verb": verb,
            "user": {"username": user},
            "objectRef": {"resource": "locations", "name": name},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": time,
            **more,
        }
    )


def at(workspace: str) -> dict[str, str]:
    return {"tenancy.kcp.io/workspace": workspace}


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


ANN = event("delete", "l1", "ann", "2026-09-01T14:00:08Z", "1")
LATER = "2026-09-01T14:00:09Z"


@pytest.mark.parametrize(
    "more",
    [
        {"responseStatus": {"code": 403}},
        {"responseStatus": {"code": 404}},
        {"responseStatus": {"metadata": {}}},
        {"responseStatus": None},
        {"requestURI": "/apis/scheduling.kcp.io/v1alpha1/locations/l1?dryRun=All"},
        {"requestURI": "/locations/l1?gracePeriodSeconds=0&dryRun=%41ll"},
        {"requestObject": {"kind": "DeleteOptions", "dryRun": ["All"]}},
        {"objectRef": {"resource": "locations", "name": "l1", "subresource": "status"}},
    ],
)
def test_whoever_deleted_nothing_is_not_named(more: dict[str, object]) -> None:
    trail = AuditTrail([ANN, event("delete", "l1", "bob", LATER, "2", **more)])
    assert user(trail, **DELETED) == "ann"
    assert user(AuditTrail([event("delete", "l1", "bob", LATER, "2", **more)]), **DELETED) is None
    assert trail.unreadable == 0


def test_a_deletion_accepted_for_later_is_one() -> None:
    accepted = event("delete", "l1", "bob", LATER, "2", responseStatus={"code": 202})
    assert user(AuditTrail([ANN, accepted]), **DELETED) == "bob"


def test_a_namesake_in_another_workspace_is_another_object() -> None:
    deletions = [
        event("delete", "l1", "ann", "2026-09-01T14:00:08Z", annotations=at("inv")),
        event("delete", "l1", "bob", LATER, annotations=at("other")),
    ]
    trail = AuditTrail(deletions)
    assert user(trail, **DELETED, cluster="inv") == "ann"
    assert user(trail, **DELETED, cluster="other") == "bob"
    assert user(trail, **DELETED, cluster="third") is None


def test_where_a_workspace_is_not_known_it_is_not_compared() -> None:
    assert user(AuditTrail([ANN]), **DELETED, cluster="inv") == "ann"
    elsewhere = event("delete", "l1", "ann", LATER, annotations=at("inv"))
    assert user(AuditTrail([elsewhere]), **DELETED) == "ann"


@pytest.mark.parametrize("nothing", ["", None])
def test_an_event_without_an_id_is_nobody_s_cause(nothing: str | None) -> None:
    trail = AuditTrail([event("patch", "l1", "mallory", LATER, auditID=nothing)])
    assert user(trail, kind="Location", name="l1") is None
    assert user(trail, kind="Location", name="l1", auditID="") is None
    assert user(trail, kind="Location", name="l1", auditID="None") is None


def test_an_id_is_that_of_the_first_who_succeeded_with_it() -> None:
    """A client chooses the ID of its request, and can read others' where they are kept."""
    trail = AuditTrail(
        [
            event("patch", "l1", "eve", LATER, "7", responseStatus={"code": 409}),
            event("patch", "l1", "ann", LATER, "7"),
            event("get", "l1", "mallory", LATER, "7"),
        ]
    )
    assert user(trail, kind="Location", name="l1", auditID="7") == "ann"


def test_a_cause_with_an_audit_id_is_found_by_it() -> None:
    trail = AuditTrail([event("patch", "l1", "ann", "2026-09-01T14:00:09Z", "7"), b"", b"\n"])
    assert user(trail, kind="Location", name="l1", auditID="7") == "ann"
    assert user(trail, kind="Location", name="l1", auditID="8", user="bob") == "bob"
    assert trail.unreadable == 0


TIMELESS = b'{"verb":"delete","responseStatus":{"code":200}}'


def test_lines_that_are_no_events_are_counted() -> None:
    assert AuditTrail([b"{", b"[]", TIMELESS, b"3", b'{"responseStatus":3}']).unreadable == 5


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
