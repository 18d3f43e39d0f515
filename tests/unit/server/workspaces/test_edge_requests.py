"""How an edge gets its certificate, keeps it, and what the credential for it is good for."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from skerry.api.edge_identity import EDGES, BootstrapToken, bootstrap_secret
from skerry.kit.timestamps import rfc3339
from skerry.server.security.pki import Authority, Credential
from tests.kit.server.certificates import encoded_csr, subject
from tests.kit.server.edges import (
    APPROVER,
    CONFIGS,
    IMW,
    LEASE,
    LEASES,
    REQUESTS,
    SECRETS,
    Edge,
    EdgeHub,
    certificate_of,
    in_edge_hub,
    name_for,
    new_key,
    running_edge_hub,
)
from tests.kit.server.hub import BINDERS, CLUSTERS, CONFIG_MAPS, ROLES, grants, role

APPROVAL = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Ok"}]}}
HEARTBEAT = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "syncer-heartbeat"},
    "spec": {"leaseDurationSeconds": 60, "holderIdentity": "me"},
}


async def approve(hub: EdgeHub, edge: Edge, name: str, user: str = "kcp-admin") -> Any:
    path = f"/clusters/{edge.mailbox}{REQUESTS}/{name}/approval"
    return await hub.ask(user, "PATCH", path, APPROVAL, content_type="application/merge-patch+json")


# -- joining -------------------------------------------------------------------------------------


@in_edge_hub
async def test_a_bootstrap_credential_becomes_a_certificate_that_reaches_the_mailbox(
    hub: EdgeHub,
) -> None:
    edge = await hub.edge()
    reply = await edge.request(await edge.credential())
    assert reply.status == 201, reply.body
    assert reply.body["spec"]["username"].startswith(f"system:edge-bootstrap:{edge.mailbox}:")
    assert reply.body["spec"]["groups"] == ["system:edge-bootstrappers"]
    certificate = certificate_of(reply.body)
    assert certificate.subject.rfc4514_string() == f"CN={edge.name.common_name},O={EDGES}"
    lived = certificate.not_valid_after_utc - hub.clock.now()
    assert timedelta(days=6) < lived <= timedelta(days=7)
    edge.take(reply.body)
    found = await edge.ask("GET", CONFIGS)
    assert found.status == 200, found.body
    assert [each["metadata"]["name"] for each in found.body["items"]] == ["the-one"]


@in_edge_hub
async def test_a_credential_is_redeemed_by_one_key_which_may_try_again(hub: EdgeHub) -> None:
    edge = await hub.edge()
    token = await edge.credential()
    assert (await edge.request(token)).status == 201
    again = await edge.request(token)
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")
    path = f"/clusters/{edge.mailbox}{REQUESTS}/{name_for(edge.key)}"
    kept = await hub.ask(token.bearer, "GET", path)
    assert kept.body["status"]["certificate"]
    other = await edge.request(token, key=new_key())
    assert other.status == 403
    assert "another key" in other.body["message"]


@in_edge_hub
async def test_a_credential_does_nothing_but_ask_for_its_certificate(hub: EdgeHub) -> None:
    edge, other = await hub.edge(), await hub.edge("guilder")
    token = await edge.credential()
    own = f"/clusters/{edge.mailbox}"
    for where in ("/clusters/root", f"/clusters/{IMW}", f"/clusters/{other.mailbox}", ""):
        reply = await hub.ask(token.bearer, "GET", f"{where}{REQUESTS}")
        assert reply.status in (401, 403), where
    for method, path in (
        ("GET", "/api"),
        ("GET", "/apis"),
        ("GET", "/extensions"),
        ("GET", REQUESTS),
        ("GET", f"{REQUESTS}?watch=true"),
        ("GET", CONFIGS),
        ("GET", SECRETS),
        ("GET", f"{SECRETS}/bootstrap-token-abc123"),
        ("DELETE", f"{SECRETS}/bootstrap-token-abc123"),
        ("GET", "/api/v1/namespaces"),
        ("POST", CONFIG_MAPS),
        ("POST", LEASES),
        ("PATCH", f"{REQUESTS}/x/approval"),
        ("DELETE", f"{REQUESTS}/x"),
        ("DELETE", REQUESTS),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ):
        reply = await hub.ask(token.bearer, method, own + path, {"metadata": {"name": "x"}})
        assert reply.status == 403, (method, path)
    other_signer = edge.signing_request(spec={"signerName": "example.org/x"})
    reply = await hub.ask(token.bearer, "POST", own + REQUESTS, other_signer)
    assert reply.status == 403, reply.body


@in_edge_hub
async def test_a_credential_that_is_wrong_ended_or_withdrawn_is_nobody(hub: EdgeHub) -> None:
    edge = await hub.edge()
    token = await edge.credential()
    for wrong in (
        BootstrapToken(token.id, "x" * 43).bearer,
        BootstrapToken("zzz999", token.secret).bearer,
        token.bearer[:-1],
        f"{token.bearer}x",
        "skerry-edge..",
    ):
        reply = await hub.ask(wrong, "POST", f"/clusters/{edge.mailbox}{REQUESTS}", {})
        assert reply.status == 401, wrong
    hub.clock.ahead = timedelta(hours=2)
    assert (await edge.request(token)).status == 401
    hub.clock.ahead = timedelta()
    await hub.ask(
        "kcp-admin", "DELETE", f"/clusters/{edge.mailbox}{SECRETS}/bootstrap-token-abc123"
    )
    assert (await edge.request(token)).status == 401


@in_edge_hub
async def test_a_request_that_waited_for_a_person_can_be_read_after_the_credential_ended(
    hub: EdgeHub,
) -> None:
    edge = await hub.edge()
    token = await edge.credential(approved=False)
    asked = await edge.request(token)
    assert asked.status == 201
    assert "status" not in asked.body or not asked.body["status"].get("certificate")
    hub.clock.ahead = timedelta(hours=2)
    assert (await approve(hub, edge, name_for(edge.key))).status == 200
    path = f"/clusters/{edge.mailbox}{REQUESTS}/{name_for(edge.key)}"
    found = await hub.ask(token.bearer, "GET", path)
    assert found.status == 200, found.body
    assert (await edge.request(token, key=new_key())).status == 403
    # Its key may ask again, should the request have been cleaned away meanwhile.
    await hub.ask("kcp-admin", "DELETE", path)
    assert (await edge.request(token)).status == 201
    edge.take(found.body)
    assert (await edge.ask("GET", CONFIGS)).status == 200
    hub.clock.ahead = timedelta(days=31, hours=2)
    assert (await edge.request(token)).status == 401


@in_edge_hub
async def test_an_approved_credential_is_minted_by_whoever_may_approve(hub: EdgeHub) -> None:
    edge = await hub.edge()
    await hub.create(edge.mailbox, BINDERS, grants("alice", "cluster-admin", "alice"))
    token = BootstrapToken("fff000", "s" * 43)
    ends = rfc3339(hub.clock.now() + timedelta(hours=1))
    made = {
        approved: bootstrap_secret(
            token, sync_target=edge.target, expiration=ends, approved=approved
        )
        for approved in (True, False)
    }
    path = f"/clusters/{edge.mailbox}{SECRETS}"
    refused = await hub.ask("alice", "POST", path, made[True])
    assert refused.status == 403
    assert "approve" in refused.body["message"]
    assert (await hub.ask("alice", "POST", path, made[False])).status == 201
    changed = await hub.ask(
        "alice",
        "PATCH",
        f"{path}/bootstrap-token-fff000",
        {"stringData": {"approved": "true"}},
        content_type="application/merge-patch+json",
    )
    assert changed.status == 422
    await hub.create(IMW, ROLES, role("approver", APPROVER))
    await hub.create(IMW, BINDERS, grants("approvers", "approver", "alice"))
    await hub.create(IMW, BINDERS, grants("enter", "system:kcp:workspace:access", "alice"))
    made[True]["metadata"]["name"] = "bootstrap-token-fff111"
    made[True]["data"]["token-id"] = base64.b64encode(b"fff111").decode()
    allowed = await hub.ask("alice", "POST", path, made[True])
    assert allowed.status == 201, allowed.body


MALFORMED_CREDENTIALS = (
    ("token-id", "ABC"),
    ("token-hash", "secret"),
    ("expiration", "tomorrow"),
    ("expiration", "2999-01-01T00:00:00Z"),
    ("expiration", "2001-01-01T00:00:00Z"),
    ("sync-target", "another"),
    ("approved", "yes"),
    ("key-digest", "edge-0"),
)


@in_edge_hub
async def test_a_malformed_credential_is_refused_by_its_field(hub: EdgeHub) -> None:
    edge = await hub.edge()
    ends = rfc3339(hub.clock.now() + timedelta(hours=1))
    token = BootstrapToken("bad000", "s" * 43)
    for field, value in MALFORMED_CREDENTIALS:
        secret = bootstrap_secret(token, sync_target=edge.target, expiration=ends, approved=False)
        secret["data"][field] = base64.b64encode(value.encode()).decode()
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{edge.mailbox}{SECRETS}", secret)
        assert reply.status == 422, field
        assert f"data[{field}]" in reply.body["message"]
    secret = bootstrap_secret(token, sync_target=edge.target, expiration=ends, approved=False)
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{IMW}{SECRETS}", secret)
    assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (422, "type")


# -- requests ------------------------------------------------------------------------------------


def other_subject(edge: Edge) -> list[x509.Name]:
    name = edge.name.common_name
    return [
        subject(name, ("system:masters",)),
        subject(name, (EDGES, "system:masters")),
        subject(name),
        subject("kubernetes-admin", (EDGES,)),
        subject(edge.name.user[:64], (EDGES,)),
        subject(name[:-1] + ("0" if name[-1] != "0" else "1"), (EDGES,)),
    ]


@in_edge_hub
async def test_a_request_for_another_subject_is_refused_by_its_field(hub: EdgeHub) -> None:
    edge = await hub.edge()
    for wanted in other_subject(edge):
        body = edge.signing_request(subject=wanted)
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{edge.mailbox}{REQUESTS}", body)
        assert reply.status == 422, wanted
        assert reply.body["details"]["causes"][0]["field"] == "spec.request", wanted


_PEM = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"


MALFORMED_REQUESTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"spec": {"request": base64.b64encode(_PEM).decode()}}, "spec.request"),
    ({"spec": {"request": base64.b64encode(b"nothing").decode()}}, "spec.request"),
    ({"spec": {"request": "A" * 20_000}}, "spec.request"),
    ({"spec": {"request": None}}, "spec.request"),
    ({"spec": {"usages": ["client auth"]}}, "spec.usages"),
    ({"spec": {"usages": ["client auth", "digital signature", "server auth"]}}, "spec.usages"),
    ({"spec": {"usages": []}}, "spec.usages"),
    ({"spec": {"expirationSeconds": 599}}, "spec.expirationSeconds"),
    ({"name": "edge-0"}, "metadata.name"),
    ({"key": lambda: rsa.generate_private_key(65537, 1024)}, "spec.request"),
    ({"key": lambda: ec.generate_private_key(ec.SECP521R1())}, "spec.request"),
    ({"key": lambda: dsa.generate_private_key(1024)}, "spec.request"),
    (
        {"alternatives": x509.SubjectAlternativeName([x509.DNSName("hub.example")])},
        "spec.request",
    ),
)
GOOD_KEYS: tuple[Callable[[], Any], ...] = (
    lambda: ec.generate_private_key(ec.SECP384R1()),
    ed25519.Ed25519PrivateKey.generate,
    lambda: rsa.generate_private_key(65537, 2048),
)


@in_edge_hub
async def test_a_malformed_request_is_refused_by_its_field(hub: EdgeHub) -> None:
    edge = await hub.edge()
    for change, field in MALFORMED_REQUESTS:
        made = {**change, "key": change["key"]()} if "key" in change else change
        body = edge.signing_request(**made)
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{edge.mailbox}{REQUESTS}", body)
        assert reply.status == 422, (change, reply.body)
        assert field in [cause["field"] for cause in reply.body["details"]["causes"]], change


@in_edge_hub
async def test_every_good_kind_of_key_is_signed(hub: EdgeHub) -> None:
    edge = await hub.edge()
    for make in GOOD_KEYS:
        body = edge.signing_request(key=make())
        made = await hub.create(edge.mailbox, REQUESTS, body)
        reply = await approve(hub, edge, made["metadata"]["name"])
        assert reply.body["status"]["certificate"]


@in_edge_hub
async def test_a_tampered_request_is_refused(hub: EdgeHub) -> None:
    edge = await hub.edge()
    body = edge.signing_request()
    parsed = x509.load_pem_x509_csr(base64.b64decode(body["spec"]["request"]))
    der = bytearray(parsed.public_bytes(Encoding.DER))
    der[-1] ^= 1
    pem = x509.load_der_x509_csr(bytes(der)).public_bytes(Encoding.PEM)
    body["spec"]["request"] = base64.b64encode(pem).decode()
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{edge.mailbox}{REQUESTS}", body)
    assert reply.status == 422
    assert "signature" in reply.body["message"]


@in_edge_hub
async def test_the_signer_issues_in_mailboxes_only(hub: EdgeHub) -> None:
    edge = await hub.edge()
    for where in ("root", IMW, "root:espw"):
        body = edge.signing_request()
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{where}{REQUESTS}", body)
        assert reply.status == 422
        assert reply.body["details"]["causes"][0]["field"] == "spec.signerName"


@in_edge_hub
async def test_who_asks_is_written_by_the_server_by_whichever_way_the_request_comes(
    hub: EdgeHub,
) -> None:
    edge = await hub.edge()
    forged = {
        "username": "system:admin",
        "groups": ["system:masters"],
        "uid": "0",
        "extra": {"a": ["b"]},
    }
    for where in ("root", IMW, edge.mailbox):
        spec = {
            "request": encoded_csr(),
            "signerName": "example.org/signer",
            "usages": ["client auth"],
            **forged,
        }
        body: dict[str, Any] = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "forged"},
            "spec": spec,
            "status": {"certificate": "YQ==", **APPROVAL["status"]},
        }
        made = await hub.create(where, REQUESTS, body)
        path = f"/clusters/{where}{REQUESTS}/forged"
        apply = "application/apply-patch+yaml"
        merge = "application/merge-patch+json"
        body["metadata"]["name"] = "applied"
        await hub.ask(
            "kcp-admin", "PATCH", f"/clusters/{where}{REQUESTS}/applied?fieldManager=x", body,
            content_type=apply,
        )  # fmt: skip
        body["metadata"]["name"] = "forged"
        for method, kind, more in (
            ("PATCH", merge, ""),
            ("PATCH", apply, "?fieldManager=x&force=true"),
            ("PUT", "application/json", ""),
            ("PATCH", merge, "/approval"),
            ("PUT", "application/json", "/status"),
        ):
            sent = {**body, "metadata": {"name": "forged"}}
            await hub.ask("kcp-admin", method, f"{path}{more}", sent, content_type=kind)
        for name in ("forged", "applied"):
            found = await hub.get(where, f"{REQUESTS}/{name}")
            assert found["spec"]["username"] == "kcp-admin", (where, name)
            assert found["spec"]["groups"] == made["spec"]["groups"]
            assert "system:masters" not in found["spec"]["groups"]
            assert "extra" not in found["spec"]
        assert "certificate" not in (made.get("status") or {})


# -- approving -----------------------------------------------------------------------------------


@in_edge_hub
async def test_approving_is_a_right_in_the_workspace_of_the_sync_target(hub: EdgeHub) -> None:
    edge = await hub.edge()
    name = name_for(edge.key)
    asked = await edge.request(await edge.credential(approved=False))
    assert asked.status == 201
    # A right inside the mailbox, whatever it is called, approves nothing.
    await hub.create(edge.mailbox, BINDERS, grants("bob", "cluster-admin", "bob"))
    refused = await approve(hub, edge, name, "bob")
    assert refused.status == 403
    assert "edge.kcp.io/edge-client" in refused.body["message"]
    await hub.create(IMW, ROLES, role("approver", APPROVER))
    await hub.create(IMW, BINDERS, grants("approvers", "approver", "alice"))
    assert (await approve(hub, edge, name, "alice")).status == 403
    await hub.create(IMW, BINDERS, grants("enter", "system:kcp:workspace:access", "alice"))
    place = f"/clusters/{edge.mailbox}"
    assert (await hub.ask("alice", "GET", f"{place}{REQUESTS}")).status == 200
    # That is all she may do in the mailbox.
    for path in (SECRETS, CONFIGS, "/api/v1/namespaces", ROLES):
        assert (await hub.ask("alice", "GET", f"{place}{path}")).status == 403
    assert (await hub.ask("alice", "DELETE", f"{place}{REQUESTS}/{name}")).status == 403
    allowed = await approve(hub, edge, name, "alice")
    assert allowed.status == 200, allowed.body
    edge.take(allowed.body)
    assert (await edge.ask("GET", CONFIGS)).status == 200


@in_edge_hub
async def test_nobody_writes_the_certificate_of_an_edge_but_the_server(hub: EdgeHub) -> None:
    edge = await hub.edge()
    await edge.request(await edge.credential(approved=False))
    path = f"/clusters/{edge.mailbox}{REQUESTS}/{name_for(edge.key)}/status"
    for user in ("kcp-admin", "shard-admin"):
        reply = await hub.ask(
            user,
            "PATCH",
            path,
            {"status": {"certificate": "YQ=="}},
            content_type="application/merge-patch+json",
        )
        assert reply.status == 403, user


@in_edge_hub
async def test_an_inventory_workspace_may_approve_its_edges_by_itself(hub: EdgeHub) -> None:
    edge = await hub.edge()
    path = f"/clusters/{IMW}{CLUSTERS}/cluster"
    merge = "application/merge-patch+json"

    def policy(value: str) -> dict[str, Any]:
        return {"metadata": {"annotations": {"edge.kcp.io/edge-approval": value}}}

    wrong = await hub.ask("kcp-admin", "PATCH", path, policy("Perhaps"), content_type=merge)
    assert wrong.status == 422
    assert "edge.kcp.io/edge-approval" in wrong.body["message"]
    await hub.create(
        IMW,
        ROLES,
        role(
            "editor",
            {"apiGroups": ["core.kcp.io"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
        ),
    )
    await hub.create(IMW, BINDERS, grants("editors", "editor", "bob"))
    refused = await hub.ask("bob", "PATCH", path, policy("Auto"), content_type=merge)
    assert refused.status == 403
    asked = await edge.request(await edge.credential(approved=False))
    assert "certificate" not in asked.body.get("status", {})
    assert (
        await hub.ask("kcp-admin", "PATCH", path, policy("Auto"), content_type=merge)
    ).status == 200
    other = await hub.edge("guilder")
    asked = await other.request(await other.credential(approved=False))
    assert asked.body["status"]["certificate"]


# -- keeping it ----------------------------------------------------------------------------------


@in_edge_hub
async def test_an_edge_renews_its_certificate_for_a_new_key(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    renewed = await edge.request(key=new_key(), seconds=600)
    assert renewed.status == 201, renewed.body
    assert renewed.body["spec"]["username"] == edge.name.user
    assert renewed.body["spec"]["groups"] == [EDGES]
    ends = certificate_of(renewed.body).not_valid_after_utc
    assert ends <= hub.clock.now() + timedelta(seconds=600)
    edge.take(renewed.body)
    assert (await edge.ask("GET", CONFIGS)).status == 200


@in_edge_hub
async def test_a_lapsed_certificate_requests_its_successor_and_does_nothing_else(
    hub: EdgeHub,
) -> None:
    edge = await (await hub.edge()).join()
    hub.clock.ahead = timedelta(days=89 + 7)
    for method, path in (
        ("GET", CONFIGS),
        ("GET", "/api"),
        ("GET", "/extensions"),
        ("POST", "/extensions/v1/batch"),
        ("POST", LEASES),
        ("PATCH", LEASE),
        ("GET", REQUESTS),
        ("GET", "/api/v1/namespaces"),
    ):
        reply = await edge.ask(method, path, HEARTBEAT)
        assert reply.status == 403, (method, path)
        assert "lapsed" in reply.body["message"]
    key = new_key()
    renewed = await edge.request(key=key)
    assert renewed.status == 201, renewed.body
    assert (await edge.ask("GET", f"{REQUESTS}/{name_for(key)}")).status == 200
    edge.take(renewed.body)
    assert (await edge.ask("GET", CONFIGS)).status == 200


@in_edge_hub
async def test_a_certificate_that_lapsed_too_long_ago_is_nobody(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    hub.clock.ahead = timedelta(days=98)
    assert (await edge.request(key=new_key())).status == 401
    assert (await edge.ask("GET", CONFIGS)).status == 401


@in_edge_hub
async def test_only_edges_have_use_of_a_lapsed_certificate(hub: EdgeHub) -> None:
    pki = hub.data_dir / "pki"
    ca = Credential((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
    edge = await hub.edge()
    authority = Authority(ca, hub.clock)
    admin = authority.client("kubernetes-admin", ("system:masters",))
    edge.certificate = admin.x509.public_bytes(Encoding.DER)
    assert (await edge.ask("GET", "/api/v1/namespaces")).status == 200
    hub.clock.ahead = timedelta(days=366)
    assert (await edge.ask("GET", "/api/v1/namespaces")).status == 401
    assert (await edge.request()).status == 401
    hub.clock.ahead = timedelta(days=3)
    early = Authority(ca, hub.clock).client("kubernetes-admin", ("system:masters",))
    edge.certificate = early.x509.public_bytes(Encoding.DER)
    hub.clock.ahead = timedelta()
    assert (await edge.ask("GET", "/api/v1/namespaces")).status == 401, "it is not valid yet"
    hub.clock.ahead = timedelta(days=3651)
    late = Authority(ca, hub.clock).client("kubernetes-admin", ("system:masters",))
    edge.certificate = late.x509.public_bytes(Encoding.DER)
    assert (await edge.ask("GET", "/api/v1/namespaces")).status == 401, "the authority has ended"


@in_edge_hub
async def test_a_certificate_with_an_edges_name_must_be_an_edges(hub: EdgeHub) -> None:
    pki = hub.data_dir / "pki"
    ca = Credential((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
    authority = Authority(ca, hub.clock)
    edge = await hub.edge()
    for name, groups in (
        (edge.name.common_name, ()),
        (edge.name.common_name, (EDGES, "system:masters")),
        ("jane", (EDGES,)),
        ("system:edge:x", (EDGES,)),
        (f"system:edge-bootstrap:{edge.mailbox}:abc123", ("system:edge-bootstrappers",)),
        (f"system:edge:{edge.mailbox}:{'0' * 32}", (EDGES,)),
    ):
        credential = authority.client(name, groups)
        edge.certificate = credential.x509.public_bytes(Encoding.DER)
        assert (await edge.ask("GET", CONFIGS)).status == 401, (name, groups)


async def test_the_hub_says_how_long_certificates_live(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path, edge_certificate_lifetime=timedelta(seconds=30)) as hub:
        edge = await hub.edge()
        reply = await edge.request(await edge.credential(), seconds=3600)
        ends = certificate_of(reply.body).not_valid_after_utc
        assert ends <= hub.clock.now() + timedelta(seconds=30)
        edge.take(reply.body)
        assert (await edge.ask("GET", CONFIGS)).status == 200
        hub.clock.ahead = timedelta(seconds=31)
        assert (await edge.ask("GET", CONFIGS)).status == 403


@in_edge_hub
async def test_requests_do_not_pile_up(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    replies = [await edge.request(key=new_key()) for _ in range(20)]
    assert [r.status for r in replies] == [201] * 19 + [429]
    hub.clock.ahead = timedelta(hours=2)
    assert (await edge.request(key=new_key())).status == 201
    left = await hub.get(edge.mailbox, REQUESTS)
    assert len(left["items"]) == 1


@in_edge_hub
async def test_the_credential_goes_when_the_edge_has_arrived(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    assert len((await hub.get(edge.mailbox, SECRETS))["items"]) == 1
    assert (await edge.ask("POST", LEASES, HEARTBEAT)).status == 201
    assert (await hub.get(edge.mailbox, SECRETS))["items"] == []


@in_edge_hub
async def test_credentials_do_not_pile_up(hub: EdgeHub) -> None:
    edge = await hub.edge()
    for number in range(20):
        await edge.credential(token_id=f"abc{number:03}", approved=False)
    ends = rfc3339(hub.clock.now() + timedelta(hours=1))
    one_more = bootstrap_secret(
        BootstrapToken("abc999", "s" * 43),
        sync_target=edge.target,
        expiration=ends,
        approved=False,
    )
    path = f"/clusters/{edge.mailbox}{SECRETS}"
    assert (await hub.ask("kcp-admin", "POST", path, one_more)).status == 429
    hub.clock.ahead = timedelta(hours=2)
    await edge.credential(token_id="abc999", approved=False)
    assert len((await hub.get(edge.mailbox, SECRETS))["items"]) == 1
