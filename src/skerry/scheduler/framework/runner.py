"""Runs a profile's plugins, point by point, with each point's rules for stopping and merging.

What a plugin raises becomes ``PluginRaised`` here, the one place where anything may be caught:
plugins are other people's code, and one of them must not end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Generic, TypeVar

from skerry.scheduler.framework import plugin as points
from skerry.scheduler.framework.events import ANY_EVENT, Registration
from skerry.scheduler.framework.plugin import (
    MAX_SCORE,
    Diagnosis,
    Plugin,
    PostFilterResult,
    Scope,
    Scores,
    extends,
)
from skerry.scheduler.framework.profile import Assembled
from skerry.scheduler.framework.recorder import NoRecorder, Recorder
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Code, Status, error, unresolvable
from skerry.scheduler.table import Rows

Item = TypeVar("Item")
Target = TypeVar("Target")

# A permit plugin may not hold an item longer than this; kube-scheduler's limit.
MAX_PERMIT_SECONDS = 15 * 60.0


class PluginRaised(Exception):
    """A plugin raised instead of answering."""

    def __init__(self, plugin: str, point: str, problem: Exception) -> None:
        super().__init__(f'plugin "{plugin}" raised in {point}: {problem!r}')
        self.plugin = plugin
        self.point = point

    def status(self) -> Status:
        return error(str(self), self).of(self.plugin)


class guarded:  # noqa: N801 - used like a function; a class is three times cheaper to enter
    """Turn whatever *plugin* raises into PluginRaised."""

    __slots__ = ("_plugin", "_point")

    def __init__(self, plugin: Plugin, point: str) -> None:
        self._plugin = plugin
        self._point = point

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(problem, Exception) and not isinstance(problem, PluginRaised):
            raise PluginRaised(self._plugin.name, self._point, problem) from problem


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter plugins leave: the names worth a look, by whom, or a refusal."""

    names: frozenset[str] | None = None
    named_by: frozenset[str] = frozenset()
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class CachedResults:
    """What some PreFilter plugins are known to say, and those still to be asked."""

    plugins: Sequence[Any]
    skipped: frozenset[str]
    names: frozenset[str] | None
    named_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Permitted:
    """Allowed (no status), refused, or waiting with one time limit per plugin."""

    status: Status | None = None
    waiting: tuple[tuple[str, float], ...] = ()


class Framework(Generic[Item, Target]):
    """One profile, ready to run."""

    def __init__(
        self,
        assembled: Assembled,
        recorder: Recorder | None = None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.now = now
        self._calls = 0
        self.name = assembled.spec.scheduler_name
        self.spec = assembled.spec
        self.weights = assembled.weights
        self.made = assembled.made
        self.recorder: Recorder = recorder or NoRecorder()
        at: Any = assembled.at
        self.pre_enqueue: Sequence[points.PreEnqueuePlugin[Item]] = at["preEnqueue"]
        # A profile that only decides has none, and nobody asks it.
        self.queue_sort: points.QueueSortPlugin[Any] = [*at["queueSort"], None][0]
        self.pre_filter: Sequence[points.PreFilterPlugin[Item]] = at["preFilter"]
        self.filter: Sequence[points.FilterPlugin[Item, Target]] = at["filter"]
        self.post_filter: Sequence[points.PostFilterPlugin[Item]] = at["postFilter"]
        self.pre_score: Sequence[points.PreScorePlugin[Item]] = at["preScore"]
        self.score: Sequence[points.ScorePlugin[Item, Target]] = at["score"]
        self.reserve: Sequence[points.ReservePlugin[Item]] = at["reserve"]
        self.permit: Sequence[points.PermitPlugin[Item]] = at["permit"]
        self.pre_bind: Sequence[points.PreBindPlugin[Item]] = at["preBind"]
        self.bind: Sequence[points.BindPlugin[Item]] = at["bind"]
        self.post_bind: Sequence[points.PostBindPlugin[Item]] = at["postBind"]
        self._placed_filter = [
            plugin
            for plugin in self.filter
            if getattr(plugin, "scope", Scope.CLUSTER) is not Scope.TARGET
        ]
        # Filters whose answers depend on more than the target and what is placed there.
        self._distant_filter = [
            plugin.name
            for plugin in self.filter
            if not isinstance(plugin, points.CacheablePlugin)
            or plugin.scope not in (Scope.TARGET, Scope.PLACED)
        ]
        self._extensions: Sequence[Any] = [
            plugin for plugin in self.pre_filter if isinstance(plugin, points.PreFilterExtensions)
        ]

    def sampled(self) -> bool:
        """Tell whether to time this call to a plugin: every tenth, which costs next to nothing."""
        self._calls += 1
        return self._calls % 10 == 0

    def time(self, plugin: Plugin, point: str, began: float, status: Status | None = None) -> None:
        """Note how long a sampled call took."""
        self.recorder.plugin(plugin.name, point, status_label(status), self.now() - began)

    def registrations(self) -> dict[str, Sequence[Registration]]:
        """Return, for each plugin that may reject, the events that may change its mind.

        A plugin that does not say is asked again after any event.
        """
        rejecting = (
            *self.pre_enqueue,
            *self.pre_filter,
            *self.filter,
            *self.reserve,
            *self.permit,
        )
        return {
            plugin.name: plugin.events_to_register()
            if isinstance(plugin, points.EnqueuePlugin)
            else ANY_EVENT
            for plugin in rejecting
        }

    def run_pre_enqueue(self, item: Item) -> Status | None:
        """Return the first refusal."""
        for plugin in self.pre_enqueue:
            with guarded(plugin, "PreEnqueue"):
                status = plugin.pre_enqueue(item)
            if status is not None:
                return status.of(plugin.name)
        return None

    def run_pre_filter(
        self,
        state: CycleState,
        item: Item,
        answer: Callable[[Any, CycleState, Item], tuple[Any, Status | None]] | None = None,
        known: CachedResults | None = None,
    ) -> PreFiltered:
        """Prepare all plugins.

        A plain refusal is remembered while the others still run, since preemption needs what
        they prepare; an unresolvable one ends the attempt. *answer* lets a cache stand in for
        the call to a plugin; *known* says what those left out of its ``plugins`` have said.
        """
        ask = answer or _ask_pre_filter
        skipped = set(known.skipped) if known else set()
        named = set(known.named_by) if known else set()
        names = known.names if known else None
        refusal: Status | None = None
        for plugin in known.plugins if known else self.pre_filter:
            began = self.now() if self.sampled() else None
            result, status = ask(plugin, state, item)
            if began is not None:
                self.time(plugin, "PreFilter", began, status)
            if status is not None:
                if status.code is Code.SKIP:
                    skipped.add(plugin.name)
                    continue
                refusal = _pre_filter_refusal(plugin.name, status)
                if refusal.code is not Code.UNSCHEDULABLE:
                    return PreFiltered(status=refusal)
            elif result is not None and result.names is not None:
                named.add(plugin.name)
                names = result.names if names is None else names & result.names
                if not names:
                    return PreFiltered(names, frozenset(named), _no_names(named))
        state.skip_filter = frozenset(skipped)
        return PreFiltered(names, frozenset(named), refusal)

    def run_filter(
        self, state: CycleState, item: Item, target: Target, *, again: bool = False
    ) -> Status | None:
        """Return the first refusal of one target.

        *again* leaves out plugins that look only at the target itself: once it has passed them,
        placing and removing items there cannot change their mind.
        """
        skip = state.skip_filter
        for plugin in self._placed_filter if again else self.filter:
            if plugin.name in skip:
                continue
            try:  # ``guarded`` spelt out: this is the innermost loop of trial runs.
                status = plugin.filter(state, item, target)
            except Exception as problem:  # a plugin may raise anything
                raise PluginRaised(plugin.name, "Filter", problem) from problem
            if status is not None:
                return filter_refusal(plugin.name, status)
        return None

    def tracks(self, state: CycleState) -> bool:
        """Tell whether any prepared state follows items placed and removed in a trial."""
        return any(plugin.name not in state.skip_filter for plugin in self._extensions)

    def local(self, state: CycleState) -> bool:
        """Tell whether every filter looks at nothing but a target and what is placed there.

        Its answer about a target then stays the same until that target changes.
        """
        return all(name in state.skip_filter for name in self._distant_filter)

    def add_item(self, state: CycleState, item: Item, added: Item, target: Target) -> Status | None:
        """Let prepared state know of an item placed on *target* in a trial."""
        return self._extend("add_item", state, item, added, target)

    def remove_item(
        self, state: CycleState, item: Item, removed: Item, target: Target
    ) -> Status | None:
        """Let prepared state know of an item taken off *target* in a trial."""
        return self._extend("remove_item", state, item, removed, target)

    def _extend(
        self, method: str, state: CycleState, item: Item, other: Item, target: Target
    ) -> Status | None:
        for plugin in self._extensions:
            if plugin.name in state.skip_filter:
                continue
            with guarded(plugin, "PreFilterExtension"):
                status: Status | None = getattr(plugin, method)(state, item, other, target)
            if status is not None:
                return error(
                    f'running {method} on PreFilter plugin "{plugin.name}": {status.message}'
                )
        return None

    def run_post_filter(
        self, state: CycleState, item: Item, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Ask until somebody made room, gave up for good, or failed; reasons add up."""
        reasons: list[str] = []
        outcome: PostFilterResult | None = None
        rejector = ""
        for plugin in self.post_filter:
            began = self.now() if self.sampled() else None
            with guarded(plugin, "PostFilter"):
                result, status = plugin.post_filter(state, item, diagnosis)
            if began is not None:
                self.time(plugin, "PostFilter", began, status)
            if status is None:
                return result, None
            if status.code is Code.UNRESOLVABLE:
                return result, status.of(plugin.name)
            if not status.rejected:
                return None, error(status.message, status.cause).of(plugin.name)
            if result is not None:
                outcome = result
            reasons.extend(status.reasons)
            rejector = rejector or plugin.name
        return outcome, Status(Code.UNSCHEDULABLE, tuple(reasons), rejector)

    def run_reserve(self, state: CycleState, item: Item, target: str) -> Status | None:
        for plugin in self.reserve:
            began = self.now() if self.sampled() else None
            with guarded(plugin, "Reserve"):
                status = plugin.reserve(state, item, target)
            if began is not None:
                self.time(plugin, "Reserve", began, status)
            if status is not None:
                if status.rejected:
                    return status.of(plugin.name)
                return error(f'running Reserve plugin "{plugin.name}": {status.message}')
        return None

    def run_unreserve(self, state: CycleState, item: Item, target: str) -> None:
        """Give everything back, last taken first."""
        for plugin in reversed(self.reserve):
            with guarded(plugin, "Unreserve"):
                plugin.unreserve(state, item, target)

    def run_permit(self, state: CycleState, item: Item, target: str) -> Permitted:
        waiting: list[tuple[str, float]] = []
        for plugin in self.permit:
            with guarded(plugin, "Permit"):
                status, seconds = plugin.permit(state, item, target)
            if status is None:
                continue
            if status.rejected:
                return Permitted(status.of(plugin.name))
            if status.code is not Code.WAIT:
                text = f'running Permit plugin "{plugin.name}": {status.message}'
                return Permitted(error(text).of(plugin.name))
            waiting.append((plugin.name, min(seconds, MAX_PERMIT_SECONDS)))
        return Permitted(Status(Code.WAIT) if waiting else None, tuple(waiting))

    async def run_pre_bind(self, state: CycleState, item: Item, target: str) -> Status | None:
        for plugin in self.pre_bind:
            began = self.now() if self.sampled() else None
            with guarded(plugin, "PreBind"):
                status = await plugin.pre_bind(state, item, target)
            if began is not None:
                self.time(plugin, "PreBind", began, status)
            if status is not None:
                if status.rejected:
                    return status.of(plugin.name)
                return error(f'running PreBind plugin "{plugin.name}": {status.message}')
        return None

    async def run_bind(self, state: CycleState, item: Item, target: str) -> Status | None:
        """Return the first answer that is not SKIP."""
        for plugin in self.bind:
            began = self.now() if self.sampled() else None
            with guarded(plugin, "Bind"):
                status = await plugin.bind(state, item, target)
            if began is not None:
                self.time(plugin, "Bind", began, status)
            if status is not None and status.code is Code.SKIP:
                continue
            if status is not None and not status.rejected:
                text = f'running Bind plugin "{plugin.name}": {status.message}'
                return error(text, status.cause).of(plugin.name)
            return status
        return Status(Code.SKIP)

    def run_post_bind(self, state: CycleState, item: Item, target: str) -> None:
        for plugin in self.post_bind:
            with guarded(plugin, "PostBind"):
                plugin.post_bind(state, item, target)

    def normalized(
        self,
        plugin: points.ScorePlugin[Item, Target],
        state: CycleState,
        item: Item,
        raw: Scores,
        rows: Rows,
    ) -> Scores:
        """Return a plugin's final scores of *rows*; raises ScoreError when out of range."""
        if extends(plugin, points.NormalizePlugin):
            normalizing: Any = plugin
            with guarded(plugin, "NormalizeScore"):
                raw = normalizing.normalize(state, item, raw, rows)
        if len(raw) and (raw.min() < 0 or raw.max() > MAX_SCORE):
            worst = int(raw.min()) if raw.min() < 0 else int(raw.max())
            raise ScoreError(plugin.name, worst)
        return raw


class ScoreError(Exception):
    """A plugin scored outside the range everybody agreed on."""

    def __init__(self, plugin: str, score: int) -> None:
        super().__init__(
            f'plugin "{plugin}" returns an invalid score {score}, '
            f"it should in the range of [0, {MAX_SCORE}] after normalizing"
        )


def filter_refusal(plugin: str, status: Status) -> Status:
    """Sign a Filter answer; anything but a refusal becomes an error."""
    if status.rejected:
        return status.of(plugin)
    return error(f'running "{plugin}" filter plugin: {status.message}', status.cause).of(plugin)


def _ask_pre_filter(plugin: Any, state: CycleState, item: Any) -> tuple[Any, Status | None]:
    try:  # ``guarded`` spelt out: asked half a dozen times per attempt.
        answer: tuple[Any, Status | None] = plugin.pre_filter(state, item)
    except Exception as problem:  # a plugin may raise anything
        raise PluginRaised(plugin.name, "PreFilter", problem) from problem
    return answer


def _pre_filter_refusal(plugin: str, status: Status) -> Status:
    if status.rejected:
        return status.of(plugin)
    text = f'running PreFilter plugin "{plugin}": {status.message}'
    return replace(error(text, status.cause), plugin=plugin)


def _no_names(plugins: set[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(plugins))}")
    listed = " ".join(sorted(plugins))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")


def status_label(status: Status | None) -> str:
    """Return what metrics call an answer."""
    return "Success" if status is None else status.code.label
