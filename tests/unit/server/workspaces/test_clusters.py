"""Logical clusters are the server's; initializers come off, and with the last one it is ready."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import pytest

from skerry.api.errors import ApiError, Forbidden, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import SystemClock
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, initializer_label
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.user import User
from skerry.server.workspaces.clusters import ClusterRules
from skerry.server.workspaces.state import CORE, TENANCY
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

NOBODY, ADMIN, MASTER = User("ann"), User("a", groups=(ADMIN_GROUP,)), User("m", groups=(MASTERS,))


def cluster(*initializers: str, phase: str = "Initializing", **spec: Any) -> Object:
    return {
        "kind": "LogicalCluster",
        "metadata": {"name": "cluster"},
        "spec": spec,
        "status": {"phase": phase, "initializers": list(initializers)},
    }


def operation(
    verb: Literal["CREATE", "UPDATE", "DELETE"],
    obj: Object,
    old: Object | None = None,
    *,
    user: User = NOBODY,
    subresource: str = "",
    kind: tuple[str, str] = (CORE, "logicalclusters"),
    labels: str = "",
) -> Operation:
    base = resource("configmaps")
    info = replace(base.info, group=kind[0], resource=kind[1], namespaced=False)
    call = call_of(replace(base, info=info), user=user, cluster="root")
    call.labels = labels
    return Operation(call, verb, deepcopy(obj), old, subresource=subresource)


async def admitted(asked: Operation, store: MemoryStore | None = None) -> Operation:
    await ClusterRules(store or MemoryStore("test"), SystemClock()).admit(asked)
    return asked


async def refused(asked: Operation) -> ApiError:
    with pytest.raises((Forbidden, Invalid)) as caught:
        await admitted(asked)
    return caught.value


async def test_nobody_but_masters_creates_one_or_deletes_one_that_is_not_meant_to_be() -> None:
    assert "cannot be created" in str(await refused(operation("CREATE", cluster())))
    assert "cannot be deleted" in str(await refused(operation("DELETE", cluster())))
    await admitted(operation("CREATE", cluster(), user=MASTER))
    await admitted(operation("DELETE", cluster(directlyDeletable=True)))
    await admitted(operation("DELETE", cluster(), user=MASTER))


async def test_the_status_of_a_workspace_is_the_servers() -> None:
    kind = (TENANCY, "workspaces")
    obj = {"metadata": {"name": "w"}}
    await refused(operation("UPDATE", obj, obj, kind=kind, subresource="status"))
    await admitted(operation("UPDATE", obj, obj, kind=kind))
    await admitted(operation("UPDATE", obj, obj, kind=kind, subresource="status", user=ADMIN))


async def test_the_spec_is_the_servers() -> None:
    changed, started = cluster(a=1), cluster(initializers=["x"])
    assert "spec is the server's" in str(await refused(operation("UPDATE", changed, cluster())))
    error = await refused(operation("UPDATE", started, cluster()))
    assert "spec.initializers is immutable" in str(error)
    await admitted(operation("UPDATE", changed, cluster(), user=MASTER))


@pytest.mark.parametrize(
    ("new", "old", "user", "why"),
    [
        (cluster("a"), cluster("a", "b"), NOBODY, "status is the server's to write"),
        (cluster("a", "c"), cluster("a"), ADMIN, "must not grow"),
        (cluster(phase="Ready"), cluster("a", phase="Ready"), ADMIN, "immutable after"),
        (cluster("a", phase="Ready"), cluster("a"), ADMIN, "is not empty"),
        (cluster(phase="Initializing"), cluster(phase="Ready"), NOBODY, "cannot transition"),
    ],
)
async def test_initializers_only_come_off_and_phases_only_go_on(
    new: Object, old: Object, user: User, why: str
) -> None:
    asked = operation("UPDATE", new, old, user=user, subresource="status")
    assert why in str(await refused(asked))


async def test_of_the_status_nothing_else_is_anybodys() -> None:
    new = cluster("a")
    new["status"]["mine"] = True
    asked = await admitted(
        operation("UPDATE", new, cluster("a", "b"), user=ADMIN, subresource="status")
    )
    assert "mine" not in asked.obj["status"]
    assert asked.obj["status"]["initializers"] == ["a"]


async def test_through_its_view_an_initializer_takes_off_itself_alone() -> None:
    label = "=".join(initializer_label("root:a"))
    old = cluster("root:a", "root:b")
    await admitted(operation("UPDATE", cluster("root:b"), old, subresource="status", labels=label))
    for wrong in (cluster(), cluster("root:a"), cluster("root:a", "root:b")):
        asked = operation("UPDATE", wrong, old, subresource="status", labels=label)
        assert "only removing" in str(await refused(asked))


async def test_with_the_last_one_gone_the_cluster_and_its_workspace_are_ready() -> None:
    store = MemoryStore("test")
    key = ObjectKey(TENANCY, "workspaces", "parent", "", "w").path()
    workspace = {
        "apiVersion": f"{TENANCY}/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "w", "uid": "u"},
        "status": {"phase": "Initializing", "initializers": ["a"]},
    }
    await store.commit([Write(key, encode(workspace))])

    def asked(uid: str) -> Operation:
        owner = {"cluster": "parent", "name": "w", "uid": uid}
        return operation(
            "UPDATE", cluster(owner=owner), cluster("a", owner=owner), user=ADMIN,
            subresource="status",
        )  # fmt: skip

    done = await admitted(asked("u"), store)
    assert done.obj["status"]["phase"] == "Ready"
    (write,) = done.writes
    assert write.value is not None
    assert decode(write.value, 1)["status"]["phase"] == "Ready"
    assert (await admitted(asked("of another"), store)).writes == []
    await store.close()
