"""One object out of everybody who wants it, and what is reported to them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.merging import (
    CONFLICTING_OBJECTS,
    LOCATIONS_DISAGREE,
    Origin,
    Way,
    merged,
)

PAGE = ObjectRef("", "", "configmaps", "shop", "page")


def _copy(data: str, **notes: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "page", "namespace": "shop"}
    if notes:
        metadata["annotations"] = {
            f"edge.kcp.io/{k.replace('_', '-')}": v for k, v in notes.items()
        }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": data}}


def _way(cluster: str, location: str = "florin", placement: str = "p") -> Way:
    return Way(edge_placement_ref(cluster, placement), location_ref("imw", location))


def _origin(cluster: str, version: str, data: str, *ways: Way, **notes: str) -> Origin:
    found = ways or (_way(cluster),)
    locations = tuple(
        (way.location, {"metadata": {"labels": {"loc": way.location.name}}}) for way in found
    )
    return Origin(cluster, version, _copy(data, **notes), found, None, locations)


def test_the_only_origin_is_sent_marked_as_a_copy() -> None:
    result = merged(PAGE, [_origin("one", "5", "v")])
    assert result.object is not None
    assert result.object["data"] == {"k": "v"}
    assert result.object["metadata"]["labels"] == {"edge.kcp.io/projected": "yes"}
    assert result.problems == ()


def test_the_newest_counts_by_number_and_both_sides_hear_of_it() -> None:
    result = merged(PAGE, [_origin("one", "10", "new"), _origin("two", "9", "old")])
    assert result.object is not None
    assert result.object["data"] == {"k": "new"}
    assert [(each.placement.cluster, each.problem.reason) for each in result.problems] == [
        ("one", CONFLICTING_OBJECTS),
        ("two", CONFLICTING_OBJECTS),
    ]
    assert result.problems[0].problem.message == (
        "configmaps shop/page of EdgePlacement one|p is newer than, and sent instead of, "
        "that of EdgePlacement two|p"
    )


def test_equal_objects_are_no_conflict() -> None:
    assert merged(PAGE, [_origin("one", "10", "v"), _origin("two", "9", "v")]).problems == ()


def test_of_equally_new_ones_the_first_cluster_counts() -> None:
    result = merged(PAGE, [_origin("b", "7", "b"), _origin("a", "7", "a")])
    assert result.object is not None
    assert result.object["data"] == {"k": "a"}


def test_a_withheld_object_makes_room_for_an_older_one() -> None:
    missing = _origin("one", "10", "new", customizer="lost")
    result = merged(PAGE, [missing, _origin("two", "9", "old")])
    assert result.object is not None
    assert result.object["data"] == {"k": "old"}
    assert [each.placement.cluster for each in result.problems] == ["one"]


def test_several_locations_of_one_sync_target_are_served_the_first_by_name() -> None:
    ways = (_way("one", "florin"), _way("one", "default"))
    result = merged(PAGE, [_origin("one", "1", "at %(loc)", *ways, expand_parameters="true")])
    assert result.object is not None
    assert result.object["data"] == {"k": "at default"}
    assert [each.problem.reason for each in result.problems] == [LOCATIONS_DISAGREE]
    same = merged(PAGE, [_origin("one", "1", "anywhere", *ways, expand_parameters="true")])
    assert same.problems == ()


ORIGINS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 5), st.sampled_from("xy")),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each[0],
)


@given(ORIGINS, st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_the_order_of_origins(
    found: list[tuple[str, int, str]], random: Any
) -> None:
    origins = [_origin(cluster, str(version), data) for cluster, version, data in found]
    shuffled = list(origins)
    random.shuffle(shuffled)
    assert merged(PAGE, shuffled) == merged(PAGE, origins)
    assert bool(merged(PAGE, origins).problems) == (len({data for _, _, data in found}) > 1)
