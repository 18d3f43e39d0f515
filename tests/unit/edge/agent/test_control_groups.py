"""Resource limits: which group, what is written to it, and what is said where there is none.

On a tree of files, as the kernel shows them; whether the kernel obeys is the kernel's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.control_groups import (
    ControlGroups,
    candidates,
    found,
    mounted_at,
    own_group,
    settings_of,
    storage_limit,
    unenforced,
)
from skerry.edge.agent.node import isolation_condition, limits_condition
from skerry.edge.agent.process_container import LOG
from skerry.edge.agent.runtime import Exit
from skerry.edge.agent.termination import TERMINATION_LOG, last_words
from tests.kit.agent.fixtures import NOW
from tests.kit.agent.harness import Edge, container, ready

MOUNTS = (
    "22 1 0:20 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
)
BOTH = frozenset({"cpu", "memory"})


def limited(**limits: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits}}


def test_groups_are_found_by_what_the_kernel_says_of_a_process() -> None:
    assert mounted_at(MOUNTS) == "/sys/fs/cgroup"
    assert mounted_at("22 1 0:20 / /proc rw - proc proc rw\n") == ""
    assert own_group("9:cpu:/x\n0::/user.slice/app\n") == "/user.slice/app"
    assert own_group("9:cpu:/x\n") == ""


def test_a_group_is_made_as_high_as_possible_and_never_in_the_edges_own() -> None:
    assert candidates("/c", "/a/b/d") == [Path("/c"), Path("/c/a"), Path("/c/a/b")]
    assert candidates("/c", "/") == [Path("/c")]
    assert candidates("/c", "/../x") == [Path("/c")]


@pytest.mark.parametrize(
    ("limits", "settings"),
    [
        ({"cpu": "1"}, {"cpu.max": "100000 100000"}),
        ({"cpu": "250m"}, {"cpu.max": "25000 100000"}),
        ({"cpu": "1m"}, {"cpu.max": "1000 100000"}),
        ({"memory": "64Mi"}, {"memory.max": str(64 << 20)}),
        ({"ephemeral-storage": "1Gi"}, {}),
        ({}, {}),
    ],
)
def test_limits_become_what_the_kernel_reads(
    limits: dict[str, str], settings: dict[str, str]
) -> None:
    assert settings_of(limited(**limits), BOTH) == settings
    assert settings_of(limited(**limits), ()) == {}


def test_limits_that_nothing_keeps_are_named() -> None:
    both = limited(cpu="1", memory="1Gi", **{"ephemeral-storage": "1Gi"})
    assert unenforced(both, BOTH) == []
    assert unenforced(both, {"memory"}) == ["cpu"]
    assert unenforced(both, ()) == ["cpu", "memory"]
    assert storage_limit(both) == 1 << 30
    assert storage_limit({"name": "c"}) == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A process in a group of a made-up tree."""
    groups = tmp_path / "groups"
    (groups / "slice" / "edge").mkdir(parents=True)
    for group in (groups, groups / "slice"):
        (group / "cgroup.subtree_control").write_text("")
    (tmp_path / "mountinfo").write_text(f"31 23 0:27 / {groups} rw - cgroup2 cgroup2 rw\n")
    (tmp_path / "cgroup").write_text("0::/slice/edge\n")
    return tmp_path


def test_a_machine_that_hands_nothing_on_says_why(tree: Path) -> None:
    nothing = found("florin", tree)
    assert (nothing.directory, nothing.controllers) == (None, frozenset())
    assert "is delegated to this user" in nothing.why
    (tree / "mountinfo").write_text("")
    assert "no control groups of version 2" in found("florin", tree).why
    (tree / "mountinfo").unlink()
    assert "cannot be read" in found("florin", tree).why


def test_a_group_that_cannot_be_entered_is_not_used(tree: Path) -> None:
    """On files nobody is moved: the trial leaves a file behind, as no kernel does."""
    (tree / "groups" / "slice" / "cgroup.subtree_control").write_text("cpu io memory")
    refused = found("florin", tree)
    assert refused.directory is None
    assert str(tree / "groups" / "slice" / "skerry-florin") in refused.why
    assert (tree / "groups" / "cgroup.subtree_control").read_text() == "", "others are left alone"


def test_each_attempt_has_a_group_with_its_limits(tmp_path: Path) -> None:
    groups = ControlGroups(tmp_path, BOTH)
    first = groups.make("uid", limited(cpu="500m", memory="32Mi"), "0")
    assert first == str(tmp_path / "uid-c-0")
    assert (Path(first) / "cpu.max").read_text() == "50000 100000"
    assert (Path(first) / "memory.max").read_text() == str(32 << 20)
    assert groups.make("uid", limited(), "0") == ""
    assert ControlGroups().make("uid", limited(cpu="1"), "0") == ""


def test_groups_go_with_their_pod(tmp_path: Path) -> None:
    groups = ControlGroups(tmp_path, BOTH)
    for name in ("uid-c-0", "uid-d-1", "other-c-0"):
        (tmp_path / name).mkdir()
    groups.remove("uid")
    assert [path.name for path in tmp_path.iterdir()] == ["other-c-0"]
    ControlGroups().remove("uid")


def test_the_end_of_memory_is_distinguished_from_other_ends(tmp_path: Path) -> None:
    groups = ControlGroups(tmp_path, BOTH)
    assert not groups.was_out_of_memory("")
    assert not groups.was_out_of_memory(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    assert not groups.was_out_of_memory(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert groups.was_out_of_memory(str(tmp_path))


async def test_limits_that_are_not_enforced_are_reported_and_the_pod_runs(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    async with edge.up(), edge.agents():
        resources = {"limits": {"cpu": "1", "memory": "64Mi"}}
        await edge.run_pod("limited", container("busybox", "sleep", "100", resources=resources))
        await edge.pod("limited", ready)
        assert "LimitsNotEnforced" in await edge.reasons("limited")


def test_the_node_says_what_it_enforces_and_no_more() -> None:
    assert limits_condition(ControlGroups(Path("/x"), BOTH))[1:3] == ("True", "ControlGroups")
    kind, status, reason, message = limits_condition(ControlGroups(why="no cgroup2"))
    assert (kind, status, reason) == ("ResourceLimitsEnforced", "False", "NoControlGroups")
    assert message == "limits of cpu and memory are not enforced: no cgroup2"
    world = Edge(Path("/nowhere"), namespaces=True)
    _, status, _, message = isolation_condition(world.runtime())
    assert status == "True"
    assert message.startswith("pods are isolated by namespaces: files and processes of their own")
    world.namespaces = False
    _, status, reason, message = isolation_condition(world.runtime())
    assert (status, reason) == ("False", "PlainProcesses")
    assert "share its files" in message


def test_last_words_are_bounded_and_no_link_is_followed(tmp_path: Path) -> None:
    spoken = Exit(1, NOW, NOW)
    place, secret = tmp_path / "place", tmp_path / "secret"
    place.mkdir()
    secret.write_text("of the machine")
    log = place / TERMINATION_LOG
    log.write_bytes(b"a" * 100_000 + b"end")
    assert len(last_words({}, place, spoken)) == 4096
    assert last_words({}, place, spoken).endswith("end")
    log.unlink()
    log.symlink_to(secret)
    assert last_words({}, place, spoken) == ""
    (place / LOG).write_text("2026-01-01T00:00:00Z stdout F one\n" * 200)
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    assert last_words(fallback, place, spoken).splitlines() == ["one"] * 80
