"""What watchers ask of a change is worked out once, and not kept for longer than they need it."""

from __future__ import annotations

import orjson

from skerry.server.change import Change, Form
from skerry.store.base import Event

OLD = orjson.dumps({"metadata": {"name": "a", "labels": {"v": "1"}}})
NEW = orjson.dumps({"metadata": {"name": "a", "labels": {"v": "2"}}})


class Rendering:
    """A form that counts how often it was asked for."""

    def __init__(self) -> None:
        self.times = 0
        self.form = Form(key="plain", render=self._render)

    def _render(self, value: bytes, revision: int) -> bytes:
        self.times += 1
        return b'{"of":%b,"at":%d}' % (value, revision)


def test_a_change_is_an_addition_a_modification_or_a_deletion() -> None:
    assert Change(Event(1, "/a", NEW, None, 0)).type() == "ADDED"
    assert Change(Event(2, "/a", NEW, OLD, 1)).type() == "MODIFIED"
    assert Change(Event(3, "/a", None, OLD, 2)).type() == "DELETED"


def test_a_line_is_made_once_for_all_watchers_of_one_form() -> None:
    rendering, change = Rendering(), Change(Event(2, "/a", NEW, OLD, 1))
    lines = {change.frame(rendering.form, "MODIFIED") for _ in range(3)}
    assert lines == {b'{"type":"MODIFIED","object":{"of":%b,"at":2}}\n' % NEW}
    assert rendering.times == 1


def test_what_no_longer_matches_is_shown_as_it_last_was_at_the_revision_of_the_change() -> None:
    rendering, change = Rendering(), Change(Event(2, "/a", NEW, OLD, 1))
    line = change.frame(rendering.form, "DELETED")
    assert line == b'{"type":"DELETED","object":{"of":%b,"at":2}}\n' % OLD


def test_a_remembered_change_keeps_no_lines_and_makes_them_again() -> None:
    rendering, change = Rendering(), Change(Event(2, "/a", NEW, OLD, 1))
    first = change.frame(rendering.form, "MODIFIED")
    change.shed()
    assert not change._frames
    assert change.frame(rendering.form, "MODIFIED") == first
    assert rendering.times == 2
