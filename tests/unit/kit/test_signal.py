"""Signals call who was connected, in order."""

from __future__ import annotations

from skerry.kit.signal import Signal


def test_handlers_are_called_in_the_order_of_their_connection() -> None:
    signal, heard = Signal[[str, int]](), list[str]()
    signal.send("nobody", 0)
    signal.connect(lambda text, number: heard.append(f"one {text} {number}"))
    signal.connect(lambda text, number: heard.append(f"two {text} {number}"))
    signal.send("hello", 7)
    assert heard == ["one hello 7", "two hello 7"]
