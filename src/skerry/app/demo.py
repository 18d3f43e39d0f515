"""A short tour of the API server, played with our own client over the real wire.

Each stop does something a user of Kubernetes would do and checks what came of it; a stop that
does not hold raises ``Disappointment``, which ends the tour. Nothing here knows how the story is
narrated: a ``Narrator`` does that.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from skerry.api.errors import ApiError, Conflict, Forbidden, Invalid
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.next_steps import next_steps
from skerry.app.settings import ServerSettings
from skerry.app.standalone import PLAIN_SERVER, Running, serving
from skerry.kit.clock import Clock, SystemClock
from skerry.runtime import kubeconfig
from skerry.runtime.client import Client, DeleteOptions, Selection, WriteOptions
from skerry.runtime.transport import TransportError

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
ROLE_BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "rolebindings")
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
LIGHTHOUSES = GroupVersionResource("demo.example.org", "v1", "lighthouses")

_NAMESPACE = "harbour"
# To go on with by hand.
_COMMANDS = (
    "kubectl get namespaces",
    "kubectl create deployment web --image=nginx",
    "kubectl get deployments",
    "kubectl explain lighthouses.spec",
)
# What the controllers beside the server do takes milliseconds; a person waits no longer than this.
_PATIENCE_SECONDS = 20


class Disappointment(Exception):
    """A stop of the tour did not end as it should: what was seen, what was wanted."""


class Narrator(Protocol):
    """Tells the story as it happens."""

    def begin(self, title: str) -> None:
        """A stop begins."""

    def end(self, seen: str, milliseconds: float) -> None:
        """It ended as it should; *seen* says how one can tell."""

    def fail(self, why: str) -> None:
        """It did not."""

    def say(self, line: str) -> None:
        """Say something between stops."""


@dataclass(slots=True)
class Tour:
    """The stops, in order. Each returns a line that says what was seen."""

    client: Client
    configuration: kubeconfig.ClientConfig

    def stops(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        """Return title and action of every stop."""
        return [
            ("Create a namespace", self.create_namespace),
            ("Apply a Deployment from the server's side", self.apply),
            ("Let a second manager run into the first", self.conflict),
            ("Watch a change arrive", self.watch),
            ("Define a kind and use it at once", self.define),
            ("Have a wrong object refused", self.refuse),
            ("Deny a robot, then give it the right", self.deny),
            ("Keep within a quota", self.quota),
            ("Delete an owner and see its dependents go", self.collect),
            ("Delete the namespace with all it holds", self.delete_namespace),
        ]

    async def create_namespace(self) -> str:
        await self.client.create(NAMESPACES, {"metadata": {"name": _NAMESPACE}})
        await self._appears(ACCOUNTS, "default")
        return f"namespace {_NAMESPACE} is active and has its default service account"

    async def apply(self) -> str:
        for replicas, generation in ((2, 1), (3, 2), (3, 2)):
            live = await self._apply_web("captain", replicas)
            expect(live["metadata"]["generation"], generation, "generation")
        return "applied three times, changed once: generation 2"

    async def conflict(self) -> str:
        try:
            await self._apply_web("pilot", 9)
        except Conflict as error:
            expect('conflict with "captain"' in error.message, True, "the manager named")
        else:
            raise Disappointment("the second manager overwrote the first without force")
        live = await self._apply_web("pilot", 9, force=True)
        expect(live["spec"]["replicas"], 9, "replicas")
        return "409 names the first manager; force takes the field over"

    async def _apply_web(self, manager: str, replicas: int, *, force: bool = False) -> Object:
        return await self.client.patch(
            DEPLOYMENTS,
            "web",
            _deployment("web", replicas),
            _NAMESPACE,
            kind="apply",
            force=force,
            options=WriteOptions(field_manager=manager),
        )

    async def watch(self) -> str:
        listed = await self.client.list(CONFIG_MAPS, Selection(namespace=_NAMESPACE))
        selection = Selection(namespace=_NAMESPACE, fields="metadata.name=tide")
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            self.client.watch(
                CONFIG_MAPS, selection, resource_version=listed.resource_version
            ) as events,
        ):
            await self._create_map("tide", {"level": "low"})
            change = {"data": {"level": "high"}}
            await self.client.patch(CONFIG_MAPS, "tide", change, _NAMESPACE)
            await self.client.delete(CONFIG_MAPS, "tide", _NAMESPACE)
            kinds: list[str] = []
            async for event in events:
                if event.kind != "BOOKMARK":
                    kinds.append(event.kind)
                if len(kinds) == 3:
                    break
        expect(kinds, ["ADDED", "MODIFIED", "DELETED"], "events")
        return "ADDED, MODIFIED, DELETED, in order"

    async def define(self) -> str:
        await self.client.create(DEFINITIONS, _definition())
        made = await self.client.create(
            LIGHTHOUSES, _lighthouse("skerry-vore", height=48), _NAMESPACE
        )
        expect(made["spec"], {"height": 48, "light": "white"}, "spec")
        return "no wait between definition and first object; the default filled in"

    async def refuse(self) -> str:
        try:
            await self.client.create(LIGHTHOUSES, _lighthouse("pit", height=-3), _NAMESPACE)
        except Invalid as error:
            return error.message
        raise Disappointment("a lighthouse below the sea was accepted")

    async def deny(self) -> str:
        await self.client.create(ACCOUNTS, {"metadata": {"name": "robot"}}, _NAMESPACE)
        granted = await self.client.create(
            ACCOUNTS, {"spec": {}}, _NAMESPACE, name="robot", subresource="token"
        )
        bare = replace(self.configuration, certificate=b"", key=b"")
        transport = kubeconfig.connect(replace(bare, token=granted["status"]["token"]))
        robot = Client(transport)
        try:
            await robot.list(CONFIG_MAPS, Selection(namespace=_NAMESPACE))
        except Forbidden as error:
            denial = error.message
        else:
            raise Disappointment("a robot without rights could read")
        await self.client.create(ROLE_BINDINGS, _viewer("robot"), _NAMESPACE)
        await robot.list(CONFIG_MAPS, Selection(namespace=_NAMESPACE))
        await transport.close()
        return denial

    async def quota(self) -> str:
        held = await self.client.list(CONFIG_MAPS, Selection(namespace=_NAMESPACE))
        hard = {"configmaps": str(len(held.items) + 1)}
        await self.client.create(
            QUOTAS, {"metadata": {"name": "small"}, "spec": {"hard": hard}}, _NAMESPACE
        )
        await self._appears(QUOTAS, "small", lambda quota: "used" in quota.get("status", {}))
        await self._create_map("fits", {})
        try:
            await self._create_map("too-many", {})
        except Forbidden as error:
            await self.client.delete(QUOTAS, "small", _NAMESPACE)
            return error.message
        raise Disappointment("a quota of one was exceeded")

    async def collect(self) -> str:
        owner = await self._create_map("owner", {})
        dependent: Object = {
            "metadata": {
                "name": "dependent",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": "owner",
                        "uid": owner["metadata"]["uid"],
                    }
                ],
            }
        }
        made = await self.client.create(CONFIG_MAPS, dependent, _NAMESPACE)
        selection = Selection(namespace=_NAMESPACE, fields="metadata.name=dependent")
        version = made["metadata"]["resourceVersion"]
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            self.client.watch(CONFIG_MAPS, selection, resource_version=version) as events,
        ):
            await self.client.delete(
                CONFIG_MAPS, "owner", _NAMESPACE, options=DeleteOptions(propagation="Background")
            )
            await _until_deleted(events)
        return "the dependent went after its owner"

    async def delete_namespace(self) -> str:
        namespace = await self.client.get(NAMESPACES, _NAMESPACE)
        version = namespace["metadata"]["resourceVersion"]
        selection = Selection(fields=f"metadata.name={_NAMESPACE}")
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            self.client.watch(NAMESPACES, selection, resource_version=version) as events,
        ):
            await self.client.delete(NAMESPACES, _NAMESPACE)
            await _until_deleted(events)
        left = await self.client.list(LIGHTHOUSES)
        expect(len(left.items), 0, "lighthouses left")
        return "emptied and gone"

    async def _create_map(self, name: str, data: dict[str, str]) -> Object:
        obj = {"metadata": {"name": name}, "data": data}
        return await self.client.create(CONFIG_MAPS, obj, _NAMESPACE)

    async def _appears(
        self,
        gvr: GroupVersionResource,
        name: str,
        ready: Callable[[Object], bool] = lambda _: True,
    ) -> None:
        await appears(self.client, gvr, name, ready, _NAMESPACE, seconds=_PATIENCE_SECONDS)


async def appears(
    client: Client,
    gvr: GroupVersionResource,
    name: str,
    ready: Callable[[Object], bool] = lambda _: True,
    namespace: str = "",
    *,
    seconds: float,
) -> Object:
    """Wait until an object is there and as wanted, and return it."""
    selection = Selection(namespace=namespace, fields=f"metadata.name={name}")
    last: Object = {}
    try:
        async with asyncio.timeout(seconds), client.watch(gvr, selection) as events:
            async for event in events:
                if event.kind in ("ADDED", "MODIFIED"):
                    last = event.object
                    if ready(last):
                        return last
    except TimeoutError as error:
        state = "as it should be" if last else "there"
        raise Disappointment(
            f"{gvr.resource} {name} was not {state} after {seconds:.0f} s"
        ) from error
    raise Disappointment(f"{gvr.resource} {name}: the server ended the watch")


async def _until_deleted(events: AsyncIterator[Any]) -> None:
    async for event in events:
        if event.kind == "DELETED":
            return


def expect(seen: object, wanted: object, what: str) -> None:
    """Be disappointed unless what was *seen* is what was *wanted*."""
    if seen != wanted:
        raise Disappointment(f"{what}: saw {seen!r}, wanted {wanted!r}")


def _deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    }


def _definition() -> Object:
    properties = {
        "height": {"type": "integer", "minimum": 1},
        "light": {"type": "string", "default": "white"},
    }
    spec = {"type": "object", "required": ["height"], "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    group, plural = LIGHTHOUSES.group, LIGHTHOUSES.resource
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Lighthouse"},
            "versions": [
                {
                    "name": LIGHTHOUSES.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _lighthouse(name: str, **spec: object) -> Object:
    return {
        "apiVersion": str(LIGHTHOUSES.group_version),
        "kind": "Lighthouse",
        "metadata": {"name": name},
        "spec": spec,
    }


def _viewer(account: str) -> Object:
    return {
        "metadata": {"name": "viewers"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "view",
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": _NAMESPACE}],
    }


class Story(Protocol):
    """Something that can be played stop by stop."""

    def stops(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        """Return title and action of every stop."""


async def play(tour: Story, narrator: Narrator, clock: Clock) -> bool:
    """Make every stop; tell whether all of them held. The first that does not ends the tour."""
    for title, stop in tour.stops():
        narrator.begin(title)
        began = clock.monotonic()
        try:
            seen = await stop()
        except (Disappointment, ApiError, TransportError, OSError, TimeoutError) as error:
            narrator.fail(str(error) or type(error).__name__)
            return False
        narrator.end(seen, (clock.monotonic() - began) * 1000)
    return True


async def play_until(
    stopped: asyncio.Event, story: Story, narrator: Narrator, clock: Clock
) -> bool:
    """Play *story* unless somebody stops it before its end; tell whether all of it held."""
    async with asyncio.TaskGroup() as tasks:
        playing = tasks.create_task(play(story, narrator, clock))
        stopping = tasks.create_task(stopped.wait())
        await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        playing.cancel()
    return not playing.cancelled() and playing.result()


async def run_demo(settings: ServerSettings, narrator: Narrator, *, once: bool) -> bool:
    """Start a server, play the tour, and stay until stopped unless it is just this *once*."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    clock = SystemClock()
    began = clock.monotonic()
    async with serving(settings, PLAIN_SERVER) as server:
        ready = (clock.monotonic() - began) * 1000
        narrator.say(f"A Kubernetes API server is ready at {server.url} after {ready:.0f} ms.")
        held = await _toured(server, narrator, clock, stopped)
        if not once and not stopped.is_set():
            narrator.say("The server stays up until Ctrl-C. In another terminal, for example:")
            for line in ("", *next_steps(server.kubeconfig.resolve(), _COMMANDS), ""):
                narrator.say(line)
            await stopped.wait()
    return held


async def _toured(
    server: Running, narrator: Narrator, clock: Clock, stopped: asyncio.Event
) -> bool:
    """Play the tour unless somebody stops it before its end."""
    configuration = kubeconfig.load([server.kubeconfig])
    transport = kubeconfig.connect(configuration)
    tour = Tour(Client(transport, user_agent="skerry/demo"), configuration)
    held = await play_until(stopped, tour, narrator, clock)
    with contextlib.suppress(OSError):
        await transport.close()
    return held
