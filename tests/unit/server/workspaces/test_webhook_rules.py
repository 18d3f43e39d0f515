"""Who configures a webhook that is not called is warned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.server.hub import running_hub
from tests.kit.server.webhooks import configuration, webhook

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.mark.parametrize(("networks", "warnings"), [((), 2), (("192.0.2.0/24",), 1)])
async def test_what_is_not_called_is_named(
    tmp_path: Path, networks: tuple[str, ...], warnings: int
) -> None:
    made = configuration(
        webhook({"service": {"name": "s", "namespace": "n"}}, "a.example.com"),
        webhook({"url": "https://h.example.com/"}, "b.example.com"),
    )
    async with running_hub(tmp_path, webhook_networks=networks) as hub:
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{CONFIGURATIONS}", made)
        assert reply.status == 201
        found = [text.partition(":")[0] for text in reply.warnings]
        fields = ["webhooks[0].clientConfig.service", "webhooks[1].clientConfig.url"]
        assert found == [f'299 - "{field}' for field in fields[:warnings]]
        path = f"/clusters/root{CONFIGURATIONS}/c"
        assert not (await hub.ask("kcp-admin", "DELETE", path)).warnings
