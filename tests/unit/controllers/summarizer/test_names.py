"""Names of summaries depend only on which summaries there are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.names import Cause, Names
from skerry.runtime.index import Key

causes = st.builds(
    lambda placement, group, name: Cause(
        edge_placement_ref("c", placement), ObjectRef("", group, "pods", "shop", name)
    ),
    st.sampled_from(["a", "a-pods"]),
    st.sampled_from(["", "example.org"]),
    st.sampled_from(["b", "pods-b"]),
)


@given(st.lists(st.tuples(st.booleans(), causes), max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_history_ends_in_the_same_names(history: list[tuple[bool, Cause]]) -> None:
    names, present = Names(), set[Cause]()
    meaning: dict[Key | None, Cause] = {}
    for claiming, cause in history:
        touched = (names.claim if claiming else names.release)(cause)
        (present.add if claiming else present.discard)(cause)
        now = {names.key(each): each for each in present}
        assert len(now) == len(present)
        changed = {key for key in now.keys() | meaning.keys() if now.get(key) != meaning.get(key)}
        assert changed == touched
        meaning = dict(now)
    fresh = Names()
    for cause in sorted(present, reverse=True):
        fresh.claim(cause)
    assert {cause: names.key(cause) for cause in present} == {
        cause: fresh.key(cause) for cause in present
    }
    for cause in present:
        key = names.key(cause)
        assert key is not None
        assert names.cause(key) == cause


def test_a_name_nobody_else_wants_is_plain() -> None:
    names = Names()
    cause = Cause(edge_placement_ref("c", "a"), ObjectRef("", "apps", "deployments", "shop", "web"))
    (key,) = names.claim(cause)
    assert str(key) == "c|shop/a-deployments-web"
    assert names.claim(cause) == set()
    assert names.release(cause) == {key}
    assert names.release(cause) == set()
    assert names.cause(key) is None
