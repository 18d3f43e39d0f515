"""The reference reads plain objects."""

from __future__ import annotations

from skerry.logic.fleet.translation.reference_inputs import Sources, placed_in
from tests.kit.chain.translator_world import A, cluster_object


def test_placements_go_where_their_slices_say_at_the_revisions_they_say() -> None:
    entry = {
        "cluster": A.cluster,
        "locationName": "l",
        "syncTargetName": "t",
        "syncTargetUID": A.uid,
        "revision": 4,
    }
    placements = [
        cluster_object("one", "p", spec={}),
        cluster_object("one", "bad", spec={"namespaceSelector": {"matchLabels": {"-": "x"}}}),
    ]
    slices = [cluster_object("one", "p", destinations=[entry])]
    good, bad = placed_in(Sources((), {}, placements, slices))
    assert good.what is not None
    assert (list(good.where), dict(good.revisions)) == ([A], {A: 4})
    assert (dict(bad.where), dict(bad.revisions)) == ({}, {})
