"""The restriction on edges by itself, with nothing before it that might refuse.

In a hub the authorizer and the narrow view of edges refuse most of this sooner, by names and by
what is stored. Each of the layers must hold alone: a change of one must not open the other.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from skerry.api.edge_identity import BOOTSTRAP_GROUPS, EDGE_GROUPS
from skerry.api.errors import ApiError, Forbidden, Invalid
from skerry.api.kinds import GroupResource
from skerry.kit.invariant import present
from skerry.logic.machinery.edges.rights import LEASES, REQUESTS, SYNCER_CONFIGS, may
from skerry.logic.machinery.edges.scope import Scope, scope_of
from skerry.server.admission.edges import EdgeRestriction
from skerry.server.admission.operation import Operation
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from tests.kit.server.clock import HandClock

MAPS = GroupResource("", "configmaps")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
EDGE = User("system:edge:box:uid", groups=EDGE_GROUPS, home="box")
UPSYNC = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["up"], "names": ["*"]}
TYPES = TypeSet(builtin_types())


class Mailbox:
    """The one mailbox there is."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._scope = scope_of(spec)

    def scope(self, _: str) -> Scope:
        return self._scope


def operation(
    kind: GroupResource,
    verb: Literal["CREATE", "UPDATE", "DELETE"],
    new: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    namespace: str = "",
    subresource: str = "",
    user: User = EDGE,
) -> Operation:
    resource = present(TYPES.find("", "v1", "configmaps"), "every server has ConfigMaps")
    info = replace(resource.info, group=kind.group, resource=kind.resource)
    name = new["metadata"]["name"]
    asked = RequestInfo("", verb.lower(), True, "box", namespace=namespace, name=name)
    call = Call(Request("", ""), asked, user, replace(resource, info=info), TYPES)
    return Operation(call, verb, new, old, subresource=subresource)


async def admitted(asked: Operation, *upsync: dict[str, Any]) -> dict[str, Any]:
    await EdgeRestriction(Mailbox({"upsync": list(upsync)}), HandClock(NOW)).admit(asked)
    return asked.obj


async def refused(asked: Operation, *upsync: dict[str, Any]) -> ApiError:
    with pytest.raises((Forbidden, Invalid)) as caught:
        await admitted(asked, *upsync)
    return caught.value


def report(name: str = "x") -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"edge.kcp.io/upsynced": "true"}}}


def lease(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "syncer-heartbeat"}, "spec": spec}


# -- reports -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        None,
        {**UPSYNC, "resources": ["secrets"]},
        {**UPSYNC, "apiGroup": "apps"},
        {**UPSYNC, "namespaces": ["other"]},
        {**UPSYNC, "namespaces": []},
        {**UPSYNC, "names": ["y"]},
    ],
)
async def test_no_report_comes_up_without_an_upsync_rule_that_covers_it(rule: Any) -> None:
    rules = [] if rule is None else [rule]
    created = operation(MAPS, "CREATE", report(), namespace="up")
    assert "no upsync rule" in str(await refused(created, *rules))
    changed = operation(MAPS, "UPDATE", {**report(), "data": {}}, report(), namespace="up")
    assert "no upsync rule" in str(await refused(changed, *rules))
    for verb in ("create", "update", "patch"):
        assert not may(scope_of({"upsync": rules}), verb, MAPS, "", "up", "x"), verb


async def test_a_report_that_a_rule_covers_comes_up() -> None:
    await admitted(operation(MAPS, "CREATE", report(), namespace="up"), UPSYNC)
    assert may(scope_of({"upsync": [UPSYNC]}), "create", MAPS, "", "up", "x")


# -- what says what the edge gets ----------------------------------------------------------------


@pytest.mark.parametrize("verb", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize("subresource", ["", "scale"])
async def test_of_a_syncer_config_an_edge_writes_the_status_only(
    verb: Any, subresource: str
) -> None:
    every = {"apiGroup": "edge.kcp.io", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}
    old = None if verb == "CREATE" else report("the-one")
    new = {**report("the-one"), "spec": {"upsync": [every]}}
    asked = operation(SYNCER_CONFIGS, verb, new, old, subresource=subresource)
    assert "the status of a SyncerConfig only" in str(await refused(asked, every))
    assert not may(scope_of({"upsync": [every]}), "patch", SYNCER_CONFIGS, "", "", "the-one")


async def test_the_status_of_a_syncer_config_is_the_edges_to_write() -> None:
    old = {"metadata": {"name": "the-one"}}
    asked = operation(SYNCER_CONFIGS, "UPDATE", {**old, "status": {}}, old, subresource="status")
    await admitted(asked)


# -- heartbeats ----------------------------------------------------------------------------------


async def test_the_heartbeat_is_not_deleted() -> None:
    every = {"apiGroup": LEASES.group, "resources": ["*"], "namespaces": ["*"], "names": ["*"]}
    marked = {**lease(), **report("syncer-heartbeat")}
    for gone in (lease(), marked):
        asked = operation(LEASES, "DELETE", gone, namespace="default")
        assert "does not delete it" in str(await refused(asked, every))
    scope = scope_of({"upsync": [every]})
    assert not may(scope, "delete", LEASES, "", "default", "syncer-heartbeat")
    assert not may(scope, "deletecollection", LEASES, "", "default", "")


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00Z", "2030-01-01T00:00:01Z", "soon", None])
async def test_no_time_that_an_edge_notes_on_its_lease_lies_ahead(time: Any) -> None:
    sent = lease(renewTime=time, acquireTime=time, leaseDurationSeconds=60)
    past = {"manager": "y", "time": "2029-12-31T00:00:00Z"}
    sent["metadata"]["managedFields"] = [{"manager": "x", "time": time}, {"manager": "z"}, past]
    for old in (None, lease(renewTime="2029-12-31T00:00:00Z")):
        verb: Any = "CREATE" if old is None else "UPDATE"
        made = await admitted(operation(LEASES, verb, sent, old, namespace="default"))
        noted = [entry["time"] for entry in made["metadata"]["managedFields"]]
        assert noted == ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", past["time"]]
        assert made["spec"]["renewTime"] == "2030-01-01T00:00:00.000000Z"
        assert made["spec"]["acquireTime"] == "2030-01-01T00:00:00.000000Z"


async def test_a_lease_that_lasts_too_long_is_refused_by_its_field() -> None:
    sent = lease(leaseDurationSeconds=3601)
    error = await refused(operation(LEASES, "CREATE", sent, namespace="default"))
    assert "spec.leaseDurationSeconds" in str(error)


# -- who -----------------------------------------------------------------------------------------


async def test_a_bootstrap_credential_writes_nothing_but_its_request() -> None:
    bearer = User("system:bootstrap:x", groups=BOOTSTRAP_GROUPS, home="box")
    asked = operation(MAPS, "CREATE", report(), namespace="up", user=bearer)
    await refused(asked, UPSYNC)
    other = {"metadata": {"name": "r"}, "spec": {"signerName": "example.org/any"}}
    await refused(operation(REQUESTS, "CREATE", other, user=bearer))


async def test_nobody_else_is_restricted() -> None:
    for groups in ((), ("system:edges", "system:authenticated"), ("system:authenticated",)):
        user = User("ann", groups=groups)
        await admitted(operation(MAPS, "CREATE", report(), namespace="up", user=user))
