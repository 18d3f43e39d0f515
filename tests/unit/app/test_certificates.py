"""A person's way to a certificate on a plain server: ask, be approved, come in."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.kinds import GroupVersionResource
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, serving
from skerry.logic.machinery.certificate_signers import CLIENT, KUBELET_CLIENT
from skerry.runtime import kubeconfig
from skerry.runtime.client import Client
from skerry.server.security.pki import Credential
from tests.kit.server.certificates import client_context, csr, subject
from tests.kit.server.wire import connected

REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
USAGES = ["digital signature", "client auth"]


async def settled(client: Client, name: str) -> dict[str, Any]:
    """Return the status of a request once it has a certificate or failed."""
    async with asyncio.timeout(30):
        while True:
            status: dict[str, Any] = (await client.get(REQUESTS, name)).get("status") or {}
            kinds = {each["type"] for each in status.get("conditions") or ()}
            if status.get("certificate") or "Failed" in kinds:
                return status
            await asyncio.sleep(0.02)


def asked(name: str, pem: bytes, signer: str, usages: list[str]) -> dict[str, Any]:
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": usages}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }


async def test_approved_requests_are_signed_and_kubelets_need_no_person(tmp_path: Path) -> None:
    settings = ServerSettings(
        data_dir=tmp_path, port=0, store=StoreSettings(kind="memory"), controllers="all", workers=0
    )
    async with serving(settings, PLAIN_SERVER) as server:
        transport = kubeconfig.connect(kubeconfig.load([server.kubeconfig]))
        client = Client(transport, user_agent="test")
        try:
            await _person(client, server)
            await _kubelet(client)
            await _refused(client)
        finally:
            await transport.close()


async def _person(client: Client, server: Running) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    wanted = asked("jane", csr(key, subject("jane", ["staff"])), CLIENT, USAGES)
    made = await client.create(REQUESTS, wanted)
    approved = {"type": "Approved", "status": "True", "reason": "Me", "message": ""}
    made["status"] = {"conditions": [approved]}
    await client.update(REQUESTS, made, subresource="approval")
    certificate = base64.b64decode((await settled(client, "jane"))["certificate"])
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    ca = (server.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
    tls = client_context(ca, Credential(certificate, pem))
    async with connected(int(server.url.rpartition(":")[2]), tls) as connection:
        connection.send(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await connection.answer()
    assert b'User \\"jane\\" cannot list' in answer.body


async def _kubelet(client: Client) -> None:
    """The administrator may create everything, ``nodeclient`` included."""
    key = ec.generate_private_key(ec.SECP256R1())
    node = subject("system:node:n", ["system:nodes"])
    await client.create(REQUESTS, asked("node", csr(key, node), KUBELET_CLIENT, USAGES))
    status = await settled(client, "node")
    (condition,) = status["conditions"]
    assert condition["reason"] == "AutoApproved"
    text = "Auto approving kubelet client certificate after SubjectAccessReview."
    assert condition["message"] == text


async def _refused(client: Client) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    wanted = asked("server", csr(key, subject("jane")), CLIENT, ["server auth"])
    made = await client.create(REQUESTS, wanted)
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Me"}]}
    await client.update(REQUESTS, made, subresource="approval")
    conditions = (await settled(client, "server"))["conditions"]
    assert conditions[-1]["message"] == "invalid usage for client certificate: server auth"
