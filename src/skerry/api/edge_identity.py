"""The names of an edge's identity, once: users, credentials, requests and marks.

An edge is known by the logical cluster of its mailbox and the UID of its SyncTarget. It makes a
key, redeems a bootstrap credential for a CertificateSigningRequest of the signer
``edge.kcp.io/edge-client`` in its mailbox, and acts with the certificate as
``system:edge:MAILBOX:UID``, whose only group is ``system:edges``. It is not in
``system:authenticated``, so nothing that is granted to everybody is granted to an edge.

X.520 limits a common name to 64 characters. The user's name has 65, so the common name of a
certificate has the UID without dashes; the server shows the user with the UID as it is.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from skerry.api.kinds import GroupVersionResource

# -- users -----------------------------------------------------------------------------------

EDGES = "system:edges"
BOOTSTRAPPERS = "system:edge-bootstrappers"
# All groups of an edge, and of the bearer of a bootstrap credential. Authentication alone makes
# users with exactly these: whoever else is in one is in ``system:authenticated`` as well.
EDGE_GROUPS = (EDGES,)
BOOTSTRAP_GROUPS = (BOOTSTRAPPERS,)
NARROW_GROUPS = (EDGE_GROUPS, BOOTSTRAP_GROUPS)

_EDGE_USER = "system:edge:"
_BOOTSTRAP_USER = "system:edge-bootstrap:"
_CLUSTER = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_UID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_EDGE_NAME = re.compile(rf"{_EDGE_USER}({_CLUSTER}):({_UID})").fullmatch
_COMMON_NAME = re.compile(rf"{_EDGE_USER}({_CLUSTER}):([0-9a-f]{{32}})").fullmatch


class EdgeName(NamedTuple):
    """One edge: the logical cluster of its mailbox, and the UID of its SyncTarget."""

    mailbox: str
    uid: str

    @property
    def user(self) -> str:
        """The name by which the hub knows the edge."""
        return f"{_EDGE_USER}{self.mailbox}:{self.uid}"

    @property
    def common_name(self) -> str:
        """The common name of the edge's certificates, whose organization is ``system:edges``."""
        return f"{_EDGE_USER}{self.mailbox}:{self.uid.replace('-', '')}"


def edge_of_user(name: str) -> EdgeName | None:
    """Return the edge whose user is *name*; None for any other user."""
    found = _EDGE_NAME(name)
    return None if found is None else EdgeName(found[1], found[2])


def edge_of_common_name(text: str) -> EdgeName | None:
    """Return the edge whose certificates have the common name *text*; None for any other."""
    found = _COMMON_NAME(text)
    if found is None:
        return None
    raw = found[2]
    uid = f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
    return EdgeName(found[1], uid)


def is_edge_name(name: str) -> bool:
    """Tell whether *name* is kept for edges, whether or not it is well formed."""
    return name.startswith((_EDGE_USER, _BOOTSTRAP_USER))


def account_name(sync_target: str) -> str:
    """Return the name of the ServiceAccount an edge has in its mailbox."""
    return f"kubestellar-syncer-{sync_target}"


def bootstrap_user(mailbox: str, token_id: str) -> str:
    """Return the user that a bootstrap credential of *mailbox* stands for."""
    return f"{_BOOTSTRAP_USER}{mailbox}:{token_id}"


# -- mailboxes -------------------------------------------------------------------------------

# Where a mailbox holds what belongs to its edge: heartbeat, credentials.
MAILBOX_NAMESPACE = "default"
# On the mailbox's LogicalCluster: the time since which it is closed. Only the hub's
# administrators and controllers enter a closed mailbox, and certificates from before stay refused.
REVOKED = "edge.kcp.io/edge-revoked"
# On the LogicalCluster of an inventory workspace: whether requests of its edges need a person.
APPROVAL_POLICY = "edge.kcp.io/edge-approval"
AUTO_APPROVAL = "Auto"
MANUAL_APPROVAL = "Manual"
# In a user's extra: the certificate has lapsed, and may only request its successor.
LAPSED = "edge.kcp.io/lapsed"
# On the ServiceAccount of an edge of the previous version: the request it became a certificate by.
EXCHANGED = "edge.kcp.io/exchanged-for"

# -- certificate signing requests ------------------------------------------------------------

REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
REQUESTS_PATH = f"/apis/{REQUESTS.group}/{REQUESTS.version}/{REQUESTS.resource}"
SIGNER = "edge.kcp.io/edge-client"
# The extension by which a hub says that it has this signer.
EXTENSION = "edge-client-signer"
USAGES = ("digital signature", "client auth")
# An edge that is away over a holiday comes back with a certificate that still holds.
CERTIFICATE_LIFETIME = timedelta(days=7)
# An edge that was away for a season may still request its successor, and nothing else.
LAPSED_LIFETIME = timedelta(days=90)
# The part of a certificate's life after which the edge requests the next one.
RENEW_AFTER = 2 / 3
# A digest of 128 bits: nobody finds a second key that gives the same name.
_NAME_DIGITS = 32


def request_name(public_key: bytes) -> str:
    """Return the name of the request for a key, given as SubjectPublicKeyInfo in DER.

    A retry with the same key meets its own request instead of adding one.
    """
    return f"edge-{hashlib.sha256(public_key).hexdigest()[:_NAME_DIGITS]}"


def certificate_request(name: str, pem: bytes, seconds: int | None = None) -> dict[str, Any]:
    """Return the CertificateSigningRequest for *pem*; *seconds* shortens the certificate's life."""
    spec: dict[str, Any] = {
        "request": base64.b64encode(pem).decode("ascii"),
        "signerName": SIGNER,
        "usages": list(USAGES),
    }
    if seconds is not None:
        spec["expirationSeconds"] = seconds
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }


# -- bootstrap credentials -------------------------------------------------------------------

BOOTSTRAP_TYPE = "edge.kcp.io/bootstrap-token"
# Long enough to carry a manifest to a machine and start it there.
BOOTSTRAP_LIFETIME = timedelta(hours=1)
TOKEN_ID = "token-id"  # noqa: S105 - the name of a field
TOKEN_HASH = "token-hash"  # noqa: S105 - the name of a field
EXPIRATION = "expiration"
SYNC_TARGET = "sync-target"
APPROVED = "approved"
# Written by the server when the credential is redeemed: the request_name of the first key.
KEY_DIGEST = "key-digest"

BOOTSTRAP_PREFIX = "skerry-edge."
_TOKEN = re.compile(r"skerry-edge\.([a-z0-9]{6,32})\.([A-Za-z0-9_-]{32,128})").fullmatch


class BootstrapToken(NamedTuple):
    """A bootstrap credential as its bearer has it."""

    id: str
    secret: str

    @property
    def bearer(self) -> str:
        """The text that follows ``Bearer`` in the Authorization header."""
        return f"{BOOTSTRAP_PREFIX}{self.id}.{self.secret}"

    @property
    def digest(self) -> str:
        """What the hub keeps of the secret."""
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


def parse_bootstrap_token(text: str) -> BootstrapToken | None:
    """Return the credential whose bearer text is *text*; None when it is something else."""
    found = _TOKEN(text)
    return None if found is None else BootstrapToken(found[1], found[2])


def bootstrap_secret_name(token_id: str) -> str:
    """Return the name of the Secret that keeps a bootstrap credential."""
    return f"bootstrap-token-{token_id}"


def bootstrap_secret(
    token: BootstrapToken, *, sync_target: str, expiration: str, approved: bool
) -> dict[str, Any]:
    """Return the Secret that lets *token* be redeemed once, until *expiration* (RFC 3339).

    It has only a digest of the credential: whoever reads the Secret cannot use it.
    """
    values = {
        TOKEN_ID: token.id,
        TOKEN_HASH: token.digest,
        EXPIRATION: expiration,
        SYNC_TARGET: sync_target,
        APPROVED: "true" if approved else "false",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": bootstrap_secret_name(token.id), "namespace": MAILBOX_NAMESPACE},
        "type": BOOTSTRAP_TYPE,
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in values.items()},
    }


def secret_value(secret: Mapping[str, Any], name: str) -> str:
    """Return one value of a Secret's data as text; empty when it is absent or no text."""
    raw = (secret.get("data") or {}).get(name)
    if not isinstance(raw, str):
        return ""
    try:
        return base64.b64decode(raw, validate=True).decode()
    except ValueError:
        return ""
