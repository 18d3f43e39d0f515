"""What a workspace contains from its first moment."""

from __future__ import annotations

from typing import Any

from skerry.logic.machinery.workspaces.workspace_content import (
    NewWorkspace,
    complete_workspace,
    first_objects,
    logical_cluster,
    owner_of,
    owner_text,
    settle_initializers,
)
from tests.kit.machinery.workspace_bindings import LATER, NOW


def test_a_workspace_with_initializers_waits_until_the_last_is_gone() -> None:
    new = NewWorkspace("c", "root:w", "https://h/clusters/c", "root:t", NOW, "me", ["a:b", "c:d"])
    workspace: dict[str, Any] = {"kind": "Workspace", "metadata": {"name": "w"}, "spec": {}}
    complete_workspace(workspace, new)
    cluster = logical_cluster(new, None)
    for obj in (workspace, cluster):
        assert obj["status"]["phase"] == "Initializing"
        settle_initializers(obj, ["c:d"], LATER)
        assert obj["status"]["initializers"] == ["c:d"]
        assert obj["status"]["conditions"][0]["message"] == "Initializers still exist: [c:d]"
        settle_initializers(obj, [], LATER)
        assert obj["status"]["phase"] == "Ready"
        assert "initializers" not in obj["status"]
        assert obj["metadata"]["labels"] == {"tenancy.kcp.io/phase": "Ready"}
        assert obj["status"]["conditions"][0]["status"] == "True"


def test_the_owner_is_read_back_from_the_annotation() -> None:
    assert owner_of(owner_text('odd "name"')) == 'odd "name"'
    assert owner_of("") == owner_of("no json") == owner_of("[]") == ""


def test_only_an_owner_becomes_administrator() -> None:
    assert "ClusterRoleBinding" not in [obj["kind"] for obj in first_objects("", "ca")]
    *_, granted = first_objects("me", "ca")
    assert granted["subjects"][0]["name"] == "me"
