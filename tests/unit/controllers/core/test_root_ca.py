"""The published CA: a carried-out plan leaves none to make."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.controllers.core.root_ca import Observed, decide
from skerry.logic.machinery.plan import Create, Update
from tests.kit.core_objects import NAMESPACE

config_maps = st.none() | st.builds(
    lambda data, annotations: {
        "metadata": {"name": "kube-root-ca.crt", "namespace": "ns", "annotations": annotations},
        "data": data,
    },
    st.dictionaries(st.sampled_from(["ca.crt", "x"]), st.sampled_from(["PEM", "old"])),
    st.dictionaries(st.sampled_from(["kubernetes.io/description", "mine"]), st.just("text")),
)


@given(config_maps)
def test_publishing_reaches_its_goal_and_then_rests(existing: Object | None) -> None:
    plan = decide(Observed(NAMESPACE, existing, "PEM"))
    after = existing
    for action in plan:
        assert isinstance(action, Create | Update)
        after = action.object
    assert after is not None
    assert after["data"] == {"ca.crt": "PEM"}
    assert not decide(Observed(NAMESPACE, after, "PEM"))
    if existing is not None:
        mine = existing["metadata"]["annotations"].get("mine")
        assert after["metadata"]["annotations"].get("mine") == mine
