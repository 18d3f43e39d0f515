"""The use of quotas: a carried-out plan leaves none to make."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.controllers.core.quota import decide as quota_decide
from skerry.controllers.core.quota import observe as quota_observe
from skerry.logic.machinery.plan import Update
from skerry.logic.machinery.quota import PODS, Counted, usage_of
from skerry.runtime.index import Key

NOW = datetime(2030, 1, 1, tzinfo=UTC)


statuses = st.none() | st.fixed_dictionaries(
    {
        "hard": st.dictionaries(st.just("configmaps"), st.sampled_from(["1", "5"])),
        "used": st.dictionaries(st.just("configmaps"), st.sampled_from(["0", "2"])),
    }
)


@given(statuses, st.integers(0, 4))
def test_counting_reaches_its_goal_and_then_rests(status: Object | None, count: int) -> None:
    quota: Object = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}}
    if status is not None:
        quota["status"] = status
    resource = GroupResource("", "configmaps")
    content = tuple(Counted(resource, {"metadata": {"name": str(n)}}) for n in range(count))
    key = Key("", "ns", "q")
    after = quota
    for action in quota_decide.decide(quota_observe.Observed(key, quota, content), NOW):
        assert isinstance(action, Update)
        assert action.subresource == "status"
        after = action.object
    assert after["status"] == {"hard": {"configmaps": "5"}, "used": {"configmaps": str(count)}}
    assert not quota_decide.decide(quota_observe.Observed(key, after, content), NOW)


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_pared_pod_counts_as_the_whole_one_does(field: str) -> None:
    container = {
        "name": "c",
        "image": "big",
        "env": [{}] * 50,
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}},
    }
    pod: Object = {
        "metadata": {"name": "p", "managedFields": [{}]},
        "spec": {"containers": [], "volumes": [{}], "overhead": {"cpu": "1m"}, field: [container]},
        "status": {"phase": "Running", "conditions": [{}]},
    }
    pared = quota_observe.pared(pod)
    assert usage_of(Counted(PODS, pared), NOW) == usage_of(Counted(PODS, pod), NOW)
    assert "managedFields" not in pared["metadata"]
    assert "image" not in pared["spec"][field][0]
