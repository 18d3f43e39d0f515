"""What holds for every test: how properties are tried, and which tests begin.

The examples are the same in every run, so that a run tells of the change under test and of
nothing else, and no example is judged by the time it took, which on a busy machine says nothing.
``pytest --hypothesis-profile=explore tests/unit`` tries other and many more examples.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

_ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", _ANY_PACE, max_examples=30, derandomize=True)
settings.register_profile("explore", _ANY_PACE, max_examples=1000)
settings.load_profile("suite")

# A shell starts what runs in its background with interrupts ignored, and so would be whatever the
# tests start and interrupt. A signal that is handled is not ignored in a child.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is marked as long: at the end, one worker would be at it alone."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
