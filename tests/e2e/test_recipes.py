"""The recipes, run as printed; what they promise is looked up in the mailboxes of two edges."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_identity import HubAccess, edge_of, open_hub
from skerry.app.hub_content import _KUBERNETES, FINER_EXPORTS
from tests.kit.e2e.places import CONFIG_MAPS, DEPLOYMENTS, until
from tests.kit.e2e.walkthrough import Terminal
from tests.kit.ports import free_ports

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "recipes.md").read_text()
BLOCKS = re.findall(r"^```shell\n(.*?)^```", PAGE, re.M | re.S)
STATEFUL_SETS = GroupVersionResource("apps", "v1", "statefulsets")
PLACES = {"berlin": (3, "Moin"), "lisbon": (1, "Bom-dia")}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubAccess]:
    """A hub whose reader has done everything the page says."""
    terminal = Terminal(tmp_path)
    terminal.export(KUBECONFIG=str(tmp_path / ".skerry" / "admin.kubeconfig"))
    terminal(f"skerry up --init --detach --port {free_ports(1)[0]}")
    try:
        terminal.play(BLOCKS)
        access = open_hub([tmp_path / ".skerry" / "admin.kubeconfig"])
        yield access
        await access.client.transport.close()
    finally:
        terminal("skerry down")


def _differs(place: str) -> Callable[[Object | None], bool]:
    """Return what is true of a StatefulSet or Deployment that is as *place* wants it."""
    replicas, _ = PLACES[place]
    return lambda obj: obj is not None and obj["spec"].get("replicas") == replicas


async def test_each_place_has_what_the_recipes_promise(hub: HubAccess) -> None:
    for name, (_, greeting) in PLACES.items():
        mailbox = hub.at((await edge_of(hub, name, "root:imw", "root:espw")).mailbox)
        await until(mailbox, STATEFUL_SETS, "queue", "queue", _differs(name))
        page = await until(mailbox, CONFIG_MAPS, "page", "queue", lambda o: o is not None)
        assert page is not None
        assert page["data"] == {"index.html": f"{greeting}, here is prod"}
        web = await until(mailbox, DEPLOYMENTS, "web", "queue", _differs(name))
        assert web is not None
        assert web["spec"]["template"]["spec"]["nodeSelector"] == {"greets-with": greeting}


def test_the_table_of_exports_is_the_one_of_the_code() -> None:
    listed = {
        export: set(kinds.split(", "))
        for kinds, export in re.findall(r"^\| (\w[^|]*?) \| `([\w.]+)` \|$", PAGE, re.M)
    }
    offered = {"kubernetes": _KUBERNETES, **FINER_EXPORTS}
    assert set(listed) == set(offered)
    for export, kinds in offered.items():
        plural = {resource.lower() for _, resource in kinds}
        named = {f"{kind.lower()}s" for kind in listed[export]}
        fixed = {"ingresss": "ingresses", "endpointss": "endpoints", "storageclasss":
                 "storageclasses", "ingressclasss": "ingressclasses",
                 "networkpolicys": "networkpolicies"}  # fmt: skip
        assert {fixed.get(name, name) for name in named} == plural, export
