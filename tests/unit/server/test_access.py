"""Rights through the engine: denials, reviews, escalation, certificates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson

from skerry.app.security import follow_rbac
from skerry.server.admission.rbac import EscalationGuard
from skerry.server.http.message import Peer, Request, Response
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.subresources.reviews import AccessReviews
from skerry.server.user import User
from tests.kit.server.certificates import encoded_csr
from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.objects import CORE
from tests.kit.sim.loop import virtual

RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN_DEFAULT = f"{RBAC}/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io/v1"
JANE = User("jane", groups=("system:authenticated",))


class Guarded:
    """A server where RBAC decides; ``admin`` may do everything, Jane what she was given."""

    def __init__(self, admin: Server) -> None:
        self.admin = admin

    async def as_jane(self, method: str, path: str, body: Any = None) -> Reply:
        raw = b"" if body is None else orjson.dumps(body)
        bare, _, query = path.partition("?")
        headers = {"content-type": "application/json"}
        request = Request(method, bare, query, headers, raw, Peer(user=JANE))
        answer = await self.admin.api.engine.handle(request)
        assert isinstance(answer, Response)
        text = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return Reply(answer.status, orjson.loads(text), list(answer.headers), text)

    async def grant(self, name: str, verbs: str, resources: str, group: str = "") -> None:
        rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
        made = await self.admin.create(
            f"{IN_DEFAULT}/roles", {"metadata": {"name": name}, "rules": [rule]}
        )
        assert made.status == 201, made.body
        bound = await self.admin.create(
            f"{IN_DEFAULT}/rolebindings", binding(name, "Role", name, "jane")
        )
        assert bound.status == 201, bound.body


def binding(name: str, kind: str, role: str, user: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    authorizer = RbacAuthorizer()
    reviews = AccessReviews(authorizer, authorizer)
    virtual_kinds = {
        ("authorization.k8s.io", "subjectaccessreviews"): reviews.subject,
        ("authorization.k8s.io", "selfsubjectaccessreviews"): reviews.myself,
        ("authorization.k8s.io", "selfsubjectrulesreviews"): reviews.my_rules,
    }
    async with serving(
        authorizer=authorizer,
        admission=(EscalationGuard(authorizer),),
        virtual=virtual_kinds,
        prepared=lambda api: follow_rbac(authorizer, api.store, api.dispatcher),
    ) as server:
        yield Guarded(server)


@virtual
async def test_what_was_not_granted_is_denied_in_kubernetes_words() -> None:
    async with guarded() as server:
        denied = await server.as_jane("GET", f"{CORE}/pods")
        assert denied.status == 403
        assert denied.body["reason"] == "Forbidden"
        assert denied.body["message"] == (
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the '
            'namespace "default"'
        )
        named = await server.as_jane("GET", f"{CORE}/pods/p")
        assert named.body["message"].startswith('pods "p" is forbidden: User "jane" cannot get')
        assert named.body["details"] == {"name": "p", "kind": "pods"}
        path = await server.as_jane("GET", "/metrics")
        assert path.body["message"] == ('forbidden: User "jane" cannot get path "/metrics"')


@virtual
async def test_a_grant_counts_from_the_moment_it_is_answered() -> None:
    async with guarded() as server:
        await server.grant("r", "list", "pods")
        assert (await server.as_jane("GET", f"{CORE}/pods")).status == 200
        assert (await server.as_jane("GET", "/api/v1/pods")).status == 403
        await server.admin.delete(f"{IN_DEFAULT}/rolebindings/r")
        assert (await server.as_jane("GET", f"{CORE}/pods")).status == 403


@virtual
async def test_what_a_large_binding_takes_away_is_gone_when_that_is_answered() -> None:
    bindings = f"{IN_DEFAULT}/rolebindings"
    async with guarded() as server:
        await server.grant("r", "list", "pods")
        wide = (await server.admin.get(f"{bindings}/r")).body
        others = [{"kind": "User", "name": f"u{i}"} for i in range(3000)]

        async def said(subjects: list[dict[str, Any]]) -> list[int]:
            """Return what Jane is answered from the write of *subjects* to its answer."""
            seen = []
            writing = asyncio.ensure_future(
                server.admin.put(f"{bindings}/r", {**wide, "subjects": subjects})
            )
            while not writing.done():
                seen.append((await server.as_jane("GET", f"{CORE}/pods")).status)
                await asyncio.sleep(0)
            assert (await writing).status == 200
            wide["metadata"]["resourceVersion"] = (await writing).body["metadata"][
                "resourceVersion"
            ]
            return [*seen, (await server.as_jane("GET", f"{CORE}/pods")).status]

        assert set(await said([*others, *wide["subjects"]])) == {200}
        assert set(await said([*wide["subjects"], *others[1:]])) == {200}
        lost = await said(others)
        assert lost == sorted(lost)
        assert lost[-1] == 403
        back = await said([*others, *wide["subjects"]])
        assert back == sorted(back, reverse=True)
        assert back[-1] == 200
        await server.admin.delete(f"{bindings}/r")
        assert (await server.as_jane("GET", f"{CORE}/pods")).status == 403


@virtual
async def test_a_right_to_one_name_is_enough_to_list_and_watch_that_one() -> None:
    async with guarded() as server:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
        role = {"metadata": {"name": "one"}, "rules": [{**rule, "resourceNames": ["mine"]}]}
        await server.admin.create(f"{IN_DEFAULT}/roles", role)
        await server.admin.create(
            f"{IN_DEFAULT}/rolebindings", binding("one", "Role", "one", "jane")
        )
        for selector, status in (
            ("metadata.name%3Dmine", 200),
            ("metadata.name%3Dother", 403),
            ("metadata.name!%3Dmine", 403),
            ("", 403),
        ):
            listed = await server.as_jane("GET", f"{CORE}/pods?fieldSelector={selector}")
            assert listed.status == status, selector


@virtual
async def test_denial_comes_before_anything_is_reported() -> None:
    async with guarded() as server:
        for path in (f"{CORE}/unicorns", "/apis/nothing/v1/x", f"{CORE}/pods?limit=x"):
            assert (await server.as_jane("GET", path)).status == 403


@virtual
async def test_reviews_answer_for_oneself_and_others() -> None:
    async with guarded() as server:
        await server.grant("r", "get", "pods")
        await server.admin.create(
            f"{RBAC}/clusterroles",
            {
                "metadata": {"name": "asker"},
                "rules": [
                    {
                        "apiGroups": ["authorization.k8s.io"],
                        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                        "verbs": ["create"],
                    }
                ],
            },
        )
        await server.admin.create(
            f"{RBAC}/clusterrolebindings", binding("askers", "ClusterRole", "asker", "jane")
        )
        for verb, allowed in (("get", True), ("delete", False)):
            asked = {"namespace": "default", "verb": verb, "resource": "pods"}
            body = {"spec": {"resourceAttributes": asked}}
            mine = await server.as_jane("POST", f"{REVIEWS}/selfsubjectaccessreviews", body)
            assert mine.status == 201, mine.body
            assert mine.body["status"]["allowed"] is allowed
            body["spec"]["user"] = "jane"  # type: ignore[assignment]
            hers = await server.admin.create(f"{REVIEWS}/subjectaccessreviews", body)
            assert hers.body["status"]["allowed"] is allowed
        rules = await server.as_jane(
            "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
        )
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} in (
            rules.body["status"]["resourceRules"]
        )
        empty = await server.admin.create(f"{REVIEWS}/subjectaccessreviews", {"spec": {}})
        assert empty.status == 422


@virtual
async def test_nobody_gives_more_than_they_have() -> None:
    async with guarded() as server:
        await server.grant(
            "maker", "create update patch", "roles rolebindings", "rbac.authorization.k8s.io"
        )
        await server.grant("reader", "get", "pods")

        def role(name: str, verb: str) -> dict[str, Any]:
            rule = {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}
            return {"metadata": {"name": name}, "rules": [rule]}

        refused = await server.as_jane("POST", f"{IN_DEFAULT}/roles", role("greedy", "delete"))
        assert refused.status == 403
        assert 'user "jane"' in refused.body["message"]
        assert (
            "is attempting to grant RBAC permissions not currently held"
            in (refused.body["message"])
        )
        modest = await server.as_jane("POST", f"{IN_DEFAULT}/roles", role("modest", "get"))
        assert modest.status == 201
        grown = await server.as_jane("PUT", f"{IN_DEFAULT}/roles/modest", role("modest", "delete"))
        assert grown.status == 403
        await server.admin.create(f"{IN_DEFAULT}/roles", role("strong", "delete"))
        bind = binding("b", "Role", "strong", "jane")
        refused = await server.as_jane("POST", f"{IN_DEFAULT}/rolebindings", bind)
        assert refused.status == 403
        await server.grant("binder", "bind", "roles", "rbac.authorization.k8s.io")
        allowed = await server.as_jane("POST", f"{IN_DEFAULT}/rolebindings", bind)
        assert allowed.status == 201, allowed.body


@virtual
async def test_a_role_reference_does_not_change() -> None:
    async with guarded() as server:
        await server.grant("r", "get", "pods")
        other = binding("r", "Role", "other", "jane")
        refused = await server.admin.put(f"{IN_DEFAULT}/rolebindings/r", other)
        assert refused.status == 422
        assert "cannot change roleRef" in refused.body["message"]


# -- certificates ------------------------------------------------------------------------------

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def signing_request(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "request": encoded_csr(),
            "signerName": "example.org/signer",
            "usages": ["client auth"],
            "username": "somebody-else",
            "groups": ["system:masters"],
        },
    }


def decided(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}}


@virtual
async def test_a_request_carries_the_name_of_whoever_made_it() -> None:
    async with serving() as server:
        made = await server.create(REQUESTS, signing_request("r"))
        assert made.status == 201, made.body
        assert made.body["spec"]["username"] == "admin"
        assert made.body["spec"]["groups"] == ["system:masters", "system:authenticated"]


@virtual
async def test_a_decision_is_made_through_its_own_door_and_stays() -> None:
    async with serving() as server:
        await server.create(REQUESTS, signing_request("r"))
        path = f"{REQUESTS}/r"
        ignored = await server.patch(f"{path}/status", decided("Approved"))
        assert "conditions" not in ignored.body.get("status", {})
        approved = await server.patch(f"{path}/approval", decided("Approved"))
        assert approved.status == 200, approved.body
        (condition,) = approved.body["status"]["conditions"]
        assert condition["type"] == "Approved"
        assert condition["lastUpdateTime"]
        for attempt in (decided("Denied"), {"status": {"conditions": None}}):
            assert (await server.patch(f"{path}/approval", attempt)).status == 422
        signed = await server.patch(f"{path}/status", {"status": {"certificate": "YQ=="}})
        assert signed.body["status"]["certificate"] == "YQ=="
        assert signed.body["status"]["conditions"][0]["type"] == "Approved"
        for part in ("approval", "status"):
            noted = {"metadata": {"annotations": {part: "noted"}}}
            kept = await server.patch(f"{path}/{part}", noted)
            assert kept.body["metadata"]["annotations"][part] == "noted"


@virtual
async def test_answers_to_questions_are_never_tables() -> None:
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    async with guarded() as server:
        ask = server.admin.request
        refused = await ask("POST", path, review, headers={"accept": table})
        assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable")
        either = {"accept": f"{table},application/json"}
        assert (await ask("POST", path, review, headers=either)).status == 201


@virtual
async def test_a_role_without_a_name_is_refused_to_who_may_write_roles() -> None:
    async with guarded() as server:
        every = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["create"]}
        role = {"metadata": {"name": "writer"}, "rules": [every]}
        await server.admin.create(f"{RBAC}/clusterroles", role)
        await server.admin.create(
            f"{RBAC}/clusterrolebindings", binding("w", "ClusterRole", "writer", "jane")
        )
        for metadata, status in (({}, 422), ({"generateName": "r-"}, 201)):
            sent = {"metadata": metadata, "rules": [every]}
            made = await server.as_jane("POST", f"{RBAC}/clusterroles", sent)
            assert made.status == status, made.body


@virtual
async def test_deciding_needs_the_right_over_the_signer() -> None:
    async with guarded() as server:
        await server.admin.create(REQUESTS, signing_request("r"))
        rules = [
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests/approval"],
                "verbs": ["patch"],
            }
        ]
        role = {"metadata": {"name": "approver"}, "rules": rules}
        await server.admin.create(f"{RBAC}/clusterroles", role)
        await server.admin.create(
            f"{RBAC}/clusterrolebindings", binding("a", "ClusterRole", "approver", "jane")
        )
        request = Request(
            "PATCH",
            f"{REQUESTS}/r/approval",
            "",
            {"content-type": "application/merge-patch+json"},
            orjson.dumps(decided("Approved")),
            Peer(user=JANE),
        )
        refused = await server.admin.api.engine.handle(request)
        assert refused.status == 403
        rules.append(
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["signers"],
                "resourceNames": ["example.org/*"],
                "verbs": ["approve"],
            }
        )
        await server.admin.put(f"{RBAC}/clusterroles/approver", role)
        assert (await server.admin.api.engine.handle(request)).status == 200


@virtual
async def test_who_asked_and_for_what_is_kept_by_every_later_write() -> None:
    async with serving() as server:
        made = (await server.create(REQUESTS, signing_request("r"))).body
        forged = {
            "spec": {"username": "x", "groups": ["system:masters"], "uid": "0", "usages": ["any"]}
        }
        whole = {**made, "spec": {**made["spec"], **forged["spec"]}}
        applied = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                   "metadata": {"name": "r"}, **forged}  # fmt: skip
        path = f"{REQUESTS}/r"
        await server.patch(path, forged)
        await server.patch(path, [{"op": "add", "path": "/spec/username", "value": "x"}], "json")
        await server.patch(f"{path}?fieldManager=x&force=true", applied, "apply")
        await server.put(path, whole)
        await server.patch(f"{path}/approval", {**forged, **decided("Approved")})
        await server.put(f"{path}/status", whole)
        assert (await server.get(path)).body["spec"] == made["spec"]
        new = {**applied, "metadata": {"name": "n"}, "spec": signing_request("n")["spec"]}
        created = await server.patch(f"{REQUESTS}/n?fieldManager=x", new, "apply")
        assert created.status == 201, created.body
        assert created.body["spec"]["username"] == "admin"


@virtual
async def test_signing_needs_the_right_over_the_signer() -> None:
    async with guarded() as server:
        await server.admin.create(REQUESTS, signing_request("r"))
        rule = {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests/status"],
            "verbs": ["update", "patch"],
        }
        role = {"metadata": {"name": "signer"}, "rules": [rule]}
        await server.admin.create(f"{RBAC}/clusterroles", role)
        await server.admin.create(
            f"{RBAC}/clusterrolebindings", binding("s", "ClusterRole", "signer", "jane")
        )
        merge = {"content-type": "application/merge-patch+json"}

        async def sign(status: dict[str, Any]) -> int:
            body = orjson.dumps({"status": status})
            request = Request("PATCH", f"{REQUESTS}/r/status", "", merge, body, Peer(user=JANE))
            answer = await server.admin.api.engine.handle(request)
            return answer.status

        failed = {"conditions": [{"type": "Failed", "status": "True"}]}
        for status in ({"certificate": "YQ=="}, failed):
            assert await sign(status) == 403, status
        for verb, name, allowed in (
            ("approve", "example.org/signer", False),
            ("sign", "example.org/other", False),
            ("sign", "example.com/*", False),
            ("sign", "example.org/signer", True),
        ):
            right = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
                     "resourceNames": [name], "verbs": [verb]}  # fmt: skip
            await server.admin.put(f"{RBAC}/clusterroles/signer", {**role, "rules": [rule, right]})
            assert (await sign({"certificate": "YQ=="}) == 200) == allowed, (verb, name)


@virtual
async def test_nobody_becomes_a_master_by_a_request() -> None:
    async with serving() as server:
        body = signing_request("r")
        body["spec"] |= {
            "request": encoded_csr("jane", "system:masters"),
            "signerName": "kubernetes.io/kube-apiserver-client",
        }
        refused = await server.create(REQUESTS, body)
        assert refused.status == 403
        assert "system:masters" in refused.body["message"]
        body["spec"]["request"] = encoded_csr("jane", "devs")
        assert (await server.create(REQUESTS, body)).status == 201


@virtual
async def test_a_malformed_request_is_reported_by_its_field() -> None:
    async with serving() as server:
        garbage = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\nAA==\n").decode()
        for field, value in (
            ("request", garbage),
            ("request", base64.b64encode(b"x").decode()),
            ("request", ""),
            ("signerName", "unqualified"),
            ("signerName", ""),
            ("usages", []),
            ("usages", ["sealing"]),
            ("expirationSeconds", 10),
        ):
            body = signing_request("r")
            body["spec"][field] = value
            refused = await server.create(REQUESTS, body)
            assert refused.status == 422, (field, refused.body)
            causes = [cause["field"] for cause in refused.body["details"]["causes"]]
            assert any(each.startswith(f"spec.{field}") for each in causes), causes
