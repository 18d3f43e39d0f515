"""A start of a server keeps its own entries true and everything else as people left it."""

from __future__ import annotations

import base64
import copy
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skerry.app.admin_kubeconfig import (
    AdminEntries,
    ClusterEntry,
    ContextEntry,
    UserEntry,
    admin_kubeconfig,
    keep_admin_kubeconfig,
    refreshed,
)
from skerry.wire.kubeconfig import SECTIONS, merged

CURRENT = "workspace.kcp.io/current"
_EMPTY: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}


def entries(port: int = 6443, ca: bytes = b"old", token: str = "t") -> AdminEntries:
    return AdminEntries(
        [
            ClusterEntry("base", f"https://hub:{port}", ca),
            ClusterEntry("root", f"https://hub:{port}/clusters/root", ca),
        ],
        [UserEntry("kcp-admin", token=token)],
        [ContextEntry("base", "base", "kcp-admin"), ContextEntry("root", "root", "kcp-admin")],
        "root",
    )


def entered(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Do what ``kubectl ws`` does to a file."""
    found = copy.deepcopy(document)
    cluster = copy.deepcopy(found["clusters"][1]["cluster"])
    cluster["server"] = cluster["server"].replace("/clusters/root", f"/clusters/{path}")
    found["clusters"].append({"name": CURRENT, "cluster": cluster})
    context = {"cluster": CURRENT, "user": "kcp-admin", "namespace": "shop"}
    found["contexts"].append({"name": CURRENT, "context": context})
    found["current-context"] = CURRENT
    return found


def content(document: dict[str, Any], section: str, name: str) -> Any:
    return merged([], [(Path(), document)]).section(section)[name]


def test_a_new_file_begins_at_the_servers_own_context() -> None:
    made = refreshed(_EMPTY, entries())
    assert made["current-context"] == "root"
    assert content(made, "users", "kcp-admin") == {"token": "t"}


def test_the_current_workspace_survives_a_new_port_and_a_new_authority() -> None:
    before = entered(refreshed(_EMPTY, entries()), "root:org:team")
    after = refreshed(before, entries(7443, b"new", "u"))
    assert after["current-context"] == CURRENT
    reached = content(after, "clusters", CURRENT)
    assert reached["server"] == "https://hub:7443/clusters/root:org:team"
    assert base64.b64decode(reached["certificate-authority-data"]) == b"new"
    assert content(after, "contexts", CURRENT)["namespace"] == "shop"
    assert content(after, "users", "kcp-admin") == {"token": "u"}


def test_what_people_added_to_our_entries_stays_but_for_other_ways_to_trust() -> None:
    document = refreshed(_EMPTY, entries())
    document["clusters"][0]["cluster"] |= {
        "proxy-url": "http://p",
        "insecure-skip-tls-verify": True,
    }
    document["contexts"][1]["context"]["namespace"] = "shop"
    after = refreshed(document, entries(7443))
    base = content(after, "clusters", "base")
    assert base["proxy-url"] == "http://p"
    assert "insecure-skip-tls-verify" not in base, "kubectl refuses it beside authorities"
    assert content(after, "contexts", "root")["namespace"] == "shop"


def test_a_current_context_that_somebody_unset_stays_unset() -> None:
    document = {**refreshed(_EMPTY, entries()), "current-context": ""}
    assert refreshed(document, entries(7443))["current-context"] == ""


def test_servers_elsewhere_are_not_led_to_this_one() -> None:
    document = refreshed(_EMPTY, entries())
    other = {"name": "kind-x", "cluster": {"server": "https://hub:64430/clusters/root"}}
    document["clusters"].append(other)
    assert content(refreshed(document, entries(7443)), "clusters", "kind-x") == other["cluster"]


_names = st.sampled_from(["base", "root", "kcp-admin", CURRENT, "kind-x", "mine", "other"])
_urls = st.sampled_from(
    ["", "nowhere", "https://hub:1/clusters/a", "https://hub:2", "http://[::1]"]
)
_values = st.fixed_dictionaries({}, optional={"server": _urls, "x-own": st.text(max_size=5)})


@st.composite
def _documents(draw: st.DrawFn) -> dict[str, Any]:
    """Files that people may have: any entries, in any order, with members of their own."""
    found: dict[str, Any] = {"kind": "Config", "preferences": {"colors": True}}
    for section, inner in SECTIONS.items():
        names = draw(st.lists(_names, unique=True, max_size=5))
        found[section] = [{"name": name, inner: draw(_values), "x-beside": 1} for name in names]
    found["current-context"] = draw(st.sampled_from(["", "mine", "gone", CURRENT]))
    found["extensions"] = [{"name": "e", "extension": {}}]
    return found


@given(_documents(), st.integers(1, 3))
def test_only_the_servers_entries_and_their_copies_change(
    document: dict[str, Any], port: int
) -> None:
    own = entries(port)
    before = copy.deepcopy(document)
    after = refreshed(document, own)
    assert document == before, "what was read is not changed"
    assert refreshed(after, own) == after, "a second start changes nothing"
    ours = {
        "clusters": {"base", "root"},
        "users": {"kcp-admin"},
        "contexts": {"base", "root"},
    }
    for section in SECTIONS:
        names = [item["name"] for item in before[section]]
        assert [item["name"] for item in after[section]][: len(names)] == names
        for item, was in zip(after[section], before[section], strict=False):
            if item["name"] not in ours[section]:
                assert {**item, "cluster": 0} == {**was, "cluster": 0}
            assert item["x-beside"] == 1
    rest = {"kind", "preferences", "extensions"}
    assert {key: after[key] for key in rest} == {key: before[key] for key in rest}
    if before["current-context"]:
        assert after["current-context"] == before["current-context"]


def test_a_file_is_private_and_whole(tmp_path: Path) -> None:
    path = keep_admin_kubeconfig(tmp_path, entries())
    assert path == tmp_path / "admin.kubeconfig" == admin_kubeconfig(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("text", ["a: [", "clusters: 7\n"])
def test_a_broken_file_is_left_and_a_fresh_one_is_used_until_it_is_mended(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "admin.kubeconfig"
    path.write_text(text)
    fresh = keep_admin_kubeconfig(tmp_path, entries())
    assert path.read_text() == text
    assert fresh == tmp_path / "admin.fresh.kubeconfig" == admin_kubeconfig(tmp_path)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600
    assert yaml.safe_load(fresh.read_text())["current-context"] == "root"
    said = capsys.readouterr().err
    assert "admin.kubeconfig is left as it is" in said
    assert "error loading config file" in said
    path.unlink()
    assert keep_admin_kubeconfig(tmp_path, entries()) == path == admin_kubeconfig(tmp_path)
    assert not fresh.exists()


def test_a_lock_that_stays_holds_up_no_server(tmp_path: Path) -> None:
    (tmp_path / "admin.kubeconfig.lock").touch()
    assert keep_admin_kubeconfig(tmp_path, entries(), 0.0).name == "admin.fresh.kubeconfig"


def test_a_current_context_must_be_one_of_the_servers() -> None:
    with pytest.raises(ValueError, match="no context has that name"):
        AdminEntries([], [], [], "root")
