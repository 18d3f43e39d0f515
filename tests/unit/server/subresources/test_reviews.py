"""Questions about rights: who is asked about, where, and who may ask past the door."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from skerry.api.errors import BadRequest, Invalid
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.principals import CLUSTER_EXTRA
from skerry.server.access import Attributes, Decision
from skerry.server.http.message import Request, Response
from skerry.server.request.call import Call
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.subresources.reviews import AccessReviews, whoami
from skerry.server.user import User
from tests.kit.machinery import roles
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

GROUP = "authorization.k8s.io"
ROBOT = "system:serviceaccount:ns:robot"
PODS = {"verb": "get", "resource": "pods", "namespace": "ns"}
ANN = User("ann", groups=("dev",))
ROOT = User("root", groups=("system:masters",))


class Asked:
    """Remembers the question, and allows it."""

    def __init__(self) -> None:
        self.user, self.attributes = User(""), Attributes("", "")

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        self.user, self.attributes = user, attributes
        return Decision(True, "because")


def call(
    plural: str, namespace: str = "", asker: User = ANN, deep: bool = False, **spec: Any
) -> Call:
    kind = resource(plural, "authentication.k8s.io" if plural == "selfsubjectreviews" else GROUP)
    body = orjson.dumps({"apiVersion": kind.info.api_version, "kind": kind.info.kind, "spec": spec})
    headers = {"content-type": "application/json"}
    if deep:
        headers["x-kcp-internal-deep-subjectaccessreview"] = "true"
    request = Request("POST", "/", headers=headers, body=body)
    return call_of(kind, user=asker, request=request, cluster="root", namespace=namespace)


def rules_call(namespace: str) -> Call:
    kind = resource("selfsubjectrulesreviews", GROUP)
    spec = {"namespace": namespace} if namespace else {}
    body = orjson.dumps({"apiVersion": kind.info.api_version, "kind": kind.info.kind, "spec": spec})
    request = Request("POST", "/", headers={"content-type": "application/json"}, body=body)
    return call_of(kind, user=ANN, request=request, cluster="root")


def read(answer: Any) -> Object:
    assert isinstance(answer, Response)
    assert answer.status == 201
    assert isinstance(answer.body, bytes)
    found: Object = orjson.loads(answer.body)["status"]
    return found


async def reviewed(asked: Call) -> tuple[Asked, Object]:
    authorizer = Asked()
    reviews = AccessReviews(authorizer, RbacAuthorizer())
    handlers = {
        "subjectaccessreviews": reviews.subject,
        "selfsubjectaccessreviews": reviews.myself,
        "localsubjectaccessreviews": reviews.local_subject,
    }
    return authorizer, read(await handlers[asked.resource.info.resource](asked))


async def test_a_question_is_about_whom_it_names_in_the_cluster_where_it_is_asked() -> None:
    spec: Any = {"user": "ben", "groups": ["ops"], "resourceAttributes": PODS}
    asked, status = await reviewed(call("subjectaccessreviews", **spec))
    assert (asked.user.name, asked.user.groups, asked.user.home) == ("ben", ("ops",), "")
    found = asked.attributes
    assert (found.cluster, found.verb, found.resource, found.namespace) == (
        "root", "get", "pods", "ns",
    )  # fmt: skip
    assert status == {"allowed": True, "reason": "because"}


async def test_a_question_about_oneself_is_about_whoever_asks() -> None:
    asked, _ = await reviewed(call("selfsubjectaccessreviews", resourceAttributes=PODS))
    assert asked.user is ANN


async def test_the_plain_name_of_an_account_is_that_of_the_clusters_own() -> None:
    spec: Any = {"user": ROBOT, "resourceAttributes": PODS}
    asked, _ = await reviewed(call("subjectaccessreviews", **spec))
    assert asked.user.home == "root"
    extra = {CLUSTER_EXTRA: ["away"]}
    asked, _ = await reviewed(call("subjectaccessreviews", extra=extra, **spec))
    assert asked.user.home == "away"


async def test_only_masters_ask_past_the_door_of_a_workspace() -> None:
    spec: Any = {"user": "ben", "resourceAttributes": PODS}
    for user, deep, wanted in ((ROOT, True, True), (ROOT, False, False), (ANN, True, False)):
        asked, _ = await reviewed(call("subjectaccessreviews", asker=user, deep=deep, **spec))
        assert asked.attributes.deep is wanted


async def test_a_local_question_is_about_its_own_namespace_only() -> None:
    spec: Any = {"user": "ben", "resourceAttributes": PODS}
    asked, _ = await reviewed(call("localsubjectaccessreviews", "ns", **spec))
    assert asked.attributes.namespace == "ns"
    with pytest.raises(Invalid, match="must match metadata"):
        await reviewed(call("localsubjectaccessreviews", "other", **spec))


@pytest.mark.parametrize(
    "spec",
    [
        {"user": "ben"},
        {"resourceAttributes": PODS},
        {"user": "ben", "resourceAttributes": PODS, "nonResourceAttributes": {"path": "/"}},
    ],
    ids=["about nothing", "about nobody", "about two things"],
)
async def test_a_question_is_about_somebody_and_one_thing(spec: Any) -> None:
    with pytest.raises(Invalid):
        await reviewed(call("subjectaccessreviews", **spec))


async def test_a_question_about_a_path_has_no_resource() -> None:
    spec: Any = {"user": "ben", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    asked, _ = await reviewed(call("subjectaccessreviews", **spec))
    assert (asked.attributes.path, asked.attributes.resource) == ("/metrics", "")


async def test_all_that_one_may_do_in_a_namespace_is_listed() -> None:
    rbac = RbacAuthorizer()
    paths: Object = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    rbac.put("root", "ClusterRole", roles.role("r", roles.READ_PODS, paths))
    rbac.put(
        "root", "ClusterRoleBinding", roles.binding("b", "ClusterRole", "r", roles.user("ann"))
    )
    rbac.put("away", "ClusterRole", roles.role("r", {**roles.READ_PODS, "resources": ["secrets"]}))
    reviews = AccessReviews(rbac, rbac)
    status = read(await reviews.my_rules(rules_call("ns")))
    assert status["resourceRules"] == [roles.READ_PODS]
    assert status["nonResourceRules"] == [paths]
    assert status["incomplete"] is False
    with pytest.raises(BadRequest, match="no namespace"):
        await reviews.my_rules(rules_call(""))


async def test_who_am_i_is_answered_with_the_user_as_the_server_knows_it() -> None:
    status = read(await whoami(call("selfsubjectreviews")))
    assert status == {"userInfo": {"username": "ann", "groups": ["dev"]}}
