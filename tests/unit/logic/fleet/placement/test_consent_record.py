"""A LocationConsent has two writers, and takes each confirmation once."""

from __future__ import annotations

from typing import Any

from skerry.logic.fleet.placement.consent_record import (
    MAX_ENTRIES,
    Confirmation,
    confirmed_ids,
    entries,
    is_enforced,
    new_record,
    with_confirmations,
    with_part,
    without_ids,
)


def record(**more: Any) -> dict[str, Any]:
    return {**new_record("imw"), **more}


def annotated(text: str) -> dict[str, Any]:
    made = record()
    made["metadata"]["annotations"]["edge.kcp.io/confirm"] = text
    return made


def test_ids_are_read_once_each_whatever_stands_between_them() -> None:
    assert confirmed_ids(annotated(" d-1, o-2 ,,d-1,")) == ["d-1", "o-2"]
    assert confirmed_ids(record()) == confirmed_ids(None) == []


def test_a_writer_takes_its_own_ids_and_leaves_the_others() -> None:
    before = annotated("d-1,o-2,open-3")
    after = without_ids(before, ["d-1", "open-3"])
    assert confirmed_ids(after) == ["o-2"]
    assert confirmed_ids(before) == ["d-1", "o-2", "open-3"], "what was cached is unchanged"
    assert "edge.kcp.io/confirm" not in without_ids(after, ["o-2"])["metadata"]["annotations"]


def test_confirmations_are_noted_newest_first_and_the_oldest_forgotten() -> None:
    made = record()
    for number in range(25):
        taken = [Confirmation(f"d-{number}", "Remove", "root:shop", 3)]
        made = with_confirmations(made, taken, "2030-01-01T00:00:00Z")
    assert len(made["confirmations"]) == 20
    assert made["confirmations"][0] == {
        "id": "d-24",
        "time": "2030-01-01T00:00:00Z",
        "action": "Remove",
        "workspace": "root:shop",
        "count": 3,
    }
    opened = with_confirmations(made, [Confirmation("open-1", "Open")], "t")
    assert opened["confirmations"][0] == {"id": "open-1", "time": "t", "action": "Open"}


def test_each_part_is_replaced_alone_and_all_that_waits_is_counted() -> None:
    made = with_part(record(opening={"id": "open-1"}), "destinations", entries([], [{"id": "d-1"}]))
    assert made["held"] == 2
    made = with_part(made, "objects", entries([], [{"id": "o-1"}, {"id": "o-2"}]))
    assert made["held"] == 4
    assert made["destinations"] == {"held": [{"id": "d-1"}]}
    assert with_part(made, "objects", {})["held"] == 2


def test_long_lists_are_cut_and_counted() -> None:
    found = entries([{"n": n} for n in range(MAX_ENTRIES + 3)], [])
    assert len(found["refused"]) == MAX_ENTRIES
    assert found["refusedOmitted"] == 3
    assert "held" not in found


def test_only_the_mode_says_that_a_workspace_is_enforced() -> None:
    assert is_enforced(record(mode="Enforce"))
    assert not is_enforced(record())
    assert not is_enforced(None)
