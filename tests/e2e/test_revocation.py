"""A right that is taken away ends what it had allowed, watches included."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.runtime import kubeconfig
from skerry.runtime.client import Client, Selection

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "rolebindings")
_BINDING = {
    "metadata": {"name": "viewers"},
    "roleRef": {"apiGroup": BINDINGS.group, "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
}


@pytest.mark.parametrize("what", [(BINDINGS, "viewers"), (ACCOUNTS, "robot")])
async def test_an_open_watch_ends_when_the_right_or_the_account_goes(
    tmp_path: Path, what: tuple[GroupVersionResource, str]
) -> None:
    settings = ServerSettings(
        data_dir=tmp_path, port=0, store=StoreSettings(kind="memory"), controllers="none"
    )
    async with serving(settings, PLAIN_SERVER) as server:
        configuration = kubeconfig.load([server.kubeconfig])
        admin = Client(kubeconfig.connect(configuration))
        await admin.create(ACCOUNTS, {"metadata": {"name": "robot"}}, "default")
        await admin.create(BINDINGS, _BINDING, "default")
        granted = await admin.create(
            ACCOUNTS, {"spec": {}}, "default", name="robot", subresource="token"
        )
        bare = replace(configuration, certificate=b"", key=b"", token=granted["status"]["token"])
        robot = Client(kubeconfig.connect(bare))
        selection = Selection(namespace="default")
        async with asyncio.timeout(60), robot.watch(CONFIG_MAPS, selection) as events:
            await admin.create(CONFIG_MAPS, {"metadata": {"name": "seen"}}, "default")
            async for event in events:
                if event.object["metadata"]["name"] == "seen":
                    break
            await admin.delete(*what, "default")
            # Nothing else ends this watch for half an hour.
            assert [event async for event in events] == []
        with pytest.raises(ApiError):
            await robot.list(CONFIG_MAPS, selection)
        # Others are left alone.
        await admin.list(CONFIG_MAPS, selection)
        for client in (robot, admin):
            await client.transport.close()
