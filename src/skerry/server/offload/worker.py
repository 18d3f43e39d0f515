"""A worker process: reads jobs from standard input, answers on standard output, ends with it.

It limits itself before it reads anything. A job that needs more time or memory than it may have
is refused, and the worker ends: the next one starts clean. Its last answer says that it is.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Final

from skerry.api.errors import RequestEntityTooLarge
from skerry.kit import log as logging
from skerry.logic.machinery.resource import Extend, as_is
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.offload.framing import HEAD, framed, length
from skerry.server.offload.jobs import Jobs
from skerry.server.offload.messages import Job, Missing, Refused, Result, decode_job, encode
from skerry.server.preparation.pipeline import NoStamp, Preparation, Stamp

# A worker that once needed more than this part of its memory is replaced: what Python has taken
# from the system it seldom gives back.
_RECYCLED_PART: Final = 4
_STATUS: Final = Path("/proc/self/status")
_STAMPS: Final[dict[str, type[Stamp]]] = {"none": NoStamp, "cluster": ClusterStamp}


class TooExpensive(BaseException):
    """The job has used up its time; no handler of ordinary errors may stop this one."""


def limit(memory_bytes: int) -> None:
    """Take as little as the work needs, and yield to the server."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    # Ctrl-C in a terminal reaches every process; the server decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def max_resident_bytes() -> int:
    """Return the most memory that this process ever had.

    ``ru_maxrss`` is no answer: it begins with what the process had that started this one, so that
    every worker of a large server would seem to have needed as much as the server.
    """
    for line in _STATUS.read_bytes().splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _expire(_signal: int, _frame: FrameType | None) -> None:
    raise TooExpensive


class Worker:
    """Does jobs one after the other."""

    def __init__(self, jobs: Jobs, cpu_seconds: float, memory_bytes: int) -> None:
        self._jobs = jobs
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self.spent = False

    def do(self, job: Job) -> Result:
        """Return how *job* ends; ``spent`` when the worker should end with it."""
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self._cpu_seconds)
        try:
            result = self._jobs.do(job)
        except TooExpensive:
            result = self._refused(f"needs more than {self._cpu_seconds:g} s of CPU time")
        except MemoryError:
            result = self._refused(f"needs more than {self._memory_bytes} bytes of memory")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if not isinstance(result, Missing):
            result.cpu_seconds = time.process_time() - began
        self.spent = self.spent or max_resident_bytes() > self._memory_bytes // _RECYCLED_PART
        result.spent = self.spent
        return result

    def _refused(self, why: str) -> Refused:
        self.spent = True
        error = RequestEntityTooLarge(f"Request entity too large: what was sent {why}")
        return Refused(error.code, error.status())


def serve(worker: Worker, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until there are no more, or the worker is spent."""
    while not worker.spent:
        head = requests.read(HEAD)
        if len(head) < HEAD:
            return
        job = decode_job(requests.read(length(head)))
        answers.write(framed(encode(worker.do(job))))
        answers.flush()


def main(extend: Extend = as_is, arguments: Sequence[str] | None = None) -> None:
    """Run a worker as its server asks; types have what *extend* adds, as they have there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-bytes", type=int, required=True)
    parser.add_argument("--cpu-seconds", type=float, required=True)
    parser.add_argument("--stamp", choices=sorted(_STAMPS), required=True)
    parser.add_argument("--log-format", choices=["text", "json"], default="text")
    wanted = parser.parse_args(arguments)
    logging.configure(format=wanted.log_format)
    limit(wanted.memory_bytes)
    signal.signal(signal.SIGPROF, _expire)
    # What JSON makes has no cycles; collections would look at all of it again and again.
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
    jobs = Jobs(Preparation(_STAMPS[wanted.stamp]()), extend)
    answers = sys.stdout.buffer
    # Nothing else may write where answers are read.
    sys.stdout = sys.stderr
    serve(Worker(jobs, wanted.cpu_seconds, wanted.memory_bytes), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
