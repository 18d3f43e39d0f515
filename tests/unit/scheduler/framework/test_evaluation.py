"""Evaluations that are kept: what catching up yields is what asking anew does."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.table import NodeTable
from skerry.scheduler.framework import evaluation
from skerry.scheduler.framework.evaluation import EvaluationFailed, Evaluator, Signature
from skerry.scheduler.framework.plugin import PreFilterResult, Scope
from skerry.scheduler.framework.profile import PluginRef, PluginSet, ProfileSpec, assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework, ScoreError
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, error, unschedulable
from tests.kit.scheduler.fixtures import node


class Plugin:
    name = ""

    def __init__(self) -> None:
        self.asked = 0


class Sorter(Plugin):
    name = "Sorter"

    def sort_key(self, item: Any) -> Any:
        return 0


class Binder(Plugin):
    name = "Binder"

    async def bind(self, state: Any, item: Any, target: str) -> Status | None:
        return None


class Size(Plugin):
    """Cacheable: refuses nodes without enough CPUs and scores by them."""

    name = "Size"
    scope = Scope.TARGET

    def signature(self, item: int) -> int:
        return item

    def filter(self, state: Any, item: int, target: NodeInfo) -> Status | None:
        self.asked += 1
        return None if target.allocatable["cpu"] >= item else unschedulable("too small")

    def score(self, state: Any, item: int, target: NodeInfo) -> int:
        return target.allocatable["cpu"] // 1000


class Named(Plugin):
    """Cacheable: PreFilter names the nodes that come into question, or refuses."""

    name = "Named"
    scope = Scope.TARGET

    def __init__(self, names: set[str] | None = None, status: Status | None = None) -> None:
        super().__init__()
        self.names = names
        self.status = status

    def signature(self, item: int) -> int:
        return 0

    def pre_filter(self, state: CycleState, item: int) -> Any:
        self.asked += 1
        state.write("Named/entry", item)
        result = None if self.names is None else PreFilterResult(frozenset(self.names))
        return result, self.status


class Mood(Plugin):
    """Not cacheable: refuses what a test says, and scores all others alike but one."""

    name = "Mood"

    def __init__(self) -> None:
        super().__init__()
        self.refuses: set[str] = set()
        self.answer: Status = unschedulable("not today")
        self.prepared: Status | None = None
        self.pre_scored = 0
        self.likes = ""

    def filter(self, state: Any, item: int, target: NodeInfo) -> Status | None:
        self.asked += 1
        return self.answer if target.name in self.refuses else None

    def pre_score(self, state: Any, item: int, rows: Any) -> Status | None:
        self.pre_scored += 1
        return self.prepared

    def score(self, state: Any, item: int, target: NodeInfo) -> int:
        return 100 if target.name == self.likes else 0


class Bench:
    def __init__(self, *plugins: Plugin) -> None:
        everything = [Sorter(), *plugins, Binder()]
        registry = Registry({p.name: partial(_same, p) for p in everything})
        references = tuple(PluginRef(plugin.name) for plugin in everything)
        spec = ProfileSpec("a", {"multiPoint": PluginSet(references)})
        framework: Framework[int, NodeInfo] = Framework(assemble(spec, registry, None))
        self.table = NodeTable()
        self.evaluator = Evaluator(framework, self.table)

    def nodes(self, **cpus: int) -> Bench:
        for name, count in cpus.items():
            if count:
                self.table.set_node(node(name, allocatable={"cpu": str(count)}))
            elif name in self.table:
                self.table.remove_node(name)
        return self

    def begun(self, item: int = 2000) -> Any:
        return self.evaluator.begin(item, self.evaluator.signature(item))

    def built(self, item: int = 2000) -> tuple[Any, CycleState]:
        kept, state, _ = self.begun(item)
        self.evaluator.build(kept, state, item)
        return kept, state

    def totals(self, item: int = 2000) -> dict[str, int]:
        kept, state = self.built(item)
        rows = np.flatnonzero(self.evaluator.feasible(kept, state, item))
        totals = self.evaluator.totals(kept, state, item, rows)
        names = [self.table.target(int(row)).name for row in rows]
        return {name: int(total) for name, total in zip(names, totals, strict=True)}


def _same(plugin: Any, args: Any, handle: Any) -> Any:
    return plugin


STEPS = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4), min_size=1), max_size=5
)


@settings(max_examples=12)
@given(steps=STEPS)
def test_a_kept_evaluation_agrees_with_a_new_one_after_any_changes(
    steps: list[dict[str, int]],
) -> None:
    bench = Bench(Size(), Mood()).nodes(a=1, b=2, c=3)
    for step in steps:
        bench.nodes(**step)
        fresh = Bench(Size(), Mood())
        for name in "abcdefgh":
            row = bench.table.row(name)
            if row is not None:
                fresh.nodes(**{name: bench.table.target(row).allocatable["cpu"] // 1000})
        assert bench.totals() == fresh.totals()


def test_a_second_item_of_the_same_signature_asks_cacheable_plugins_nothing() -> None:
    size, mood = Size(), Mood()
    bench = Bench(size, mood).nodes(a=1, b=2, c=3)
    assert bench.totals() == {"b": 2, "c": 3}
    size.asked = mood.asked = 0
    assert bench.totals() == {"b": 2, "c": 3}
    assert (size.asked, mood.asked) == (0, 2)  # only the survivors, and only by the other


def test_columns_are_shared_by_items_that_one_plugin_sees_alike() -> None:
    class Other(Named):
        name = "Other"

        def signature(self, item: int) -> int:
            return item

    class Fixed(Size):
        def signature(self, item: int) -> int:
            return 0

    size = Fixed()
    bench = Bench(size, Other()).nodes(a=1, b=2)
    bench.built(2000)
    asked = size.asked
    bench.built(2001)
    assert size.asked == asked


def test_what_pre_filter_found_is_remembered_with_what_it_left_in_the_state() -> None:
    named = Named()
    bench = Bench(named).nodes(a=1)
    for _ in range(2):
        _, state, _ = bench.begun()
        assert state.entries["Named/entry"] == 2000
    assert named.asked == 1


def test_a_refusal_of_pre_filter_is_remembered_and_ends_every_attempt() -> None:
    named = Named(status=unschedulable("no such claim"))
    bench = Bench(named)
    for _ in range(2):
        _, _, prepared = bench.begun()
        assert prepared.status is not None
        assert prepared.status.reasons == ("no such claim",)
    assert named.asked == 1


def test_an_evaluation_for_one_node_only_is_not_kept() -> None:
    """A daemon's pods have one each; keeping them would push out everybody else's."""
    named = Named({"a"})
    bench = Bench(named).nodes(a=1, b=1)
    bench.begun()
    bench.begun()
    assert named.asked == 2


def test_only_so_many_evaluations_are_kept_and_the_oldest_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "EVALUATIONS_KEPT", 2)
    named = Named()
    bench = Bench(named, Size())
    first, *_ = bench.begun(1)
    bench.begun(2)
    assert bench.begun(1)[0] is first  # used again, so the second is the oldest now
    bench.begun(3)
    assert bench.begun(1)[0] is first


def test_the_filter_that_comes_first_in_the_profile_is_blamed() -> None:
    size, mood = Size(), Mood()
    bench = Bench(size, mood).nodes(a=1, b=2, c=3)
    mood.refuses = {"a", "b"}
    kept, state = bench.built()
    diagnosis = bench.evaluator.diagnose(kept, state, 2000, bench.table.rows())
    blamed = {
        bench.table.target(row).name: diagnosis.kinds[diagnosis.codes[row] - 1].plugin
        for row in bench.table.rows()
        if diagnosis.codes[row]
    }
    assert blamed == {"a": "Size", "b": "Mood"}


def test_asking_who_is_feasible_leaves_the_kept_answer_as_it_was() -> None:
    mood = Mood()
    bench = Bench(Size(), mood).nodes(b=2, c=3)
    mood.refuses = {"b"}
    assert bench.totals() == {"c": 3}
    mood.refuses = set()
    assert bench.totals() == {"b": 2, "c": 3}


def test_a_filter_that_fails_is_an_error_and_not_a_refusal() -> None:
    mood = Mood()
    bench = Bench(mood).nodes(a=1)
    mood.refuses, mood.answer = {"a"}, error("the disk is on fire")
    kept, state = bench.built()
    with pytest.raises(EvaluationFailed, match="the disk is on fire"):
        bench.evaluator.feasible(kept, state, 2000)
    with pytest.raises(EvaluationFailed, match="the disk is on fire"):
        bench.evaluator.diagnose(kept, state, 2000, bench.table.rows())


def test_scorers_are_prepared_once_per_attempt_and_those_that_skip_are_left_out() -> None:
    mood = Mood()
    mood.likes = "b"
    bench = Bench(Size(), mood).nodes(b=2, c=3)
    kept, state = bench.built()
    rows = bench.table.rows()
    assert bench.evaluator.decides_more(kept, state, 2000, rows)
    assert bench.evaluator.by_plugin(kept, state, 2000, rows)["Mood"].tolist() == [100, 0]
    assert mood.pre_scored == 1
    mood.prepared = SKIP
    kept, state = bench.built()
    assert not bench.evaluator.decides_more(kept, state, 2000, rows)
    assert list(bench.evaluator.by_plugin(kept, state, 2000, rows)) == ["Size"]
    mood.prepared = error("cannot tell")
    kept, state = bench.built()
    with pytest.raises(EvaluationFailed, match='PreScore plugin "Mood": cannot tell'):
        bench.evaluator.scorers(state, 2000, rows)


@pytest.mark.parametrize("before", [[], ["a"]], ids=["at first", "when it catches up"])
def test_a_score_out_of_range_names_its_plugin(before: list[str]) -> None:
    bench = Bench(Size())
    if before:
        bench.nodes(a=1, b=1, c=1, d=1).built(0)
    bench.nodes(a=101)
    with pytest.raises(ScoreError, match="Size"):
        bench.built(0)


def test_signatures_are_equal_by_what_they_hold() -> None:
    assert Signature((1, "a")) == Signature((1, "a"))
    assert hash(Signature((1, "a"))) == hash(Signature((1, "a")))
    assert Signature((1, "a")) != Signature((2, "a"))
    assert Signature((1, "a")) != (1, "a")
