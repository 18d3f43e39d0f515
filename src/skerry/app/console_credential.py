"""What somebody is signed in to the console by: shown to the hub's own authentication each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from skerry.api.edge_identity import NARROW_GROUPS
from skerry.api.errors import Forbidden, Unauthorized
from skerry.server.access import Authenticator
from skerry.server.http.message import Peer, Request
from skerry.server.user import User

_ANONYMOUS = "system:anonymous"
_IMPERSONATE = "impersonate-"


class PackedCredential(msgspec.Struct, array_like=True, frozen=True):
    """A credential as it is kept."""

    headers: dict[str, str]
    certificate: bytes | None
    cluster: str
    refresh_token: str = ""

    def packed(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpacked(cls, packed: bytes) -> PackedCredential:
        return msgspec.msgpack.decode(packed, type=cls)


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """What somebody authenticated with, kept to be shown to the hub's own authentication again."""

    authenticator: Authenticator
    headers: Mapping[str, str]
    certificate: bytes | None
    cluster: str

    async def user(self) -> User:
        peer = Peer(certificate=self.certificate)
        shown = Request("GET", "/", headers=self.headers, peer=peer)
        return person(await self.authenticator.authenticate(shown, self.cluster))

    def packed(self) -> bytes:
        return self.with_refresh_token("")

    def with_refresh_token(self, refresh_token: str) -> bytes:
        """Return this to be kept, beside what renews it."""
        kept = PackedCredential(dict(self.headers), self.certificate, self.cluster, refresh_token)
        return kept.packed()


def person(user: User) -> User:
    """Return *user* unless it is nobody, or an edge: they have no business at a console."""
    if user.name == _ANONYMOUS:
        raise Unauthorized("the console is for who is recognised: show a token or a certificate")
    if user.groups in NARROW_GROUPS:
        raise Forbidden("edges have no console")
    return user


def credential_of(authenticator: Authenticator, request: Request, cluster: str) -> HeldCredential:
    """Return what *request* shows."""
    kept = {
        name: value
        for name, value in request.headers.items()
        if name == "authorization" or name.startswith(_IMPERSONATE)
    }
    return HeldCredential(authenticator, kept, request.peer.certificate, cluster)
