"""Random lives of a store, compared at every step with a plain model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from skerry.store.base import Compacted, Conflict, Event, Write
from skerry.store.restoring import RestorableStore
from tests.kit.store.backends import Backend
from tests.kit.store.model import Model

KEYS = ["/a/1", "/a/2", "/a/22", "/a/é", "/b/1", "/b/\U0010ffff", "/c"]
PREFIXES = ["", "/", "/a/", "/a/2", "/b/", "/b/\U0010ffff", "/c", "/none/"]
WHEN = st.integers(0, 1 << 30)

keys = st.sampled_from(KEYS)
values = st.one_of(st.none(), st.binary(max_size=8))
# What a writer believes: anything, the truth, that the key is new, or something out of date.
beliefs = st.sampled_from(["any", "right", "new", "stale"])
wanted = st.lists(
    st.tuples(keys, values, beliefs), min_size=1, max_size=4, unique_by=lambda item: item[0]
)


class StoreMachine(RuleBasedStateMachine):
    """One life of one store."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._backend = backend

    @initialize()
    def begin(self) -> None:
        # Not asyncio.Runner, which would drop the loop that pytest's plugin left as current one.
        self._loop = asyncio.new_event_loop()
        self._settings = self._backend.fresh()
        self._store: RestorableStore = self._run(self._backend.open(self._settings))
        self._model = Model(start=self._run(self._store.revision()))

    @rule(wants=wanted)
    def commit(self, wants: list[tuple[str, bytes | None, str]]) -> None:
        writes = [self._write(*want) for want in wants]
        misfit = self._model.first_misfit(writes)
        if misfit is None:
            self._model.committed(writes, self._run(self._store.commit(writes)))
            return
        with pytest.raises(Conflict) as caught:
            self._run(self._store.commit(writes))
        assert (caught.value.index, caught.value.actual) == misfit

    @rule(wants=st.lists(wanted, min_size=2, max_size=5))
    def commit_together(self, wants: list[list[tuple[str, bytes | None, str]]]) -> None:
        """Several at once: whatever order the store chose, its history must explain the answers."""
        commits = [[self._write(*want) for want in each] for each in wants]

        async def all_of_them() -> list[list[int] | BaseException]:
            waiting = (self._store.commit(writes) for writes in commits)
            return await asyncio.gather(*waiting, return_exceptions=True)

        before = self._model.newest
        answers = self._run(all_of_them())
        done = [
            (writes, answer)
            for writes, answer in zip(commits, answers, strict=True)
            if not isinstance(answer, BaseException)
        ]
        assert all(isinstance(a, list | Conflict) for a in answers)
        # Commits that changed something have an order; those that did not fit in anywhere.
        done.sort(key=lambda item: max(item[1]))
        for writes, revisions in done:
            if any(revisions):
                assert self._model.first_misfit(writes) is None
                self._model.committed(writes, revisions)
        assert self._run(self._store.history("", after=before)) == self._model.after(before)

    @rule(key=keys)
    def get(self, key: str) -> None:
        assert self._run(self._store.get(key)) == self._model.entries.get(key)

    @rule(prefix=st.sampled_from(PREFIXES))
    def count(self, prefix: str) -> None:
        expected = len(self._model.at(self._model.newest, prefix))
        assert self._run(self._store.count(prefix)) == expected

    @rule(
        prefix=st.sampled_from(PREFIXES),
        limit=st.integers(0, 4),
        after=st.one_of(st.just(""), keys),
    )
    def range_now(self, prefix: str, limit: int, after: str) -> None:
        self._check_range(prefix, limit, after, None)

    @rule(prefix=st.sampled_from(PREFIXES), limit=st.integers(0, 4), when=WHEN)
    def range_then(self, prefix: str, limit: int, when: int) -> None:
        revision = self._some_revision(when)
        if revision < self._model.compacted:
            with pytest.raises(Compacted):
                self._run(self._store.range(prefix, limit=limit, revision=revision))
            return
        after = ""
        for _ in range(len(KEYS) + 1):
            more, after = self._check_range(prefix, limit, after, revision)
            if not more:
                break

    @rule(prefix=st.sampled_from(PREFIXES), limit=st.integers(1, 5), when=WHEN)
    def history(self, prefix: str, limit: int, when: int) -> None:
        revision = self._some_revision(when)
        read = self._store.history(prefix, after=revision, limit=limit)
        if revision < self._model.compacted:
            with pytest.raises(Compacted):
                self._run(read)
        else:
            assert self._run(read) == self._model.after(revision, prefix)[:limit]

    @rule(prefix=st.sampled_from(PREFIXES), when=WHEN)
    def watch_from(self, prefix: str, when: int) -> None:
        revision = self._some_revision(when)
        expected = self._model.after(revision, prefix)
        if revision < self._model.compacted:
            with pytest.raises(Compacted):
                self._run(anext(self._store.watch(prefix, after=revision)))
        else:
            assert self._run(self._watched(prefix, revision, len(expected))) == expected

    @precondition(lambda self: self._model.events)
    @rule(prefix=st.sampled_from(["", "/a/"]))
    def resume_after_every_event(self, prefix: str) -> None:
        kept = [r for r in self._model.known() if r >= self._model.compacted]
        for revision in kept[-8:]:
            expected = self._model.after(revision, prefix)
            assert self._run(self._watched(prefix, revision, len(expected))) == expected

    @rule(when=WHEN)
    def compact(self, when: int) -> None:
        revision = self._some_revision(when)
        self._run(self._store.compact(revision))
        self._model.compacted = max(self._model.compacted, revision)
        assert self._run(self._store.compacted()) == self._model.compacted

    @precondition(lambda self: self._backend.durable)
    @rule()
    def reopen(self) -> None:
        identity = self._store.identity
        self._run(self._store.close())
        self._store = self._run(self._backend.open(self._settings))
        assert self._store.identity == identity

    @invariant()
    def the_newest_revision_is_that_of_the_last_event(self) -> None:
        assert self._run(self._store.revision()) == self._model.newest

    def teardown(self) -> None:
        if hasattr(self, "_store"):
            self._run(self._store.close())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _check_range(
        self, prefix: str, limit: int, after: str, revision: int | None
    ) -> tuple[bool, str]:
        page = self._run(self._store.range(prefix, after=after, limit=limit, revision=revision))
        at = self._model.newest if revision is None else revision
        assert page.revision == at
        everything = [e for e in self._model.at(at, prefix) if e.key > after]
        expected = everything[:limit] if limit else everything
        assert list(page.entries) == expected
        assert page.more == (len(everything) > len(expected))
        assert page.remaining in (None, len(everything) - len(expected))
        return page.more, expected[-1].key if expected else after

    async def _watched(self, prefix: str, revision: int, count: int) -> list[Event]:
        """Return the first *count* events of a watch, proving that no more are ready."""
        watch = self._store.watch(prefix, after=revision)
        events: list[Event] = []
        async with asyncio.timeout(60):
            while len(events) < count:
                events.extend(await anext(watch))
        return events

    def _write(self, key: str, value: bytes | None, belief: str) -> Write:
        entry = self._model.entries.get(key)
        right = entry.revision if entry else 0
        expected = {
            "any": None,
            "right": right,
            "new": 0,
            "stale": next((e.revision for e in self._model.events if e.key == key), 0),
        }[belief]
        return Write(key, value, expected)

    def _some_revision(self, when: int) -> int:
        known = self._model.known()
        return known[when % len(known)]

    def _run(self, awaitable: Any) -> Any:
        async def wrapped() -> Any:
            return await awaitable

        return self._loop.run_until_complete(wrapped())


def test_a_random_life_follows_the_model(backend: Backend) -> None:
    examples, steps = {"memory": (60, 30), "sqlite": (40, 30), "etcd": (12, 20)}[backend.kind]

    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(backend)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
