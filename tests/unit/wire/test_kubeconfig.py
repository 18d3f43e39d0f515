"""Kubeconfig files are found and merged as kubectl does it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skerry.wire.kubeconfig import KubeconfigError, document_of, kubeconfig_paths, merged

HOME = Path("/home/me")
ONE = """
current-context: there
clusters: [{name: hub, cluster: {server: https://one}}]
users: [{name: me, user: {token: 2030-01-01}}]
"""
TWO = """
current-context: here
clusters: [{name: hub, cluster: {server: https://two}}, {name: edge, cluster: {server: https://e}}]
contexts: [{name: here, context: {cluster: edge, user: me}}, {name: bare}]
"""


def test_the_flag_comes_before_the_variable_before_the_home_folder() -> None:
    listed = os.pathsep.join(("/a", "/b", "/a", ""))
    assert kubeconfig_paths("/x", listed, HOME) == [Path("/x")]
    assert kubeconfig_paths("", listed, HOME) == [Path("/a"), Path("/b")]
    assert kubeconfig_paths("", "", HOME) == [HOME / ".kube" / "config"]


def test_of_equal_names_the_first_file_wins_and_every_entry_knows_its_file() -> None:
    files = [Path("/one"), Path("/two"), Path("/absent")]
    config = merged(files, [(files[0], document_of(ONE)), (files[1], document_of(TWO))])
    assert (config.current, config.files) == ("there", tuple(files))
    assert config.clusters == {"hub": {"server": "https://one"}, "edge": {"server": "https://e"}}
    assert config.contexts["bare"] == {}
    assert config.origins[("clusters", "hub")] == Path("/one")
    assert config.origins[("clusters", "edge")] == Path("/two")
    assert config.origins[("current-context", "")] == Path("/one")


def test_a_token_that_looks_like_a_date_stays_text() -> None:
    config = merged((), [(Path("/one"), document_of(ONE))])
    assert config.users["me"]["token"] == "2030-01-01"


def test_an_empty_file_says_nothing() -> None:
    assert document_of("") == {}


@pytest.mark.parametrize("text", ["- a", "a: [", "just text", "\x00"])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(KubeconfigError, match=r"mapping|expected|not allowed"):
        document_of(text)
