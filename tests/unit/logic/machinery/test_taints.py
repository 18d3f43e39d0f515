"""Which taints a toleration is for."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    REPELLING,
    Taint,
    Toleration,
    first_untolerated,
    taints_of,
    tolerations_of,
    untolerated,
)

TAINT = Taint("k", "v", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Equal", "v", ""), True),
        (Toleration("k", "", "v", ""), True),
        (Toleration("k", "Equal", "w", ""), False),
        (Toleration("k", "Exists", "", ""), True),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "Equal", "v", ""), False),
        (Toleration("other", "Exists", "", ""), False),
        (Toleration("k", "Exists", "", NO_EXECUTE), False),
        (Toleration("k", "Exists", "", NO_SCHEDULE), True),
        (Toleration("k", "Unheard", "v", ""), False),
    ],
)
def test_key_operator_value_and_effect_decide(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(TAINT) is tolerated


def test_only_taints_of_the_effects_asked_for_count() -> None:
    mild, hard = Taint("a", "", PREFER_NO_SCHEDULE), Taint("b", "", NO_EXECUTE)
    assert first_untolerated((mild, hard), (), REPELLING) == hard
    assert list(untolerated((mild, hard), (), {PREFER_NO_SCHEDULE})) == [mild]
    assert first_untolerated((mild, hard), (Toleration("b", "Exists", "", ""),), REPELLING) is None


def test_they_are_read_from_specs_whose_fields_may_be_missing() -> None:
    assert taints_of([{"key": "k", "effect": "NoSchedule"}]) == (Taint("k", "", NO_SCHEDULE),)
    assert tolerations_of([{"operator": "Exists"}]) == (Toleration("", "Exists", "", ""),)
    assert (taints_of(None), tolerations_of(None)) == ((), ())


def test_a_taint_is_written_as_kubectl_and_as_the_scheduler_write_it() -> None:
    assert (TAINT.text, str(TAINT)) == ("k=v:NoSchedule", "{k: v}")
    assert Taint("k", "", NO_EXECUTE).text == "k:NoExecute"
