"""What holds for every test: how properties are tried, and which tests begin.

The examples are the same in every run, so that a run tells of the change under test and of
nothing else, and no example is judged by the time it took, which on a busy machine says nothing.
``pytest --hypothesis-profile=explore tests/unit`` tries other and many more examples.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# Unit tests that a worker is given at once.
_AT_A_TIME = 16
_ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", _ANY_PACE, max_examples=30, derandomize=True)
settings.register_profile("explore", _ANY_PACE, max_examples=1000)
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is marked as long, and keep together what shares something.

    At the end, one worker would be at a long test alone. A server that the tests of a module share
    is started by each worker that gets one of them, so one worker gets them all. Unit tests are
    handed out some at a time, because a message for each would cost as much as the test.
    """
    items.sort(key=_rank)
    seen: Counter[str] = Counter()
    for item in items:
        module = item.nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
        if _shares(item):
            item.add_marker(pytest.mark.xdist_group(module))
        elif _is_unit(item):
            item.add_marker(pytest.mark.xdist_group(f"{module}-{seen[module] // _AT_A_TIME}"))
            seen[module] += 1


def _rank(item: pytest.Item) -> int:
    if item.get_closest_marker("long") is not None:
        return 0
    return 2 if _is_unit(item) else 1


def _is_unit(item: pytest.Item) -> bool:
    return item.nodeid.startswith("tests/unit/")


def _shares(item: pytest.Item) -> bool:
    """Tell whether a test uses what is made once for its module."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info is not None else ()
    return any(found[-1].scope == "module" for found in definitions if found)
