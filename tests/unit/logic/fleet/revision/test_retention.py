"""Nothing that is named ever goes, and what nobody names goes within two sweeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.revision.retention import SWEEP_SECONDS, sweep
from tests.kit.chain import revisions
from tests.kit.chain.revisions import manifest, pages

_used = st.sets(st.integers(1, 12))


@given(
    st.lists(revisions.contents, max_size=12), _used, _used, st.integers(0, 3), st.integers(1, 12)
)
def test_a_sweep_never_removes_what_is_named(
    states: list[dict[str, bytes]],
    used: set[int],
    pinned: set[int],
    history: int,
    cut_last: int,
) -> None:
    found = [
        page._replace(pinned=number in pinned)
        for number, state in enumerate(states, 1)
        for page in pages(manifest(state), number, 99 if number == cut_last else number)
    ]
    contents = {("c", name) for state in states for name in manifest(state).names}
    stray = ("c", "stray")
    first = sweep({"c": found}, {*contents, stray}, {("c", "web"): used}, {}, 0, history)
    gone = {page.number for _, page in first.pages}
    numbers = range(1, len(states) + 1)
    last = list(numbers)[max(0, len(states) - history) :]
    kept = {*used, *pinned, min(cut_last, len(states)), *last}
    assert gone == set(numbers) - kept
    assert first.contents == ()
    left = [page for page in found if page.number not in gone]
    early = sweep({"c": left}, contents, {("c", "web"): used}, first.unnamed, 60, history)
    assert early.contents == ()
    second = sweep(
        {"c": left}, {*contents, stray}, {("c", "web"): used}, first.unnamed, SWEEP_SECONDS, history
    )
    named = {("c", each.digest) for page in left for each in page.items}
    assert second.pages == ()
    assert set(second.contents) == ({*contents, stray} - named)
    assert second.unnamed == {}


def test_what_was_named_between_two_sweeps_begins_to_wait_anew() -> None:
    found = pages(manifest({"a": b"1"}), 1)
    [name] = manifest({"a": b"1"}).names
    first = sweep({}, [("c", name)], {}, {}, 0)
    assert first.unnamed == {("c", name): 0}
    assert sweep({"c": found}, [("c", name)], {}, first.unnamed, SWEEP_SECONDS).unnamed == {}


def test_another_workspaces_revision_keeps_no_content() -> None:
    found = pages(manifest({"a": b"1"}), 1)
    [name] = manifest({"a": b"1"}).names
    plan = sweep({"other": found}, [("c", name)], {}, {("c", name): 0}, SWEEP_SECONDS)
    assert plan.contents == (("c", name),)


def test_the_first_page_goes_before_the_others() -> None:
    first, *_ = pages(manifest({"a": b"1"}), 1)
    more = [first._replace(name="web-1.2", page=2, sequence=0), first]
    newer = pages(manifest({"a": b"2"}), 2)
    plan = sweep({"c": [*more, *newer]}, (), {}, {}, 0, history=1)
    assert [page.name for _, page in plan.pages] == ["web-1", "web-1.2"]
