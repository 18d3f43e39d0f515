"""Parts are written together where the server takes them so, and one by one by others."""

from __future__ import annotations

import pytest

from skerry.api.errors import Conflict, Forbidden, MethodNotAllowed, NotFound
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.runtime.atomic import AtomicWriter, Part
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError
from tests.kit.sim.loop import virtual

OFFERED: Object = {"extensions": [{"name": "atomic-batch", "path": "/extensions/v1/atomic-batch"}]}
PARTS = [
    Part("POST", "/clusters/c/apis/g.io/v1/ks", {"fieldManager": "me"}, {"a": 1}, quiet=True),
    Part("PUT", "/clusters/c/apis/g.io/v1/ks/k", {}, {"b": 2}, accept="application/json"),
]


class Server(Client):
    """Answers as prepared, and notes what it was asked."""

    def prepared(self, *answers: Object | Exception) -> Server:
        object.__setattr__(self, "answers", list(answers))
        object.__setattr__(self, "asked", [])
        return self

    def for_cluster(self, cluster: str) -> Server:
        return self

    @property
    def base(self) -> str:
        return "/clusters/c"

    async def call(self, method: str, path: str, *rest: object, **more: object) -> Object:
        self.asked.append((method, path, *rest[1:]))  # type: ignore[attr-defined]
        answer = self.answers.pop(0)  # type: ignore[attr-defined]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def server(*answers: Object | Exception) -> Server:
    return Server(None, clock=LoopClock()).prepared(*answers)  # type: ignore[arg-type]


@virtual
async def test_parts_are_one_request_below_their_cluster() -> None:
    there = server(OFFERED, {"answers": [{"code": 204}, {"code": 200, "body": {"x": 1}}]})
    written = await AtomicWriter(there).write("c", PARTS)
    assert written is not None
    assert (written.answers, written.errors) == ([{}, {"x": 1}], ())
    _, (method, path, body) = there.asked  # type: ignore[attr-defined]
    assert (method, path) == ("POST", "/clusters/c/extensions/v1/atomic-batch")
    assert [each["path"] for each in body["requests"]] == ["/apis/g.io/v1/ks", "/apis/g.io/v1/ks/k"]
    assert [each["query"] for each in body["requests"]] == ["fieldManager=me", ""]
    assert [each["quiet"] for each in body["requests"]] == [True, False]


@virtual
async def test_whoever_was_refused_is_known_from_those_that_went_with_it() -> None:
    status = {"reason": "Conflict", "message": "it changed"}
    there = server(OFFERED, {"answers": [{"code": 424}, {"code": 409, "body": status}]})
    written = await AtomicWriter(there).write("c", PARTS)
    assert written is not None
    assert written.failed == 1
    assert isinstance(written.errors[1], Conflict)
    assert [each.code for each in written.errors] == [424, 409]
    there = server(OFFERED, {"answers": [{"code": 424}, {"code": 424}]})
    written = await AtomicWriter(there).write("c", PARTS)
    assert written is not None
    assert written.failed is None


@pytest.mark.parametrize("answer", [{"extensions": []}, NotFound("no"), Forbidden("no")])
@virtual
async def test_a_server_that_does_not_offer_it_is_asked_once_a_minute(answer: Object) -> None:
    there = server(answer, answer)
    writer = AtomicWriter(there)
    assert not await writer.is_offered("c")
    assert not await writer.is_offered("c")
    assert len(there.asked) == 1  # type: ignore[attr-defined]
    await there.clock.sleep(61)
    there.answers[0] = OFFERED  # type: ignore[attr-defined]
    assert await writer.is_offered("c")


@virtual
async def test_a_server_that_no_longer_takes_it_is_not_one_that_refuses() -> None:
    there = server(OFFERED, NotFound("no such page"))
    writer = AtomicWriter(there)
    assert await writer.write("c", PARTS) is None
    assert not await writer.is_offered("c")
    assert there.facts.extensions, "others who use one read on"
    with pytest.raises(Conflict):
        await AtomicWriter(server(OFFERED, Conflict("busy"))).write("c", PARTS)
    with pytest.raises(TransportError, match="1 answers to a batch of 2"):
        await AtomicWriter(server(OFFERED, {"answers": [{"code": 200}]})).write("c", PARTS)


@pytest.mark.parametrize("refusal", [NotFound("no such page"), Forbidden("not here")])
@virtual
async def test_a_cluster_that_does_not_take_it_keeps_nobody_else_from_it(
    refusal: Exception,
) -> None:
    there = server(OFFERED, refusal)
    writer = AtomicWriter(there)
    assert await writer.write("gone", PARTS) is None
    assert not await writer.is_offered("gone")
    assert await writer.is_offered("c")
    await there.clock.sleep(61)
    assert await writer.is_offered("gone")
    assert len(there.asked) == 2, "nobody asks what is known"  # type: ignore[attr-defined]


@virtual
async def test_a_server_without_the_method_is_asked_again_whichever_the_cluster() -> None:
    there = server(OFFERED, MethodNotAllowed(), OFFERED)
    writer = AtomicWriter(there)
    assert await writer.write("c", PARTS) is None
    assert not await writer.is_offered("other")
    await there.clock.sleep(61)
    assert await writer.is_offered("other")


@virtual
async def test_refusals_are_forgotten_when_they_count_no_more() -> None:
    there = server(OFFERED, *[NotFound("no such page")] * 20)
    writer = AtomicWriter(there)
    for number in range(20):
        await writer.write(f"gone-{number}", PARTS)
        await there.clock.sleep(20)
    assert len(writer._refused) <= 4
