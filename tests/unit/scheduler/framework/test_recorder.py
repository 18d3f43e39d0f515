"""Whoever measures nothing is asked the same and forgets it."""

from __future__ import annotations

import inspect

from skerry.scheduler.framework.recorder import NoRecorder, Recorder
from skerry.scheduler.metrics import SchedulerMetrics


def test_both_recorders_take_what_the_runner_reports() -> None:
    recorders: list[Recorder] = [NoRecorder(), SchedulerMetrics()]
    for recorder in recorders:
        recorder.point("Filter", "Success", "p", 0.1)
        recorder.plugin("Fit", "Filter", "Success", 0.1)
        recorder.evaluated("Fit", "Filter", "p")
        recorder.evaluated("Fit", "Filter", "p", 5)


def test_they_take_it_under_the_same_names() -> None:
    for name in ("point", "plugin", "evaluated"):
        signatures = {
            tuple(inspect.signature(getattr(kind, name)).parameters)
            for kind in (NoRecorder, SchedulerMetrics)
        }
        assert len(signatures) == 1
