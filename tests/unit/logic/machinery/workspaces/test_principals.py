"""Names of principals seen from other logical clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.principals import qualified_name

names = st.one_of(
    st.text(alphabet="ab:-", min_size=1, max_size=12),
    st.builds(
        "{}{}".format,
        st.sampled_from(
            ["system:serviceaccount:", "system:kcp:serviceaccount:", "system:kcp:user:", "system:"]
        ),
        st.text(alphabet="ab:", max_size=8),
    ),
)
clusters = st.text(alphabet="ab1", min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("system:serviceaccount:ci:robot", "system:kcp:serviceaccount:c1:ci:robot"),
        ("bob", "system:kcp:user:c1:bob"),
        ("system:kube-scheduler", "system:kcp:user:c1:system:kube-scheduler"),
        ("system:kcp:serviceaccount:c2:ci:robot",
         "system:kcp:user:c1:system:kcp:serviceaccount:c2:ci:robot"),
    ],
)  # fmt: skip
def test_a_principal_is_called_by_its_home_elsewhere(name: str, elsewhere: str) -> None:
    assert qualified_name(name, "c1") == elsewhere


@given(names, clusters, names, clusters)
def test_no_two_principals_share_a_qualified_name(
    name: str, home: str, other: str, other_home: str
) -> None:
    same = qualified_name(name, home) == qualified_name(other, other_home)
    assert same == ((name, home) == (other, other_home))
