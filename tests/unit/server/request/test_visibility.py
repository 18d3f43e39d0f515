"""What edges and bearers of bootstrap credentials see: what concerns them, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import PROJECTED, UPSYNCED
from skerry.api.edge_identity import EDGE_GROUPS, NARROW_GROUPS
from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupResource
from skerry.logic.machinery.edges.rights import LEASES, REQUESTS, SYNCER_CONFIGS
from skerry.server.codec import encode
from skerry.server.request.visibility import is_narrow, refuse_unseen, view_of
from skerry.server.user import User
from tests.kit.server.calls import call_of

SECRETS = GroupResource("", "secrets")
EDGE = User("edge", groups=EDGE_GROUPS)
BEARERS = [User("b", groups=groups) for groups in NARROW_GROUPS if groups != EDGE_GROUPS]


def stored(**metadata: Any) -> bytes:
    return encode({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", **metadata}})


def sees(user: User, kind: GroupResource, value: bytes) -> bool:
    view = view_of(user, kind)
    return view is None or view(value)


def test_everybody_else_sees_what_rbac_lets_them_read() -> None:
    for groups in ((), ("system:masters",), ("a", "b")):
        user = User("ann", groups=groups)
        assert view_of(user, SECRETS) is None
        assert not is_narrow(user)


@pytest.mark.parametrize(
    ("metadata", "seen"),
    [
        ({}, False),
        ({"labels": {PROJECTED: "yes"}}, True),
        ({"labels": {PROJECTED: "no"}}, False),
        ({"annotations": {UPSYNCED: "true"}}, True),
        ({"annotations": {UPSYNCED: "false"}}, False),
    ],
)
def test_an_edge_sees_copies_made_for_it_and_its_own_reports(
    metadata: dict[str, Any], seen: bool
) -> None:
    assert is_narrow(EDGE)
    assert sees(EDGE, SECRETS, stored(**metadata)) is seen


def test_an_edge_sees_its_configuration_and_its_heartbeat() -> None:
    assert view_of(EDGE, SYNCER_CONFIGS) is None
    assert not sees(EDGE, LEASES, stored(namespace="kube-node-lease"))


@pytest.mark.parametrize("user", [EDGE, *BEARERS])
def test_requests_for_certificates_are_seen_by_who_made_them(user: User) -> None:
    mine, other = (
        encode(
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "r"}, "spec": {"username": name}}
        )
        for name in (user.name, "another")
    )
    assert sees(user, REQUESTS, mine)
    assert not sees(user, REQUESTS, other)


@pytest.mark.parametrize("user", BEARERS)
def test_a_bearer_of_a_bootstrap_credential_sees_nothing_else(user: User) -> None:
    assert is_narrow(user)
    assert not sees(user, SECRETS, stored(labels={PROJECTED: "yes"}))


def test_what_is_not_shown_is_not_written_either() -> None:
    call = call_of(user=EDGE, name="a")
    refuse_unseen(call, stored(labels={PROJECTED: "yes"}))
    with pytest.raises(Forbidden, match="neither a projected copy nor a report of this edge"):
        refuse_unseen(call, stored())
    refuse_unseen(call_of(name="a"), stored())
