"""What is counted has the names of Kubernetes and none that a client invented."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from skerry.server.flow import FairFlow
from skerry.server.http.message import Peer, Request, Response
from skerry.server.metrics import ServerMetrics, long_running_labels, request_labels, scope
from skerry.server.request.info import request_info

MAPS = "/api/v1/namespaces/ns/configmaps"


def labels(method: str, target: str, *, served: bool = True, **headers: str) -> tuple[str, ...]:
    path, _, query = target.partition("?")
    request = Request(method, path, query, headers)
    info = request_info(method, path, request.query, "root")
    return tuple(request_labels(request, info, served=served))


def metrics() -> ServerMetrics:
    return ServerMetrics(CollectorRegistry(), FairFlow())


@pytest.mark.parametrize(
    ("method", "target", "verb", "reach"),
    [
        ("GET", f"{MAPS}/a", "GET", "resource"),
        ("GET", MAPS, "LIST", "namespace"),
        ("GET", "/api/v1/configmaps", "LIST", "cluster"),
        ("GET", f"{MAPS}?watch=1", "WATCH", "namespace"),
        ("POST", MAPS, "POST", "resource"),
        ("PUT", f"{MAPS}/a", "PUT", "resource"),
        ("DELETE", MAPS, "DELETECOLLECTION", "namespace"),
        ("BREW", "/", "OTHER", ""),
    ],
)
def test_a_request_is_counted_by_its_verb_and_how_much_it_is_about(
    method: str, target: str, verb: str, reach: str
) -> None:
    found = labels(method, target)
    assert (found[0], found[6]) == (verb, reach)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE")),
            st.sampled_from((MAPS, f"{MAPS}/a", f"{MAPS}/a/status", "/api/v1/configmaps", "/x")),
            st.sampled_from(("", "?watch=1", "?dryRun=All", "?limit=1")),
            st.sampled_from((200, 404)),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_requests_are_counted_alike_the_first_time_and_later(
    requests: list[tuple[str, str, str, int, bool]],
) -> None:
    """Labels are kept by what they depend on; forgetting one of that would mix requests up."""
    counted = metrics()
    expected: Counter[tuple[str, ...]] = Counter()
    for method, path, query, code, served in requests:
        request = Request(method, path, query[1:], {})
        info = request_info(method, path, request.query, "root")
        counted.finished(request, info, code, 0.1, served=served)
        expected[(*request_labels(request, info, served=served), str(code))] += 1
    assert {each: counted.requests.value(each) for each in expected} == expected
    assert sum(map(counted.request_seconds.count, counted.request_seconds.series())) == len(
        requests
    )


def test_an_apply_and_a_trial_are_counted_apart() -> None:
    apply: Any = {"content-type": "application/apply-patch+yaml"}
    assert labels("PATCH", f"{MAPS}/a", **apply)[0] == "APPLY"
    assert labels("PATCH", f"{MAPS}/a")[0] == "PATCH"
    assert labels("POST", f"{MAPS}?dryRun=All")[1] == "All"
    assert labels("POST", f"{MAPS}?dryRun=Invented")[1] == ""


_parts = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@given(st.lists(_parts, min_size=3, max_size=6), st.booleans())
def test_no_name_that_a_client_invented_becomes_a_label(parts: list[str], resource: bool) -> None:
    path = ("/apis/" if resource else "/invented/") + "/".join(f"x-{part}" for part in parts)
    found = labels("GET", path, served=False)
    assert not any("x-" in label or "invented" in label for label in found)


def test_paths_of_a_tree_are_counted_as_its_root() -> None:
    assert labels("GET", "/healthz/etcd")[5] == "/healthz"
    assert labels("GET", "/version")[5] == "/version"
    assert labels("GET", "/anything/else")[5] == ""


def test_what_goes_on_is_counted_by_the_same_names_without_the_trial() -> None:
    info = request_info("GET", MAPS, {"watch": "1"}, "root")
    request = Request("GET", MAPS, "watch=1")
    verb, _, *rest = request_labels(request, info)
    assert tuple(long_running_labels(info)) == (verb, *rest)
    assert scope(info) == "namespace"


def test_a_request_without_a_known_duration_is_counted_and_not_measured() -> None:
    made = metrics()
    request, info = Request("GET", f"{MAPS}/a"), request_info("GET", f"{MAPS}/a", {}, "root")
    made.finished(request, info, 200, None)
    made.finished(request, info, 200, 0.5)
    found = request_labels(request, info)
    assert made.requests.value((*found, "200")) == 2
    assert made.request_seconds.count(found) == 1


def test_credentials_that_do_not_hold_are_distinguished_from_none() -> None:
    made = metrics()
    made.unidentified(Request("GET", "/"), 401)
    made.unidentified(Request("GET", "/", headers={"authorization": "Bearer x"}), 401)
    made.unidentified(Request("GET", "/", peer=Peer(certificate=b"x")), 401)
    made.unidentified(Request("GET", "/"), 429)
    made.identified()
    found = {
        result: made.authentication_attempts.value((result,))
        for result in ("success", "failure", "error")
    }
    assert found == {"success": 1, "failure": 1, "error": 2}


async def test_all_of_it_is_shown_as_text() -> None:
    answer = await metrics().handle(Request("GET", "/metrics"), "root")
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    for name in (b"apiserver_current_inflight_requests", b"skerry_server_processes 1"):
        assert name in answer.body
