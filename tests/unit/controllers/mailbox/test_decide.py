"""One mailbox per SyncTarget, marked and bound; and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import SYNC_TARGET_NAME, Mailbox
from skerry.api.kcp.resources import API_BINDINGS, WORKSPACES
from skerry.api.objects import Object
from skerry.controllers.mailbox.decide import decide
from skerry.controllers.mailbox.observe import Observed, Provider
from skerry.logic.machinery.plan import Create, Delete, Patch

UID = "0e395079-f849-41e9-bd4f-0bcc07a16d3a"
MAILBOX = Mailbox("64vn6n7vuthd48ud", UID)
PROVIDER = Provider("root:espw", "2jzlost9c6eurbtc")


def workspace(mark: str = "florin", content: str = "xq5f", **metadata: Any) -> Object:
    annotations = {SYNC_TARGET_NAME: mark} if mark else {}
    return {
        "metadata": {
            "name": MAILBOX.workspace,
            "uid": "w",
            "annotations": annotations,
            **metadata,
        },
        "spec": {"cluster": content},
    }


def binding(path: str = "root:espw", export: str = "edge.kcp.io", **metadata: Any) -> Object:
    reference = {"export": {"path": path, "name": export}}
    return {
        "metadata": {"name": "bind-edge", "uid": "b", **metadata},
        "spec": {"reference": reference},
    }


def observed(
    target: str | None, space: Object | None = None, bound: Object | None = None
) -> Observed:
    return Observed(MAILBOX, PROVIDER, target, space, bound)


def test_a_sync_target_without_mailbox_gets_one() -> None:
    (action,) = decide(observed("florin"))
    assert isinstance(action, Create)
    assert action.target.gvr == WORKSPACES
    assert action.target.cluster == "root:espw"
    assert action.object["metadata"] == {
        "name": f"64vn6n7vuthd48ud-mb-{UID}",
        "annotations": {SYNC_TARGET_NAME: "florin"},
    }


def test_a_mailbox_is_bound_as_soon_as_it_stands_for_something() -> None:
    assert not decide(observed("florin", workspace(content="")))
    (action,) = decide(observed("florin", workspace()))
    assert isinstance(action, Create)
    assert (action.target.gvr, action.target.cluster) == (API_BINDINGS, "xq5f")
    reference = {"export": {"path": "root:espw", "name": "edge.kcp.io"}}
    assert action.object["spec"] == {"reference": reference}


@pytest.mark.parametrize("path", ["root:espw", "2jzlost9c6eurbtc"])
def test_a_mailbox_that_has_everything_is_left_alone(path: str) -> None:
    assert not decide(observed("florin", workspace(), binding(path)))


def test_a_lost_mark_is_put_back() -> None:
    (action,) = decide(observed("florin", workspace(mark=""), binding()))
    assert isinstance(action, Patch)
    assert action.patch == {"metadata": {"annotations": {SYNC_TARGET_NAME: "florin"}}}


def test_a_binding_that_refers_elsewhere_is_replaced() -> None:
    plan = decide(observed("florin", workspace(), binding("root:other")))
    (action,) = plan
    assert isinstance(action, Delete)
    assert (action.target.gvr, action.uid) == (API_BINDINGS, "b")
    assert plan.requeue_after_seconds is not None


def test_what_is_on_its_way_out_is_waited_for() -> None:
    assert not decide(observed("florin", workspace(deletionTimestamp="t")))
    assert not decide(observed("florin", workspace(), binding(deletionTimestamp="t")))
    assert not decide(observed(None, workspace(deletionTimestamp="t")))


def test_a_mailbox_goes_with_its_sync_target_and_only_as_it_was_seen() -> None:
    (action,) = decide(observed(None, workspace()))
    assert isinstance(action, Delete)
    assert (action.target.name, action.uid) == (MAILBOX.workspace, "w")
    assert not decide(observed(None))


def test_a_mailbox_whose_mark_was_taken_off_goes_too() -> None:
    assert decide(observed(None, workspace(mark="")))
