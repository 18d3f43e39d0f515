"""From URLs to clusters: where a request goes, and what no path leads to."""

from __future__ import annotations

import contextlib
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Forbidden, NotFound
from skerry.logic.machinery.edges.tunnel import EDGES_PATH
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN, home_cluster_name
from skerry.server.engine import Route
from skerry.server.http.message import Request
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.routing import HubRouter, cluster_of_token
from tests.kit.server.mailboxes import BOX, MAILBOX, hub_state

STATE = hub_state()
ROUTER = HubRouter(STATE, HubCatalogue(STATE), lambda _: False)
MAPS = "/api/v1/configmaps"


def token(claims: Any) -> str:
    return "Bearer " + jwt.encode(claims, "0" * 64, "HS256")


def route(path: str, authorization: str = "") -> Route:
    headers = {"authorization": authorization} if authorization else {}
    return ROUTER.route(Request("GET", path, headers=headers))


@pytest.mark.parametrize(
    ("segment", "cluster"),
    [
        ("imw", "imw"),
        ("root:imw", "imw"),
        (f"root:espw:{MAILBOX.workspace}", BOX),
        ("*", "*"),
        # A path that leads nowhere is nobody's, and stays as it is.
        ("root:nowhere", "root:nowhere"),
        ("nowhere", "nowhere"),
        ("user:ann", home_cluster_name("ann")),
    ],
)
def test_a_cluster_is_found_by_its_name_or_its_path(segment: str, cluster: str) -> None:
    found = route(f"/clusters/{segment}{MAPS}")
    assert (found.cluster, found.path) == (cluster, MAPS)


@pytest.mark.parametrize("segment", ["", "Not Good", "..", "root:", ":root"])
def test_what_is_no_name_of_a_cluster_is_refused(segment: str) -> None:
    with pytest.raises(BadRequest, match="invalid cluster"):
        route(f"/clusters/{segment}")


@pytest.mark.parametrize(
    "page", ["/metrics", "/healthz/etcd", "/debug/x", "/extensions/v1/keys", "/readyz"]
)
def test_pages_of_the_process_are_the_hubs_whoever_asks_below_whichever_cluster(page: str) -> None:
    for path in (page, f"/clusters/imw{page}", f"/clusters/*{page}", f"/clusters/nowhere{page}"):
        found = route(path, token({"kubernetes.io": {"clusterName": "imw"}}))
        assert (found.cluster, found.path) == (SYSTEM_ADMIN, page)
    for view in (
        "/services/apiexport/imw/x/clusters/*",
        "/services/initializingworkspaces/x/clusters/*",
    ):
        with pytest.raises(Forbidden):
            route(f"{view}{page}")


@pytest.mark.parametrize(
    "path",
    [
        "/services/",
        "/services/unknown/x",
        "/services/apiexport/imw/x",
        "/services/apiexport/imw/x/elsewhere/*",
        "/services/initializingworkspaces/x",
    ],
)
def test_a_path_that_names_no_view_is_refused(path: str) -> None:
    with pytest.raises(Forbidden, match="not resolved"):
        route(path)


def test_a_bare_path_is_the_cluster_that_a_token_claims() -> None:
    claimed = token({"kubernetes.io": {"clusterName": "imw"}})
    assert route(MAPS, claimed) == Route("imw", MAPS)
    assert route(MAPS).cluster == ""
    assert route("/version").cluster == SYSTEM_ADMIN


def test_a_console_needs_no_right_but_to_be_known() -> None:
    found = route("/skerry/console/codes")
    assert found.guard is not None
    assert tuple(found.guard(User("ann"), RequestInfo("", "post"))) == ()
    assert route("/clusters/imw/skerry/console/codes").guard is None


def test_what_runs_at_an_edge_is_looked_for_in_clusters_that_are() -> None:
    router = HubRouter(STATE, HubCatalogue(STATE), lambda _: False)
    path = f"/clusters/imw{EDGES_PATH}/florin/x"
    assert router.route(Request("GET", path)).cluster == "imw"
    router.edges = lambda cluster, rest: Route(f"edge of {cluster}", rest)
    assert router.route(Request("GET", path)).cluster == "edge of imw"
    assert router.route(Request("GET", path.replace("imw", "nowhere"))).cluster == "nowhere"


@pytest.mark.parametrize(
    "claims",
    [None, 5, "imw", {}, {"clusterName": 5}, {"clusterName": "Not Good"}, {"clusterName": "a/b"}],
)
def test_a_claim_that_is_no_cluster_leads_nowhere(claims: Any) -> None:
    assert cluster_of_token(token({"kubernetes.io": claims})) == ""


@given(st.text(max_size=40) | st.builds("Bearer {}.{}.{}".format, *[st.text(max_size=8)] * 3))
def test_whatever_stands_for_a_token_breaks_nothing(text: str) -> None:
    assert cluster_of_token(text) == ""


def test_a_token_that_is_too_long_is_not_taken_apart() -> None:
    long = token({"kubernetes.io": {"clusterName": "imw"}, "x": "y" * 20_000})
    assert cluster_of_token(long) == ""


@given(st.text(st.sampled_from("/abc:*.~ "), max_size=20))
def test_no_path_breaks_anything_but_by_an_answer(rest: str) -> None:
    for path in (f"/clusters/{rest}", f"/services/{rest}", f"/services/apiexport/{rest}", rest):
        with contextlib.suppress(BadRequest, Forbidden, NotFound):
            assert isinstance(route(path), Route)
