"""Objects as webhooks see them, and what their patches may be."""

from __future__ import annotations

import orjson
import pytest

from skerry.api.errors import InternalError
from skerry.server.preparation.mutated import patched

OBJECT = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}


def test_a_patch_changes_a_copy() -> None:
    operations = [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": 1}]
    before = orjson.dumps(OBJECT)
    changed = patched(OBJECT, orjson.dumps(operations))
    assert changed is not None
    assert changed["data"] == {"b": 1}
    assert orjson.dumps(OBJECT) == before


def test_an_empty_patch_changes_nothing() -> None:
    assert patched(OBJECT, b"[]") is None


@pytest.mark.parametrize(
    "patch",
    [
        b"{}",
        b"nonsense",
        b"[" * 10_000,
        b'[{"op":"remove","path":"/none"}]',
        b'[{"op":"test","path":"/data/a","value":"x"}]',
        b'[{"op":1}]',
        b'[{"op":"replace","path":"","value":[]}]',
        orjson.dumps([{"op": "add", "path": "/data/a", "value": "x"}] * 10_001),
    ],
)
def test_a_patch_that_cannot_be_applied_is_the_servers_error(patch: bytes) -> None:
    with pytest.raises(InternalError):
        patched(OBJECT, patch)
