"""A server may have as many connections as the system allows it open files."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from skerry.app.open_files import raise_open_files


@pytest.fixture
def hard() -> Iterator[int]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_low_limit_is_raised_to_what_is_allowed(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    raise_open_files()
    soft, after = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == (1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16))
    assert after == hard


def test_a_limit_that_will_do_is_left_alone(hard: int) -> None:
    raise_open_files()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_open_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
