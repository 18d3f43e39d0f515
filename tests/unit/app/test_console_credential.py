"""What somebody is signed in by: kept as it was shown, and shown again."""

from __future__ import annotations

import msgspec
import pytest

from skerry.api.edge_identity import NARROW_GROUPS
from skerry.api.errors import Forbidden, Unauthorized
from skerry.app.console_credential import HeldCredential, PackedCredential, credential_of, person
from skerry.server.http.message import Peer, Request
from skerry.server.user import User


class Named:
    """Takes a bearer token for the name of a user."""

    async def authenticate(self, request: Request, cluster: str) -> User:
        shown = request.headers.get("authorization", "Bearer system:anonymous")
        return User(shown.removeprefix("Bearer "), home=cluster)

    def knows(self, request: Request, cluster: str) -> bool:
        return False


async def test_a_request_is_kept_by_what_proves_it_and_nothing_else() -> None:
    headers = {"authorization": "Bearer ann", "cookie": "c", "impersonate-user": "bob"}
    request = Request("POST", "/", headers=headers, peer=Peer(certificate=b"cert"))
    held = credential_of(Named(), request, "root:shop")
    assert (await held.user()).name == "ann"
    kept = PackedCredential.unpacked(held.packed())
    assert kept.headers == {"authorization": "Bearer ann", "impersonate-user": "bob"}
    assert (kept.certificate, kept.cluster, kept.refresh_token) == (b"cert", "root:shop", "")
    assert PackedCredential.unpacked(held.with_refresh_token("r")).refresh_token == "r"


async def test_what_an_earlier_version_kept_is_read() -> None:
    packed = msgspec.msgpack.encode(({"authorization": "Bearer ann"}, None, "root"))
    kept = PackedCredential.unpacked(packed)
    held = HeldCredential(Named(), kept.headers, kept.certificate, kept.cluster)
    assert await held.user() == User("ann", home="root")


async def test_nobody_and_edges_have_no_console() -> None:
    with pytest.raises(Unauthorized):
        await HeldCredential(Named(), {}, None, "").user()
    for groups in NARROW_GROUPS:
        with pytest.raises(Forbidden, match="edges"):
            person(User("edge", groups=groups))
