"""A plan as arguments of bubblewrap; what it does with them, test_isolation shows."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.bubblewrap import arguments, become, works
from skerry.edge.agent.root_plan import Content, Step
from tests.kit.agent.apart import apart


def content(root: str = "/data", inside: str = "", **flags: bool) -> Content:
    usual = {"read_only": False, "links": False, "devices": False}
    return Content(root, inside, "/", **{**usual, **flags})


def words(*steps: Step, seccomp: int = -1, identity: Any = None) -> list[str]:
    kept: list[Content] = []

    def keep(volume: Content) -> int:
        kept.append(volume)
        return 100 + len(kept)

    return arguments({"identity": identity, "steps": steps}, seccomp, keep)


def follows(found: list[str], *wanted: str) -> bool:
    """Tell whether *wanted* stand one after the other."""
    return any(tuple(found[at : at + len(wanted)]) == wanted for at in range(len(found)))


def test_a_container_begins_without_variables_capabilities_or_the_machines_processes() -> None:
    found = words()
    assert found[0] == "--clearenv"
    assert follows(found, "--cap-drop", "ALL")
    assert {"--unshare-pid", "--unshare-ipc", "--die-with-parent"} <= set(found)
    assert "--uid" not in found
    assert "--seccomp" not in found


def test_a_container_is_who_it_is_to_be_and_filtered() -> None:
    found = words(identity=[1000, 2000], seccomp=7)
    assert follows(found, "--unshare-user", "--uid", "1000", "--gid", "2000")
    assert follows(found, "--seccomp", "7")


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (Step("folder", "/tmp", mode=0o1777), ("--perms", "1777", "--dir", "/tmp")),
        (Step("link", "/bin", text="usr/bin"), ("--symlink", "usr/bin", "/bin")),
        (Step("show", "/usr", source="/usr"), ("--ro-bind-try", "/usr", "/usr")),
        (Step("mount", "/proc", source="proc"), ("--proc", "/proc")),
        (
            Step("mount", "/run", source="tmpfs", text="size=1m,mode=711"),
            ("--perms", "0711", "--tmpfs", "/run"),
        ),
        (Step("freeze", "/sys"), ("--remount-ro", "/sys")),
        (Step("freeze", "/proc/sys"), ("--ro-bind-try", "/proc/sys", "/proc/sys")),
        (Step("mask", "/proc/acpi"), ("--tmpfs", "/proc/acpi", "--remount-ro", "/proc/acpi")),
        (Step("mask", "/proc/kcore"), ("--ro-bind-try", "/dev/null", "/proc/kcore")),
        (Step("seal", "/"), ("--remount-ro", "/")),
        (Step("volume", "/data", content=content()), ("--bind-fd", "101", "/data")),
        (
            Step("volume", "/data", content=content(read_only=True)),
            ("--ro-bind-fd", "101", "/data"),
        ),
    ],
    ids=lambda value: value.action + value.path if isinstance(value, Step) else "",
)
def test_each_step_becomes_words(
    step: Step, wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: path == "/proc/acpi")
    assert follows(words(step), *wanted)


def test_a_file_is_given_by_what_it_holds() -> None:
    found = words(Step("file", "/etc/hosts", text="127.0.0.1 localhost\n"))
    descriptor = int(found[found.index("--ro-bind-data") + 1])
    with os.fdopen(descriptor) as file:
        assert file.read() == "127.0.0.1 localhost\n"


def test_devices_come_together_and_volumes_below_them_all_the_same() -> None:
    found = words(
        Step("folder", "/dev", mode=0o755),
        Step("device", "/dev/null", source="/dev/null"),
        Step("volume", "/dev/termination-log", content=content()),
    )
    assert follows(found, "--dev", "/dev")
    assert "/dev/null" not in found
    assert follows(found, "--bind-fd", "101", "/dev/termination-log")


def test_a_volume_inside_one_that_pods_write_to_is_refused() -> None:
    """Bubblewrap finds the inner place by its name, which a pod may have made a link."""
    outer, inner = (
        Step("volume", "/v", content=content()),
        Step("volume", "/v/i", content=content()),
    )
    for order in ((outer, inner), (inner, outer)):
        with pytest.raises(ValueError, match="/v/i lies in the volume at /v"):
            words(*order)
    safe = Step("volume", "/v", content=content(links=True))
    assert follows(words(safe, inner), "--bind-fd", "102", "/v/i")
    assert words(outer, Step("volume", "/vi", content=content()))


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
def test_a_program_that_cannot_do_it_does_not_work(program: str) -> None:
    assert not works(program, users=False)


def test_what_is_secret_is_passed_by_a_descriptor_and_never_as_an_argument(tmp_path: Path) -> None:
    """Everybody on the machine can see arguments; bubblewrap itself gets no variable at all."""
    shown = tmp_path / "shown"
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > ' + f"{shown}\n/usr/bin/env >> {shown}\n"
        f'cat /proc/self/fd/$2 | tr "\\0" "\\n" > {tmp_path}/read\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    wrapped: dict[str, Any] = {"identity": None, "steps": [], "program": str(fake)}
    task = {
        "rights": {"seccomp": ""},
        "environment": {"PASSWORD": "s3cret", "LD_PRELOAD": "/evil.so"},
        "directory": "/srv",
        "argv": ["run", "-v"],
    }
    code = """
from skerry.edge.agent.bubblewrap import become
child = os.fork()
if child == 0:
    become(*map(json.loads, sys.argv[1:]))
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert apart(code, json.dumps(wrapped), json.dumps(task)) == 0
    assert "s3cret" not in shown.read_text()
    assert "LD_PRELOAD" not in shown.read_text()
    assert shown.read_text().splitlines()[2:5] == ["--", "run", "-v"]
    read = (tmp_path / "read").read_text().splitlines()
    assert follows(read, "--setenv", "PASSWORD", "s3cret")
    assert follows(read, "--chdir", "/srv")


def test_what_cannot_be_mounted_is_an_error_of_the_start() -> None:
    nested = [Step("volume", "/v", content=content()), Step("volume", "/v/i", content=content())]
    task = {"rights": {"seccomp": ""}, "environment": {}, "directory": "/", "argv": ["x"]}
    with pytest.raises(OSError, match="bubblewrap cannot mount this: /v/i lies in the volume"):
        become({"identity": None, "steps": nested, "program": "/bin/false"}, task)
