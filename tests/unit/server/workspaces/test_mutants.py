"""Whatever is wrong with an object that the hub itself reads: it answers, and starts again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from skerry.app.settings import StoreSettings
from skerry.server.codec import encode, metadata_of
from tests.kit.server.hub import BINDINGS, Hub, config_map, running_hub
from tests.kit.server.mutants import ACCESS, ADMISSION, EDGE, KCP, Observed, mutations

ADMIN = "kcp-admin"
KINDS = {"kcp": KCP, "access": ACCESS, "admission": ADMISSION, "edge": EDGE}


async def bind(hub: Hub, where: str, name: str, path: str, export: str) -> None:
    reference = {"export": {"path": path, "name": export}}
    head = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding", "metadata": {"name": name}}
    await hub.create(where, BINDINGS, {**head, "spec": {"reference": reference}})


async def write_all(hub: Hub, where: str, observed: Observed) -> int:
    """Create every mutant; return how many were let in."""
    root, taken = f"/clusters/{where}{observed.path()}", 0
    for number, what in enumerate(mutations(observed.named("m"))):
        mutant = what.applied(observed.named(f"m{number}"))
        reply = await hub.ask(ADMIN, "POST", root, mutant)
        assert reply.status in {201, 400, 403, 422}, (observed.kind, what, reply.body)
        taken += reply.status == 201
    return taken


async def assert_alive(hub: Hub, where: str, kinds: Sequence[Observed], name: str) -> None:
    """Check that what was stored is read, and that the hub knows of what is new."""
    for observed in kinds:
        await hub.get(where, observed.path())
    made = await hub.workspace("root", name)
    await hub.create(made, "/api/v1/namespaces/default/configmaps", config_map("new"))


@pytest.mark.parametrize("kinds", KINDS)
async def test_a_hub_takes_or_refuses_each_and_starts_again(kinds: str, tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "hub.db")
    async with running_hub(tmp_path, store, edge_provider=True) as hub:
        shop = await hub.workspace("root", "shop")
        await bind(hub, shop, "edge", "root:espw", "edge.kcp.io")
        for observed in KINDS[kinds]:
            assert await write_all(hub, shop, observed) > 0, observed.kind
        await assert_alive(hub, shop, KINDS[kinds], "before")
    async with running_hub(tmp_path, store, edge_provider=True) as hub:
        await assert_alive(hub, shop, KINDS[kinds], "after")


async def test_nulls_in_metadata_are_read_as_a_decoder_does(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        watch = await hub.watch(ADMIN, "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
                                "?watch=true&labelSelector=x")  # fmt: skip
        obj = {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "WorkspaceType",
            "metadata": {
                "name": "hollow",
                "labels": {"x": None},
                "annotations": {"y": None},
                "finalizers": None,
            },
            "spec": {},
        }
        metadata = (await hub.create("root", "/apis/tenancy.kcp.io/v1alpha1/workspacetypes", obj))[
            "metadata"
        ]
        assert metadata["labels"] == {"x": ""}
        assert metadata["annotations"]["y"] == ""
        assert "finalizers" not in metadata
        assert not watch.closed


def test_nulls_that_were_stored_once_count_as_absent() -> None:
    stored = encode(
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": None, "labels": {"a": "b", "x": None}},
        }
    )
    assert (metadata_of(stored).name, metadata_of(stored).namespace) == ("w", "")
    assert metadata_of(stored).labels == {"a": "b"}
