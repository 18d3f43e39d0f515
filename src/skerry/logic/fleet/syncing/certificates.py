"""What an edge decides about its certificate: how old it is, whether to renew it, and how.

Dates of certificates and requests are by the hub's clock, the rest by the edge's own, which may be
wrong by a day. So a lifetime is the difference of two times of the hub, and an age that of two
times of the edge.

Never subtracting a time of one clock from a time of the other is all that it takes: an edge whose
clock is always a day ahead renews as punctually as any other. What must not happen is a key that is
lost between request and answer, because a bootstrap credential is spent on the first key that it is
used with. So a request is kept before the hub hears of it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from skerry.api.edge_identity import RENEW_AFTER, edge_of_user

# -- what is kept ----------------------------------------------------------------------------


class PendingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A key whose certificate was requested, or is about to be.

    It is kept before the hub hears of it: whoever crashes in between asks again with the same key,
    which is the only one that a bootstrap credential accepts from then on.
    """

    key: str
    """PEM."""

    request: str
    """The PKCS #10 request for it, PEM."""

    name: str
    """Name of its CertificateSigningRequest."""

    credential: str
    """By what it is requested: ``bootstrap:ID``, ``certificate`` or ``account``."""

    @property
    def kind(self) -> str:
        """The credential without its ID."""
        return self.credential.partition(":")[0]

    def __repr__(self) -> str:
        return f"PendingRequest({self.name}, {self.credential})"


class EdgeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An edge's certificate and key, and its requests under way; kept as one document."""

    edge: str = ""
    """The edge's user at the hub; empty before its first certificate."""

    certificate: str = ""
    key: str = ""
    received: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    """When the certificate arrived, by the edge's clock."""

    lifetime_seconds: int = 0
    """How long the certificate was good for when it was issued, by the hub's clock."""

    redeemed: str = ""
    """The bootstrap credential that the first certificate was had with; it is spent."""

    ca: str = ""
    """The authorities that vouch for the hub, PEM, as it last named them; empty: the kubeconfig's.

    A hub changes its authority while edges know the old one only. Whoever has renewed since knows
    both, and from the next time on the new one alone.
    """

    pending: tuple[PendingRequest, ...] = ()
    """At most one for each kind of credential: trying one must not lose another's key."""

    def __repr__(self) -> str:
        return f"EdgeIdentity({self.edge!r}, pending={self.pending!r})"

    def pending_by(self, credential: str) -> PendingRequest | None:
        """Return the request by *credential*, if there is one."""
        return next((each for each in self.pending if each.credential == credential), None)

    def with_pending(self, request: PendingRequest) -> EdgeIdentity:
        """Return this identity with *request* in place of others by its kind of credential."""
        others = tuple(each for each in self.pending if each.kind != request.kind)
        return msgspec.structs.replace(self, pending=(*others, request))

    def without_pending(self, request: PendingRequest) -> EdgeIdentity:
        others = tuple(each for each in self.pending if each != request)
        return msgspec.structs.replace(self, pending=others)

    def is_for(self, mailbox: str, uid: str) -> bool:
        """Tell whether the certificate is of this edge; an empty *uid* is not compared."""
        edge = edge_of_user(self.edge)
        if edge is None or not self.certificate:
            return False
        return edge.mailbox == mailbox and uid in ("", edge.uid)

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def decode_identity(text: bytes) -> EdgeIdentity:
    """Return what was kept; raises ``ValueError`` for what is no identity."""
    try:
        return msgspec.json.decode(text, type=EdgeIdentity)
    except msgspec.DecodeError as error:
        raise ValueError(f"edge identity: {error}") from error


# -- certificates ----------------------------------------------------------------------------


class Validity(NamedTuple):
    """The time in which a certificate is good."""

    not_before: datetime
    not_after: datetime


_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_DATE = re.compile(r"\d{14}Z").fullmatch
_SEQUENCE, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x30, 0x17, 0x18, 0xA0


def validity_of(certificate: bytes) -> Validity:
    """Return the validity of the first certificate of a PEM text; ``ValueError`` for none.

    Read by hand: the library for it is a sixth of a syncer's memory, and this is all it is for.
    """
    found = _PEM.search(certificate)
    if found is None:
        raise ValueError("certificate: want a PEM block CERTIFICATE")
    try:
        der = base64.b64decode(found[1])
        outer, _ = _content(der, _SEQUENCE)
        body, _ = _content(outer, _SEQUENCE)
        if body[:1] == bytes([_VERSION]):
            body = _content(body, _VERSION)[1]
        for _ in range(3):  # serial number, signature algorithm, issuer
            body = _content(body, body[0])[1]
        dates, _ = _content(body, _SEQUENCE)
        not_before, rest = _time(dates)
        not_after, _ = _time(rest)
    except (binascii.Error, IndexError) as error:
        raise ValueError(f"certificate: {error}") from error
    return Validity(not_before, not_after)


def _content(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return what an element with *tag* contains, and what follows it."""
    if der[0] != tag:
        raise ValueError(f"certificate: found DER tag {der[0]:#x}, want {tag:#x}")
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start])
    end = start + length
    if end > len(der):
        raise ValueError("certificate: it is cut off")
    return der[start:end], der[end:]


def _time(der: bytes) -> tuple[datetime, bytes]:
    if der[0] not in (_UTC_TIME, _GENERALIZED_TIME):
        raise ValueError(f"certificate: found DER tag {der[0]:#x}, want a time")
    text, rest = _content(der, der[0])
    digits = text.decode("ascii")
    if len(text) == len("YYMMDDhhmmssZ"):
        # RFC 5280: two digits below 50 are of this century.
        digits = ("20" if digits[:2] < "50" else "19") + digits
    if not _DATE(digits):
        raise ValueError(f"certificate: time {digits!r}: want YYYYMMDDhhmmssZ")
    # ISO 8601's basic form, which needs the T.
    return datetime.fromisoformat(f"{digits[:8]}T{digits[8:]}"), rest


# -- requests --------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What became of a CertificateSigningRequest."""

    certificate: bytes = b""
    refusal: str = ""
    """Why there will be no certificate; empty while there may be one."""

    decided: datetime | None = None


def verdict_of(request: Mapping[str, Any]) -> Verdict:
    """Return what a CertificateSigningRequest says; ``ValueError`` for a garbled certificate."""
    status = request.get("status") or {}
    decided = _moment((request.get("metadata") or {}).get("creationTimestamp"))
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed") and condition.get("status") != "False":
            reason = condition.get("message") or condition.get("reason") or "no reason given"
            return Verdict(refusal=f"{condition['type']}: {reason}")
        if condition.get("type") == "Approved":
            times = (condition.get("lastTransitionTime"), condition.get("lastUpdateTime"))
            decided = max([decided, *map(_moment, times)], key=_or_never)
    raw = status.get("certificate")
    certificate = base64.b64decode(raw, validate=True) if raw else b""
    return Verdict(certificate=certificate, decided=decided)


_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def _or_never(moment: datetime | None) -> datetime:
    return moment or _NEVER


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def lifetime_seconds(validity: Validity, decided: datetime | None) -> int:
    """Return for how long a certificate was good when it was issued.

    Its own dates do not say: ``notBefore`` lies in the past, so that clocks may differ.
    """
    began = validity.not_before
    if decided is not None and began < decided < validity.not_after:
        began = decided
    return int((validity.not_after - began).total_seconds())


# -- decisions -------------------------------------------------------------------------------


class Way(Enum):
    """How an edge may get a certificate."""

    REDEEM = "bootstrap"
    RENEW = "certificate"
    EXCHANGE = "account"


@dataclass(frozen=True, slots=True)
class Standing:
    """What an edge has to show, and what became of it."""

    has_certificate: bool
    refused: bool = False
    """Whether the hub no longer accepts the certificate."""

    due: bool = False
    """Whether the certificate is old enough to be renewed."""

    bootstrap: bool = False
    """Whether there is a bootstrap credential that was not redeemed yet."""

    distrusted: bool = False
    """Whether what answers in the hub's place is vouched for by nobody we know."""

    account: bool = False
    """Whether there is a ServiceAccount token of the previous version."""


def ways_to_certificate(standing: Standing) -> tuple[Way, ...]:
    """Return by which ways a certificate is to be had now, the best one first.

    A bootstrap credential is not used while the certificate does its work: it may lie in the
    kubeconfig unused. But where the hub is no longer the one we know, it comes with the word of a
    person who knows the new one. A refused certificate is shown again even so, after everything
    else has failed, because a hub restored from a backup may know it again.
    """
    if standing.has_certificate and not standing.refused:
        renewing = (Way.RENEW,) if standing.due else ()
        return (*renewing, Way.REDEEM) if standing.bootstrap and standing.distrusted else renewing
    ways = []
    if standing.bootstrap:
        ways.append(Way.REDEEM)
    if standing.has_certificate:
        ways.append(Way.RENEW)
    elif standing.account:
        ways.append(Way.EXCHANGE)
    return tuple(ways)


def age_seconds(identity: EdgeIdentity, not_after: datetime, now: datetime) -> float:
    """Return how old a certificate is, by the edge's clock.

    Both times are that clock's, so it need not agree with the hub's. Only where it was set back
    behind the time of receipt do the hub's dates say more.
    """
    by_receipt = (now - identity.received).total_seconds()
    if by_receipt >= 0:
        return by_receipt
    return max(0.0, identity.lifetime_seconds - (not_after - now).total_seconds())


def renewal_seconds(identity: EdgeIdentity, age: float, fraction: float) -> float:
    """Return how long to wait until a certificate of this age is renewed.

    *fraction*, a random number in [0, 1), spreads a fleet over a tenth of the lifetime, so that
    edges that joined together do not come back together for ever.
    """
    due = identity.lifetime_seconds * (RENEW_AFTER - 0.1 * fraction)
    return max(0.0, due - age)


def key_fingerprint(name: str) -> str:
    """Return what a person compares on both sides, from the name of a request: groups of four."""
    digits = name.removeprefix("edge-")
    return ":".join(digits[i : i + 4] for i in range(0, len(digits), 4))
