"""Writing to a mailbox whose server takes its time to serve what was just bound.

Our hub serves a bound type when the create of its binding returns. kcp does some time later, and
until then answers 404.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.execution import MailboxExecutor
from skerry.controllers.placement_translator.mailboxes import Mailboxes
from skerry.controllers.placement_translator.marks import Marks
from skerry.controllers.placement_translator.problems import Problems
from skerry.logic.machinery.plan import Create, Plan, Target
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport

MAILBOX, CLUSTER = Mailbox("imw", "u1"), "c1"
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
PAGE, WEB = (
    ObjectRef("", "", "configmaps", "shop", "page"),
    ObjectRef("", "apps", "deployments", "shop", "web"),
)

NO_SUCH_PAGE = Answer(404, {"content-type": "text/plain"}, b"404 page not found\n")


def refusal(code: int, reason: str, message: str, *causes: str) -> Answer:
    """Return a Status as servers write it."""
    details = {"causes": [{"reason": cause} for cause in causes]}
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Answer(code, {}, json.dumps({**status, "details": details}).encode())


TERMINATING_TYPE = refusal(405, "MethodNotAllowed", "create not allowed while terminating")
TERMINATING_NAMESPACE = refusal(403, "Forbidden", "being terminated", "NamespaceTerminating")
PLACEMENT = edge_placement_ref("wmw", "p")


class Serving(AnsweringTransport):
    """A server of some types; of others it knows nothing."""

    def __init__(self, *types: str, otherwise: Answer = NO_SUCH_PAGE) -> None:
        self.types = types
        self.otherwise = otherwise

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path.rpartition("/")[2] in self.types:
            return Answer(201, {}, body)
        return self.otherwise


class Writing:
    """An executor at one mailbox, and what it is left with."""

    def __init__(self, server: Serving, *known: GroupResource) -> None:
        mailboxes = Mailboxes()
        mailboxes.put(MAILBOX, CLUSTER)
        self.woken: list[Mailbox] = []
        self.problems = Problems(lambda _: None)
        self.marks = Marks(self.woken.append)
        self.executor = MailboxExecutor(
            Client(server),
            self.marks,
            mailboxes,
            self.problems,
            {},
            lambda _, __: [PLACEMENT],
            lambda cluster, resource: cluster == CLUSTER and resource in known,
        )

    async def place(self) -> None:
        self.marks.mark(MAILBOX, [PAGE, WEB])
        self.marks.take(MAILBOX)
        await self.executor.execute(
            Plan([_creation(CONFIG_MAPS, PAGE), _creation(DEPLOYMENTS, WEB)], unordered=True)
        )


def _creation(gvr: GroupVersionResource, item: ObjectRef) -> Create:
    obj = {"metadata": {"name": item.name, "namespace": item.namespace, "resourceVersion": "1"}}
    return Create(Target(gvr, item.name, item.namespace, CLUSTER), json.loads(json.dumps(obj)), "")


@pytest.mark.parametrize("otherwise", [NO_SUCH_PAGE, TERMINATING_TYPE], ids=["absent", "going"])
async def test_a_copy_waits_until_the_mailbox_is_known_to_serve_its_type(otherwise: Answer) -> None:
    writing = Writing(Serving("configmaps", otherwise=otherwise), PAGE.group_resource)
    await writing.place()
    assert writing.marks.take(MAILBOX) == []
    writing.woken.clear()
    writing.marks.bring_back({WEB.group_resource})
    assert writing.woken == [MAILBOX]
    assert writing.marks.take(MAILBOX) == [WEB]


async def test_a_type_that_should_be_served_and_is_not_is_a_failure_to_try_again() -> None:
    writing = Writing(Serving("configmaps"), PAGE.group_resource, WEB.group_resource)
    with pytest.raises(NotFound):
        await writing.place()
    assert writing.marks.take(MAILBOX) == [WEB]


@pytest.mark.parametrize(
    "otherwise",
    [NO_SUCH_PAGE, TERMINATING_TYPE, TERMINATING_NAMESPACE],
    ids=["no type", "type going", "namespace going"],
)
async def test_what_will_pass_is_tried_again_and_nobody_is_told(otherwise: Answer) -> None:
    writing = Writing(
        Serving("configmaps", otherwise=otherwise), PAGE.group_resource, WEB.group_resource
    )
    with pytest.raises(ApiError):
        await writing.place()
    assert writing.problems.of(PLACEMENT) == {}


async def test_a_refusal_that_is_about_the_object_is_told() -> None:
    refused = refusal(403, "Forbidden", "not you")
    writing = Writing(
        Serving("configmaps", otherwise=refused), PAGE.group_resource, WEB.group_resource
    )
    with pytest.raises(ApiError):
        await writing.place()
    [(problem, item)] = writing.problems.of(PLACEMENT)
    assert (problem.reason, item) == ("Refused", WEB)
