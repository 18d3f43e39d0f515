"""One leader among equals, by a Lease.

A candidate writes itself into the Lease when it is free, expired or its own; writing is a
compare-and-swap, so only one wins. The leader renews; when it could not for ``renew_seconds`` it
must stop leading, because others may take over once ``lease_seconds`` have passed. Expiry is
judged by the local clock since the record was last *seen to change*, so clocks of candidates need
not agree. A leader that stops releases the Lease, and the next takes over at once.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from skerry.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339_micro
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")


@dataclass(frozen=True, slots=True)
class Terms:
    """kube-controller-manager's own times; each must be clearly below the one before."""

    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


TERMS = Terms()


class LeaderElection:
    """A candidate. ``run`` leads when elected, and returns when leadership is lost."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        *,
        ids: IdSource,
        terms: Terms = TERMS,
        metrics: RuntimeMetrics | None = None,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._name, self._namespace, self._identity = name, namespace, identity
        self._ids = ids
        self._terms = terms
        self._seen: Object | None = None
        self._seen_at = 0.0
        self._leading = (metrics or RuntimeMetrics()).leading.labels(name)
        self._log = Logger("leader-election", key=f"{namespace}/{name}")
        self.leading = asyncio.Event()

    @property
    def holder(self) -> str:
        """Who leads as far as we know; empty when nobody does."""
        return str((self._seen or {}).get("spec", {}).get("holderIdentity") or "")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait to be elected, then run *lead* until it returns or leadership is lost.

        When it is lost *lead* is cancelled. Whatever ends it, the Lease is released.
        """
        await self._acquire()
        self._log.info("successfully acquired lease", v=0)
        self.leading.set()
        self._leading.set(1)
        try:
            await self._lead(lead)
        finally:
            self.leading.clear()
            self._leading.set(0)
            await self._release()

    async def _acquire(self) -> None:
        waited_for = ""
        while not await self._try():
            if self.holder not in (waited_for, self._identity):
                waited_for = self.holder
                self._log.info("another process leads; waiting for its lease", holder=waited_for)
            # Jitter, or two candidates would collide for ever.
            await self._clock.sleep(self._terms.retry_seconds * (1.0 + 0.2 * self._ids.fraction()))

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as tasks:

            async def work() -> None:
                await lead()
                renewing.cancel()

            async def renew() -> None:
                await self._renew_while_possible()
                self._log.error("lost the lease; no longer leading")
                working.cancel()

            working = tasks.create_task(work())
            renewing = tasks.create_task(renew())

    async def _renew_while_possible(self) -> None:
        """Return once the lease could not be renewed in time or is another's."""
        renewed = self._clock.monotonic()
        while True:
            try:
                # One deadline over waiting and trying: not a moment longer than was promised.
                left = self._terms.renew_seconds - (self._clock.monotonic() - renewed)
                async with asyncio.timeout(left):
                    await self._clock.sleep(self._terms.retry_seconds)
                    began = self._clock.monotonic()
                    if await self._try():
                        renewed = began
                    elif self.holder not in ("", self._identity):
                        return
            except TimeoutError:
                return

    async def _try(self) -> bool:
        """Take or renew the lease; False when that did not work out this time."""
        try:
            return await self._try_once()
        except (Conflict, AlreadyExists):
            return False  # somebody was faster
        except (ApiError, TransportError) as error:
            self._log.warning("cannot reach the lease", error=error)
            return False

    async def _try_once(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            self._see(await self._client.create(LEASES, self._new_lease(), self._namespace))
            return True
        self._see(lease)
        if self.holder not in ("", self._identity) and not self._expired():
            return False
        self._see(await self._client.update(LEASES, self._taken(lease)))
        return True

    def _see(self, lease: Object) -> None:
        if self._seen is None or self._seen.get("spec") != lease.get("spec"):
            self._seen_at = self._clock.monotonic()
        self._seen = lease

    def _expired(self) -> bool:
        spec = (self._seen or {}).get("spec", {})
        duration = float(spec.get("leaseDurationSeconds") or self._terms.lease_seconds)
        return self._clock.monotonic() - self._seen_at > duration

    def _new_lease(self) -> Object:
        now = rfc3339_micro(self._clock.now())
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._terms.lease_seconds,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }

    def _taken(self, lease: Object) -> Object:
        now = rfc3339_micro(self._clock.now())
        wanted = copy.deepcopy(lease)
        spec = wanted.setdefault("spec", {})
        if spec.get("holderIdentity") != self._identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec["holderIdentity"] = self._identity
        spec["leaseDurationSeconds"] = self._terms.lease_seconds
        spec["renewTime"] = now
        return wanted

    async def _release(self) -> None:
        """Give the lease up, if it is still ours; what goes wrong is left to expiry."""
        if self._seen is None or self.holder != self._identity:
            return
        wanted = copy.deepcopy(self._seen)
        wanted["spec"] |= {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": rfc3339_micro(self._clock.now()),
        }
        try:
            await self._client.update(LEASES, wanted)
        except (ApiError, TransportError) as error:
            self._log.debug("lease not released", error=error)
