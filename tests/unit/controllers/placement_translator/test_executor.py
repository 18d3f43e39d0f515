"""Writing to a mailbox whose server takes its time to serve what was just bound.

Our hub serves a bound type when the create of its binding returns. kcp does some time later, and
until then answers 404.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from skerry.api.edge import SYNCER_CONFIGS, Mailbox, edge_placement_ref
from skerry.api.errors import ApiError, NotFound
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.decide import MailboxPlan
from skerry.controllers.placement_translator.executor import MailboxExecutor
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.controllers.placement_translator.status import PlacementProblems
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.placement.holds import Group
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import Accepted, Hold, ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG, DirtyRows
from skerry.logic.fleet.translation.merging import PlacementProblem
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.sources import wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import Mailboxes, Scope, Workspaces
from skerry.logic.machinery.plan import Create, Patch, Plan, Target
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, Transport, TransportError
from tests.kit.answering import AnsweringTransport, AnswersBy

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

    def __init__(self, server: Transport, *known: GroupResource) -> None:
        self.enqueued: list[Mailbox] = []
        self.followed: list[Scope] = []
        self.judged: list[Judgement] = []
        self.problems = PlacementProblems(lambda _: None)
        self.held = HeldObjects(lambda _: None)
        workspaces = Workspaces(dict)
        served = (ServedType(*kind, "Thing", True, ("v1",)) for kind in known)
        workspaces.learn_hub(tuple(served), copies_are_inert=True)
        workspaces.follow(CLUSTER)
        workspaces.retype(CLUSTER)
        self.tables = TranslatorTables(
            workspaces, Route(workspaces), Mailboxes(), DirtyRows(self.enqueued.append)
        )
        self.tables.mailboxes.put(MAILBOX, CLUSTER)
        self.dirty = self.tables.dirty
        self.accepted: Accepted = {}
        self.executor = MailboxExecutor(
            Client(server),
            self.tables,
            self.problems,
            self.held,
            self.accepted,
            lambda _, __: [PLACEMENT],
            self.followed.append,
            judged=self.judged.append,
        )

    async def place(self, *rows: ItemDiff) -> None:
        self.dirty.mark(MAILBOX, [PAGE, WEB, *(row.item for row in rows)])
        done = frozenset(row.item for row in rows if row.verdict is Verdict.NONE)
        await self.executor.execute(
            MailboxPlan(
                [_creation(CONFIG_MAPS, PAGE), _creation(DEPLOYMENTS, WEB)],
                unordered=True,
                judgement=Judgement(MAILBOX, rows),
                done=done,
                numbers=self.dirty.of(MAILBOX),
            )
        )


def _creation(gvr: GroupVersionResource, item: ObjectRef) -> Create:
    obj = {"metadata": {"name": item.name, "namespace": item.namespace, "resourceVersion": "1"}}
    return Create(Target(gvr, item.name, item.namespace, CLUSTER), json.loads(json.dumps(obj)), "")


@pytest.mark.parametrize("otherwise", [NO_SUCH_PAGE, TERMINATING_TYPE], ids=["absent", "going"])
async def test_a_copy_waits_until_the_mailbox_is_known_to_serve_its_type(otherwise: Answer) -> None:
    writing = Writing(Serving("configmaps", otherwise=otherwise), PAGE.group_resource)
    await writing.place()
    assert writing.dirty.of(MAILBOX) == {}
    assert writing.dirty.holds(MAILBOX, WEB)
    # That the mailbox serves the type touches every row of it.
    writing.dirty.mark(MAILBOX, [WEB])
    writing.executor._report(_evaluated(writing, WEB))
    assert not writing.dirty.holds(MAILBOX, WEB)


async def test_a_type_that_should_be_served_and_is_not_is_a_failure_to_try_again() -> None:
    writing = Writing(Serving("configmaps"), PAGE.group_resource, WEB.group_resource)
    with pytest.raises(NotFound):
        await writing.place()
    assert list(writing.dirty.of(MAILBOX)) == [WEB]


@pytest.mark.parametrize(
    "otherwise",
    [NO_SUCH_PAGE, TERMINATING_TYPE, TERMINATING_NAMESPACE],
    ids=["no type", "type going", "namespace going"],
)
async def test_what_will_pass_is_tried_again_and_nobody_is_reported(otherwise: Answer) -> None:
    writing = Writing(
        Serving("configmaps", otherwise=otherwise), PAGE.group_resource, WEB.group_resource
    )
    with pytest.raises(ApiError):
        await writing.place()
    assert writing.problems.of(PLACEMENT) == {}


async def test_a_refusal_that_is_about_the_object_is_reported() -> None:
    refused = refusal(403, "Forbidden", "not you")
    writing = Writing(
        Serving("configmaps", otherwise=refused), PAGE.group_resource, WEB.group_resource
    )
    with pytest.raises(ApiError):
        await writing.place()
    [(problem, item)] = writing.problems.of(PLACEMENT)
    assert (problem.reason, item) == ("Refused", WEB)


def _evaluated(writing: Writing, item: ObjectRef) -> MailboxPlan:
    row = ItemDiff(item, Verdict.NONE, problems=())
    numbers = writing.dirty.of(MAILBOX)
    return MailboxPlan(
        judgement=Judgement(MAILBOX, (row,)), done=frozenset([item]), numbers=numbers
    )


async def test_what_rows_say_is_reported_and_pending_ones_are_parked_and_followed() -> None:
    writing = Writing(Serving("configmaps", "deployments"))
    watch = wide("apps", "v1", "deployments")
    problem = PlacementProblem(PLACEMENT, Problem("Why", "because"))
    right, waiting = (ObjectRef("", "", "secrets", "shop", name) for name in "ab")
    await writing.place(
        ItemDiff(right, Verdict.NONE, problems=(problem,), hold=Hold("bank")),
        ItemDiff(waiting, Verdict.PENDING, missing=watch),
    )
    assert writing.problems.of(PLACEMENT) == {(problem.problem, right): [MAILBOX]}
    assert writing.held.refusals.count(Group("imw", "bank")) == 1
    assert writing.followed == [watch]
    assert writing.dirty.of(MAILBOX) == {}
    assert not writing.problems.is_complete([MAILBOX])
    writing.enqueued.clear()
    writing.dirty.complete(watch)
    assert writing.enqueued == [MAILBOX]
    assert list(writing.dirty.of(MAILBOX)) == [waiting]


async def test_when_nothing_waits_all_there_is_to_report_of_a_mailbox_is_known() -> None:
    writing = Writing(Serving("configmaps", "deployments"))
    await writing.place()
    assert writing.problems.is_complete([MAILBOX])
    assert writing.dirty.waiting == 0


async def test_problems_are_known_whatever_was_read_after_a_copy_had_to_wait_for_its_kind() -> None:
    """What defines the kind may be withheld: then the problem to report is that."""
    writing = Writing(Serving("configmaps"), PAGE.group_resource)
    waiting, watch = PAGE._replace(name="late"), wide("", "v1", "secrets")
    await writing.place(ItemDiff(waiting, Verdict.PENDING, missing=watch))
    assert not writing.problems.is_complete([MAILBOX])
    writing.dirty.complete(watch)
    writing.executor._report(_evaluated(writing, waiting))
    assert writing.dirty.holds(MAILBOX, WEB)
    assert writing.problems.is_complete([MAILBOX])


async def test_of_a_mailbox_that_has_gone_meanwhile_nothing_is_reported() -> None:
    writing = Writing(Serving("configmaps", "deployments"))
    writing.tables.mailboxes.remove(MAILBOX)
    problem = PlacementProblem(PLACEMENT, Problem("Why", "because"))
    await writing.place(ItemDiff(PAGE, Verdict.NONE, problems=(problem,)))
    assert writing.problems.of(PLACEMENT) == {}
    assert not writing.problems.is_complete([MAILBOX])


async def test_what_a_server_made_of_a_copy_is_accepted() -> None:
    changed = Answer(201, {}, b'{"metadata":{"name":"web","labels":{"by":"the server"}}}')
    writing = Writing(Serving("configmaps", otherwise=changed))
    await writing.place()
    assert set(writing.accepted) == {(MAILBOX, WEB)}
    await writing.place()
    sent, kept = writing.accepted[MAILBOX, WEB]
    assert sent != kept


class Binding(AnsweringTransport):
    """A server that binds, and keeps what else it is sent."""

    def __init__(self, *, has_config: bool = True) -> None:
        self.patches: list[tuple[str, Any]] = []
        self._has_config = has_config

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if method == "PATCH":
            self.patches.append((path, json.loads(body)))
            return Answer(200, {}, b"{}") if self._has_config else NO_SUCH_PAGE
        obj = json.loads(body)
        obj["metadata"]["resourceVersion"] = "42"
        return Answer(201, {}, json.dumps(obj).encode())


def _binding(name: str) -> Create:
    item = ObjectRef("", API_BINDINGS.group, API_BINDINGS.resource, "", name)
    return _creation(API_BINDINGS, item)


def _execution(server: Transport) -> Writing:
    return Writing(server, CONFIG_MAPS.group_resource)


async def test_a_syncer_is_notified_when_its_mailbox_has_got_types() -> None:
    server = Binding()
    await _execution(server).executor.execute(
        Plan([_binding("bind-batch"), _binding("bind-apps"), _creation(CONFIG_MAPS, PAGE)])
    )
    paths = {path for path, _ in server.patches}
    assert paths == {"/clusters/c1/apis/edge.kcp.io/v1alpha1/syncerconfigs/the-one"}
    # It shows for a moment, and people who look at the SyncerConfig later do not find it there.
    assert [patch["metadata"]["annotations"] for _, patch in server.patches] == [
        {"edge.kcp.io/types-changed": "42"},
        {"edge.kcp.io/types-changed": None},
    ]


async def test_a_copy_alone_notifies_nobody_of_types_and_no_config_is_no_failure() -> None:
    server = Binding(has_config=False)
    await _execution(server).executor.execute(Plan([_creation(CONFIG_MAPS, PAGE)]))
    assert not server.patches
    await _execution(server).executor.execute(Plan([_binding("bind-batch")]))
    assert len(server.patches) == 1


def creates_are_lost(method: str, _: str) -> Answer:
    """Answer for a server that no create reaches; of what is not there it says so."""
    if method == "POST":
        raise TransportError("the request was lost")
    return refusal(404, "NotFound", "the-one is not found")


def _made(writing: Writing) -> MailboxPlan:
    """Return the plan that makes a SyncerConfig, and gives it a status."""
    target = Target(SYNCER_CONFIGS, CONFIG.name, cluster=CLUSTER)
    status = Patch(target, {"status": {}}, "", subresource="status", absent_is_fine=True)
    writing.dirty.mark(MAILBOX, [CONFIG])
    return MailboxPlan(
        [Create(target, {"metadata": {"name": CONFIG.name}}, ""), status],
        unordered=True,
        judgement=Judgement(MAILBOX, ()),
        numbers=writing.dirty.of(MAILBOX),
    )


async def test_a_row_of_several_writes_is_not_done_when_only_the_first_went_well() -> None:
    def patches_are_lost(method: str, _: str) -> Answer:
        if method == "PATCH":
            raise TransportError("the request was lost")
        return Answer(201, {}, b'{"metadata":{"name":"the-one"}}')

    writing = Writing(AnswersBy(patches_are_lost))
    with pytest.raises(TransportError):
        await writing.executor.execute(_made(writing))
    assert CONFIG in writing.dirty.of(MAILBOX)


async def test_a_row_of_several_writes_is_done_when_all_of_them_went_well() -> None:
    writing = Writing(AnswersBy(lambda *_: Answer(201, {}, b'{"metadata":{"name":"the-one"}}')))
    await writing.executor.execute(_made(writing))
    assert writing.dirty.of(MAILBOX) == {}


async def test_a_row_of_several_writes_is_not_done_when_only_the_last_went_well() -> None:
    server = AnswersBy(creates_are_lost)
    writing = Writing(server)
    with pytest.raises(TransportError):
        await writing.executor.execute(_made(writing))
    assert server.methods == ["POST"], "what is not there has no status"
    assert CONFIG in writing.dirty.of(MAILBOX)
