"""Versions in the order in which Kubernetes prefers them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.api_versions import ordered

# The example of the Kubernetes documentation.
PREFERRED = [
    "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1",
    "foo10",
]  # fmt: skip


@given(st.permutations(PREFERRED))
def test_stable_versions_come_first_and_higher_ones_before_lower(shuffled: list[str]) -> None:
    assert ordered(shuffled) == PREFERRED


def test_what_only_looks_like_a_version_comes_last_by_its_letters() -> None:
    assert ordered(["v1x", "v1gamma1", "v1alpha1", "1"]) == ["v1alpha1", "1", "v1gamma1", "v1x"]
