"""Namespaces and mounts as the kernel has them; every change is made in a process apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skerry.edge.agent import namespaces
from tests.kit.agent.apart import MOUNTS, apart


def test_a_refusal_names_the_call_and_what_it_was_about() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        namespaces.mount("tmpfs", "/no/such/place", "tmpfs")
    assert raised.value.filename == "/no/such/place"
    assert raised.value.strerror is not None
    assert raised.value.strerror.startswith("mount: ")
    with pytest.raises(OSError, match="setns"):
        namespaces.join("/dev/null")


def test_what_is_mounted_in_a_namespace_of_its_own_is_seen_nowhere_else(tmp_path: Path) -> None:
    seen = apart(
        """
place = sys.argv[1]
namespaces.mount("tmpfs", place, "tmpfs", options="size=64k")
open(f"{place}/file", "w").close()
say(os.listdir(place))
""",
        str(tmp_path),
        flags=MOUNTS,
    )
    assert seen == ["file"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_attached_is_shown_with_its_attributes_and_the_source_stays_as_it_was(
    tmp_path: Path,
) -> None:
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    found = apart(
        """
source, target = sys.argv[1:]
opened = [os.open(path, os.O_PATH) for path in (source, target)]
namespaces.attach(*opened, namespaces.ATTR_RDONLY)
def written(place):
    try:
        open(f"{place}/file", "w").close()
    except OSError as error:
        return error.errno
    return 0
say([written(target), written(source), os.listdir(target)])
""",
        str(tmp_path / "source"),
        str(tmp_path / "target"),
        flags=MOUNTS,
    )
    assert found == [30, 0, ["file"]]


def test_a_sealed_mount_is_read_only_and_what_is_mounted_below_it_is_not(tmp_path: Path) -> None:
    found = apart(
        """
place = sys.argv[1]
namespaces.mount("tmpfs", place, "tmpfs")
os.mkdir(f"{place}/inner")
namespaces.mount("tmpfs", f"{place}/inner", "tmpfs")
namespaces.seal(os.open(place, os.O_PATH))
def written(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.errno
    return 0
say([written(f"{place}/file"), written(f"{place}/inner/file")])
""",
        str(tmp_path),
        flags=MOUNTS,
    )
    assert found == [30, 0]


def test_after_the_root_was_changed_nothing_of_the_old_one_is_left(tmp_path: Path) -> None:
    found = apart(
        """
place = sys.argv[1]
namespaces.mount("tmpfs", place, "tmpfs")
os.mkdir(f"{place}/only")
namespaces.change_root(place)
say([os.listdir("/"), os.getcwd(), os.listdir("/..")])
""",
        str(tmp_path),
        flags=MOUNTS,
    )
    assert found == [["only"], "/", ["only"]]


def test_a_machine_is_named_in_its_namespace_only() -> None:
    before = os.uname().nodename
    named = apart(
        'namespaces.set_host_name("web-0"); say(os.uname().nodename)',
        flags="namespaces.CLONE_NEWUTS",
    )
    assert named == "web-0"
    assert os.uname().nodename == before


def test_orphans_are_adopted_and_children_die_with_their_parent() -> None:
    found = apart(
        """
import signal
namespaces.adopt_orphans()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        namespaces.die_with_parent()
        os.write(writer, b"%d" % os.getpid())
        signal.pause()
    os.read(reader, 0)
    signal.pause()
orphan = int(os.read(reader, 20))
os.kill(child, 9)
os.waitpid(child, 0)
pid, status = os.waitpid(orphan, 0)
say([pid == orphan, os.WTERMSIG(status)])
"""
    )
    assert found == [True, 9]


def test_an_identity_namespace_makes_us_somebody_else_and_nobody_besides() -> None:
    found = apart(
        """
# As below an ordinary user's edge, where groups cannot be changed any more.
namespaces.unshare(namespaces.CLONE_NEWUSER)
for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
    open(f"/proc/self/{name}", "w").write(text)
descriptor = namespaces.identity_namespace(1000, 2000)
namespaces.join_descriptor(descriptor)
say([os.geteuid(), os.getegid(), open("/proc/self/uid_map").read().split()[2]])
"""
    )
    assert found == [1000, 2000, "1"]


@pytest.mark.parametrize(
    ("user", "group", "wanted"),
    [(0, 0, ["0", "0", "4294967294"]), (1000, 1000, ["0", "1000", "1"])],
    ids=["root keeps everybody", "anybody else is root there, alone"],
)
def test_who_is_who_in_a_user_namespace(user: int, group: int, wanted: list[str]) -> None:
    found = apart(
        """
user, group = map(int, sys.argv[1:])
made_reader, made = os.pipe()
go_reader, go = os.pipe()
child = os.fork()
if child == 0:
    namespaces.unshare(namespaces.CLONE_NEWUSER)
    os.write(made, b"x")
    os.read(go_reader, 1)
    os._exit(0)
os.read(made_reader, 1)
namespaces.map_identities(child, user, group)
said = open(f"/proc/{child}/uid_map").read().split()
os.write(go, b"x")
os.waitpid(child, 0)
say(said)
""",
        str(user),
        str(group),
    )
    assert found == wanted


def test_user_namespaces_are_entered_first_and_mounts_last() -> None:
    """The first gives the right to enter the others; opening those takes the machine's /proc."""
    assert (namespaces.KINDS[0], namespaces.KINDS[-1]) == ("user", "mnt")
