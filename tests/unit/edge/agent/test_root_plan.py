"""What containers of built-in images see, as a plan; on machines that are made up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.machine_files import MachineFiles, interpreter_paths
from skerry.edge.agent.root_plan import (
    BadMountPath,
    Content,
    Step,
    Wanted,
    is_below,
    masked_and_frozen,
    root_plan,
    steps_from,
)
from tests.kit.agent.mounts import MadeUp


def volume(path: str, *, read_only: bool = False) -> Content:
    return Content("/edge/volume", "", path, read_only, links=False, devices=False)


def plan(*volumes: Content, **more: object) -> list[Step]:
    return root_plan(MadeUp(), Wanted(volumes, **more))  # type: ignore[arg-type]


def of(steps: list[Step], action: str) -> list[str]:
    return [step.path for step in steps if step.action == action]


def test_only_what_is_listed_is_shown() -> None:
    steps = plan()
    assert of(steps, "show") == [
        *("/etc/java-17", "/etc/ld.so.cache", "/etc/ssl/certs", "/usr"),
        "/sys/devices/system/cpu",
    ]
    links = {step.path: step.text for step in steps if step.action == "link"}
    assert links["/bin"] == "usr/bin"
    assert links["/etc/localtime"] == "/usr/share/zoneinfo/UTC"
    texts = {step.path: step.text for step in steps if step.action == "file"}
    assert "alice" not in texts["/etc/passwd"]
    for path in ("/etc/shadow", "/etc/ssl/private", "/home/alice", "/boot", "/opt/acme", "/root"):
        assert not any(is_below(step.source, path) for step in steps if step.source)


def test_what_is_shown_is_what_the_container_calls_it() -> None:
    for step in plan(shown=("/opt/acme", "/root/.venv/bin")):
        if step.action == "show":
            assert step.source == step.path


def test_settings_of_services_and_what_is_private_are_hidden_within() -> None:
    steps = plan(private=("/usr/share/skerry", "/home/alice"))
    masked = of(steps, "mask")
    assert {"/usr/etc", "/usr/local/etc", "/usr/share/skerry"} <= set(masked)
    assert "/home/alice" not in masked, "which is not shown anyway"
    shown = steps.index(Step("show", "/usr", "/usr"))
    assert all(steps.index(Step("mask", path)) > shown for path in masked if "/proc" not in path)


def test_an_image_shows_its_own_paths_and_no_more_around_them() -> None:
    steps = plan(shown=("/opt/acme", "/usr/bin/env", "relative", "/", "/absent"))
    assert "/opt/acme" in of(steps, "show")
    assert "/usr/bin/env" not in of(steps, "show"), "below what is shown already"
    assert "/" not in of(steps, "show")
    assert "/absent" not in of(steps, "show")


def test_nothing_of_the_machine_in_proc_can_be_written() -> None:
    steps = plan()
    assert of(steps, "freeze") == ["/proc/cpuinfo", "/proc/sys", "/sys"]
    assert "/proc/kcore" in of(steps, "mask")
    assert not any(step.path in ("/proc/1", "/proc/self") for step in steps)
    masked, frozen = masked_and_frozen(["1", "self", "net", "cpuinfo", "new-in-this-kernel"])
    assert (masked, frozen) == (["/proc/new-in-this-kernel"], ["/proc/cpuinfo"])


def test_a_mount_where_the_machine_has_nothing_opens_the_way_to_it() -> None:
    steps = plan(volume("/usr/share/nginx/html"))
    assert "/usr" in of(steps, "folder")
    assert "/usr/share" in of(steps, "folder")
    shown = of(steps, "show")
    assert "/usr" not in shown
    assert {"/usr/bin", "/usr/lib", "/usr/share/doc", "/usr/share/zoneinfo"} <= set(shown)
    assert of(steps, "volume") == ["/usr/share/nginx/html"]


def test_a_mount_over_something_opens_nothing() -> None:
    steps = plan(volume("/usr/share/doc"), volume("/data"))
    assert "/usr" in of(steps, "show")
    assert of(steps, "volume") == ["/data", "/usr/share/doc"]


@pytest.mark.parametrize(
    ("asked", "resolved"),
    [
        ("/var/run/secrets/x", "/run/secrets/x"),
        ("/bin/tool", "/usr/bin/tool"),
        ("/data/../etc/app", "/etc/app"),
        ("/../../x", "/x"),
        ("/usr/share/link/y", "/run/x/y"),
        ("/home/alice/data", "/home/alice/data"),
    ],
)
def test_places_are_found_as_the_container_sees_them(asked: str, resolved: str) -> None:
    (step,) = [step for step in plan(volume(asked)) if step.action == "volume"]
    assert step.path == resolved
    assert step.content is not None
    assert step.content.path == resolved


@pytest.mark.parametrize(
    "path", ["/proc", "/proc/sys", "/sys/fs", "/data/../proc/1", "/usr/share/loop"]
)
def test_nothing_is_mounted_over_what_keeps_a_container_in(path: str) -> None:
    with pytest.raises(BadMountPath, match=r"mountPath .*: (nothing can|too many)"):
        plan(volume(path))


def test_mounts_within_mounts_come_after() -> None:
    steps = plan(volume("/a/b/c"), volume("/a"), volume("/a/b"))
    assert of(steps, "volume") == ["/a", "/a/b", "/a/b/c"]


def test_a_read_only_root_is_sealed_at_the_end() -> None:
    assert plan(read_only=True)[-1] == Step("seal", "/")
    assert "seal" not in {step.action for step in plan()}
    assert plan(limit_bytes=1024)[0].text == "size=1024"


def test_a_plan_survives_being_encoded() -> None:
    steps = plan(volume("/a", read_only=True), read_only=True)
    assert steps_from(json.loads(json.dumps(steps))) == steps


@given(
    st.lists(st.text(alphabet="ab./", min_size=1, max_size=8).map(lambda t: f"/{t}"), max_size=4)
)
def test_no_mount_path_leads_anywhere_but_below_the_root(paths: list[str]) -> None:
    steps = plan(*map(volume, paths))
    for step in steps:
        assert step.path.startswith("/")
        assert ".." not in step.path.split("/")


def test_this_machine_has_a_plan() -> None:
    steps = root_plan(MachineFiles(), Wanted(shown=interpreter_paths()))
    shown = of(steps, "show")
    assert "/usr" in shown
    assert not {"/", "/etc", "/root", "/home", "/etc/shadow", "/var"} & set(shown)
