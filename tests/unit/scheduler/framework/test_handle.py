"""What plugins get: nominations by node and pod, and stand-ins that do nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.pod import PodReader
from skerry.scheduler.framework.handle import Handle, NominationTable
from tests.kit.scheduler.fixtures import pod

PODS = {name: PodReader().read(pod(name)) for name in "pqr"}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from("pqr"), st.sampled_from(["a", "b"])),
            st.tuples(st.sampled_from("pqr"), st.none()),
        )
    )
)
def test_both_ways_of_asking_agree(steps: list[tuple[str, str | None]]) -> None:
    table, model = NominationTable(), dict[str, str]()
    for name, place in steps:
        if place is None:
            table.withdraw(name)
            model.pop(name, None)
        else:
            table.nominate(PODS[name], place)
            model[name] = place
    assert {name: table.node_of(name) for name in "pqr"} == {n: model.get(n, "") for n in "pqr"}
    for place in ("a", "b"):
        assert {each.uid for each in table.nominated(place)} == {
            name for name, where in model.items() if where == place
        }
    assert set(table.nodes()) == set(model.values())
    assert len(table) == len(model)


async def test_nothing_is_written_unless_somebody_hands_in_a_writer() -> None:
    handle = Handle(Cluster())
    await handle.writer.bind(PODS["p"], "a")
    await handle.writer.delete_pod(PODS["p"])
    await handle.writer.patch_pod_status(PODS["p"], {})
    obj = {"metadata": {"name": "x"}}
    assert await handle.writer.update("claims", obj) is obj
    assert handle.reject_waiting("u", "Plugin", "why") is False
    handle.count_victims(3)
    handle.events.event({}, "Normal", "Reason", "Action", "note")


def test_a_plugin_that_belongs_to_no_profile_hears_so() -> None:
    with pytest.raises(LookupError, match="made for no profile"):
        Handle(Cluster()).framework()
