"""Names as kcp forms them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.names import (
    base36,
    base62,
    cluster_name,
    home_cluster_name,
    home_path,
    initializer_label,
    is_path,
    joined,
    label_hash,
    parent_path,
    shard_name_hash,
)


def test_homes_have_the_names_kcp_gives_them() -> None:
    assert home_cluster_name("kcp-admin") == "kvdk2spgmbix"
    assert home_cluster_name("user") == "b7mkgpsbnrbl"


@pytest.mark.parametrize("user", ["alice:prod", "oidc:alice", "Alice", "a b", "", "a" * 64, "a\n"])
def test_a_home_is_never_taken_for_a_workspace_below_another(user: str) -> None:
    assert home_path("alice") == "user:alice"
    assert home_path(user) == home_cluster_name(user)


def test_the_only_shard_has_the_hash_clients_know() -> None:
    assert shard_name_hash("root") == "1pfxsevk"


def test_labels_refer_to_exports_by_a_hash_short_enough_for_a_label() -> None:
    assert len(label_hash("root:workload.kcp.io")) <= 63
    assert label_hash("a:b") != label_hash("b:a")


@given(st.binary(min_size=32, max_size=32))
def test_cluster_names_are_sixteen_characters_of_a_path(entropy: bytes) -> None:
    name = cluster_name(entropy)
    assert len(name) == 16
    assert is_path(name)


@given(st.integers(min_value=0, max_value=2**224 - 1))
def test_bases_are_readable_back(number: int) -> None:
    raw = number.to_bytes(28, "big")
    assert int(base36(raw), 36) == number
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    value = 0
    for digit in base62(raw):
        value = value * 62 + digits.index(digit)
    assert value == number


@pytest.mark.parametrize("text", ["root", "root:a", "a1", "1a:b-c", "x" * 63])
def test_paths_are_segments_with_colons_between(text: str) -> None:
    assert is_path(text)


@pytest.mark.parametrize("text", ["", "Root", "a:", ":a", "a::b", "-a", "a-", "a.b", "x" * 64, "*"])
def test_everything_else_is_no_path(text: str) -> None:
    assert not is_path(text)


def test_going_down_and_up_again_leads_back() -> None:
    assert parent_path(joined("root:a", "b")) == "root:a"
    assert parent_path("root") == ""


def test_initializers_have_a_label_of_legal_length() -> None:
    key, value = initializer_label("root:universal")
    assert len(key.partition("/")[2]) <= 63
    assert len(value) <= 63
