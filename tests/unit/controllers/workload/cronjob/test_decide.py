"""Plans of CronJobs: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.controllers.workload.cronjob import decide as cronjob
from skerry.controllers.workload.cronjob.observe import Observed as ObservedCronJob
from skerry.logic.machinery.plan import Create, Plan
from tests.kit.workload_objects import NOW, template


class TestCronJob:
    def cron(self, **spec: Any) -> Object:
        return {
            "metadata": {
                "name": "c",
                "namespace": "ns",
                "uid": "u",
                "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T11:00:00Z",
            },
            "spec": {
                "schedule": "*/10 * * * *",
                "jobTemplate": {"spec": {"template": template()}},
                **spec,
            },
        }

    def names(self, plan: Plan) -> list[str]:
        return [action.target.name for action in plan if isinstance(action, Create)]

    def test_of_many_missed_times_the_latest_is_made_up_for(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(), ()), NOW)
        minutes = int(NOW.timestamp()) // 60
        assert self.names(plan) == [f"c-{minutes}"]
        assert plan.requeue_after_seconds == pytest.approx(600.1)

    def test_what_was_missed_by_more_than_the_deadline_is_not_started(self) -> None:
        late = NOW + timedelta(minutes=5)
        plan = cronjob.decide(ObservedCronJob(self.cron(startingDeadlineSeconds=60), ()), late)
        assert self.names(plan) == []

    def test_a_clock_that_jumped_by_years_still_starts_one_job(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(), ()), NOW + timedelta(days=700))
        assert len(self.names(plan)) == 1
        assert "TooManyMissedTimes" in [announcement.reason for announcement in plan.announcements]

    def test_a_schedule_that_makes_no_sense_is_reported(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(timeZone="No/Where"), ()), NOW)
        assert [announcement.reason for announcement in plan.announcements] == [
            "UnparseableSchedule"
        ]

    def test_a_schedule_that_never_comes_is_reported(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(schedule="59 23 31 2 *"), ()), NOW)
        assert [(each.type, each.reason, each.message) for each in plan.announcements] == [
            (
                "Warning",
                "InvalidSchedule",
                (
                    "invalid schedule: 59 23 31 2 * : "
                    "time difference between two schedules is less than 1 second"
                ),
            )
        ]
        assert plan.requeue_after_seconds is None

    def job(self, name: str, condition: str = "", *, ours: bool = True) -> Object:
        scheduled = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T11:50:00Z"}
        return {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T11:50:00Z",
                "annotations": scheduled if ours else {},
            },
            "status": {"conditions": [{"type": condition, "status": "True"}] if condition else []},
        }

    def announced(self, active: tuple[str, ...], *jobs: Object) -> list[tuple[str, str, str]]:
        cron = self.cron(suspend=True)
        cron["status"] = {"active": [{"name": name, "uid": f"uid-{name}"} for name in active]}
        plan = cronjob.decide(ObservedCronJob(cron, jobs), NOW)
        return [(each.type, each.reason, each.message) for each in plan.announcements]

    def test_a_job_that_went_missing_is_reported(self) -> None:
        text = "Active job went missing: a"
        assert self.announced(("a",)) == [("Normal", "MissingJob", text)]
        assert self.announced(("a",), self.job("a")) == []

    @pytest.mark.parametrize("condition", ["Complete", "Failed"])
    def test_a_job_that_ended_is_reported_once(self, condition: str) -> None:
        ended = self.job("a", condition)
        text = f"Saw completed job: a, condition: {condition}"
        assert self.announced(("a",), ended) == [("Normal", "SawCompletedJob", text)]
        assert self.announced((), ended) == []

    def test_a_job_that_somebody_else_made_is_reported(self) -> None:
        text = "Saw a job that the controller did not create or forgot: a"
        other = self.job("a", ours=False)
        assert self.announced((), other) == [("Warning", "UnexpectedJob", text)]
        assert self.announced(("a",), other) == []
        assert self.announced((), self.job("a")) == []
