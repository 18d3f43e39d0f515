"""The engine: who asks comes before what they may, and that before anything is done."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import pytest

from skerry.api.errors import ApiError, TooManyRequests, Unauthorized
from skerry.server.access import Attributes, Decision
from skerry.server.catalogue import Catalogue, builtin_types
from skerry.server.engine import Engine, Handlers, Route, attributes_of
from skerry.server.http.message import Answer, Peer, Request, Response
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo, request_info
from skerry.server.user import User
from skerry.store.base import Overloaded, StoreError, Unavailable
from tests.kit.server.harness import Everybody, serving
from tests.kit.server.objects import definition, thing, version
from tests.kit.sim.loop import virtual

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLD = "/apis/example.org/v1beta1/namespaces/default/things"
MAPS = "/api/v1/namespaces/default/configmaps"
CATALOGUE = Catalogue(builtin_types())


class World(Everybody):
    """Everything around an engine: what happened, in order, and who is let through."""

    def __init__(self, route: Route | None = None) -> None:
        self.happened: list[str] = []
        self.recorded: list[tuple[str, int, bool]] = []
        self.users: list[User | None] = []
        self.known = self.allowed = True
        self.refused: set[str] = set()
        self.failure: Exception | None = None
        self.answer = Response(200, b"{}")
        self._route = route
        handlers = Handlers(
            dict.fromkeys(("get", "list", "create", "update", "patch", "delete"), self.act),
            common_subresources={"exec": self.act},
            paths={"/version": self.path},
            trees={"/healthz": self.path},
        )
        self.engine = Engine(
            CATALOGUE, handlers, self, self, self, self, router=self, identity="store-1"
        )

    def route(self, request: Request) -> Route:
        return self._route or Route("root", request.path)

    async def authenticate(self, request: Request, cluster: str) -> User:
        self.happened.append(f"authenticate in {cluster}")
        if not self.known:
            raise Unauthorized
        return User("ann")

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        self.happened.append(f"authorize {user.name} {attributes.verb}")
        return Decision(self.allowed and attributes.verb not in self.refused, "because")

    def admitted(self, info: RequestInfo, user: User) -> Any:
        self.happened.append("seat")
        return contextlib.nullcontext()

    def refusal_of(self, address: str) -> Any:
        return TooManyRequests("later") if address in self.suspects else None

    def knows(self, request: Request, cluster: str) -> bool:
        return request.headers.get("authorization") == "known"

    async def act(self, call: Call) -> Answer:
        self.happened.append(f"act as {call.user.name}")
        if self.failure is not None:
            raise self.failure
        return self.answer

    async def path(self, request: Request, cluster: str) -> Answer:
        self.happened.append("path")
        return Response(200, b"path")

    def finished(self, request: Any, info: Any, user: Any, answer: Any, *, served: bool) -> None:
        self.recorded.append((info.verb, answer.status, served))
        self.users.append(user)

    async def ask(self, method: str = "GET", path: str = f"{MAPS}/a", **headers: str) -> Response:
        path, _, query = path.partition("?")
        answer = await self.engine.handle(
            Request(method, path, query, headers, peer=Peer("10.0.0.1"))
        )
        assert isinstance(answer, Response)
        return answer


def message(answer: Response) -> str:
    assert isinstance(answer.body, bytes)
    return str(orjson.loads(answer.body)["message"])


async def test_a_request_is_identified_then_authorized_then_seated_then_done() -> None:
    world = World()
    assert (await world.ask()).status == 200
    assert world.happened == ["authenticate in root", "authorize ann get", "seat", "act as ann"]
    assert world.recorded == [("get", 200, True)]


async def test_who_is_not_known_reaches_nothing_and_is_recorded() -> None:
    world = World()
    world.known = False
    assert (await world.ask()).status == 401
    assert world.happened == ["authenticate in root"]
    assert (world.recorded, world.users) == ([("get", 401, True)], [None])


async def test_what_is_forbidden_takes_no_seat_and_says_why() -> None:
    world = World()
    world.allowed = False
    answer = await world.ask()
    assert answer.status == 403
    assert "seat" not in world.happened
    assert message(answer).endswith("because")


async def test_an_address_of_bad_credentials_is_refused_unless_its_credentials_are_known() -> None:
    world = World()
    world.suspects = {"10.0.0.1"}
    assert (await world.ask()).status == 429
    assert world.happened == []
    assert (await world.ask(authorization="known")).status == 200


async def test_a_view_asks_for_its_own_rights_and_acts_as_it_says() -> None:
    def guard(user: User, info: RequestInfo) -> list[tuple[User, Attributes]]:
        return [
            (user, Attributes("away", "bind")),
            (User("exporter"), Attributes("away", info.verb)),
        ]

    route = Route("root", f"{MAPS}/a", guard=guard, acting=lambda _: User("agent"), home="away")
    world = World(route)
    assert (await world.ask()).status == 200
    assert world.happened == [
        "authenticate in away",
        "authorize ann bind",
        "authorize exporter get",
        "seat",
        "act as agent",
    ]
    world.refused = {"bind"}
    assert (await world.ask()).status == 403


async def test_an_object_that_a_view_does_not_have_is_not_found_whether_or_not_it_is_there() -> (
    None
):
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        world = World(Route("root", f"{MAPS}/a", named=lambda _: False))
        assert (await world.ask(method)).status == 404
        assert not any(each.startswith("act") for each in world.happened)
    created = World(Route("root", MAPS, named=lambda _: False))
    assert (await created.ask("POST")).status == 404


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_to_execute_is_to_create_however_it_is_asked_for(subresource: str) -> None:
    path = f"/api/v1/namespaces/default/pods/p/{subresource}"
    assert attributes_of(request_info("GET", path, {}, "root")).verb == "create"
    other = request_info("GET", f"/apis/example.org/v1/things/p/{subresource}", {}, "root")
    assert attributes_of(other).verb == "get"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/v1/configmaps", 405),
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("GET", "/api/v1/namespaces/default/nodes/n", 404),
        ("GET", f"{MAPS}/a/unknown", 404),
        ("GET", "/apis/nobody.example/v1/things", 404),
        ("GET", f"{MAPS}/a?timeout=soon", 400),
        ("GET", f"{MAPS}/a?timeout=5s", 200),
        ("POST", "/version", 405),
        ("POST", "/healthz/ping", 200),
        ("GET", "/nowhere", 404),
    ],
)
async def test_what_cannot_be_asked_has_the_status_of_kubernetes(
    method: str, path: str, status: int
) -> None:
    assert (await World().ask(method, path)).status == status


@pytest.mark.parametrize(
    ("failure", "status", "retried_by_itself"),
    [
        (Unavailable("no quorum"), 503, False),
        (Overloaded("too many"), 429, True),
        (StoreError("corrupt"), 500, False),
    ],
)
async def test_a_store_that_fails_is_an_answer_too(
    failure: StoreError, status: int, retried_by_itself: bool
) -> None:
    world = World()
    world.failure = failure
    answer = await world.ask()
    assert answer.status == status
    # Clients repeat what has this header without asking anybody.
    assert ("Retry-After" in dict(answer.headers)) == retried_by_itself
    assert world.recorded == [("get", status, True)]


async def test_names_that_clients_invent_are_recorded_as_not_served() -> None:
    world = World()
    await world.ask("GET", "/apis/invented.example/v1/things/a")
    await world.ask("GET", f"{MAPS}/a/invented")
    assert [served for *_, served in world.recorded] == [False, False]


async def test_every_answer_names_the_store_once() -> None:
    world = World()
    for _ in range(2):
        answer = await world.ask()
        names = [value for name, value in answer.headers if name == "X-Skerry-Store-Identity"]
        assert names == ["store-1"]
    world.allowed = False
    assert ("X-Skerry-Store-Identity", "store-1") in (await world.ask()).headers


async def test_a_writer_that_prefers_little_gets_the_code_alone_unless_it_failed() -> None:
    world = World()
    world.answer = Response(201, b'{"kind":"ConfigMap"}')
    small = await world.ask("POST", MAPS, prefer="return=minimal")
    assert (small.status, small.body) == (204, b"")
    assert ("Preference-Applied", "return=minimal") in small.headers
    assert (await world.ask("GET", prefer="return=minimal")).status == 201
    world.failure = ApiError("broken")
    assert (await world.ask("POST", MAPS, prefer="return=minimal")).status == 500


async def test_discovery_that_is_forbidden_is_answered_as_text_which_kubectl_shows() -> None:
    world = World()
    world.allowed = False
    asked = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"
    answer = await world.ask("GET", "/apis", accept=asked)
    assert (answer.status, answer.content_type) == (403, "text/plain")
    assert (await world.ask("GET", "/apis")).content_type == "application/json"


@virtual
@pytest.mark.parametrize("words", ["", "use something else"])
async def test_every_request_at_a_deprecated_version_is_warned(words: str) -> None:
    old = {**version("v1beta1", storage=False), "deprecated": True}
    if words:
        old["deprecationWarning"] = words
    said = [f'299 - "{words or "example.org/v1beta1 Thing is deprecated"}"']
    async with serving() as server:
        await server.create(DEFINITIONS, definition(versions=[version("v1", storage=True), old]))
        sent = {**thing("t", size=1), "apiVersion": "example.org/v1beta1"}
        assert (await server.create(OLD, sent)).warnings == said
        assert (await server.get(OLD)).warnings == said
        assert (await server.get(f"{OLD}/t")).warnings == said
        assert (await server.get(f"{OLD}/absent")).warnings == said
        assert (await server.patch(f"{OLD}/t", {"spec": {"size": 2}})).warnings == said
        assert (await server.get(OLD.replace("v1beta1", "v1"))).warnings == []
        assert (await server.delete(f"{OLD}/t")).warnings == said
