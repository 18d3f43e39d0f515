"""A webhook: a small HTTPS server that answers reviews as a test says, truly or falsely."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.kit.server.certificates import subject

Review = dict[str, Any]
# Answers a review with an AdmissionReview or ConversionReview, or with bytes of HTTP of its own.
Answer = Callable[[Review], Review | bytes | Awaitable[Review | bytes]]


@lru_cache
def _identity() -> tuple[bytes, bytes]:
    """Return a self-signed certificate for this machine and its key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = subject("webhook"), datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    names += [x509.DNSName(each) for each in ("localhost", "hook.default.svc")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem), key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def ca_bundle() -> str:
    """Return what vouches for every server of this module, as a client config holds it."""
    return base64.b64encode(_identity()[0]).decode()


class WebhookServer:
    """Answers by path; remembers what it was asked, and over how many connections."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, Answer] = {}
        # Path with query, and review.
        self.asked: list[tuple[str, Review]] = []
        self.connections = 0
        # Whether answers come byte by byte, and never to their end.
        self.dripping = False

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    def client(self, path: str) -> dict[str, Any]:
        """Return the ``clientConfig`` that leads to *path*."""
        return {"url": self.url(path), "caBundle": ca_bundle()}

    def on(self, path: str, answer: Answer) -> dict[str, Any]:
        """Answer at *path*; return the ``clientConfig`` that leads there."""
        self.answers[path] = answer
        return self.client(path)

    def reviews(self, path: str) -> list[Review]:
        """Return what was asked at *path*."""
        return [review for target, review in self.asked if target.partition("?")[0] == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        gone = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)
        with contextlib.suppress(*gone, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = head[0].split()[1]
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        review: Review = orjson.loads(await reader.readexactly(int(headers["content-length"])))
        self.asked.append((target, review))
        answer = self.answers[target.partition("?")[0]](review)
        if isinstance(answer, Awaitable):
            answer = await answer
        if self.dripping:
            await _drip(writer)
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return False
        writer.write(http(200, orjson.dumps(answer)))
        await writer.drain()
        return True


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await asyncio.sleep(0.05)


def http(status: int, body: bytes = b"", **headers: str) -> bytes:
    """Return an answer as it goes over the wire."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in named.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.asynccontextmanager
async def webhook_server() -> AsyncIterator[WebhookServer]:
    """Run one on a port of the kernel's choosing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(("crt", "key"), _identity(), strict=True):
            Path(folder, name).write_bytes(text)
        context.load_cert_chain(Path(folder, "crt"), Path(folder, "key"))
    hooks = WebhookServer(0)
    # Reviews of large objects exceed what streams read ahead by default.
    server = await asyncio.start_server(
        hooks.serve, "127.0.0.1", 0, ssl=context, limit=1 << 24, backlog=1024
    )
    hooks.port = server.sockets[0].getsockname()[1]
    try:
        yield hooks
    finally:
        server.close()


# -- what webhooks say -----------------------------------------------------------------------


def reviewed(review: Review, **response: Any) -> Review:
    """Return the answer to *review* that says *response*."""
    said = {"uid": review["request"]["uid"], "allowed": True, **response}
    return {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": {name: value for name, value in said.items() if value is not ...},
    }


def allow(review: Review) -> Review:
    return reviewed(review)


def deny(review: Review) -> Review:
    return reviewed(review, allowed=False, status={"message": "no"})


def patching(*operations: Mapping[str, Any], **more: Any) -> Answer:
    """Return an answer that allows what these operations of a JSON patch change."""
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda review: reviewed(review, patch=patch, patchType="JSONPatch", **more)


CONFIG_MAPS: Mapping[str, Any] = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}


def webhook(client: Mapping[str, Any], name: str = "w.example.com", **more: Any) -> dict[str, Any]:
    """Return one entry of a configuration; members that are ``...`` are left out."""
    made = {
        "name": name,
        "clientConfig": client,
        "rules": [CONFIG_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {member: value for member, value in made.items() if value is not ...}


def configuration(*webhooks: Mapping[str, Any], name: str = "c") -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": list(webhooks)}
