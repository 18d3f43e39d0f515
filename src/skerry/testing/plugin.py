"""Fixtures that pytest finds where skerry is installed.

``skerry_server`` is a server of the test's own; ``skerry_session_server`` one that all tests of a
session share, for suites that keep apart by namespaces. Both give a ``skerry.testing.TestServer``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skerry.testing import TestServer, api_server


@pytest.fixture
def skerry_server() -> Iterator[TestServer]:
    """A real API server for one test."""
    with api_server() as server:
        yield server


@pytest.fixture(scope="session")
def skerry_session_server() -> Iterator[TestServer]:
    """A real API server, with the core controllers, for all tests of a session."""
    with api_server(controllers="core") as server:
        yield server
