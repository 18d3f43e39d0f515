"""The summarizer's feed is what this controller asks for."""

from __future__ import annotations

from skerry.controllers.status_queries.feed import Feed
from skerry.controllers.summarizer.feed import FeedViews, StatusFeed
from tests.kit.chain.summarizer_inputs import Hub


def test_the_status_feed_has_what_is_asked_of_it() -> None:
    context = Hub().context
    feed: Feed = StatusFeed(FeedViews(context, context.factory, context.factory))
    assert feed.inputs.mailbox_uid("nowhere") == ""
    assert feed.watches.revision(("apps", "deployments")) == 0  # type: ignore[arg-type]
