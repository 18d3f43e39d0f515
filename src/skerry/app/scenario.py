"""The example scenario: two edges, two workloads, and pages that answer.

Two embedded edge clusters, florin and guilder, a hub with its controllers, and a syncer per edge
run as processes of their own. The common workload goes to both edges, the special one to guilder
only; each serves a page on a port of this machine, and its state comes back in a summary.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from skerry.api.edge import (
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
    SYNCER_CONFIGS,
)
from skerry.api.edge_identity import EdgeName
from skerry.api.errors import AlreadyExists, ApiError
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app import edge_identity
from skerry.app.console_login import console_proxy
from skerry.app.demo import Disappointment, Narrator, appears, expect, play_until
from skerry.app.edge_config import EdgeConfig, NodeConfig
from skerry.app.edge_process import EdgeError, EdgeProcess
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.app.next_steps import next_steps
from skerry.app.scenario_objects import (
    COMMON,
    DEPLOYMENTS,
    KINDS,
    PROVIDER,
    SPECIAL,
    Workload,
    named,
    narrower,
    workload_objects,
)
from skerry.app.stack import Stack, StackError
from skerry.edge.agent.network import Published
from skerry.kit.clock import SystemClock
from skerry.runtime import kubeconfig
from skerry.runtime.client import Client
from skerry.runtime.http import HttpTransport
from skerry.runtime.kubeconfig import Overrides
from skerry.runtime.transport import TransportError

_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the three pages answer on this machine; 0 takes any free port."""

    florin_common: int = 8081
    guilder_special: int = 8082
    guilder_common: int = 8083


_TARGETS = {
    "florin": (
        "sync-target-f",
        "location-f",
        {"example": "si", "extended": "non"},
        {"env": "prod"},
    ),
    "guilder": (
        "sync-target-g",
        "location-g",
        {"example": "si", "extended": "si"},
        {"env": "prod", "extended": "si"},
    ),
}


@dataclass(slots=True)
class Scenario:
    """The stages, in order. Each returns a line that says what was seen."""

    directory: Path
    ports: Ports = field(default_factory=Ports)
    hub_port: int = 0
    _transport: HttpTransport | None = None
    _mailboxes: dict[str, EdgeName] = field(default_factory=dict)

    @property
    def stack(self) -> Stack:
        return Stack(self.directory / "hub")

    def edge(self, name: str) -> EdgeProcess:
        """Return one of the two edges."""
        return EdgeProcess(name, self.directory / "edges" / name)

    def stops(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        """Return title and action of every stage."""
        return [
            ("Stage 1: two edge clusters, florin and guilder", self.create_edges),
            ("Stage 1: a hub and its controllers", self.start_hub),
            ("Stage 1: the inventory, and a mailbox per edge", self.fill_inventory),
            ("Stage 1: a syncer at each edge", self.start_syncers),
            ("Stage 2: the common workload, for both edges", self.place_common),
            ("Stage 2: the special workload, for guilder", self.place_special),
            ("Stage 3: the mailboxes hold what each edge should run", self.see_mailboxes),
            ("Stage 4: the pages answer", self.fetch_pages),
            ("Stage 5: the states come back, summarised", self.see_summaries),
        ]

    # -- stage 1 -----------------------------------------------------------------------------

    async def create_edges(self) -> str:
        mappings = {
            "florin": ((8081, self.ports.florin_common),),
            "guilder": ((8081, self.ports.guilder_common), (8082, self.ports.guilder_special)),
        }

        def make(name: str) -> None:
            node_name = f"{name}-control-plane"
            published = tuple(
                Published(node_name, inside, outside) for inside, outside in mappings[name]
            )
            node = NodeConfig(node_name, True, published=published)
            try:
                self.edge(name).create(EdgeConfig(name, (node,)))
                self.edge(name).start()
            except EdgeError as error:
                raise Disappointment(str(error)) from error

        # Both are waited for, also when one fails: what still starts could not be stopped.
        ends = await asyncio.gather(
            *(_to_its_end(partial(make, name)) for name in mappings), return_exceptions=True
        )
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        return "both API servers answer, each with one node"

    async def start_hub(self) -> str:
        def start() -> None:
            try:
                with self.stack.alone():
                    self.stack.up(
                        ["--init", "--port", str(self.hub_port)], ["--espw-path", PROVIDER]
                    )
            except StackError as error:
                raise Disappointment(str(error)) from error

        await _to_its_end(start)
        return f"the hub answers at {self.stack.url}"

    async def fill_inventory(self) -> str:
        root = self._client("root")
        await self._create(root, WORKSPACES, {"metadata": {"name": "imw-1"}})
        inventory = self._client("root:imw-1")
        for target, location, target_labels, location_labels in _TARGETS.values():
            await self._create(inventory, SYNC_TARGETS, named(target, target_labels, spec={}))
            await self._create(
                inventory,
                LOCATIONS,
                named(
                    location,
                    location_labels,
                    spec={
                        "resource": SYNC_TARGETS._asdict(),
                        "instanceSelector": {"matchLabels": target_labels},
                    },
                ),
            )
        await inventory.delete(LOCATIONS, "default")
        provider = self._client(PROVIDER)
        for name, (target, *_) in _TARGETS.items():
            mailbox = edge_identity.mailbox_of(await inventory.get(SYNC_TARGETS, target))
            seen = await self._appears(provider, WORKSPACES, mailbox.workspace, _is_ready)
            self._mailboxes[name] = EdgeName(seen["spec"]["cluster"], mailbox.uid)
        return "two SyncTargets and Locations; their mailbox workspaces are Ready"

    async def start_syncers(self) -> str:
        hub = edge_identity.open_hub([self.stack.kubeconfig], "base")
        for name, (target, *_) in _TARGETS.items():
            syncer = self.edge(name).syncer
            syncer.join(await edge_identity.issue(hub, target, self._mailboxes[name]))
            await _to_its_end(syncer.start)
        return "both dial out, with an identity that reaches their own mailbox and nothing else"

    # -- stage 2 -----------------------------------------------------------------------------

    async def place_common(self) -> str:
        root = self._client("root")
        await self._create(root, WORKSPACES, {"metadata": {"name": "my-org"}})
        return await self._place(COMMON, ["location-f", "location-g"])

    async def place_special(self) -> str:
        return await self._place(SPECIAL, ["location-g"])

    async def _place(self, workload: Workload, wanted: list[str]) -> str:
        organization = self._client("root:my-org")
        await self._create(organization, WORKSPACES, {"metadata": {"name": workload.workspace}})
        client = self._client(f"root:my-org:{workload.workspace}")
        for gvr, obj, namespace in workload_objects(workload):
            await self._create(client, gvr, obj, namespace)
        seen = await self._appears(
            client,
            SINGLE_PLACEMENT_SLICES,
            workload.placement,
            lambda placed: len(placed["destinations"]) == len(wanted),
        )
        found = sorted(each["locationName"] for each in seen["destinations"])
        expect(found, wanted, "destinations")
        return f"{workload.placement} resolves to {', '.join(found)}"

    # -- stages 3 to 5 -----------------------------------------------------------------------

    async def see_mailboxes(self) -> str:
        wanted = {"florin": [COMMON], "guilder": [COMMON, SPECIAL]}
        for name, workloads in wanted.items():
            mailbox = self._client(self._mailboxes[name].mailbox)
            namespaces = sorted(each.namespace for each in workloads)
            await self._appears(
                mailbox,
                SYNCER_CONFIGS,
                "the-one",
                partial(_has_namespaces, namespaces),
            )
            for workload in workloads:
                await self._appears(
                    mailbox, DEPLOYMENTS, workload.deployment, namespace=workload.namespace
                )
        return "florin's holds commond; guilder's holds commond and speciald"

    async def fetch_pages(self) -> str:
        for name, workload in (("florin", COMMON), ("guilder", SPECIAL), ("guilder", COMMON)):
            transport = kubeconfig.connect(kubeconfig.load([self.edge(name).kubeconfig]))
            try:
                await self._appears(
                    Client(transport, user_agent="skerry/demo"),
                    DEPLOYMENTS,
                    workload.deployment,
                    lambda found: found.get("status", {}).get("availableReplicas", 0) >= 1,
                    workload.namespace,
                )
            finally:
                await transport.close()
        pages = []
        for port, words in self.pages():
            text = await asyncio.to_thread(_fetched, port)
            if words not in text:
                raise Disappointment(f"http://localhost:{port}: saw {text!r}, wanted {words!r}")
            pages.append(f"http://localhost:{port} says {words!r}")
        return "; ".join(pages)

    def pages(self) -> Iterator[tuple[int, str]]:
        """Yield the port of each page and what it says."""
        yield self.ports.florin_common, "This is a common web site."
        yield self.ports.guilder_special, "This is a special web site."
        yield self.ports.guilder_common, "This is a common web site."

    async def see_summaries(self) -> str:
        rows = []
        for workload, count in ((COMMON, 2), (SPECIAL, 1)):
            client = self._client(f"root:my-org:{workload.workspace}")
            name = f"{workload.placement}-deployments-{workload.deployment}"
            seen = await self._appears(
                client,
                STATUS_SUMMARIES,
                name,
                partial(_has_healthy, count),
                workload.namespace,
            )
            rows.append(
                f"{workload.deployment}: {seen['healthy']} of {seen['destinations']} healthy"
            )
        return "; ".join(rows)

    # -- helpers of the stages ---------------------------------------------------------------

    def _client(self, workspace: str) -> Client:
        if self._transport is None:
            base = kubeconfig.load([self.stack.kubeconfig], Overrides(context="base"))
            self._transport = kubeconfig.connect(base)
        client = Client(self._transport, user_agent="skerry/demo")
        return client.at("", workspace)

    async def _create(
        self, client: Client, gvr: GroupVersionResource, obj: Object, namespace: str = ""
    ) -> None:
        whole = {"apiVersion": str(gvr.group_version), "kind": KINDS[gvr], **obj}
        try:
            await client.create(gvr, whole, namespace)
        except AlreadyExists:
            return

    async def _appears(
        self,
        client: Client,
        gvr: GroupVersionResource,
        name: str,
        ready: Callable[[Object], bool] = lambda _: True,
        namespace: str = "",
    ) -> Object:
        return await appears(client, gvr, name, ready, namespace, seconds=_PATIENCE_SECONDS)

    def farewell(self) -> list[str]:
        """Return the commands to go on with, one a line."""
        question = self.directory / "what-if.yaml"
        question.write_text(yaml.safe_dump(narrower(COMMON), sort_keys=False))
        edge = shlex.quote(str(self.edge("guilder").kubeconfig))
        commands = [
            *(f"curl http://localhost:{port}" for port, _ in self.pages()),
            "skerry status",
            "skerry edge list",
            "skerry fleet",
            f"kubectl ws root:my-org:{COMMON.workspace}",
            "kubectl get edgeplacements",
            "kubectl get statussummaries --all-namespaces",
            f"skerry explain placement {COMMON.placement}",
            f"skerry whatif -f {shlex.quote(str(question))}",
            f"kubectl --kubeconfig {edge} get pods --all-namespaces",
        ]
        return next_steps(self.stack.kubeconfig, commands)

    async def close(self) -> None:
        """Stop every process of the scenario."""
        if self._transport is not None:
            await self._transport.close()
        await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """End every process of the scenario; harmless when none runs."""
        for name in _TARGETS:
            self.edge(name).syncer.stop()
        self.stack.down()
        for name in _TARGETS:
            self.edge(name).stop()


async def run_scenario(scenario: Scenario, narrator: Narrator, *, once: bool) -> bool:
    """Play the scenario, and stay until stopped unless it is just this *once*."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    clock = SystemClock()
    began = clock.monotonic()
    try:
        held = await play_until(stopped, scenario, narrator, clock)
        if held:
            narrator.say(f"All stages held after {clock.monotonic() - began:.1f} s.")
        if not once and held and not stopped.is_set():
            async with _console(scenario, narrator):
                narrator.say("Everything stays up until Ctrl-C. In another terminal, for example:")
                for line in ("", *scenario.farewell(), ""):
                    narrator.say(line)
                await stopped.wait()
    finally:
        await scenario.close()
    return held


@contextlib.asynccontextmanager
async def _console(scenario: Scenario, narrator: Narrator) -> AsyncIterator[None]:
    """Show the link to the console, and lead browsers there meanwhile."""
    settings = HubSettings(str(scenario.stack.kubeconfig), "base", {}, PROVIDER)
    async with contextlib.AsyncExitStack() as open_until_then:
        try:
            address = await open_until_then.enter_async_context(console_proxy(settings, 0))
        except (Unanswered, ApiError, TransportError, OSError) as error:
            narrator.say(f"There is no console to look at: {error}")
        else:
            narrator.say("The fleet in a browser, by a link that is good once, for a minute:")
            narrator.say(f"  {address}")
            narrator.say("Later: skerry console --proxy")
        yield


async def _to_its_end(start: Callable[[], object]) -> None:
    """Start something in a thread; who is cancelled meanwhile waits, so that it can be stopped."""
    starting = asyncio.get_running_loop().run_in_executor(None, start)
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait({starting})
        raise


def _is_ready(workspace: Object) -> bool:
    return bool(workspace.get("status", {}).get("phase") == "Ready")


def _has_namespaces(wanted: list[str], config: Object) -> bool:
    scope = config.get("spec", {}).get("namespaceScope", {})
    return sorted(scope.get("namespaces") or []) == wanted


def _has_healthy(count: int, summary: Object) -> bool:
    return bool(summary.get("healthy") == count)


def _fetched(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        return str(answer.read().decode())
