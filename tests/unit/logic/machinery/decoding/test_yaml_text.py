"""YAML bodies: what they mean, and that no text takes more work than its length allows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial

import orjson
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from skerry.logic.machinery.decoding import DecodeError, LimitExceeded, Limits, decode_yaml
from tests.kit.counting import growth, steps
from tests.kit.machinery import hostile

# YAML knows fewer characters than JSON.
text = st.text(alphabet=st.sampled_from("ab1yn~<:-#\\\"' \n\té€😀"), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


def test_hostile_yaml_is_refused_and_the_process_lives() -> None:
    """In a process of its own: what is tested is that it ends by itself, and soon."""
    script = """
from skerry.logic.machinery.decoding import DecodeError, decode_yaml
from tests.kit.machinery.hostile import REFUSED

for name, text in REFUSED.items():
    try:
        decode_yaml(text)
    except DecodeError as error:
        assert len(str(error)) < 500, name
    else:
        raise SystemExit(f"accepted: {name}")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", hostile.REFUSED)
def test_hostile_yaml_takes_few_steps(name: str) -> None:
    text, limits = hostile.REFUSED[name], Limits(nodes=1_000)

    def refused() -> None:
        with pytest.raises(DecodeError):
            decode_yaml(text, limits)

    # Fewer than a hundred for each value that may be built before a limit is met.
    assert steps(refused) < 100 * limits.nodes


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"x: [" + b"1, " * n + b"]",
        lambda n: b"".join(b"k%d: {a: [b]}\n" % i for i in range(n)),
        lambda n: b"".join(b"- &a%d {a: b}\n" % i for i in range(n)),
        lambda n: b"".join(b"- &a {a: b}\n- *a\n" for _ in range(n)),
        lambda n: b"a: &a {b: c}\nd:\n" + b"- {<<: *a, e: f}\n" * n,
        lambda n: b"x: " + b"[" * 100 + b"1, " * n + b"]" * 100,
        lambda n: b"x: |\n" + b"  text\n" * n,
    ],
)
def test_work_grows_with_the_text(make: Callable[[int], bytes]) -> None:
    assert growth(lambda n: partial(decode_yaml, make(n)), 200) < 2.2


def test_more_values_than_the_limit_are_refused_before_they_are_repeated() -> None:
    limits = Limits(nodes=100)
    with pytest.raises(LimitExceeded, match="line 2: it has more than 100 values"):
        decode_yaml(hostile.alias_bomb(2), limits)


def test_what_an_alias_repeats_is_a_copy() -> None:
    document = decode_yaml(b"a: &a {b: [1]}\nc: *a\nd: {<<: *a}\n")
    document["a"]["b"].append(2)
    document["c"]["b"].append(3)
    assert document == {"a": {"b": [1, 2]}, "c": {"b": [1, 3]}, "d": {"b": [1]}}


def test_merge_keys_yield_to_the_mapping_and_to_earlier_sources() -> None:
    text = b"a: &a {p: 1, q: 1}\nb: &b {q: 2, r: 2}\nc: {r: 3, <<: [*a, *b]}\n"
    assert decode_yaml(text)["c"] == {"p": 1, "q": 1, "r": 3}


def test_quoted_merge_keys_are_ordinary_keys() -> None:
    assert decode_yaml(b"'<<': 1") == {"<<": 1}


def test_merging_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(DecodeError, match="line 1: map merge requires map"):
        decode_yaml(b"<<: [1]")


def test_a_chain_of_merges_nests_no_deeper() -> None:
    document = decode_yaml(hostile.merge_chain(300), Limits(repeated_values=100_000))
    assert len(document["x299"]) == 300


def test_the_last_of_equal_keys_counts() -> None:
    assert decode_yaml(b"a: 1\na: 2") == {"a": 2}


def test_an_empty_text_holds_nothing() -> None:
    assert decode_yaml(b"# nothing\n") is None


def test_explicit_tags_say_what_a_scalar_is() -> None:
    text = b"[!!str 1, !!int '2', !!float 3, !!bool 'yes', !!null '', !!binary aGk=]"
    assert decode_yaml(text) == ["1", 2, 3, True, None, "hi"]


@pytest.mark.parametrize("text", [b"!!int x", b"!!bool 1", b"!!binary '*'", b"!!binary /w=="])
def test_a_scalar_that_is_not_what_its_tag_says_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError, match="cannot decode"):
        decode_yaml(text)


def test_keys_become_text() -> None:
    assert decode_yaml(b"1: a\ntrue: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


@given(json_values)
def test_json_is_yaml(value: object) -> None:
    assert decode_yaml(orjson.dumps(value)) == value


@given(json_values)
@example({"a": "yes", "b": "017", "c": "1:30", "d": "~", "e": "<<", "<<": "f", "y": "n"})
def test_what_a_safe_dumper_writes_is_read_back(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    assert decode_yaml(text.encode("utf-8", "surrogatepass")) == value


@given(st.text(alphabet="[]{}:,-?&*!|>'\"%@#ab1 \n<", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = decode_yaml(text.encode())
    except DecodeError:
        return
    orjson.dumps(document)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        document = decode_yaml(text)
    except DecodeError:
        return
    orjson.dumps(document)
