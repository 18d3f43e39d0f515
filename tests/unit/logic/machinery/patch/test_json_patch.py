"""RFC 6902, and where Kubernetes departs from it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from skerry.api.objects import Object
from skerry.logic.machinery.patch import apply_json_patch
from skerry.logic.machinery.patch.json_patch import MAX_OPERATIONS, PatchFailed, pointer_tokens


def patched(obj: Object, *operations: Object) -> Object:
    before = copy.deepcopy(obj)
    result = apply_json_patch(obj, list(operations))
    assert obj == before, "the input was changed"
    return result


@pytest.mark.parametrize(
    ("obj", "operation", "expected"),
    [
        ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/1", "value": 5}, {"a": [1, 5]}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"b": 1}}, {"b": 1}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"},
         {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"},
         {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, {"op": "replace", "path": "/a~1b", "value": 9},
         {"a/b": 9, "m~n": 2}),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/m~0n"}, {"a/b": 1}),
        ({"~1": 1}, {"op": "remove", "path": "/~01"}, {}),
        ({"": 1}, {"op": "remove", "path": "/"}, {}),
        ({"a": {"b": [1, None]}}, {"op": "test", "path": "/a", "value": {"b": [1.0, None]}},
         {"a": {"b": [1, None]}}),
    ],
)  # fmt: skip
def test_every_operation_does_what_the_rfc_says(
    obj: Object, operation: Object, expected: Object
) -> None:
    assert patched(obj, operation) == expected


@pytest.mark.parametrize(
    ("obj", "operation", "expected"),
    [
        ({}, {"op": "replace", "path": "/a", "value": 1}, {"a": 1}),
        ({}, {"op": "copy", "from": "/a", "path": "/b"}, {"b": None}),
        ({}, {"op": "test", "path": "/a", "value": None}, {}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"a": [1, 2]}, {"op": "add", "path": "/a/-1", "value": 3}, {"a": [1, 2, 3]}),
    ],
)
def test_kubernetes_is_laxer_than_the_rfc(obj: Object, operation: Object, expected: Object) -> None:
    assert patched(obj, operation) == expected


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "remove", "path": "/x"}, "Unable to remove nonexistent key: x"),
        ({"op": "remove", "path": ""}, "the whole document"),
        ({"op": "add", "path": "/x/y", "value": 1}, "doc is missing path: /x/y"),
        ({"op": "add", "path": "/n/y", "value": 1}, "doc is missing path: /n/y"),
        ({"op": "add", "path": "/l/5", "value": 1}, "Unable to access invalid index: 5"),
        ({"op": "add", "path": "/l/x", "value": 1}, "not a proper array index"),
        ({"op": "add", "path": "l/0", "value": 1}, "want a JSON pointer"),
        ({"op": "replace", "path": "/l/-3", "value": 1}, "Unable to access invalid index: -3"),
        ({"op": "replace", "path": "", "value": []}, "other than an object"),
        ({"op": "replace", "path": "/l/" + "9" * 5000, "value": 1}, "not a proper array index"),
        ({"op": "move", "from": "/x", "path": "/y"}, "Unable to remove nonexistent key: x"),
        ({"op": "move", "from": "/m", "path": "/m/y"}, "cannot move into itself"),
        ({"op": "copy", "from": "/x/y", "path": "/y"}, "doc is missing path: /x/y"),
        ({"op": "copy", "from": "/n/y", "path": "/y"}, "doc is missing path: /n/y"),
        ({"op": "test", "path": "/n/y", "value": None}, "doc is missing path: /n/y"),
        ({"op": "test", "path": "/n", "value": 2}, "testing value /n failed"),
        ({"op": "test", "path": "/n", "value": True}, "testing value /n failed"),
        ({"op": "test", "path": "/x/y", "value": None}, "doc is missing path"),
        ({"op": "add"}, "add operation failed to decode path"),
        ({"op": "move", "path": "/a"}, "move operation failed to decode from"),
        ({"op": "merge", "path": "/a"}, "Unexpected kind: merge"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
    ],
)
def test_what_does_not_apply_is_invalid_and_says_why_in_its_cause(
    operation: Object, why: str
) -> None:
    with pytest.raises(Invalid) as caught:
        patched({"n": 1, "l": [1, 2], "m": {}}, operation)
    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert isinstance(caught.value.__cause__, PatchFailed)
    assert why in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (["x"], "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (
            [{"op": "add", "path": []}],
            "cannot unmarshal array into Go struct field jsonPatchOp.path",
        ),
    ],
)
def test_what_is_no_patch_is_a_bad_request(operations: Any, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        apply_json_patch({}, operations)
    assert caught.value.message.startswith("error decoding patch: json: ")
    assert message in caught.value.message


def test_more_operations_than_kubernetes_takes_are_too_large() -> None:
    with pytest.raises(RequestEntityTooLarge) as caught:
        apply_json_patch({}, [{"op": "test", "path": ""}] * (MAX_OPERATIONS + 1))
    assert "allowed maximum operations in a JSON patch is 10000, got 10001" in caught.value.message


def test_copies_may_not_make_an_object_explode() -> None:
    operations = [{"op": "copy", "from": "/a", "path": f"/a/{index}"} for index in range(64)]
    with pytest.raises(Invalid) as caught:
        patched({"a": {"text": "x" * 1000}}, *operations)
    assert "accumulated size increase" in str(caught.value.__cause__)


def test_moves_may_not_nest_an_object_beyond_encoding() -> None:
    operations: list[Object] = []
    for index in range(400):
        operations += [
            {"op": "add", "path": f"/n{index + 1}", "value": {}},
            {"op": "move", "from": f"/n{index}", "path": f"/n{index + 1}/x"},
        ]
    with pytest.raises(Invalid) as caught:
        patched({"n0": {}}, *operations)
    assert "cannot be encoded" in str(caught.value.__cause__)


def test_a_copied_value_is_independent_of_its_source() -> None:
    result = patched(
        {"a": {"l": [1]}},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/l/-", "value": 2},
        {"op": "add", "path": "/a/l/-", "value": 3},
    )
    assert result == {"a": {"l": [1, 3]}, "b": {"l": [1, 2]}}


def test_a_value_of_the_patch_is_not_changed_by_later_operations() -> None:
    operations: list[Object] = [
        {"op": "add", "path": "/a", "value": {"l": []}},
        {"op": "add", "path": "/a/l/-", "value": 1},
    ]
    assert apply_json_patch({}, operations) == {"a": {"l": [1]}}
    assert operations[0]["value"] == {"l": []}


def test_tokens_are_unescaped_in_the_order_that_keeps_tildes() -> None:
    assert pointer_tokens("/a~1b/~01/c") == ["a/b", "~1", "c"]


KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
POINTERS = st.lists(
    st.sampled_from(["a", "b", "c~1d", "e~0f", "", "0", "1", "-"]), min_size=1, max_size=3
).map(lambda tokens: "".join("/" + token for token in tokens))
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": POINTERS,
        "from": POINTERS,
        "value": VALUES,
    }
)


@settings(max_examples=80, deadline=None)
@given(OBJECTS, st.lists(OPERATIONS, max_size=6))
def test_any_patch_gives_what_a_simple_reference_gives(
    obj: Object, operations: list[Object]
) -> None:
    before = copy.deepcopy((obj, operations))
    try:
        expected: Object | None = reference(copy.deepcopy(obj), copy.deepcopy(operations))
    except LookupError:
        expected = None
    try:
        found: Object | None = apply_json_patch(obj, operations)
    except Invalid:
        found = None
    assert strict(found) == strict(expected)
    assert (obj, operations) == before


def reference(doc: Any, operations: list[Object]) -> Any:
    """The same semantics on a private copy, one plain step at a time."""
    for operation in operations:
        op = operation["op"]
        path, source = pointer_tokens(operation["path"]), pointer_tokens(operation["from"])
        if op in ("add", "replace"):
            put(doc, path, copy.deepcopy(operation["value"]), insert=op == "add")
        elif op == "remove":
            take(doc, path)
        elif op == "move":
            if len(source) < len(path) and path[: len(source)] == source:
                raise LookupError("into itself")
            put(doc, path, take(doc, source), insert=True)
        elif op == "copy":
            put(doc, path, copy.deepcopy(value_at(doc, source)), insert=True)
        elif strict(value_at(doc, path)) != strict(operation["value"]):
            raise LookupError("test failed")
    return doc


def parent(doc: Any, tokens: list[str]) -> Any:
    for token in tokens[:-1]:
        doc = doc[position(token, len(doc))] if isinstance(doc, list) else lookup(doc, token)
    if not isinstance(doc, dict | list):
        raise LookupError("no container")
    return doc


def lookup(doc: Any, token: str) -> Any:
    if not isinstance(doc, dict):
        raise LookupError("no object")
    return doc[token]


def position(token: str, length: int) -> int:
    if not token.isdigit() or int(token) >= length:
        raise LookupError(token)
    return int(token)


def put(doc: Any, tokens: list[str], value: Any, *, insert: bool) -> None:
    container = parent(doc, tokens)
    if isinstance(container, dict):
        container[tokens[-1]] = value
    elif insert and tokens[-1] == "-":
        container.append(value)
    elif insert:
        container.insert(position(tokens[-1], len(container) + 1), value)
    else:
        container[position(tokens[-1], len(container))] = value


def take(doc: Any, tokens: list[str]) -> Any:
    container = parent(doc, tokens)
    if isinstance(container, dict):
        return container.pop(tokens[-1])
    return container.pop(position(tokens[-1], len(container)))


def value_at(doc: Any, tokens: list[str]) -> Any:
    container = parent(doc, tokens)
    if isinstance(container, dict):
        return container.get(tokens[-1])
    return container[position(tokens[-1], len(container))]


def strict(value: Any) -> Any:
    """Return something that tells True from 1."""
    if isinstance(value, dict):
        return {key: strict(member) for key, member in value.items()}
    if isinstance(value, list):
        return [strict(element) for element in value]
    return (isinstance(value, bool), value)
