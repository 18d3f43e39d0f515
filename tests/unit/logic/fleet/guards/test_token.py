"""Names are of exactly what was shown."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from skerry.logic.fleet.guards.token import hold_name, member, request_token

_MEMBERS = st.frozensets(st.integers(0, 50).map(lambda n: member([str(n)])), max_size=6)


@given(_MEMBERS, _MEMBERS)
def test_another_set_has_another_name(one: frozenset[bytes], other: frozenset[bytes]) -> None:
    assume(one != other)
    assert hold_name("u", one) != hold_name("u", other)
    assert hold_name("u", one) != hold_name("v", one)
    assert request_token(["a"], ["g"], one) != request_token(["a"], ["g"], other)
    assert request_token(["a"], ["g"], one) != request_token(["b"], ["g"], one)
    assert request_token(["a"], ["g"], one) != request_token(["a"], ["h"], one)


def test_names_do_not_differ_from_process_to_process() -> None:
    assert hold_name("u", [member(["c", "oslo", "t", "u"])]) == "b5a918"
