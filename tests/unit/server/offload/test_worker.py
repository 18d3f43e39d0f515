"""A worker answers job after job, refuses what costs too much, and ends when it is spent."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from skerry.server.offload import worker as module
from skerry.server.offload.framing import HEAD, framed, length
from skerry.server.offload.messages import (
    NOTHING,
    Done,
    Job,
    Missing,
    Refused,
    Result,
    decode_result,
    encode,
)
from skerry.server.offload.worker import TooExpensive, Worker, max_resident_bytes, serve
from skerry.server.request.info import RequestInfo
from skerry.server.request.options import WriteOptions

JOB = Job([], RequestInfo("/", "get"), "", {}, b"", WriteOptions(), NOTHING)
PLENTY = 1 << 40


class Jobs:
    """Does what a test says."""

    def __init__(self, *results: Callable[[], Result]) -> None:
        self._results = list(results)

    def do(self, job: Job) -> Result:
        return self._results.pop(0)()


def worker(*results: Callable[[], Result], memory_bytes: int = PLENTY) -> Worker:
    return Worker(Jobs(*results), 10.0, memory_bytes)  # type: ignore[arg-type]


def raising(error: BaseException) -> Callable[[], Result]:
    def fail() -> Result:
        raise error

    return fail


def served(made: Worker, jobs: int, cut: int = 0) -> list[Result]:
    sent = framed(encode(JOB)) * jobs
    answers = io.BytesIO()
    serve(made, io.BytesIO(sent[: len(sent) - cut]), answers)
    answers.seek(0)
    found = []
    while head := answers.read(HEAD):
        found.append(decode_result(answers.read(length(head))))
    return found


def test_jobs_are_answered_in_turn_until_there_are_no_more() -> None:
    found = served(worker(lambda: Done(b"1"), lambda: Done(b"2")), 2)
    assert [each.text for each in found if isinstance(each, Done)] == [b"1", b"2"]
    assert not any(each.spent for each in found)


@pytest.mark.parametrize(
    ("error", "why"), [(TooExpensive(), "10 s of CPU time"), (MemoryError(), "bytes of memory")]
)
def test_a_job_that_costs_too_much_is_refused_and_is_the_last(
    error: BaseException, why: str
) -> None:
    found = served(worker(raising(error), lambda: Done(b"2")), 2)
    [refused] = found
    assert isinstance(refused, Refused)
    assert (refused.code, refused.spent) == (413, True)
    assert why in refused.status["message"]


def test_no_handler_of_ordinary_errors_stops_a_job_from_being_ended() -> None:
    assert not issubclass(TooExpensive, Exception)


def test_a_worker_that_needed_much_memory_once_ends_with_its_answer() -> None:
    [last] = served(worker(lambda: Done(b"1"), lambda: Done(b"2"), memory_bytes=4096), 2)
    assert isinstance(last, Done)
    assert (last.text, last.spent) == (b"1", True)


def test_what_a_job_took_is_said_but_of_one_that_lacks_something() -> None:
    done = worker(lambda: Done(b"1", cpu_seconds=-1.0)).do(JOB)
    assert isinstance(done, Done)
    assert done.cpu_seconds >= 0
    assert isinstance(worker(lambda: Missing(["k"])).do(JOB), Missing)


def test_a_head_that_is_cut_off_ends_the_worker_quietly() -> None:
    whole = len(framed(encode(JOB)))
    assert len(served(worker(lambda: Done(b"1")), 2, cut=whole - 1)) == 1


def test_the_memory_is_that_of_this_process_alone() -> None:
    assert 1 << 20 < max_resident_bytes() < 1 << 40


def test_the_stamps_are_those_a_server_can_ask_for() -> None:
    assert set(module._STAMPS) == {"none", "cluster"}
