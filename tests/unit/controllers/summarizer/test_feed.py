"""One feed for all who share it: one of them runs it, and the next takes over."""

from __future__ import annotations

import asyncio

import pytest

from skerry.controllers.summarizer.feed import FeedViews, Signal, StatusFeed
from tests.kit.chain.summarizer_inputs import Hub


def test_a_signal_reaches_everybody_who_subscribed() -> None:
    signal: Signal[str] = Signal()
    one, other = list[str](), list[str]()
    signal("early")
    signal.subscribe(one.append)
    signal.subscribe(other.append)
    signal("late")
    assert one == other == ["late"]


async def test_who_waits_runs_the_feed_when_its_runner_stops() -> None:
    context = Hub().context
    feed = StatusFeed(FeedViews(context, context.factory, context.factory))
    first = asyncio.create_task(feed.run())
    second = asyncio.create_task(feed.run())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
