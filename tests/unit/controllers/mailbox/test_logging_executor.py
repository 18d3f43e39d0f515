"""What was done is logged in the words of the first mailbox controller, with its keys."""

from __future__ import annotations

import asyncio
import re

import pytest

from skerry.api.kcp.resources import API_BINDINGS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.mailbox.logging_executor import MailboxExecutor
from skerry.logic.machinery.plan import Create, Delete, Patch, Plan, Target
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.sim.twin import Twin, served


def logged(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what was logged of mailboxes, from the message on."""
    lines = capsys.readouterr().err.splitlines()
    return [line.partition("] ")[2] for line in lines if "worker=" in line]


def executor() -> MailboxExecutor:
    twin = Twin(
        types=[
            served(gvr.group, gvr.version, gvr.resource, "Any", namespaced=False)
            for gvr in (WORKSPACES, API_BINDINGS)
        ]
    )
    names = {"xq5f": "imw-mb-u"}
    return MailboxExecutor(Client(twin), lambda of: names.get(of, ""), metrics=RuntimeMetrics())


def created(gvr: GroupVersionResource, name: str, cluster: str) -> Create:
    obj: Object = {"apiVersion": gvr.group, "kind": "Any", "metadata": {"name": name}}
    return Create(Target(gvr, name, cluster=cluster), obj, reason="R")


async def test_each_deed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    able = executor()
    space = Target(WORKSPACES, "imw-mb-u", cluster="root:espw")
    await able.execute(Plan([created(WORKSPACES, "imw-mb-u", "root:espw")]))
    await able.execute(Plan([created(API_BINDINGS, "bind-edge", "xq5f")]))
    patch = {"metadata": {"annotations": {"a": "b"}}}
    await able.execute(Plan([Patch(space, patch, reason="R")]))
    await able.execute(Plan([Delete(space, reason="R")]))
    made, bound, deleted = logged(capsys)
    assert made == '"Created missing workspace" worker=0 mbwsName="imw-mb-u"'
    assert bound.startswith(
        '"Created APIBinding" worker=0 mbwsName="imw-mb-u" mbwsCluster="xq5f"'
        ' bindingName="bind-edge" resourceVersion='
    )
    assert deleted == '"Deleted unwanted workspace" worker=0 mbwsName="imw-mb-u"'


async def test_what_was_gone_already_is_no_deed(capsys: pytest.CaptureFixture[str]) -> None:
    await executor().execute(Plan([Delete(Target(WORKSPACES, "gone"), reason="R")]))
    assert logged(capsys) == []


async def test_each_task_has_a_small_number_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    able = executor()

    async def work(name: str) -> None:
        for part in "ab":
            await able.execute(Plan([created(WORKSPACES, f"{name}{part}", "root:espw")]))

    await asyncio.gather(work("x"), work("y"))
    found = re.findall(r'worker=(\d) mbwsName="(..)"', "\n".join(logged(capsys)))
    workers = {name: worker for worker, name in found}
    assert workers["xa"] == workers["xb"]
    assert workers["ya"] == workers["yb"]
    assert {workers["xa"], workers["ya"]} == {"0", "1"}
