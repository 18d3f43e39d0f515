"""The table of messages: every kind has one, and every type it names is known."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.protobuf.table import fields_of, message_of
from skerry.logic.machinery.protobuf.values import SPECIAL
from tests.kit.machinery.kinds import BUILT_IN_KINDS

SCALARS = {"string", "bool", "int", "uint", "double", "bytes", "list", "runtime.RawExtension"}


def test_kinds_are_found_by_their_version() -> None:
    assert message_of("v1", "Pod") == "core.v1.Pod"
    assert message_of("v1", "Unheard") is None
    assert message_of("example.com/v1", "Widget") is None


def test_options_belong_to_every_group_version() -> None:
    assert message_of("apps/v1", "DeleteOptions") == message_of("v1", "DeleteOptions") is not None


def test_flags_are_read() -> None:
    fields = {field.name: field for field in fields_of("core.v1.ConfigMap").values()}
    assert fields["data"].is_map
    assert fields["metadata"].type.endswith("ObjectMeta")
    assert not fields["immutable"].repeated
    pod = {field.name: field for field in fields_of("core.v1.PodSpec").values()}
    assert pod["containers"].repeated


@pytest.mark.parametrize("version", sorted(BUILT_IN_KINDS))
def test_every_message_leads_to_messages_that_are_known(version: str) -> None:
    pending = list(BUILT_IN_KINDS[version].values())
    seen: set[str] = set()
    while pending:
        message = pending.pop()
        if message in seen or message in SCALARS or message in SPECIAL:
            continue
        seen.add(message)
        fields = fields_of(message)
        assert all(number == field.number > 0 for number, field in fields.items())
        pending += [field.type for field in fields.values()]


def test_a_message_is_read_once() -> None:
    assert fields_of("core.v1.Pod") is fields_of("core.v1.Pod")
