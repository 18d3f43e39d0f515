"""Whose a name is, where several workspaces place an object under it at one edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.translation.ownership import (
    Claim,
    Owned,
    claim_of,
    owned_by,
    owned_of,
    owner,
    recorded_on,
)

COPY = {"metadata": {"name": "page", "annotations": {"note": "kept"}}}


def _path(cluster: str) -> str:
    return f"root:{cluster}"


def _owner(recorded: Owned | None, *claims: Claim, **more: Sequence[str]) -> Owned:
    return owner(recorded, claims, _path, **more)


def test_before_there_is_a_copy_the_oldest_object_has_the_name_then_the_first_cluster() -> None:
    assert _owner(None, Claim("b", "2026-01-01"), Claim("a", "2026-01-02")).cluster == "b"
    assert _owner(None, Claim("b", "2026-01-01"), Claim("a", "2026-01-01")).cluster == "a"


def test_the_recorded_owner_keeps_the_name_from_one_whose_object_is_older() -> None:
    assert _owner(Owned("b"), Claim("a", "2020-01-01"), Claim("b", "2026-01-01")).cluster == "b"


def test_when_the_owner_goes_the_oldest_of_the_others_takes_over() -> None:
    claims = Claim("a", "3"), Claim("c", "2"), Claim("b", "2")
    assert _owner(Owned("gone"), *claims).cluster == "b"


def test_an_owner_that_may_still_place_the_object_keeps_the_name() -> None:
    assert _owner(Owned("a", (("b", "root:a"),)), Claim("b"), unknown=["a"]) == Owned(
        "a", (("b", "root:a"),)
    )


def test_a_copy_of_before_owners_were_recorded_is_of_whoever_sends_what_it_says() -> None:
    claims = Claim("a", "1"), Claim("b", "2"), Claim("c", "3")
    assert _owner(None, *claims, there=["c", "b"]).cluster == "b"
    assert _owner(None, *claims, there=[]).cluster == "a"


def test_what_cannot_be_sent_takes_no_name_from_what_can_and_keeps_its_own() -> None:
    claims = Claim("a", "1", hand_over="root:b"), Claim("b", "2"), Claim("c", "3")
    assert _owner(None, *claims, unable=["a", "b"]).cluster == "c"
    assert _owner(Owned("gone"), *claims, unable=["a"]).cluster == "b"
    assert _owner(Owned("a"), *claims, unable=["a", "b"]).cluster == "a"
    assert _owner(None, *claims[1:], unable=["b", "c"]).cluster == "b"


def test_a_hand_over_waits_for_its_taker_and_takes_effect_once() -> None:
    giving = Claim("a", "1", hand_over="root:b")
    assert _owner(Owned("a"), giving, Claim("c", "2")) == Owned("a")
    given_away = _owner(Owned("a"), giving, Claim("b", "2"))
    assert given_away == Owned("b", (("a", "root:b"),))
    back = _owner(given_away, giving, Claim("b", "2", hand_over="root:a"))
    assert back == Owned("a", (("a", "root:b"), ("b", "root:a")))
    # Neither annotation has any effect from now on, until its owner writes another.
    assert _owner(back, giving, Claim("b", "2", hand_over="root:a")) == back
    anew = _owner(back, Claim("a", "1"), Claim("b", "2", hand_over="root:a"))
    assert _owner(anew, giving, Claim("b", "2", hand_over="root:a")).cluster == "b"


def test_a_hand_over_to_oneself_or_to_nobody_changes_nothing() -> None:
    for path in ("root:a", "nonsense"):
        assert _owner(Owned("a"), Claim("a", "1", hand_over=path), Claim("b")) == Owned("a")


def test_what_a_copy_records_is_read_back_and_belongs_to_the_copy_alone() -> None:
    for owned in (Owned("a"), Owned("b", (("a", "root:org:b"), ("c", "root:b")), ("c", "d"))):
        made = recorded_on(COPY, owned)
        assert owned_of(made) == owned
        assert made["metadata"]["annotations"]["note"] == "kept"
    assert owned_of(COPY) is None
    assert owned_by("a") is owned_by("a")
    notes = {"edge.kcp.io/hand-over-to": "root:b"}
    source = {"metadata": {"annotations": notes, "creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert claim_of("a", source) == Claim("a", "2026-01-01T00:00:00Z", "root:b")


# -- any history -----------------------------------------------------------------------------------

CLUSTERS = "abcd"


@dataclass
class _World:
    """Workspaces that place a name or not, and the copy; ``look`` is one pass of the translator."""

    claims: dict[str, Claim] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    copy: Owned | None = None
    owners: list[str] = field(default_factory=list)

    def readable(self) -> Mapping[str, Claim]:
        return {name: each for name, each in self.claims.items() if name not in self.unknown}

    def look(self) -> None:
        found = self.readable()
        if not found:
            if not self.unknown & self.claims.keys() and not self.unknown:
                self.copy = None
            return
        self.copy = owner(self.copy, list(found.values()), _path, unknown=self.unknown)
        self.owners.append(self.copy.cluster)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(CLUSTERS), st.integers(0, 3)),
        st.tuples(st.just("remove"), st.sampled_from(CLUSTERS), st.just(0)),
        st.tuples(st.just("unread"), st.sampled_from(CLUSTERS), st.just(0)),
        st.tuples(st.just("read"), st.sampled_from(CLUSTERS), st.just(0)),
        st.tuples(st.just("look"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_nobody_who_places_a_name_ever_loses_it_to_another(
    steps: list[tuple[str, str, int]],
) -> None:
    world = _World()
    for what, cluster, number in steps:
        before = world.copy
        match what:
            case "place":
                world.claims.setdefault(cluster, Claim(cluster, str(number)))
            case "remove":
                world.claims.pop(cluster, None)
            case "unread":
                world.unknown.add(cluster)
            case "read":
                world.unknown.discard(cluster)
            case _:
                world.look()
        if before is not None and before.cluster in {*world.claims, *world.unknown}:
            assert world.copy is not None
            assert world.copy.cluster == before.cluster


CLAIMS = st.lists(
    st.builds(
        Claim,
        st.sampled_from(CLUSTERS),
        st.sampled_from("123"),
        st.sampled_from(["", "root:a", "root:b", "root:c", "root:nobody"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda claim: claim.cluster,
)
RECORDS = st.none() | st.builds(
    Owned,
    st.sampled_from(CLUSTERS),
    st.lists(
        st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(["root:a", "root:b"])),
        max_size=2,
        unique_by=lambda pair: pair[0],
    ).map(lambda pairs: tuple(sorted(pairs))),
)


@given(RECORDS, CLAIMS, st.sets(st.sampled_from(CLUSTERS)), st.randoms(use_true_random=False))
def test_one_pass_is_enough_and_neither_order_nor_a_restart_matters(
    recorded: Owned | None, claims: list[Claim], unknown: set[str], random: object
) -> None:
    unknown -= {claim.cluster for claim in claims}
    found = owner(recorded, claims, _path, unknown=unknown)
    assert found.cluster in {claim.cluster for claim in claims} | unknown
    shuffled = list(claims)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert owner(recorded, shuffled, _path, unknown=unknown) == found
    # A restart knows nothing but what the copy says.
    read = owned_of(recorded_on(COPY, found))
    assert owner(read, claims, _path, unknown=unknown) == found
