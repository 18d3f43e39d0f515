"""A hub that issues certificates to one edge, in virtual time, and can be asked to refuse."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skerry.api.edge_identity import EDGES, EdgeName, request_name
from skerry.edge.syncer.identity.signing_request import Subject, signing_request
from skerry.kit.clock import LoopClock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.syncing.certificates import PendingRequest
from skerry.runtime.kubeconfig import ClientConfig
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    ConnectionLost,
    TransportError,
)

HUB_START = datetime(2030, 1, 1, tzinfo=UTC)
EDGE = EdgeName("a" * 16, "00000000-0000-0000-0000-000000000007")
WEEK = timedelta(days=7)
_CA = ec.generate_private_key(ec.SECP256R1())
_BACKDATED = timedelta(days=2)


async def make_key(edge: EdgeName, credential: str) -> PendingRequest:
    """Make a key right here: virtual time cannot wait for a process."""
    made = signing_request(Subject(edge.common_name, EDGES))
    return PendingRequest(key=made.key, request=made.request, name=made.name, credential=credential)


class IssuingHub:
    """What became of every request; ``refuse`` names the credentials that get 401."""

    def __init__(self, lifetime: timedelta = WEEK, *, manual: bool = False) -> None:
        self.clock = LoopClock(HUB_START)
        self.lifetime = lifetime
        self.manual = manual
        self.lapsed_for = timedelta(days=90)
        self.requests: dict[str, dict[str, Any]] = {}
        self.asked_by: list[str] = []
        self.refuse: set[str] = set()
        self.pinned: dict[str, str] = {}
        self.lost_answers = 0
        self.extensions = ["edge-client-signer"]
        self.signs = True
        self.authorities = b""
        self.hangs_up_on: set[str] = set()
        # Who vouches for it; anybody, while this is empty.
        self.vouched_by = b""
        self._changed = asyncio.Event()
        self._revision = 1

    def approve(self, name: str, kind: str = "Approved") -> None:
        now = rfc3339(self.clock.now())
        condition = {"type": kind, "status": "True", "message": "said so", "lastUpdateTime": now}
        request = self.requests[name]
        request["status"] = {"conditions": [condition]}
        if kind == "Approved" and self.signs:
            pem = base64.b64decode(request["spec"]["request"])
            request["status"]["certificate"] = base64.b64encode(self.sign(pem)).decode()
        self._touch(request)

    def sign(self, pem: bytes) -> bytes:
        request = x509.load_pem_x509_csr(pem)
        assert request.is_signature_valid
        now = self.clock.now()
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hub")])
        built = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(issuer)
            .public_key(request.public_key())
            .serial_number(7)
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + self.lifetime)
        )
        return built.sign(_CA, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def delete(self, name: str) -> None:
        self.requests.pop(name)
        self._changed.set()
        self._changed = asyncio.Event()

    def _touch(self, request: dict[str, Any]) -> None:
        self._revision += 1
        request["metadata"]["resourceVersion"] = str(self._revision)
        self._changed.set()
        self._changed = asyncio.Event()

    # What a transport of one credential asks.

    def created(self, credential: str, body: dict[str, Any]) -> Answer:
        name = body["metadata"]["name"]
        if credential.startswith("bootstrap") and self.pinned.setdefault(credential, name) != name:
            return status(403, "the credential was redeemed with another key")
        if name in self.requests:
            return status(409, "exists", "AlreadyExists")
        pem = x509.load_pem_x509_csr(base64.b64decode(body["spec"]["request"]))
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        assert name == request_name(pem.public_key().public_bytes(*form))
        common = pem.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        assert common == EDGE.common_name
        body["metadata"]["creationTimestamp"] = rfc3339(self.clock.now())
        self.requests[name] = body
        self.asked_by.append(credential)
        self._touch(body)
        if not (self.manual and credential.startswith("bootstrap")):
            self.approve(name)
        return Answer(201, {}, orjson.dumps(body))

    async def events(self, name: str, seconds: float) -> AsyncIterator[bytes]:
        """Yield what happens to one request for so long."""
        seen = self.requests[name]["metadata"]["resourceVersion"]
        with_end = asyncio.get_running_loop().time() + seconds
        while True:
            changed = self._changed
            try:
                async with asyncio.timeout_at(with_end):
                    await changed.wait()
            except TimeoutError:
                return
            found = self.requests.get(name)
            if found is None:
                yield orjson.dumps({"type": "DELETED", "object": {"metadata": {}}}) + b"\n"
                return
            if found["metadata"]["resourceVersion"] != seen:
                seen = found["metadata"]["resourceVersion"]
                yield orjson.dumps({"type": "MODIFIED", "object": found}) + b"\n"


class CredentialTransport:
    """A transport with one credential: a bootstrap credential, an account or a certificate."""

    def __init__(self, hub: IssuingHub, config: ClientConfig) -> None:
        self._hub = hub
        self.config = config
        self.sent: list[str] = []

    @property
    def credential(self) -> str:
        if self.config.certificate:
            return "certificate"
        token = self.config.token
        if not token and self.config.token_file is None:
            return "stranger"
        return f"bootstrap:{token.split('.')[1]}" if token.startswith("skerry-edge.") else "account"

    def connect(self) -> None:
        if self._hub.vouched_by not in (b"", self.config.ca):
            raise TransportError("cannot connect") from ssl.SSLCertVerificationError()
        if self.credential in self._hub.hangs_up_on:
            raise ConnectionLost("the server closed it")

    def refusal(self, path: str) -> Answer | None:
        hub, config = self._hub, self.config
        if self.credential in hub.refuse or config.certificate.decode() in hub.refuse:
            return status(401, "Unauthorized")
        if not config.certificate:
            return None
        end = x509.load_pem_x509_certificate(config.certificate).not_valid_after_utc
        late = hub.clock.now() - end
        if late > hub.lapsed_for:
            return status(401, "the certificate has lapsed too long ago")
        if late > timedelta(0) and "certificatesigningrequests" not in path:
            return status(403, "the certificate has lapsed")
        return None

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.sent.append(f"{method} {path}")
        await asyncio.sleep(0)
        self.connect()
        refused = self.refusal(path)
        if refused is not None:
            return refused
        if method == "POST" and path.endswith("certificatesigningrequests"):
            answer = self._hub.created(self.credential, orjson.loads(body))
            await asyncio.sleep(0)  # the answer is on its way
            if self._hub.lost_answers:
                self._hub.lost_answers -= 1
                raise TransportError("the answer was lost")
            return answer
        if path.endswith("/extensions"):
            found = [
                {"name": name, "path": f"/extensions/v1/{name}"} for name in self._hub.extensions
            ]
            return Answer(200, {}, orjson.dumps({"extensions": found}))
        if path.endswith("/version"):
            return Answer(200, {}, b"{}")
        if path.endswith("/ca-bundle"):
            return Answer(200, {}, self._hub.authorities)
        if "logicalclusters" in path:
            owner = {"spec": {"owner": {"name": f"inventory-mb-{EDGE.uid}"}}}
            return Answer(200, {}, orjson.dumps(owner))
        name = path.rpartition("/")[2]
        if name in self._hub.requests:
            return Answer(200, {}, orjson.dumps(self._hub.requests[name]))
        return status(404, f"{path} not found", "NotFound")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.sent.append(f"WATCH {path}")
        name = query.partition("metadata.name%3D")[2].partition("&")[0]
        yield _Stream(self._hub.events(name, 300.0))

    async def close(self) -> None:
        """Nothing is held."""


class _Stream:
    status = 200
    headers: Mapping[str, str] = NO_HEADERS

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks


def status(code: int, message: str, reason: str = "") -> Answer:
    body = {"kind": "Status", "code": code, "message": message, "reason": reason}
    return Answer(code, {}, orjson.dumps(body))


def token(issued: datetime, lifetime: timedelta) -> str:
    seconds = int(issued.timestamp())
    claims = {
        "sub": "system:serviceaccount:default:syncer",
        "iat": seconds,
        "exp": seconds + int(lifetime.total_seconds()),
    }
    body = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
    return f"head.{body}.signature"
