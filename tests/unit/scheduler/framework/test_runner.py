"""Each extension point stops and merges by its own rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from skerry.scheduler.framework.plugin import Diagnosis, PostFilterResult, PreFilterResult
from skerry.scheduler.framework.profile import PluginRef, PluginSet, ProfileSpec, assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework, PluginRaised, ScoreError
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import (
    SKIP,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)


class Base:
    name = ""

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        self.calls: list[str] = []


class Sorter(Base):
    name = "Sorter"

    def sort_key(self, item: Any) -> Any:
        return 0


class Last(Base):
    name = "Last"

    async def bind(self, state: Any, item: Any, target: str) -> Status | None:
        self.calls.append("bind")
        return None


def _same(plugin: Any, args: Any, handle: Any) -> Any:
    return plugin


def framework(*plugins: Any) -> Framework[str, str]:
    everything = [Sorter(), *plugins, Last()]
    registry = Registry({p.name: partial(_same, p) for p in everything})
    spec = ProfileSpec("a", {"multiPoint": PluginSet(tuple(PluginRef(p.name) for p in everything))})
    return Framework(assemble(spec, registry, None))


def pre_filter(name: str, names: set[str] | None, status: Status | None) -> Base:
    class Plugin(Base):
        def pre_filter(self, state: Any, item: Any) -> Any:
            self.calls.append("pre_filter")
            return (None if names is None else PreFilterResult(frozenset(names))), status

    plugin = Plugin()
    plugin.name = name
    return plugin


def test_an_unresolvable_pre_filter_ends_the_attempt_at_once() -> None:
    late = pre_filter("Late", None, None)
    found = framework(pre_filter("First", None, unresolvable("never")), late).run_pre_filter(
        CycleState(), "pod"
    )
    assert found.status == Status(Code.UNRESOLVABLE, ("never",), "First")
    assert late.calls == []


def test_an_unschedulable_pre_filter_lets_the_others_prepare() -> None:
    late = pre_filter("Late", None, None)
    found = framework(pre_filter("First", None, unschedulable("full")), late).run_pre_filter(
        CycleState(), "pod"
    )
    assert found.status == Status(Code.UNSCHEDULABLE, ("full",), "First")
    assert late.calls == ["pre_filter"]


def test_names_are_intersected_and_an_empty_set_names_all_plugins() -> None:
    both = framework(pre_filter("A", {"x", "y"}, None), pre_filter("B", {"y"}, None))
    assert both.run_pre_filter(CycleState(), "pod").names == frozenset({"y"})
    none = framework(pre_filter("B", {"x"}, None), pre_filter("A", {"y"}, None))
    status = none.run_pre_filter(CycleState(), "pod").status
    assert status is not None
    assert status.reasons == ("node(s) didn't satisfy plugin(s) [A B] simultaneously",)
    alone = framework(pre_filter("A", set(), None))
    status = alone.run_pre_filter(CycleState(), "pod").status
    assert status is not None
    assert status.reasons == ("node(s) didn't satisfy plugin A",)


def test_a_plugin_that_skips_pre_filter_is_not_asked_to_filter() -> None:
    class Plugin(Base):
        name = "Skips"

        def pre_filter(self, state: Any, item: Any) -> Any:
            return None, SKIP

        def filter(self, state: Any, item: Any, target: Any) -> Status | None:
            raise AssertionError("asked all the same")

    state = CycleState()
    found = framework(Plugin())
    found.run_pre_filter(state, "pod")
    assert found.run_filter(state, "pod", "node") is None


def test_a_failing_pre_filter_is_an_error_that_names_it() -> None:
    found = framework(pre_filter("A", None, error("boom"))).run_pre_filter(CycleState(), "pod")
    assert found.status is not None
    assert found.status.code is Code.ERROR
    assert found.status.message == 'running PreFilter plugin "A": boom'


def test_a_filter_that_raises_becomes_an_error_and_not_a_crash() -> None:
    class Plugin(Base):
        name = "Broken"

        def filter(self, state: Any, item: Any, target: Any) -> Status | None:
            raise ZeroDivisionError("oops")

    with pytest.raises(PluginRaised) as caught:
        framework(Plugin()).run_filter(CycleState(), "pod", "node")
    status = caught.value.status()
    assert (status.code, status.plugin) == (Code.ERROR, "Broken")
    assert "oops" in status.message


def post_filter(name: str, result: PostFilterResult | None, status: Status | None) -> Base:
    class Plugin(Base):
        def post_filter(self, state: Any, item: Any, diagnosis: Any) -> Any:
            self.calls.append("post_filter")
            return result, status

    plugin = Plugin()
    plugin.name = name
    return plugin


def test_post_filter_reasons_add_up_until_somebody_succeeds() -> None:
    late = post_filter("C", PostFilterResult("n1"), None)
    found = framework(post_filter("A", None, unschedulable("no")), late)
    result, status = found.run_post_filter(CycleState(), "pod", Diagnosis())
    assert (result, status) == (PostFilterResult("n1"), None)
    both = framework(
        post_filter("A", None, unschedulable("no")), post_filter("B", None, unschedulable("nor"))
    )
    _, status = both.run_post_filter(CycleState(), "pod", Diagnosis())
    assert status is not None
    assert status.reasons == ("no", "nor")


def test_an_unresolvable_post_filter_ends_the_search() -> None:
    late = post_filter("B", PostFilterResult("n1"), None)
    found = framework(post_filter("A", None, unresolvable("never")), late)
    _, status = found.run_post_filter(CycleState(), "pod", Diagnosis())
    assert status is not None
    assert status.code is Code.UNRESOLVABLE
    assert late.calls == []


def reserve(name: str, status: Status | None, log: list[str]) -> Base:
    class Plugin(Base):
        def reserve(self, state: Any, item: Any, target: str) -> Status | None:
            log.append(f"+{name}")
            return status

        def unreserve(self, state: Any, item: Any, target: str) -> None:
            log.append(f"-{name}")

    plugin = Plugin()
    plugin.name = name
    return plugin


def test_unreserve_runs_all_plugins_in_reverse_even_those_never_asked() -> None:
    log: list[str] = []
    found = framework(
        reserve("A", None, log), reserve("B", unschedulable("no"), log), reserve("C", None, log)
    )
    status = found.run_reserve(CycleState(), "pod", "node")
    assert status == Status(Code.UNSCHEDULABLE, ("no",), "B")
    found.run_unreserve(CycleState(), "pod", "node")
    assert log == ["+A", "+B", "-C", "-B", "-A"]


def test_permits_collect_waits_with_a_bound_and_one_refusal_ends_them() -> None:
    class Waits(Base):
        def __init__(self, name: str, seconds: float) -> None:
            super().__init__()
            self.name, self.seconds = name, seconds

        def permit(self, state: Any, item: Any, target: str) -> Any:
            return Status(Code.WAIT), self.seconds

    class Refuses(Base):
        name = "Refuses"

        def permit(self, state: Any, item: Any, target: str) -> Any:
            return unschedulable("no"), 0

    found = framework(Waits("A", 5), Waits("B", 100_000)).run_permit(CycleState(), "pod", "n")
    assert found.waiting == (("A", 5), ("B", 900.0))
    refused = framework(Waits("A", 5), Refuses()).run_permit(CycleState(), "pod", "n")
    assert refused.status == Status(Code.UNSCHEDULABLE, ("no",), "Refuses")


async def test_the_first_binder_that_does_not_skip_binds() -> None:
    class Passes(Base):
        name = "Passes"

        async def bind(self, state: Any, item: Any, target: str) -> Status | None:
            return SKIP

    found = framework(Passes())
    assert await found.run_bind(CycleState(), "pod", "node") is None
    last: Any = found.made["Last"]
    assert last.calls == ["bind"]


def test_a_score_out_of_range_is_an_error() -> None:
    class Generous(Base):
        name = "Generous"

        def score(self, state: Any, item: Any, target: Any) -> int:
            return 101

    found = framework(Generous())
    with pytest.raises(ScoreError) as caught:
        found.normalized(found.score[0], CycleState(), "pod", np.array([101]), np.array([0]))
    assert str(caught.value) == (
        'plugin "Generous" returns an invalid score 101, it should in the range of [0, 100] '
        "after normalizing"
    )


def test_plugins_without_events_are_asked_again_after_any() -> None:
    class Plain(Base):
        name = "Plain"

        def filter(self, state: Any, item: Any, target: Any) -> Status | None:
            return None

    assert len(framework(Plain()).registrations()["Plain"]) == 9


def test_cloned_state_does_not_share_what_can_change() -> None:
    class Counter:
        def __init__(self, value: int) -> None:
            self.value = value

        def clone(self) -> Counter:
            return Counter(self.value)

    state = CycleState()
    state.write("count", Counter(1))
    state.write("fixed", fixed := object())
    copy = state.clone()
    copy.read("count").value += 1
    assert state.read("count").value == 1
    assert copy.read("fixed") is fixed
