"""A root made by a plan: in a mount namespace apart, so nothing of it is left on the machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.beneath import LeadsOut
from skerry.edge.agent.container_root import opened_volume
from skerry.edge.agent.root_plan import Content
from tests.kit.agent.apart import MOUNTS, apart

BUILD = """
from skerry.edge.agent import container_root
from skerry.edge.agent.root_plan import Content, Step
root = sys.argv[1]
steps = []
for each in json.loads(sys.argv[2]):
    content = each.pop("content", None)
    steps.append(Step(**each, content=Content(**content) if content else None))
failure = ""
try:
    container_root.build(root, steps)
except OSError as error:
    failure = f"{error.filename}: {error.strerror}"
def written(path):
    try:
        open(f"{root}{path}", "a").close()
    except OSError as error:
        return error.errno
    return 0
"""
READ_ONLY = 30


def content(folder: Path, *, read_only: bool = False) -> dict[str, Any]:
    """Return the fields of a volume that pods write to."""
    flags = {"read_only": read_only, "links": False, "devices": False}
    return {"root": str(folder), "inside": "", "path": "/", **flags}


class Root:
    """A directory to build a root in, and folders of the machine beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "root"
        self.machine = path / "machine"
        for folder in (self.path, self.machine):
            folder.mkdir()

    def built(self, steps: list[dict[str, Any]], then: str) -> Any:
        whole = [{"action": "root", "path": "/"}, *steps]
        return apart(BUILD + then, str(self.path), json.dumps(whole), flags=MOUNTS)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


def test_folders_links_and_files_are_made_as_planned_and_only_in_the_namespace(root: Root) -> None:
    found = root.built(
        [
            {"action": "folder", "path": "/tmp", "mode": 0o1777},
            {"action": "folder", "path": "/a/b/c", "mode": 0o711},
            {"action": "link", "path": "/tmp2", "text": "tmp"},
            {"action": "file", "path": "/a/hosts", "text": "127.0.0.1 localhost\n"},
        ],
        """
mode = lambda path: os.stat(root + path).st_mode & 0o7777
text = open(root + "/a/hosts").read()
say([failure, mode("/tmp"), mode("/a/b/c"), os.readlink(root + "/tmp2"), text])
""",
    )
    assert found == ["", 0o1777, 0o711, "tmp", "127.0.0.1 localhost\n"]
    assert list(root.path.iterdir()) == []


def test_what_the_machine_shows_is_read_only_and_what_it_lacks_is_left_out(root: Root) -> None:
    (root.machine / "library").write_text("content")
    found = root.built(
        [
            {"action": "show", "path": "/lib", "source": str(root.machine)},
            {"action": "show", "path": "/none", "source": str(root.machine / "none")},
        ],
        'say([failure, os.listdir(root), os.listdir(root + "/lib"), written("/lib/library")])',
    )
    assert found == ["", ["lib"], ["library"], READ_ONLY]


def test_a_volume_is_writable_unless_it_says_otherwise(root: Root) -> None:
    plain, fixed = content(root.machine), content(root.machine, read_only=True)
    found = root.built(
        [
            {"action": "volume", "path": "/data", "content": plain},
            {"action": "volume", "path": "/fixed", "content": fixed},
            {"action": "seal", "path": "/"},
        ],
        'say([failure, written("/data/new"), written("/fixed/new2"), written("/other")])',
    )
    assert found == ["", 0, READ_ONLY, READ_ONLY]
    assert [path.name for path in root.machine.iterdir()] == ["new"]


def test_what_is_masked_shows_nothing_and_what_is_frozen_cannot_be_changed(root: Root) -> None:
    (root.machine / "secrets").mkdir()
    (root.machine / "secrets" / "key").write_text("secret")
    (root.machine / "file").write_text("secret")
    (root.machine / "frozen").mkdir()
    found = root.built(
        [
            {"action": "volume", "path": "/m", "content": content(root.machine)},
            {"action": "mask", "path": "/m/secrets"},
            {"action": "mask", "path": "/m/file"},
            {"action": "mask", "path": "/m/none"},
            {"action": "freeze", "path": "/m/frozen"},
        ],
        """
text = open(root + "/m/file").read()
say([failure, os.listdir(root + "/m/secrets"), text, written("/m/frozen/x")])
""",
    )
    assert found == ["", [], "", READ_ONLY]
    assert (root.machine / "file").read_text() == "secret"


def test_a_link_in_a_volume_has_nothing_made_outside_the_root(root: Root) -> None:
    """A volume that a pod filled may hold a link where the plan puts a mount."""
    outside = root.machine.parent / "outside"
    outside.mkdir()
    (root.machine / "escape").symlink_to(outside)
    root.built(
        [
            {"action": "volume", "path": "/v", "content": content(root.machine)},
            {"action": "folder", "path": "/v/escape/made", "mode": 0o755},
        ],
        "say(failure)",
    )
    assert list(outside.iterdir()) == []


def test_a_step_that_fails_names_the_path_the_container_knows(root: Root) -> None:
    found = root.built(
        [
            {"action": "file", "path": "/etc/hosts", "text": ""},
            {"action": "file", "path": "/etc/hosts", "text": ""},
        ],
        "say(failure)",
    )
    assert found == "/etc/hosts: File exists"


def test_a_part_of_a_volume_is_opened_without_following_a_link_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "volume" / "part").mkdir(parents=True)
    (tmp_path / "volume" / "out").symlink_to("/etc")
    whole = Content(**content(tmp_path / "volume"))
    with opened_volume(whole) as found:
        assert os.path.samestat(os.fstat(found), (tmp_path / "volume").stat())
    with opened_volume(whole._replace(inside="part")) as found:
        assert os.path.samestat(os.fstat(found), (tmp_path / "volume" / "part").stat())
    for links in (False, True):
        leading_out = whole._replace(inside="out", links=links)
        with pytest.raises(LeadsOut), opened_volume(leading_out):
            pass
