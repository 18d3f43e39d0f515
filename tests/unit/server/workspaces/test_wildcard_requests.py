"""Where there is no one cluster, collections are read and nothing else is done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.errors import (
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
)
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.server.http.message import Answer, Request, Response
from skerry.server.request.call import Call
from skerry.server.workspaces.wildcard_requests import WildcardRequests, without_cluster
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.mailboxes import MailboxPlace

MAPS = resource("configmaps")
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def plain(call: Call) -> Answer:
    return Response(body=b"done")


async def ask(
    verb: str, cluster: str, name: str = "", place: MailboxPlace | None = None, accept: str = "",
    identity: str = "", view: str = "",
) -> Response:  # fmt: skip
    request = Request("GET", "/", headers={"accept": accept} if accept else {})
    kind = replace(MAPS, identity=identity)
    call = call_of(kind, request=request, verb=verb, cluster=cluster, name=name)
    call.view = view
    handlers = WildcardRequests((place or MailboxPlace()).state).guarded({verb: plain})
    answer = await handlers[verb](call)
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_collections_of_all_clusters_are_read(verb: str) -> None:
    assert (await ask(verb, "*")).body == b"done"


@pytest.mark.parametrize(
    ("verb", "name"),
    [("get", "a"), ("create", ""), ("update", "a"), ("patch", "a"), ("delete", "a"),
     ("deletecollection", ""), ("watch", "a")],
)  # fmt: skip
async def test_nothing_else_is_done_in_all_clusters(verb: str, name: str) -> None:
    with pytest.raises(MethodNotAllowed, match="`\\*` logical cluster"):
        await ask(verb, "*", name)
    with pytest.raises(NotFound):
        await ask(verb, "*", name, view="apiexport/x/y")


async def test_objects_of_any_identity_are_shown_by_their_metadata_alone() -> None:
    with pytest.raises(NotFound):
        await ask("list", "*", identity=ANY_IDENTITY)
    assert (await ask("list", "*", identity=ANY_IDENTITY, accept=METADATA)).body == b"done"


async def test_a_request_of_no_cluster_is_nobodys() -> None:
    with pytest.raises(InternalError):
        await ask("list", "")


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
async def test_nothing_is_written_where_nothing_would_ever_remove_it(verb: str) -> None:
    with pytest.raises(Forbidden, match="does not exist"):
        await ask(verb, "nowhere", "a")
    assert (await ask(verb, "system:admin", "a")).body == b"done"
    assert (await ask(verb, "imw", "a")).body == b"done"
    assert (await ask("delete", "nowhere", "a")).body == b"done"


async def test_a_workspace_that_goes_takes_nothing_new_and_lets_what_is_there_be_changed() -> None:
    place = MailboxPlace()
    place.change("imw", deleting=True)
    with pytest.raises(Forbidden, match="is being deleted"):
        await ask("create", "imw", place=place)
    assert (await ask("patch", "imw", "a", place=place)).body == b"done"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/clusters/imw/api/v1", "/api/v1"),
        ("/clusters/imw", "/"),
        ("/clusters/root:imw/", "/"),
        ("/version", "/version"),
    ],
)
async def test_a_page_sees_its_path_as_it_is_within_a_cluster(path: str, seen: str) -> None:
    async def shown(request: Request, cluster: str) -> Answer:
        return Response(body=f"{cluster} {request.path}".encode())

    answer = await without_cluster(shown)(Request("GET", path), "imw")
    assert isinstance(answer, Response)
    assert answer.body == f"imw {seen}".encode()
