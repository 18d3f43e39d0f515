"""How an edge gets its certificate, and keeps it."""

from __future__ import annotations

from skerry.api.edge_identity import EDGES
from tests.unit.server.workspaces.edges import CONFIGS, EdgeHub, certificate_of, in_edge_hub


@in_edge_hub
async def test_a_bootstrap_credential_becomes_a_certificate_that_reaches_the_mailbox(
    hub: EdgeHub,
) -> None:
    edge = await hub.edge()
    reply = await edge.request(await edge.credential())
    assert reply.status == 201, reply.body
    assert reply.body["spec"]["username"].startswith(f"system:edge-bootstrap:{edge.mailbox}:")
    certificate = certificate_of(reply.body)
    assert certificate.subject.rfc4514_string() == f"CN={edge.name.common_name},O={EDGES}"
    edge.take(reply.body)
    found = await edge.ask("GET", CONFIGS)
    assert found.status == 200, found.body
    assert [each["metadata"]["name"] for each in found.body["items"]] == ["the-one"]
