"""Who changed an object is what the server says, whatever clients say of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.kit.invariant import present
from skerry.server.admission.authorship import Authorship
from skerry.server.admission.operation import Operation, Verb
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from tests.kit.server.hub import running_hub

KEY = "edge.kcp.io/changed-by"
TYPES = TypeSet(builtin_types())
NAMESPACES = "/api/v1/namespaces"


def admitted(
    new: Object,
    old: Object | None = None,
    *,
    user: str = "ann",
    headers: dict[str, str] | None = None,
    verb: Verb = "UPDATE",
    subresource: str = "",
    kind: str = "locations",
) -> tuple[Object, Request]:
    found = present(TYPES.find("", "v1", "configmaps"), "every server has ConfigMaps")
    resource = replace(found, info=replace(found.info, group="", resource=kind))
    request = Request("", "", headers=headers or {})
    call = Call(request, RequestInfo("", "update"), User(user), resource, TYPES)
    operation = Operation(call, verb, new, old, subresource=subresource)
    rule = Authorship(KEY, [("", "locations")], SeededIds(1), lambda cluster: cluster == "mailbox")
    asyncio.run(rule.admit(operation))
    return operation.obj, request


def obj(said: str | None = None, spec: int = 1, **labels: str) -> Object:
    annotations = {} if said is None else {KEY: said}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"n": spec}}


def author(found: Object) -> Object:
    said = found["metadata"]["annotations"].get(KEY)
    return {} if said is None else dict(orjson.loads(said))


def test_a_creation_a_spec_and_labels_are_somebodys() -> None:
    for new, old in ((obj(), None), (obj(spec=2), obj()), (obj(env="dr"), obj(env="prod"))):
        found, request = admitted(new, old)
        assert author(found) == {"user": "ann", "auditID": request.audit_id}
        assert request.audit_id


def test_any_other_write_keeps_the_author_whatever_the_client_says() -> None:
    bob = '{"user":"bob"}'
    for sent in (bob, None, '{"user":"mallory"}', "nonsense"):
        assert author(admitted(obj(sent), obj(bob))[0]) == {"user": "bob"}
    assert author(admitted(obj('{"user":"mallory"}'), obj())[0]) == {}


def test_an_audit_id_that_the_client_chose_proves_nothing() -> None:
    assert author(admitted(obj(), headers={"audit-id": "mine"})[0]) == {"user": "ann"}


def test_deletions_subresources_and_other_types_are_left_alone() -> None:
    for found, request in (
        admitted(obj(), verb="DELETE"),
        admitted(obj(), subresource="status"),
        admitted(obj(), kind="pods"),
    ):
        assert author(found) == {}
        assert not request.audit_id


def test_a_long_name_is_cut() -> None:
    assert len(author(admitted(obj(), user="u" * 5000)[0])["user"]) == 256


@pytest.mark.asyncio
async def test_a_hub_keeps_the_author_of_namespaces_and_nobody_else_can(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        made = await hub.create("root", NAMESPACES, {"metadata": {"name": "n"}})
        said = author(made)
        assert said["user"] == "kcp-admin"
        made["metadata"]["annotations"][KEY] = '{"user":"mallory"}'
        made["metadata"]["annotations"]["other"] = "x"
        reply = await hub.ask("kcp-admin", "PUT", f"/clusters/root{NAMESPACES}/n", made)
        assert author(reply.body) == said
        assert reply.body["metadata"]["annotations"]["other"] == "x"
        labelled = {"metadata": {"name": "n", "labels": {"a": "b"}}}
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{NAMESPACES}", labelled)
        assert reply.status == 409
