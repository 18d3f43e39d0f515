"""An executor that says on the owner why its pods could not be made.

A quota that is used up, an admission that refuses: the controller tries again and again, and the
user would see nothing but missing pods. kube-controller-manager records ``FailedCreate``; so do we.
Owners that have a condition for it get that too.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import ApiError, Conflict
from skerry.api.objects import Object
from skerry.logic.machinery.plan import Announcement, Create, Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.execute import Announce, Executor, Outcome, WriteRecorder

Refused = Callable[[Object, str], Plan]
"""What to write on an owner whose pods were refused, and for what reason."""


class EventRecordingExecutor(Executor):
    """Records an Event about the owner when a creation is refused; then fails as any other."""

    def __init__(
        self,
        context: ControllerContext,
        controller: str,
        announce: Announce,
        overlay: WriteRecorder | None,
        refused: Refused | None = None,
    ) -> None:
        super().__init__(
            context.client,
            controller,
            metrics=context.metrics,
            dry_run=context.dry_run,
            announce=announce,
            overlay=overlay,
        )
        self._record = announce
        self._refused = refused

    async def execute(self, plan: Plan) -> list[Outcome]:
        try:
            return await super().execute(plan)
        except Conflict:
            raise  # losing a race is no refusal
        except ApiError as error:
            creates = any(isinstance(action, Create) for action in plan)
            if creates and plan.announcements:
                about = plan.announcements[0].about
                text = f"Error creating: {error}"
                self._record(Announcement(about, "Warning", "FailedCreate", text))
                if self._refused is not None:
                    await super().execute(self._refused(about, str(error)))
            raise


def event_recording_executor(
    context: ControllerContext,
    controller: str,
    overlay: WriteRecorder | None = None,
    refused: Refused | None = None,
) -> Executor:
    """Return the executor of a controller that makes pods."""
    if context.recorder is None:
        return context.executor(controller, overlay)
    return EventRecordingExecutor(context, controller, context.recorder.announce, overlay, refused)
