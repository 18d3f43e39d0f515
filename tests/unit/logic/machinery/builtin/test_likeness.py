"""Nulls as the decoder reads them, and when two parts of objects mean the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.builtin.likeness import difference_text, same
from tests.kit.machinery.objects import errors_of, named, pod, resource

PODS = resource("pods")


def test_null_fields_are_absent_and_null_elements_are_empty() -> None:
    obj = pod({"volumes": None, "nodeSelector": {"a": None}, "containers": [None]})
    obj["metadata"]["creationTimestamp"] = None
    PODS.default(obj)
    assert "creationTimestamp" not in obj["metadata"]
    assert obj["spec"]["nodeSelector"] == {"a": ""}
    assert "volumes" not in obj["spec"]
    assert "spec.containers[0].name: Required value" in errors_of(PODS, obj)


def test_data_without_a_schema_keeps_its_nulls() -> None:
    kind = resource("controllerrevisions", "apps")
    obj = named(kind, data={"a": None}, revision=None)
    kind.default(obj)
    assert obj["data"] == {"a": None}
    # Go writes the number of a revision even where nobody gave one.
    assert obj["revision"] == 0


def test_a_null_amount_is_zero() -> None:
    kind = resource("resourcequotas")
    obj = named(kind, spec={"hard": {"cpu": None}})
    kind.default(obj)
    assert obj["spec"]["hard"] == {"cpu": "0"}


def test_text_that_merely_says_null_is_left_alone() -> None:
    kind = resource("configmaps")
    obj = named(kind, data={"a": "null"})
    kind.default(obj)
    assert obj["data"] == {"a": "null"}


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_everything_is_like_itself_and_emptiness_is_one(value: object) -> None:
    assert same(value, value)
    assert same({"a": value, "b": None}, {"a": value})


@given(VALUES, VALUES)
def test_likeness_is_mutual_and_differences_are_reported(one: object, two: object) -> None:
    assert same(one, two) == same(two, one)
    assert bool(difference_text(one, two, "x")) == (not same(one, two))


def test_quantities_are_compared_as_numbers_only_where_they_stand() -> None:
    assert same({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}})
    assert not same({"image": "1.0"}, {"image": "1"})


def test_differences_name_their_fields_and_are_bounded() -> None:
    old, new = {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}
    assert difference_text(old, new, "spec") == "spec.a[1].b: 2 -> 3"
    many = difference_text({}, {str(n): n for n in range(1, 20)}, "x")
    assert many.endswith("...")
    assert many.count("\n") == 10
