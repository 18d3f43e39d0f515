"""The summary object itself."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.kcp import edge
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.content import (
    MAX_DETAILS,
    NO_NUMBER,
    Subject,
    summary_content,
    summary_name,
    summary_object,
)
from skerry.logic.fleet.summary.health import NOT_ENFORCED, Health
from skerry.logic.fleet.summary.report import ABSENT, Report
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import Tally
from skerry.logic.machinery import crd
from skerry.logic.machinery.names import dns1123_subdomain
from skerry.logic.machinery.schema.validation import validate

WEB = Subject("apps", "v1", "deployments", "Deployment", "shop", "web")
ILL = Report(
    delivered=True,
    reported=True,
    health=Health("False", "Unavailable", "0 of 1 replicas available"),
    time="2030-01-01T00:00:00Z",
    numbers=(("replicas", 2**63 - 1),),
    conditions=(("Available", "False"),),
)


def places(count: int, report: Report) -> Tally:
    found = (
        Destination("root-imw", f"loc-{n:05}", f"st-{n:05}", f"uid-{n:05}") for n in range(count)
    )
    return Tally((each.uid, Detail(each, report)) for each in found)


def test_a_summary_is_named_after_placement_resource_and_object() -> None:
    assert summary_name("everywhere", WEB) == "everywhere-deployments-web"


def test_a_long_name_is_cut_and_hashed() -> None:
    one = summary_name("p" * 200, WEB._replace(name="w" * 200 + "1"))
    other = summary_name("p" * 200, WEB._replace(name="w" * 200 + "2"))
    assert len(one) == len(other) == 253
    assert one != other


def test_a_role_with_colons_gets_a_name_that_an_object_may_have() -> None:
    role = Subject("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", "a:b")
    assert summary_name("p", role).startswith("p-clusterroles-a-b-")
    assert summary_name("p", role) != summary_name("p", role._replace(name="a-b"))


@given(st.text("ab-.:A", min_size=1, max_size=300), st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_name_is_one_an_object_may_have(name: str, hashed: bool) -> None:
    found = summary_name("place", WEB._replace(name=f"x{name}x"), hashed=hashed)
    assert dns1123_subdomain(found) == []


def test_ten_thousand_destinations_fit_with_the_rest_counted() -> None:
    totals = places(10_000, ILL).totals(MAX_DETAILS)
    content = summary_content("everywhere", WEB, totals)
    assert content["destinations"] == content["delivered"] == content["reported"] == 10_000
    assert len(content["details"]) == MAX_DETAILS
    assert content["detailsOmitted"] == 10_000 - MAX_DETAILS
    assert content["numbers"] == [
        {"field": "replicas", "sum": 2**63 - 1, "min": 2**63 - 1, "max": 2**63 - 1}
    ]
    assert content["conditionCounts"] == [
        {"type": "Available", "true": 0, "false": 10_000, "unknown": 0}
    ]
    assert len(orjson.dumps(content)) < 40_000


def test_what_was_not_reported_is_left_out() -> None:
    content = summary_content("p", WEB, places(1, ABSENT).totals(MAX_DETAILS))
    assert "newestReportTime" not in content
    assert content["details"] == [
        {
            "cluster": "root-imw",
            "location": "loc-00000",
            "syncTarget": "st-00000",
            "delivered": False,
            "healthy": "Unknown",
            "reason": "NotInMailbox",
            "message": "the mailbox has no copy yet",
        }
    ]


WELL = Report(delivered=True, reported=True, health=Health("True"))
UNHEARD = Report(last_heard="2030-01-01T00:00:00Z")
INERT = Report(delivered=True, health=Health("Unknown", NOT_ENFORCED, "nothing scales"))
PENDING = Report(delivered=True)
HPA = Subject(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "shop", "web"
)


@pytest.mark.parametrize(
    ("reports", "shown"),
    [
        ([INERT, INERT], NO_NUMBER),
        ([UNHEARD, INERT], NO_NUMBER),
        ([INERT, PENDING], "0"),
        ([INERT, ILL], "0"),
        ([INERT, WELL], "1"),
        ([UNHEARD, UNHEARD], "0"),
    ],
)
def test_what_no_edge_acts_upon_is_not_shown_like_what_is_broken(
    reports: list[Report], shown: str
) -> None:
    found = [Destination("imw", f"loc-{n}", f"st-{n}", f"uid-{n}") for n in range(len(reports))]
    tally = Tally((each.uid, Detail(each, r)) for each, r in zip(found, reports, strict=True))
    assert summary_content("p", HPA, tally.totals(MAX_DETAILS))["health"] == shown


def test_a_summary_belongs_to_its_placement_and_satisfies_its_schema() -> None:
    totals = places(3, ILL).totals(MAX_DETAILS)
    summary = summary_object("p-deployments-web", "p", "uid-p", WEB, totals)
    (reference,) = summary["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("EdgePlacement", "uid-p")
    definition = next(
        d for d in edge.definitions() if d["spec"]["names"]["kind"] == summary["kind"]
    )
    (resource,) = crd.resources_of(definition)
    assert validate(resource.schema, orjson.loads(orjson.dumps(summary))) == []


def test_a_cluster_scoped_object_has_a_cluster_scoped_summary() -> None:
    subject = Subject("", "v1", "namespaces", "Namespace", "", "shop")
    summary = summary_object("n", "p", "u", subject, places(0, ILL).totals(1))
    assert summary["kind"] == "ClusterStatusSummary"
    assert "namespace" not in summary["metadata"]
