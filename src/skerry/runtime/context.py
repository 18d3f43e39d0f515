"""What ``app`` hands to every controller it builds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.controller import WORKERS, Controller, Reconciler
from skerry.runtime.events import EventRecorder
from skerry.runtime.execute import Executor, WriteRecorder
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)
O = TypeVar("O")  # noqa: E741 - what was observed


@dataclass(frozen=True)
class ControllerContext:
    """One server's client and informers, shared by the controllers that work on it."""

    client: Client
    factory: InformerFactory
    ids: IdSource
    metrics: RuntimeMetrics = field(default_factory=RuntimeMetrics)
    recorder: EventRecorder | None = None
    dry_run: bool = False

    def executor(self, controller: str, overlay: WriteRecorder | None = None) -> Executor:
        """Return the executor of one controller's plans."""
        return Executor(
            self.client,
            controller,
            metrics=self.metrics,
            dry_run=self.dry_run,
            announce=self.recorder.announce if self.recorder else None,
            overlay=overlay,
        )

    def controller(
        self,
        name: str,
        reconciler: Reconciler[K, O],
        queue: WorkQueue[K],
        informers: Sequence[Informer] = (),
        workers: int = WORKERS,
    ) -> Controller[K, O]:
        """Return a controller over *queue* that begins when *informers* are synced."""
        return Controller(
            name,
            reconciler,
            queue,
            ids=self.ids,
            informers=informers,
            workers=workers,
            metrics=self.metrics,
        )

    def queue(self, name: str) -> WorkQueue[K]:
        """Return an empty queue."""
        return WorkQueue(name, ids=self.ids, metrics=self.metrics)
