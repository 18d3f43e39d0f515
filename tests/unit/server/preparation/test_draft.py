"""A draft is whole for each taker, and made again only for those that follow the first."""

from __future__ import annotations

from typing import Any

from skerry.server.admission.operation import Operation
from skerry.server.preparation.draft import Draft
from skerry.store.base import Write
from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"


def test_the_first_taker_gets_the_original_and_others_what_is_made_again() -> None:
    made: list[dict[str, Any]] = []

    def again() -> dict[str, Any]:
        made.append({"spec": {}})
        return made[-1]

    original: dict[str, Any] = {"spec": {}}
    draft = Draft(original, again)
    assert draft.take() is original
    assert not made
    assert [draft.take(), draft.take()] == made


class _Contended:
    """Marks what is created, and asks at first for a write that cannot be."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    async def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.obj["kind"] != "ConfigMap":
            return
        labels = operation.obj["metadata"].setdefault("labels", {})
        self.seen.append(dict(labels))
        labels["tries"] = f"{len(self.seen)}"
        if len(self.seen) == 1:
            operation.writes.append(Write("/core/other/local/default/x", b"x", expected=7))


@virtual
async def test_a_create_that_is_tried_again_begins_with_what_was_sent() -> None:
    rule = _Contended()
    async with serving(admission=(rule,)) as server:
        sent = config_map("c") | {"data": {"a": "b"}, "invented": 1}
        made = await server.create(MAPS, sent)
        assert made.status == 201
        assert rule.seen == [{}, {}]
        assert made.body["metadata"]["labels"] == {"tries": "2"}
        assert made.body["data"] == {"a": "b"}
        assert len(made.warnings) == 1, "the unknown field is warned of once"


@virtual
async def test_numbers_that_json_cannot_say_are_refused() -> None:
    async with serving() as server:
        body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: c, generation: 1%b}" % (
            b"0" * 30
        )
        made = await server.create(MAPS, body, content_type="application/yaml")
        assert made.status == 400
