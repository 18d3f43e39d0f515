"""Entries of an edge come and go; what others wrote stays."""

from __future__ import annotations

from pathlib import Path

from skerry.app.kubeconfig_files import load, remove, store


def test_what_was_put_in_is_taken_out_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "config"
    store(
        load([path]),
        clusters={"mine": {"server": "https://a"}, "kind-x": {"server": "https://b"}},
        users={"me": {"token": "t"}, "kind-x": {"token": "u"}},
        contexts={"mine": {"cluster": "mine", "user": "me"}, "kind-x": {"cluster": "kind-x"}},
        current="kind-x",
    )
    assert set(load([path]).users) == {"me", "kind-x"}
    remove(load([path]), clusters=["kind-x"], users=["kind-x"], contexts=["kind-x"])
    left = load([path])
    assert (set(left.clusters), set(left.users), set(left.contexts)) == ({"mine"}, {"me"}, {"mine"})
    assert left.current == "", "the current context went with it"


def test_another_current_context_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config"
    contexts = {"mine": {"cluster": "c"}, "kind-x": {"cluster": "x"}}
    store(load([path]), contexts=contexts, current="mine")
    remove(load([path, tmp_path / "absent"]), contexts=["kind-x"])
    assert load([path]).current == "mine"
    assert not (tmp_path / "absent").exists()
