"""Which versions of etcd are warned of."""

from __future__ import annotations

import pytest

from skerry.store.etcd_version import keeps_what_it_acknowledges


@pytest.mark.parametrize("version", ["3.4.21", "3.4.37", "3.5.5", "3.5.21", "3.6.0", "4.0.0"])
def test_a_version_that_syncs_before_it_answers_is_trusted(version: str) -> None:
    assert keeps_what_it_acknowledges(version)


@pytest.mark.parametrize("version", ["2.3.8", "3.3.27", "3.4.20", "3.5.0", "3.5.1", "3.5.4"])
def test_a_version_that_may_lose_what_it_answered_is_not(version: str) -> None:
    assert not keeps_what_it_acknowledges(version)


@pytest.mark.parametrize("version", ["", "unknown", "v3", "3.5"])
def test_a_version_that_cannot_be_read_is_believed(version: str) -> None:
    assert keeps_what_it_acknowledges(version)


def test_a_release_candidate_is_judged_by_its_number() -> None:
    assert not keeps_what_it_acknowledges("3.5.0-rc.1")
