"""Pods that permit plugins hold back.

Several plugins may each ask a pod to wait, each for as long as it says. All must allow it; one
refusal, or one time limit passed, turns it down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from skerry.kit.clock import Clock
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.status import Code, Status


class WaitingPod:
    """One held pod; ``wait`` until everybody allowed it or somebody did not."""

    def __init__(self, pod: PodInfo, limits: Mapping[str, float]) -> None:
        self.pod = pod
        self._limits = dict(limits)
        self._verdict: asyncio.Future[Status | None] = asyncio.get_running_loop().create_future()

    @property
    def pending(self) -> list[str]:
        """Return the plugins that have not decided yet."""
        return list(self._limits)

    def allow(self, plugin: str) -> None:
        """Count one plugin's consent; the last one lets the pod go."""
        self._limits.pop(plugin, None)
        if not self._limits and not self._verdict.done():
            self._verdict.set_result(None)

    def reject(self, plugin: str, message: str) -> None:
        """Turn the pod down."""
        if not self._verdict.done():
            self._verdict.set_result(Status(Code.UNSCHEDULABLE, (message,), plugin))

    async def wait(self, clock: Clock) -> Status | None:
        """Return None when allowed, else who refused and why."""
        async with asyncio.TaskGroup() as tasks:
            timers = [
                tasks.create_task(self._expire(clock, plugin, seconds))
                for plugin, seconds in self._limits.items()
            ]
            try:
                return await asyncio.shield(self._verdict)
            finally:
                for timer in timers:
                    timer.cancel()

    async def _expire(self, clock: Clock, plugin: str, seconds: float) -> None:
        await clock.sleep(seconds)
        if plugin in self._limits:
            message = f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}"
            self.reject(plugin, message)


class WaitingPods:
    """All held pods by uid."""

    def __init__(self) -> None:
        self._held: dict[str, WaitingPod] = {}

    def hold(self, pod: PodInfo, limits: Mapping[str, float]) -> WaitingPod:
        waiting = self._held[pod.uid] = WaitingPod(pod, limits)
        return waiting

    def get(self, uid: str) -> WaitingPod | None:
        return self._held.get(uid)

    def release(self, uid: str) -> None:
        self._held.pop(uid, None)

    def reject(self, uid: str, plugin: str = "", message: str = "removed") -> bool:
        """Turn a held pod down; tells whether there was one."""
        waiting = self._held.get(uid)
        if waiting is None:
            return False
        waiting.reject(plugin, message)
        return True
