from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from skerry.api import errors
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.kit.invariant import InvariantError
from skerry.logic.machinery.plan import (
    Action,
    Announcement,
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Plan,
    Record,
    Target,
    Terminal,
    Update,
    target_text,
)
from skerry.runtime.client import Client
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.execute import Executor
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import Answer
from skerry.runtime.workqueue import WorkQueue
from skerry.runtime.wrapping import WrappedTransport
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def at(name: str) -> Target:
    return Target(CONFIG_MAPS, name, "ns")


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "ns"}, "data": data}


async def prepared(**options: Any) -> tuple[Twin, Executor]:
    twin = Twin()
    client = Client(twin, clock=LoopClock())
    await client.create(NAMESPACES, {"metadata": {"name": "ns"}})
    await client.create(CONFIG_MAPS, config_map("there", a="1"), "ns")
    return twin, Executor(client, "test", **options)


async def results(executor: Executor, *actions: Action) -> list[str]:
    return [outcome.result for outcome in await executor.execute(Plan(actions))]


@virtual
async def test_what_is_already_so_is_an_outcome_not_an_error() -> None:
    _, executor = await prepared()
    assert await results(
        executor,
        Create(at("there"), config_map("there"), "R"),
        Create(at("new"), config_map("new"), "R"),
        Delete(at("absent"), "R"),
        Patch(at("absent"), {"data": {}}, "R", absent_is_fine=True),
    ) == ["exists", "created", "gone", "gone"]


@virtual
async def test_what_is_not_fine_is_raised() -> None:
    _, executor = await prepared()
    with pytest.raises(errors.AlreadyExists):
        await results(executor, Create(at("there"), {"metadata": {"name": "there"}}, "R", True))
    with pytest.raises(errors.NotFound):
        await results(executor, Patch(at("absent"), {}, "R"))


@virtual
async def test_a_delete_spares_what_it_did_not_mean() -> None:
    twin, executor = await prepared()
    uid = twin.find("configmaps", "ns")["there"]["metadata"]["uid"]
    assert await results(executor, Delete(at("there"), "R", uid="other")) == ["kept"]
    assert await results(executor, Delete(at("there"), "R", uid=uid)) == ["deleted"]
    assert not twin.find("configmaps", "ns")


@virtual
async def test_an_update_on_old_facts_is_refused_unless_it_overwrites() -> None:
    twin, executor = await prepared()
    stale = {**twin.find("configmaps", "ns")["there"], "data": {"a": "9"}}
    assert await results(executor, Patch(at("there"), {"data": {"b": "2"}}, "R")) == ["patched"]
    with pytest.raises(errors.Conflict):
        await results(executor, Update(at("there"), stale, "R"))
    assert await results(executor, Update(at("there"), stale, "R", overwrite=True)) == ["updated"]
    live = twin.find("configmaps", "ns")["there"]
    assert live["data"] == {"a": "9"}
    assert await results(executor, Update(at("there"), live, "R")) == ["unchanged"]


class Refusing(WrappedTransport):
    """A server that takes no updates."""

    error: errors.ApiError = errors.Forbidden("no")

    async def request(self, method: str, path: str, *more: Any) -> Answer:
        if method not in ("PUT", "POST"):
            return await super().request(method, path, *more)
        return Answer(self.error.code, {}, orjson.dumps(self.error.status()))


@virtual
@pytest.mark.parametrize("action", [Update, Create])
@pytest.mark.parametrize(
    ("error", "fine"),
    [
        (errors.Forbidden("no"), True),
        (errors.Invalid("no"), True),
        (errors.BadRequest("no"), True),
        (errors.NotFound("no"), False),
        (errors.ServiceUnavailable("no"), False),
    ],
)
async def test_what_a_server_does_not_take_of_somebody_elses_word_is_an_outcome(
    error: errors.ApiError, fine: bool, action: type[Update | Create]
) -> None:
    server = Refusing(Twin())
    server.error = error
    executor = Executor(Client(server, clock=LoopClock()), "test")
    relayed = action(at("there"), config_map("there"), "Test", refusal_is_fine=True)
    if fine:
        assert await results(executor, relayed) == ["refused"]
    else:
        with pytest.raises(type(error)):
            await results(executor, relayed)
    with pytest.raises(type(error)):
        await results(executor, replace(relayed, refusal_is_fine=False))


@virtual
async def test_overwriting_never_reaches_another_object() -> None:
    twin, executor = await prepared()
    stale = twin.find("configmaps", "ns")["there"]
    await results(executor, Delete(at("there"), "R"), Create(at("there"), config_map("there"), "R"))
    with pytest.raises(errors.Conflict, match="another object"):
        await results(executor, Update(at("there"), stale, "R", overwrite=True))


@virtual
async def test_a_dry_run_changes_nothing_and_announces_nothing() -> None:
    announced: list[Announcement] = []
    twin, executor = await prepared(dry_run=True, announce=announced.append)
    before = twin.revision
    plan = Plan(
        [Create(at("new"), config_map("new"), "R"), Delete(at("there"), "R")],
        [Announcement({}, "Normal", "R", "m")],
    )
    outcomes = await executor.execute(plan)
    assert [outcome.result for outcome in outcomes] == ["created", "deleted"]
    assert (twin.revision, announced) == (before, [])


class Notebook:
    """A journal that tells when it was written."""

    def __init__(self) -> None:
        self.pending: dict[str, object] = {}
        self.written: list[dict[str, object]] = []

    def put(self, key: str, value: object) -> None:
        self.pending[key] = value

    async def flush(self) -> None:
        self.written.append(self.pending)
        self.pending = {}


@virtual
async def test_entries_are_on_disk_before_the_next_action_begins() -> None:
    notebook = Notebook()
    seen: list[int] = []

    async def intercept(action: Action) -> None:
        seen.append(len(notebook.written))

    _, executor = await prepared(journal=notebook, intercept=intercept)
    record = Record(at("new"), {"a": {"x": 1}, "b": None}, "Intended")
    made = Create(at("new"), config_map("new"), "Missing")
    assert await results(executor, record, made) == ["recorded", "created"]
    assert notebook.written == [{"a": {"x": 1}, "b": None}]
    assert seen == [0, 1]


@virtual
async def test_a_dry_run_writes_no_entries() -> None:
    notebook = Notebook()
    _, executor = await prepared(journal=notebook, dry_run=True)
    assert await results(executor, Record(at("new"), {"a": 1}, "Intended")) == ["recorded"]
    assert (notebook.pending, notebook.written) == ({}, [])


@virtual
async def test_entries_without_a_journal_are_a_bug() -> None:
    _, executor = await prepared()
    with pytest.raises(InvariantError):
        await results(executor, Record(at("new"), {"a": 1}, "Intended"))


@virtual
async def test_an_ordered_plan_ends_at_its_first_failure() -> None:
    async def refuse(action: Action) -> None:
        if action.reason == "Bad":
            raise errors.ServiceUnavailable("injected")

    twin, executor = await prepared(intercept=refuse)
    plan = Plan(
        [
            Create(at("a"), config_map("a"), "Good"),
            Create(at("b"), config_map("b"), "Bad"),
            Create(at("c"), config_map("c"), "Good"),
        ]
    )
    with pytest.raises(errors.ServiceUnavailable):
        await executor.execute(plan)
    assert set(twin.find("configmaps", "ns")) == {"there", "a"}
    unordered = Plan(plan.actions, unordered=True)
    with pytest.raises(errors.ServiceUnavailable):
        await executor.execute(unordered)
    assert set(twin.find("configmaps", "ns")) == {"there", "a", "c"}


@virtual
async def test_a_collection_goes_at_once() -> None:
    twin, executor = await prepared()
    assert await results(executor, DeleteCollection(CONFIG_MAPS, "R", "ns")) == ["deleted"]
    assert not twin.find("configmaps", "ns")


def test_actions_name_their_target_for_people() -> None:
    assert target_text(Delete(at("a"), "R")) == "configmaps ns/a"
    everywhere = DeleteCollection(CONFIG_MAPS, "R", "ns", "root")
    assert target_text(everywhere) == "configmaps root|ns/*"


# The loop around it.


class Story:
    """A reconciler that fails on demand, and remembers when it was called."""

    def __init__(self, *outcomes: Exception | Plan | None) -> None:
        self._outcomes = list(outcomes)
        self.times: list[float] = []

    async def observe(self, key: tuple[str]) -> Plan | None:
        self.times.append(round(LoopClock().monotonic(), 3))
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def played(story: Story, seconds: float) -> RuntimeMetrics:
    _, executor = await prepared()
    metrics = RuntimeMetrics()
    queue: WorkQueue[tuple[str]] = WorkQueue("test")
    reconciler: Reconciler[tuple[str], Plan] = Reconciler(
        story.observe, lambda plan: plan, executor
    )
    controller = Controller("test", reconciler, queue, ids=SeededIds(1), metrics=metrics)
    queue.add(("key",))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(controller.run())
        await asyncio.sleep(seconds)
        running.cancel()
    return metrics


def count(metrics: RuntimeMetrics, result: str) -> float:
    labels = {"controller": "test", "result": result}
    return metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0


@virtual
async def test_a_failing_key_is_tried_again_later_and_later() -> None:
    story = Story(ValueError("a bug"), errors.Conflict("lost"), ValueError("again"))
    metrics = await played(story, 10)
    assert story.times == [0, 0.005, 0.015, 0.035]
    assert (count(metrics, "error"), count(metrics, "success")) == (3, 1)


@virtual
async def test_a_terminal_failure_is_not_tried_again() -> None:
    story = Story(Terminal("the selector does not parse"))
    metrics = await played(story, 1000)
    assert len(story.times) == 1
    assert count(metrics, "terminal") == 1


@virtual
async def test_a_plan_may_ask_for_another_look() -> None:
    story = Story(Plan(requeue_after_seconds=5), Plan())
    await played(story, 100)
    assert story.times == [0, 5]


@virtual
async def test_a_broken_invariant_stops_everything() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await played(Story(InvariantError("impossible")), 10)
    assert raised.group_contains(InvariantError)
