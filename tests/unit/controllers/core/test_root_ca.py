"""The published CA: a carried-out plan leaves none to make."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.controllers.core.root_ca import Observed, decide, kept_config_map
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


def kept(config_map: Object | None) -> Object | None:
    return None if config_map is None else kept_config_map(copy.deepcopy(config_map))


@given(config_maps)
def test_publishing_reaches_its_goal_and_then_rests(existing: Object | None) -> None:
    plan = decide(Observed(NAMESPACE, kept(existing), "PEM"))
    after = existing
    for action in plan:
        assert isinstance(action, Create | Update)
        after = action.object
        assert "digest" not in after
        assert after["metadata"]["annotations"]["kubernetes.io/description"] not in ("", "text")
    assert after is not None
    assert after["data"] == {"ca.crt": "PEM"}
    assert not decide(Observed(NAMESPACE, kept(after), "PEM"))
    if existing is not None:
        mine = existing["metadata"]["annotations"].get("mine")
        assert after["metadata"]["annotations"].get("mine") == mine


def test_neither_the_certificate_nor_its_description_is_kept_once_more() -> None:
    found = kept(
        {
            "metadata": {
                "name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": "long", "mine": "text"},
                "managedFields": [],
            },
            "data": {"ca.crt": "PEM"},
            "immutable": False,
        }
    )
    assert found is not None
    digest = found.pop("digest")
    assert len(digest) == 32
    annotations = {"kubernetes.io/description": "", "mine": "text"}
    assert found == {
        "metadata": {"name": "kube-root-ca.crt", "annotations": annotations},
        "immutable": False,
    }
