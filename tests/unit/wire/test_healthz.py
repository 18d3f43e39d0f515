"""What probes are answered, line by line."""

from __future__ import annotations

import pytest

from skerry.wire.healthz import WITHHELD, Checked, answer


def test_when_all_is_well_the_answer_is_ok_unless_somebody_asks_for_more() -> None:
    checks = [Checked("ping"), Checked("store")]
    assert answer("livez", checks, verbose=False) == (200, b"ok")
    assert answer("livez", checks, verbose=True) == (
        200,
        b"[+]ping ok\n[+]store ok\nlivez check passed\n",
    )


@pytest.mark.parametrize("verbose", [True, False])
def test_a_failure_lists_every_check_whoever_asks(verbose: bool) -> None:
    checks = [Checked("ping"), Checked("store", WITHHELD)]
    assert answer("readyz", checks, verbose=verbose) == (
        500,
        b"[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n",
    )


def test_what_was_not_asked_is_neither_well_nor_unwell() -> None:
    checks = [Checked("store", excluded=True)]
    warning = 'warn: some health checks cannot be excluded: no matches for "x"\n'
    assert answer("healthz", checks, verbose=False, warning=warning) == (200, b"ok")
    assert answer("healthz", checks, verbose=True, warning=warning) == (
        200,
        f"[+]store excluded: ok\n{warning}healthz check passed\n".encode(),
    )
