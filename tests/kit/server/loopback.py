"""Jobs done in the process of the test, through the messages that a worker would be sent."""

from __future__ import annotations

from skerry.server.offload.jobs import Jobs
from skerry.server.offload.messages import (
    Job,
    Missing,
    Refused,
    Result,
    decode_job,
    decode_result,
    encode,
)
from skerry.server.offload.offload import Offload, OffloadSettings
from skerry.server.preparation.pipeline import Preparation, Stamp
from skerry.server.user import User

# Everything is heavy.
EAGER = OffloadSettings(light_bytes=-1, values=-1, bytes=-1)


class Loopback:
    """Does jobs at once, and remembers which."""

    def __init__(self, stamp: Stamp | None = None) -> None:
        self._jobs = Jobs(Preparation(stamp))
        self.done: list[str] = []
        self.refused = 0
        self.missing = 0

    async def run(self, job: Job, user: User) -> Result:
        result = decode_result(encode(self._jobs.do(decode_job(encode(job)))))
        self.done.append(type(job.task).__name__)
        self.refused += isinstance(result, Refused)
        self.missing += isinstance(result, Missing)
        return result

    async def serve(self) -> None:
        return None


def eager() -> Offload:
    """Return what has everything done elsewhere."""
    return Offload(Loopback(), EAGER)
