"""Kubeconfig files are edited without losing what others put there."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from skerry.app.kubeconfig_files import edit, load, store
from skerry.cli.flags import UsageError, parse
from skerry.cli.hub_client import Overrides, target_of
from skerry.cli.kcp_plugin import seconds
from skerry.cli.session import split_url
from skerry.cli.workspace import CURRENT
from skerry.wire.kubeconfig import KubeconfigError, with_entry

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "a", "cluster": {"server": "https://h/clusters/root", "x-own": [1]}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u", "namespace": "n"}}],
    "users": [{"name": "u", "user": {"token": "t", "exec": {"command": "c"}}}],
    "current-context": "a",
    "extensions": [{"name": "mine", "extension": {"when": "2026-11-15T10:00:00Z"}}],
}


def written(path: Path, config: dict[str, Any] = CONFIG) -> Path:
    path.write_text(yaml.safe_dump(config))
    return path


def test_an_edit_keeps_everything_it_is_not_about(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    before = load([path])
    store(before, clusters={CURRENT: {"server": "https://h/clusters/b"}}, current=CURRENT)
    after = yaml.safe_load(path.read_text())
    assert after["clusters"][0] == CONFIG["clusters"][0]
    assert after["users"] == CONFIG["users"]
    assert after["extensions"] == CONFIG["extensions"]
    assert after["current-context"] == CURRENT
    assert after["clusters"][1] == {"name": CURRENT, "cluster": {"server": "https://h/clusters/b"}}


def test_dates_are_kept_as_text_even_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("kind: Config\npreferences: {seen: 2026-11-15T10:00:00Z}\n")
    store(load([path]), current="x")
    assert "2026-11-15T10:00:00Z" in path.read_text()
    assert "2026-11-15 10:00" not in path.read_text()


def test_what_somebody_else_wrote_since_reading_stays(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    before = load([path])
    other = load([path])
    store(other, contexts={"theirs": {"cluster": "a"}})
    store(before, contexts={"ours": {"cluster": "a"}})
    assert set(load([path]).contexts) == {"a", "theirs", "ours"}


def test_of_several_files_each_entry_goes_to_the_one_it_came_from(tmp_path: Path) -> None:
    first = written(tmp_path / "one", {"contexts": [{"name": "p", "context": {"user": "1"}}]})
    second = written(tmp_path / "two")
    config = load([first, second])
    assert config.current == "a"
    store(config, contexts={"a": {"user": "new"}, "fresh": {"user": "f"}}, current="fresh")
    assert set(load([first]).contexts) == {"p", "fresh"}
    assert load([second]).contexts["a"] == {"user": "new"}
    assert load([second]).current == "fresh"


def test_the_first_of_equal_names_wins(tmp_path: Path) -> None:
    first = written(tmp_path / "one", {"contexts": [{"name": "a", "context": {"user": "1"}}]})
    assert load([first, written(tmp_path / "two")]).contexts["a"] == {"user": "1"}


def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "config"
    store(load([path]), current="a")
    assert path.stat().st_mode & 0o777 == 0o600


def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    real = written(tmp_path / "real")
    real.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(real)
    store(load([link]), current="b")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert load([real]).current == "b"


def test_a_lock_that_stays_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    (tmp_path / "config.lock").touch()
    with pytest.raises(KubeconfigError, match=r"config\.lock: file exists; remove it if nothing"):
        edit(path, lambda document: {**document, "current-context": "b"}, patience=0)
    assert load([path]).current == "a"


def test_a_file_that_says_it_already_is_not_written(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    before = path.stat().st_ino
    edit(path, dict)
    assert path.stat().st_ino == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_a_file_stays_its_owner(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    os.chown(path, 1234, 1235)
    store(load([path]), current="b")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_no_lock_and_no_scratch_file_is_left(tmp_path: Path) -> None:
    path = written(tmp_path / "config")
    store(load([path]), current="b")
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


@pytest.mark.parametrize(
    "text",
    [
        *("- a\n- b\n", "a: [", "just text", "clusters: 1", "users: [x]", "contexts: [{}, 3]"),
        *("clusters: [{name: a, cluster: 3}]", b"\xff\xfe".decode("latin-1")),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(KubeconfigError, match="error loading config file"):
        load([path])


def test_flags_override_the_context(tmp_path: Path) -> None:
    config = load([written(tmp_path / "config")])
    assert target_of(config, Overrides()).server == "https://h/clusters/root"
    assert target_of(config, Overrides(server="https://o")).server == "https://o"
    with pytest.raises(KubeconfigError, match='context "nope" does not exist'):
        target_of(config, Overrides(context="nope"))


def test_an_empty_kubeconfig_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="no configuration has been provided"):
        target_of(load([tmp_path / "none"]), Overrides())


@pytest.mark.parametrize(
    ("url", "split"),
    [
        ("https://h/clusters/root", ("https://h", "root")),
        ("https://h/prefix/clusters/root:a/", ("https://h/prefix", "root:a")),
        ("https://h/clusters/root:a/api", ("https://h", "root:a")),
        ("https://h", None),
        ("https://h/clusters/*", None),
        ("https://h/clusters/", None),
        ("https://h/clusters/Root", None),
    ],
)
def test_workspaces_are_read_from_urls(url: str, split: tuple[str, str] | None) -> None:
    assert split_url(url) == split


def test_flags_may_stand_anywhere_and_be_written_either_way() -> None:
    own = {"type": False, "enter": True}
    parsed = parse(["--type", "t", "name", "--enter", "--kubeconfig=/k", "-sURL"], own)
    assert parsed.arguments == ["name"]
    assert parsed.value("type") == "t"
    assert parsed.on("enter")
    assert parsed.value("kubeconfig") == "/k"
    assert parsed.value("server") == "URL"
    assert parse(["-", "--", "--enter"], own).arguments == ["-", "--enter"]
    assert not parse(["--enter=false"], own).on("enter")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope"], "unknown flag: --nope"),
        (["-z"], "unknown shorthand flag: 'z' in -z"),
        (["--type"], "flag needs an argument: --type"),
        (["--enter=maybe"], 'invalid argument "maybe" for "--enter" flag'),
    ],
)
def test_mistakes_are_reported_as_kubectl_reports_them(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(words, {"type": False, "enter": True})


def test_durations_are_read_as_go_writes_them() -> None:
    assert seconds("1m30s") == 90
    assert seconds("500ms") == 0.5
    with pytest.raises(UsageError, match="invalid duration"):
        seconds("soon")


def test_many_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "config")

    def add(number: int) -> None:
        edit(path, lambda found: with_entry(found, "users", f"u{number}", {"token": str(number)}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert set(load([path]).users) == {"u", *(f"u{number}" for number in range(40))}
    assert [each.name for each in tmp_path.iterdir()] == ["config"]
