"""What a hub that is not ours gives its edges, and what ours gives them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
import pytest

from skerry.api.edge_identity import (
    EDGES,
    EdgeName,
    account_name,
    certificate_request,
    parse_bootstrap_token,
)
from skerry.app.edge_approval import (
    NothingWaits,
    WrongKey,
    all_waiting_keys,
    approved,
    waiting_keys,
)
from skerry.app.edge_identity import CredentialTerms, HubAccess, issue, manifest, revoke
from skerry.edge.syncer.identity.signing_request import SigningRequest, Subject, signing_request
from skerry.logic.fleet.syncing.certificates import key_fingerprint
from skerry.logic.fleet.syncing.manifest import sync_target_uid, syncer_id
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport

EDGE = EdgeName("a" * 16, "00000000-0000-0000-0000-000000000007")
NOW = "2030-01-01T00:00:00Z"
_RBAC = {
    "name": "rbac.authorization.k8s.io",
    "versions": [{"groupVersion": "rbac.authorization.k8s.io/v1", "version": "v1"}],
}
_KINDS = {
    "v1": [("serviceaccounts", "ServiceAccount", True)],
    "rbac.authorization.k8s.io/v1": [
        ("clusterroles", "ClusterRole", False),
        ("clusterrolebindings", "ClusterRoleBinding", False),
    ],
}


class AnyHub(AnsweringTransport):
    """Records what it is asked; *ours* offers certificates."""

    def __init__(self, *, ours: bool) -> None:
        self.ours = ours
        self.asked: list[tuple[str, str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        sent = orjson.loads(body) if body else None
        if method != "GET" and "dryRun" not in query:
            self.asked.append((method, path.partition(EDGE.mailbox)[2], sent))
        found = self._answered(method, path, sent)
        if found is None:
            return Answer(404, {}, orjson.dumps({"kind": "Status", "reason": "NotFound"}))
        return Answer(200, {}, orjson.dumps(found))

    def _answered(self, method: str, path: str, sent: Any) -> dict[str, Any] | None:
        if method == "GET":
            return self._read(path)
        if path.endswith("/token"):
            return {"status": {"token": "account-token"}}
        metadata = {**((sent or {}).get("metadata") or {}), "creationTimestamp": NOW}
        return {**(sent or {}), "metadata": metadata}

    def _read(self, path: str) -> dict[str, Any] | None:
        if "certificatesigningrequests/" in path:
            name = path.rpartition("/")[2]
            return next(item for item in self.requests if item["metadata"]["name"] == name)
        signer = {"name": "edge-client-signer", "path": "/x"}
        metadata = {"name": "florin", "uid": EDGE.uid, "annotations": {"kcp.io/cluster": "imw"}}
        answers: dict[str, dict[str, Any] | None] = {
            "/extensions": {"extensions": [signer]} if self.ours else None,
            "/certificatesigningrequests": {"items": self.requests, "metadata": {}},
            "/synctargets": {"items": [{"metadata": metadata}], "metadata": {}},
            "/syncerconfigs": {"items": [], "metadata": {}},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "groups": [_RBAC]},
            "/api/v1": _resources("v1"),
            "/rbac.authorization.k8s.io/v1": _resources("rbac.authorization.k8s.io/v1"),
        }
        return next((found for end, found in answers.items() if path.endswith(end)), None)


def _resources(version: str) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "groupVersion": version,
        "resources": [
            {"name": name, "kind": kind, "namespaced": namespaced, "verbs": ["get", "patch"]}
            for name, kind, namespaced in _KINDS[version]
        ],
    }


def access(hub: AnyHub) -> HubAccess:
    config = ClientConfig(server="https://hub", ca=b"ca")
    return HubAccess(Client(hub), config, config.server, "root:imw")


async def test_a_hub_that_is_not_ours_gives_a_token_of_an_account() -> None:
    hub = AnyHub(ours=False)
    made = await issue(access(hub), "florin", EDGE)
    user = made["users"][0]["user"]
    assert user == {"token": "account-token"}
    assert made["clusters"][0]["cluster"]["server"] == f"https://hub/clusters/{EDGE.mailbox}"
    *objects, (_, path, request) = hub.asked
    assert len(objects) == 3
    assert path.endswith(f"/serviceaccounts/{account_name('florin')}/token")
    assert request["spec"]["expirationSeconds"] == 7 * 24 * 3600
    text = await manifest(access(hub), "florin", EDGE.mailbox, image="i", kubeconfig=made)
    assert "identity" not in text
    hub.asked.clear()
    await revoke(access(hub), "florin", EDGE.mailbox)
    assert [method for method, _, _ in hub.asked] == ["DELETE"] * 3


@pytest.mark.parametrize("approves", [True, False])
async def test_our_hub_gives_a_bootstrap_credential_and_keeps_a_digest_of_it(
    approves: bool,
) -> None:
    hub = AnyHub(ours=True)
    terms = CredentialTerms(lifetime=timedelta(hours=2), approved=approves, server="https://far")
    made = await issue(access(hub), "florin", EDGE, terms)
    user = made["users"][0]["user"]
    token = parse_bootstrap_token(user["token"])
    assert token is not None
    extensions = {each["name"]: each["extension"] for each in user["extensions"]}
    assert sync_target_uid(extensions) == EDGE.uid
    assert made["clusters"][0]["cluster"]["server"].startswith("https://far/clusters/")
    ((method, path, secret),) = hub.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/default/secrets")
    values = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert values["token-hash"] == token.digest
    assert values["approved"] == ("true" if approves else "false")
    # By the clock of the hub, which will judge it.
    assert values["expiration"] == "2030-01-01T02:00:00Z"
    assert token.secret not in json.dumps(secret)
    again = await issue(access(hub), "florin", EDGE)
    assert again["users"][0]["user"]["token"] != user["token"]


async def test_the_syncer_may_change_its_own_identity_and_no_other_secret() -> None:
    hub = AnyHub(ours=True)
    text = await manifest(access(hub), "florin", EDGE.mailbox, image="i", kubeconfig={"a": 1})
    assert text.count(f"{syncer_id('florin', EDGE.mailbox)}-identity") == 3
    assert "resourceNames" in text


def request(made: SigningRequest, **status: Any) -> dict[str, Any]:
    body = certificate_request(made.name, made.request.encode())
    body["metadata"]["creationTimestamp"] = NOW
    body["spec"]["username"] = "system:edge-bootstrap:x"
    return body | ({"status": status} if status else {})


ONE, TWO, THREE = (signing_request(Subject(EDGE.common_name, EDGES)) for _ in range(3))


async def test_only_undecided_requests_of_the_signer_wait() -> None:
    hub = AnyHub(ours=True)
    other = request(THREE)
    other["spec"]["signerName"] = "kubernetes.io/kubelet-serving"
    denied = {"type": "Denied", "status": "True"}
    hub.requests = [request(ONE), request(TWO, conditions=[denied]), other]
    (key,) = await waiting_keys(access(hub), "florin", f"root:espw:imw-mb-{EDGE.uid}")
    assert key.as_json()["fingerprint"].replace(":", "") == ONE.name.removeprefix("edge-")
    assert key.as_json()["fingerprint"].count(":") == 7
    assert await all_waiting_keys(access(hub), "root:imw", "root:espw") == [key]


@pytest.mark.parametrize("named", [ONE, TWO])
@pytest.mark.parametrize("digits", [39, 20])
async def test_of_several_keys_the_named_one_is_approved(
    named: SigningRequest, digits: int
) -> None:
    hub = AnyHub(ours=True)
    hub.requests = [request(ONE), request(TWO)]
    fingerprint = key_fingerprint(named.name)[:digits]
    key = await approved(access(hub), "florin", EDGE.mailbox, fingerprint, 1)
    assert key.request == named.name
    ((method, path, body),) = hub.asked
    assert (method, path.rpartition("/")[2]) == ("PUT", "approval")
    assert [each["type"] for each in body["status"]["conditions"]] == ["Approved"]


@pytest.mark.parametrize("fingerprint", ["", "zzzz"])
async def test_of_several_keys_none_is_approved_unnamed(fingerprint: str) -> None:
    hub = AnyHub(ours=True)
    hub.requests = [request(ONE), request(TWO)]
    with pytest.raises(NothingWaits, match="--key"):
        await approved(access(hub), "florin", EDGE.mailbox, fingerprint, 1)
    assert hub.asked == []


@pytest.mark.parametrize("text", [TWO.request, "nothing", ""])
async def test_a_request_under_the_name_of_another_key_is_not_approved(text: str) -> None:
    hub = AnyHub(ours=True)
    hub.requests = [request(ONE)]
    hub.requests[0]["spec"]["request"] = base64.b64encode(text.encode()).decode()
    with pytest.raises(WrongKey, match=ONE.name):
        await approved(access(hub), "florin", EDGE.mailbox, "", 1)
    assert hub.asked == []
