"""One object out of everybody who wants it, and what is reported to them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.edge_identity import BOOTSTRAP_TYPE
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import IDENTITY_REPLACED
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.merging import (
    LOCATIONS_DISAGREE,
    NAME_TAKEN,
    NEVER_COPIED,
    Copy,
    Merged,
    Origin,
    Surroundings,
    Way,
    merged,
)
from skerry.logic.fleet.translation.ownership import Claim, Owned

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


def _origin(cluster: str, created: str, data: str, *ways: Way, **notes: str) -> Origin:
    found = ways or (_way(cluster),)
    locations = tuple(
        (way.location, {"metadata": {"labels": {"loc": way.location.name}}}) for way in found
    )
    return Origin(Claim(cluster, created), _copy(data, **notes), found, None, locations)


def test_the_only_origin_is_sent_marked_as_a_copy() -> None:
    result = merged(PAGE, [_origin("one", "5", "v")])
    assert result.object is not None
    assert result.object["data"] == {"k": "v"}
    assert result.object["metadata"]["labels"] == {"edge.kcp.io/projected": "yes"}
    assert result.problems == ()


def _around(there: Merged | None = None, **more: Any) -> Surroundings:
    """Return what is around a name whose copy is as *there* says."""
    copy = None
    if there is not None and there.object is not None:
        copy = Copy(digest(PAGE.group_resource, there.object), there.owned)
    return Surroundings(copy, **{"path": lambda cluster: f"root:{cluster}", **more})


def test_the_oldest_counts_and_only_the_others_hear_whose_the_name_is() -> None:
    origins = [_origin("one", "2", "late"), _origin("two", "1", "early")]
    result = merged(PAGE, origins, _around())
    assert result.object is not None
    assert result.object["data"] == {"k": "early"}
    assert result.owned == Owned("two", withheld=("one",))
    [reported] = result.problems
    assert (reported.placement.cluster, reported.problem.reason) == ("one", NAME_TAKEN)
    assert reported.problem.message == (
        "configmaps shop/page is withheld: the name belongs to workspace root:two there"
    )
    assert "early" not in reported.problem.message


def test_the_owners_changes_arrive_and_its_name_stays_whoever_is_older() -> None:
    first = merged(PAGE, [_origin("one", "2", "mine")], _around())
    rival = _origin("two", "1", "theirs")
    result = merged(PAGE, [_origin("one", "2", "changed"), rival], _around(first))
    assert result.object is not None
    assert result.object["data"] == {"k": "changed"}
    assert [each.placement.cluster for each in result.problems] == ["two"]


def test_equal_objects_are_no_conflict() -> None:
    assert merged(PAGE, [_origin("one", "1", "v"), _origin("two", "2", "v")]).problems == ()


def test_a_namespace_is_shared_and_the_message_says_so() -> None:
    space = ObjectRef("", "", "namespaces", "", "shop")
    result = merged(space, [_origin("one", "1", "a"), _origin("two", "2", "b")], _around())
    [reported] = result.problems
    assert reported.problem.message == (
        "namespaces shop is shared; its labels and annotations there are those of "
        "workspace root:one"
    )


def test_a_path_that_was_not_read_is_waited_for_only_where_somebody_hears_of_it() -> None:
    around = _around(path=lambda _: None)
    differing = [_origin("one", "1", "a"), _origin("two", "2", "b")]
    assert merged(PAGE, differing, around) == Merged(None, unread="one")
    equal = [_origin("one", "1", "a"), _origin("two", "2", "a")]
    assert merged(PAGE, equal, around).unread is None


def test_a_path_that_cannot_be_read_is_left_out() -> None:
    origins = [_origin("one", "1", "a"), _origin("two", "2", "b")]
    [reported] = merged(PAGE, origins, _around(path=lambda _: "")).problems
    assert reported.problem.message.endswith("the name belongs to another workspace there")


def test_an_owner_that_cannot_be_customized_just_now_keeps_the_name_and_the_copy_stays() -> None:
    first = merged(PAGE, [_origin("one", "2", "mine")], _around())
    broken, rival = _origin("one", "2", "new", customizer="lost"), _origin("two", "1", "theirs")
    result = merged(PAGE, [broken, rival], _around(first))
    assert (result.object, result.stays) == (None, True)
    assert {each.placement.cluster for each in result.problems} == {"one", "two"}
    # Alone, what was sent before it was withheld is taken back.
    assert not merged(PAGE, [broken], _around(first)).stays
    # Before there is a copy, it takes no name from anybody.
    sent = merged(PAGE, [_origin("one", "0", "new", customizer="lost"), rival], _around())
    assert sent.owned == Owned("two", withheld=("one",))


def test_a_copy_without_a_record_that_may_be_an_unknown_workspaces_stays() -> None:
    old = Merged(_copy("somebody's"))
    around = _around(old, unknown=["three"])
    result = merged(PAGE, [_origin("one", "1", "mine")], around)
    assert (result.object, result.stays, result.problems) == (None, True, ())


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
    origins = [_origin(cluster, str(created), data) for cluster, created, data in found]
    shuffled = list(origins)
    random.shuffle(shuffled)
    result = merged(PAGE, origins)
    assert merged(PAGE, shuffled) == result
    assert bool(result.problems) == (len({data for _, _, data in found}) > 1)
    assert result.owned is not None
    assert result.owned.cluster not in {each.placement.cluster for each in result.problems}


def _replaced(path: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "replacements": [{"path": path, "value": value}]}


def test_a_binding_is_not_customized_into_one_of_another_export() -> None:
    item = ObjectRef("", "apis.kcp.io", "apibindings", "", "b")
    binding = {
        "metadata": {"name": "b", "annotations": {"edge.kcp.io/customizer": "c"}},
        "spec": {"reference": {"export": {"path": "root:mine", "name": "widgets"}}},
    }
    theirs = _replaced("$.spec.reference.export.path", '"root:theirs"')
    way = _way("one")
    result = merged(item, [Origin(Claim("one", "1"), binding, (way,), theirs, ())])
    assert result.object is None
    [reported] = result.problems
    assert (reported.placement, reported.problem.reason) == (way.placement, IDENTITY_REPLACED)
    labelled = _replaced("$.metadata.labels", '{"a": "b"}')
    result = merged(item, [Origin(Claim("one", "1"), binding, (way,), labelled, ())])
    assert result.object is not None


def test_nothing_is_customized_into_what_speaks_for_the_edge() -> None:
    item = ObjectRef("", "", "secrets", "shop", "s")
    secret = {
        "metadata": {
            "name": "s",
            "namespace": "shop",
            "annotations": {"edge.kcp.io/customizer": "c"},
        },
        "type": "Opaque",
    }
    forged = _replaced("$.type", f'"{BOOTSTRAP_TYPE}"')
    result = merged(item, [Origin(Claim("one", "1"), secret, (_way("one"),), forged, ())])
    assert result.object is None
    [reported] = result.problems
    assert reported.problem.reason == NEVER_COPIED
