"""A rollout in words."""

from __future__ import annotations

from typing import Any

from skerry.logic.fleet.rollout.text import history_rows, is_ready, is_stalled, status_lines


def rollout(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "generation": 1}, "status": status}


def condition(kind: str, status: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "R", "message": "why"}


def test_a_rollout_that_nobody_looked_at_says_so() -> None:
    assert "edge scheduler" in status_lines(rollout())[0]


def test_where_a_rollout_stands_comes_first_and_what_is_wrong_after() -> None:
    found = status_lines(
        rollout(
            phase="RolledBack",
            target=42,
            stable=41,
            counts={"destinations": 20, "target": 0, "bad": 1},
            failure={"revision": 42, "reason": "DeadlineExceeded", "message": "1 of 1"},
            verdicts={"failures": [{"location": "oslo", "reason": "X", "message": "no image"}]},
            conditions=[condition("Stalled", "True")],
        )
    )
    assert found[0] == "Rollout web: RolledBack revision 42 (stable: 41)"
    assert found[1] == "  0 of 20 at the target, 1 bad"
    assert any("revision 42 failed: DeadlineExceeded" in line for line in found)
    assert found[-1] == "    oslo: X: no image"


def test_what_a_status_says_is_text_line_by_line() -> None:
    failures = [{"location": "oslo", "reason": "X", "message": "no\x1b[2J image\nall is well"}]
    found = status_lines(rollout(phase="Progressing", verdicts={"failures": failures}))
    assert found[-1] == "    oslo: X: no?[2J image all is well"


def test_conditions_count_once_they_are_about_the_present_wishes() -> None:
    ready = rollout(observedGeneration=1, conditions=[condition("Ready", "True")])
    assert is_ready(ready)
    assert not is_stalled(ready)
    ready["metadata"]["generation"] = 2
    assert not is_ready(ready)


def test_history_is_newest_first_with_roles_and_causes() -> None:
    def revision(number: int, *causes: str, page: int = 1) -> dict[str, Any]:
        items = [{"item": {"resource": "configmaps", "name": name}} for name in causes]
        spec = {"number": number, "items": [1, 2], "causes": items, "page": {"number": page}}
        return {"metadata": {"creationTimestamp": "T"}, "spec": spec}

    rows = history_rows(
        rollout(target=2, stable=1),
        [revision(1), revision(2, "a", "b", "c", "d"), revision(2, page=2)],
    )
    assert [row[0] for row in rows] == ["REVISION", "2", "1"]
    assert rows[1][1:3] == ("Candidate", "target")
    assert rows[1][-1] == "configmaps/a, configmaps/b, configmaps/c and 1 more"
    assert rows[2][-1] == "-"


def pages_of(number: int, *items: int, of: int) -> list[dict[str, Any]]:
    """Return pages of a revision, each with so many items; *of* is how many there should be."""
    return [
        {
            "metadata": {"creationTimestamp": "T"},
            "spec": {"number": number, "items": [{}] * count, "page": {"number": page, "of": of}},
        }
        for page, count in enumerate(items, 1)
    ]


def test_objects_of_all_pages_are_counted() -> None:
    rows = history_rows(None, [*pages_of(2, 1000, 1000, 7, of=3), *pages_of(1, 3, of=1)][::-1])
    assert [row[4] for row in rows] == ["OBJECTS", "2007", "3"]


def test_a_revision_that_lacks_a_page_has_more_objects_than_are_known() -> None:
    first, _, third = pages_of(2, 1000, 1000, 7, of=3)
    assert [row[4] for row in history_rows(None, [first, third])] == ["OBJECTS", "1007+"]
    assert len(history_rows(None, [third])) == 1
    first["spec"]["digest"], third["spec"]["digest"] = "new", "old"
    assert history_rows(None, [first, third])[1][4] == "1000+"


def test_the_wave_is_named_with_its_times_and_nothing_is_said_of_what_is_not_there() -> None:
    wave = {"name": "canary", "opened": "10:00", "quietSince": "10:05"}
    assert status_lines(rollout(phase="Soaking", target=2, stable=1, wave=wave))[1:] == [
        "  wave canary, opened 10:00, quiet since 10:05"
    ]
    everybody = rollout(phase="Progressing", target=2, stable=1, wave={"opened": "10:00"})
    assert status_lines(everybody)[1:] == ["  wave (everybody), opened 10:00"]


def test_a_rollout_that_makes_no_sense_says_why() -> None:
    found = status_lines(rollout(phase="Settling", conditions=[condition("Valid", "False")]))
    assert found[-1] == "  Valid=False R: why"
