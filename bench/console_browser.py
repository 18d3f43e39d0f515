"""The console in headless Chromium over a hub with 10,000 edges, each with 20 objects.

What is measured is measured inside the page, from the event to the second frame after the result
is in the document; changes are written over the API as a syncer writes them. A round trip of 50 ms
is made by a relay that holds every piece back, connections included, so that handshakes pay too.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, CDPSession, Page, expect
from tests.kit.browser.chromium import chromium
from tests.kit.browser.fleet import Simulated

from bench.edge_hub import (
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    bind,
    body,
    connected,
    controlling,
    for_each,
    location,
    make_workspace,
    sync_target,
)
from bench.report import Row
from bench.servers import Measured, ours
from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE_SECONDS,
    MAX_LEASE_SECONDS,
    SINGLE_PLACEMENT_SLICES,
)
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.app.console_login import login_link
from skerry.app.hub_settings import HubSettings
from skerry.runtime.client import Client

_SUITE = "console"
EDGES = 10_000
_OBJECTS = 20
_INVENTORY, _SHOP = "root:stores", "root:shop"
_WELL = {"wanted": _OBJECTS, "applied": _OBJECTS, "unhealthy": 0}
_ILL = {**_WELL, "unhealthy": 1}
_ROUND_TRIP_SECONDS = 0.05
_RUNS = 5
_CHANGES = 60
CHURN_SECONDS = 60.0
# How often the heap is read meanwhile, the end included; flat is what does not grow from the second
# reading on by more than this.
_READINGS, _FLAT_MB = 6, 2.0
_IDLE_SECONDS = 20.0
_SETTLED_MS = 3000
_VIEWERS = 10
_PATIENCE_MS = 120_000
# No syncer runs here: with the usual Lease all edges would be away before the end.
_LASTS = {HEARTBEAT_LEASE_SECONDS: str(MAX_LEASE_SECONDS)}
# The hub has nothing left to do of what was made when it takes less than this of a core.
_QUIET_SHARE, _QUIET_SECONDS = 0.04, 3.0

# In the page before any of its scripts: when the fleet was painted, and every later count.
_WATCH = """
window.seen = {painted: 0, counts: []};
const frames = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
new MutationObserver(() => {
  if (!seen.painted && document.querySelector(".item a") && document.querySelector("canvas")) {
    seen.painted = -1;
    frames(() => { seen.painted = performance.now(); });
  }
  const ill = document.querySelector(".count.mark-unhealthy strong")?.textContent;
  if (ill !== undefined && ill !== seen.last) {
    seen.last = ill;
    const count = Number(ill.replaceAll(",", ""));
    frames(() => seen.counts.push([count, Date.now()]));
  }
}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
_TYPE = """([text, wanted]) => new Promise((resolve) => {
  const box = document.querySelector("[data-filter]");
  const table = () => document.querySelector("[role=table]")?.getAttribute("aria-rowcount");
  const began = performance.now();
  const look = () => {
    if (table() !== String(wanted)) return false;
    watched.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
    return true;
  };
  const watched = new MutationObserver(look);
  watched.observe(document, {subtree: true, childList: true, attributes: true});
  box.value = text;
  box.dispatchEvent(new Event("input", {bubbles: true}));
})"""
_REGROUP = """([by, wanted]) => new Promise((resolve) => {
  const began = performance.now();
  const look = () => {
    if (document.querySelectorAll("[role=rowheader]").length !== wanted) return;
    watched.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
  };
  const watched = new MutationObserver(look);
  watched.observe(document, {subtree: true, childList: true});
  const select = document.querySelector(".by select");
  select.value = by;
  select.dispatchEvent(new Event("change", {bubbles: true}));
})"""
_ASK = """async ([kind, words]) => {
  const main = document.querySelector("script[type=module]").src;
  const { ask } = await import(new URL("socket.js", main).href);
  const began = performance.now();
  await ask(kind, words);
  return performance.now() - began;
}"""


class Api:
    """Writes to the hub from a thread of its own: playwright's loop has this one."""

    def __init__(self, kubeconfig: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = connected(kubeconfig)
        self.client: Client = self.run(self._open.__aenter__())

    def start(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Any) -> Any:
        return self.start(work).result()

    def close(self) -> None:
        self.run(self._open.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _fill(client: Client) -> None:
    """Make the edges, and a placement of twenty objects that leads to all of them."""
    for path in (_INVENTORY, _SHOP):
        await make_workspace(client, "root", path.rpartition(":")[2])
    await bind(client, _SHOP, "kubernetes", "root:compute")
    await bind(client, _SHOP, "edge.kcp.io")
    shop, inventory = client.at("", _SHOP), client.at("", _INVENTORY)
    await _until(lambda: shop.list(EDGE_PLACEMENTS))
    await _until(lambda: shop.list(NAMESPACES))
    goes = {"labels": {"goes": "out"}}
    await shop.create(NAMESPACES, body("v1", "Namespace", "shop", metadata=goes))

    async def make_object(number: int) -> None:
        named = body("v1", "ConfigMap", f"c{number}", data={"k": "v"})
        await shop.create(CONFIG_MAPS, named, namespace="shop")

    async def make_edge(number: int) -> None:
        name = f"edge-{number:05}"
        labels = {
            "region": f"r{number % 20}",
            "env": "prod" if number % 3 else "stage",
            "site": f"s{number % 500}",
        }
        target = sync_target(name, {"id": name, **labels})
        target["metadata"]["annotations"] = _LASTS
        await inventory.create(SYNC_TARGETS, target)
        await inventory.create(LOCATIONS, location(name, labels, {"id": name}))
        await set_status(client, number, _WELL)

    await for_each(_OBJECTS, make_object)
    await for_each(EDGES, make_edge, 32)
    everything = {"locationSelectors": [{}], "namespaceSelector": {"matchLabels": {"goes": "out"}}}
    await shop.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "web", spec=everything))


async def _until(work: Callable[[], Awaitable[Any]]) -> None:
    while True:
        try:
            await work()
        except ApiError:
            await asyncio.sleep(0.2)
        else:
            return


async def _placed(client: Client) -> None:
    """Return once the scheduler has led the placement to every edge."""
    while True:
        slices = (await client.at("", _SHOP).list(SINGLE_PLACEMENT_SLICES)).items
        if sum(len(each.get("destinations") or ()) for each in slices) >= EDGES:
            return
        await asyncio.sleep(1)


def _settled(hub: Measured) -> None:
    """Return once the hub's own controllers have done with what was made."""
    while True:
        before = hub.cpu_seconds()
        time.sleep(_QUIET_SECONDS)
        if (hub.cpu_seconds() - before) / _QUIET_SECONDS < _QUIET_SHARE:
            return


async def set_status(client: Client, number: int, objects: dict[str, int]) -> None:
    edge = Simulated(f"edge-{number:05}", objects=objects)
    patch = {"status": edge.status()}
    await client.at("", _INVENTORY).patch(SYNC_TARGETS, edge.name, patch, subresource="status")


@contextmanager
def relay(port: int) -> Iterator[int]:
    """Lead to *port* with a round trip that is felt; gives the port to connect to."""
    loop = asyncio.new_event_loop()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            loop.call_later(_ROUND_TRIP_SECONDS / 2, writer.write, piece)
        loop.call_later(_ROUND_TRIP_SECONDS / 2, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The browser believes itself connected at once: what it sends waits for the handshake.
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(_ROUND_TRIP_SECONDS)
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(pipe(reader, outer), pipe(inner, writer), return_exceptions=True)

    submit = asyncio.run_coroutine_threadsafe
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = submit(asyncio.start_server(serve, "127.0.0.1", 0), loop).result()
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        submit(_ended(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _ended(server: asyncio.Server) -> None:
    """Close a server and whatever is still open in it."""
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass
class Looking:
    """A browser before the console of a hub."""

    browser: Browser
    url: str
    cookies: list[Any]

    @contextmanager
    def page(self, url: str = "") -> Iterator[Page]:
        """Open an empty page of somebody who is signed in and has nothing in their cache."""
        context = self.browser.new_context(
            ignore_https_errors=True, viewport={"width": 1280, "height": 800}
        )
        context.add_cookies(self.cookies)
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        try:
            yield page
        finally:
            context.close()

    def painted(self, page: Page, url: str = "") -> float:
        """Open the fleet; return after how many milliseconds it was painted."""
        page.goto(f"{url or self.url}/console/fleet?by=region")
        expect(page.locator(".item a").first).to_be_visible(timeout=_PATIENCE_MS)
        while (found := page.evaluate("seen.painted")) <= 0:
            page.wait_for_timeout(5)
        return float(found)


def row(name: str, value: float, unit: str, limit: float | None, note: str = "") -> Row:
    if limit is None:
        return Row(_SUITE, name, value, unit, note=note)
    return Row(_SUITE, name, value, unit, f"< {limit:g} {unit}", value < limit, note)


def _first_paints(looking: Looking) -> list[Row]:
    rows = []
    port = urlsplit(looking.url).port or 0
    with relay(port) as far:
        for name, url, limit in (
            ("first paint, cold, loopback", looking.url, 500),
            ("first paint, cold, 50 ms round trip", f"https://127.0.0.1:{far}", 1200),
        ):
            taken = []
            for _ in range(_RUNS):
                with looking.page() as page:
                    taken.append(looking.painted(page, url))
            spread = f"{min(taken):.0f} to {max(taken):.0f} in {_RUNS} runs"
            rows.append(row(name, statistics.median(taken), "ms", limit, spread))
    return rows


def _bytes(looking: Looking, page: Page, cdp: CDPSession) -> list[Row]:
    code: list[float] = []
    frames: list[int] = []
    cdp.on("Network.loadingFinished", lambda event: code.append(event["encodedDataLength"]))
    cdp.on(
        "Network.webSocketFrameReceived",
        lambda event: frames.append(len(event["response"]["payloadData"])),
    )
    cdp.send("Network.enable")
    looking.painted(page)
    # The list asks for the rows that fit its height once it has one.
    page.wait_for_timeout(_SETTLED_MS)
    first = sum(frames)
    del frames[:]
    page.wait_for_timeout(_IDLE_SECONDS * 1000)
    return [
        row("first view, code, by the browser", sum(code) / 1000, "kB", 150, f"{len(code)} files"),
        row("first view, data, by the browser", first / 1000, "kB", 60, "not compressed"),
        row("idle tab", sum(frames) / 1000 / _IDLE_SECONDS, "kB/s", 0.1,
            f"{_IDLE_SECONDS:g} s in which nothing changes"),
    ]  # fmt: skip


def _filters(page: Page) -> list[Row]:
    wanted = {
        "env=stage": sum(1 for number in range(EDGES) if not number % 3),
        "region=r3": EDGES // 20,
        "edge-0012": 10,
        "env=prod site=s7": sum(1 for n in range(7, EDGES, 500) if n % 3),
        "": EDGES,
    }
    filtered = [
        page.evaluate(_TYPE, [text, count + 1])
        for _ in range(_RUNS)
        for text, count in wanted.items()
    ]
    groups = {"env": 2, "region": 20}
    regrouped = [
        page.evaluate(_REGROUP, [by, count]) for _ in range(_RUNS) for by, count in groups.items()
    ]
    note = "median {:.0f}, of {}"
    return [
        row("filter to result, most", max(filtered), "ms", 100,
            note.format(statistics.median(filtered), len(filtered))),
        row("regroup to result, most", max(regrouped), "ms", 100,
            note.format(statistics.median(regrouped), len(regrouped))),
    ]  # fmt: skip


def _changes(page: Page, api: Api) -> list[Row]:
    """Make edges ill one by one; the count that each leads to says which change is painted."""
    began = {}
    for number in range(_CHANGES):
        page.wait_for_timeout(150 + 37 * number % 250)
        began[number + 1] = time.time() * 1000
        api.run(set_status(api.client, number, _ILL))
    expect(page.locator(".count.mark-unhealthy strong")).to_have_text(str(_CHANGES))
    page.wait_for_timeout(200)
    counts = page.evaluate("seen.counts")
    taken = []
    for count, start in began.items():
        taken.append(min(at for seen, at in counts if seen >= count) - start)
    high = statistics.quantiles(taken, n=100)[98]
    note = f"median {statistics.median(taken):.0f}, {_CHANGES} changes, one by one"
    return [row("change at an edge to pixel, p99", high, "ms", 750, note)]


def _heap(cdp: CDPSession) -> float:
    cdp.send("HeapProfiler.collectGarbage")
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")) / 1e6


def _churn(page: Page, cdp: CDPSession, api: Api, seconds: float) -> list[Row]:
    """Change edges without a pause while a tab shows them; read its heap now and then.

    Somebody filters before each reading: a session that nobody uses ends after half an hour, and
    the heap of a tab that shows nothing any more is flat for the wrong reason.
    """
    cdp.send("Performance.enable")
    # What is noted here of every count would be what grows.
    page.evaluate("seen.counts.length = 0; seen.counts.push = () => 0")
    stop = threading.Event()

    async def churn() -> int:
        number = 0
        while not stop.is_set():
            await set_status(api.client, (number * 37) % EDGES, _ILL if number % 2 else _WELL)
            number += 1
        return number

    heaps = [_heap(cdp)]
    task = api.start(churn())
    for _ in range(_READINGS):
        page.wait_for_timeout(seconds * 1000 / _READINGS)
        for text in ("env=stage", ""):
            page.locator("[data-filter]").fill(text)
            page.wait_for_timeout(_SETTLED_MS)
        expect(page.locator(".connection")).to_have_text(re.compile("live$"))
        heaps.append(_heap(cdp))
    stop.set()
    note = f"{task.result()} changes in {seconds:g} s; {', '.join(f'{each:.1f}' for each in heaps)}"
    growth = max(heaps[2:]) - heaps[1]
    return [
        row("heap after churn", heaps[-1], "MB", 30, note),
        row("heap, growth since the first sixth of churn", growth, "MB", _FLAT_MB),
    ]


def _viewers(looking: Looking, hub: Measured) -> list[Row]:
    def share() -> float:
        before = hub.cpu_seconds()
        time.sleep(_IDLE_SECONDS)
        return 100 * (hub.cpu_seconds() - before) / _IDLE_SECONDS

    alone = share()
    context = looking.browser.new_context(ignore_https_errors=True)
    context.add_cookies(looking.cookies)
    pages = [context.new_page() for _ in range(_VIEWERS)]
    for page in pages:
        page.goto(f"{looking.url}/console/fleet")
        expect(page.locator(".item a").first).to_be_visible(timeout=_PATIENCE_MS)
    watched = share()
    context.close()
    note = f"{_VIEWERS} tabs: {watched:.2g} %, none: {alone:.2g} %"
    each = max(0.0, watched - alone) / _VIEWERS
    return [row("hub CPU per idle viewer", each, "% of a core", 1, note)]


def _questions(page: Page, hub: Measured) -> list[Row]:
    about = {"ws": _SHOP, "name": "web", "object": "configmaps/shop/c3"}
    pairs = [{**about, "edge": f"{_INVENTORY}/edge-{n:05}"} for n in (7, EDGES // 2, EDGES - 1)]
    explained, of_the_hub = _asked(page, hub, "explain", pairs)
    edit = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c3, namespace: shop}, data: {k: w}}"
    foreseen, of_its_time = _asked(page, hub, "whatif", [{"ws": _SHOP, "manifest": edit}] * 3)
    note = "asked in the page; {:.0f} ms of the hub's processor"
    return [
        row("explain a pair", explained, "ms", 50, note.format(of_the_hub)),
        row("what-if of one object at all edges", foreseen, "ms", 300, note.format(of_its_time)),
    ]


def _asked(
    page: Page, hub: Measured, kind: str, words: Sequence[dict[str, str]]
) -> tuple[float, float]:
    """Return how long an answer takes in the page, and how much of the hub's processor."""
    before = hub.cpu_seconds()
    taken = [page.evaluate(_ASK, [kind, each]) for each in words]
    return statistics.median(taken), 1000 * (hub.cpu_seconds() - before) / len(words)


def _signed_in(browser: Browser, kubeconfig: Path, api: Api) -> Looking:
    link = api.run(login_link(HubSettings(kubeconfig=str(kubeconfig))))
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.goto(link.address)
    # The first who looks waits until the hub has read the fleet; that is not what is measured.
    expect(page.locator(".item a").first).to_be_visible(timeout=_PATIENCE_MS)
    cookies = list(context.cookies())
    context.close()
    return Looking(browser, link.url, cookies)


def run(churn_seconds: float = CHURN_SECONDS) -> list[Row]:
    """Measure everything that a browser makes of it."""
    with ours("hub", ("--init", "--console-port", "0")) as hub:
        api = Api(hub.kubeconfig)
        api.run(_fill(api.client))
        with controlling(hub, "edge-scheduler"):
            api.run(_placed(api.client))
        _settled(hub)
        with chromium() as browser:
            looking = _signed_in(browser, hub.kubeconfig, api)
            rows = _first_paints(looking)
            with looking.page() as page:
                cdp = page.context.new_cdp_session(page)
                rows += _bytes(looking, page, cdp)
                rows += _filters(page)
                rows += _questions(page, hub)
                rows += _changes(page, api)
                rows += _churn(page, cdp, api, churn_seconds)
            rows += _viewers(looking, hub)
        api.close()
    return rows
