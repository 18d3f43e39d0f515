"""Warnings to whoever writes a webhook configuration in a workspace: which of it is not called."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.server.admission.operation import Operation


class WebhookWarnings:
    """Warns of webhooks that a hub does not call, instead of leaving that to be found out."""

    def __init__(self, *, called: bool) -> None:
        """*called* tells whether there are any networks in which the hub calls webhooks."""
        self._called = called

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE":
            return
        for index, webhook in enumerate(operation.obj.get("webhooks") or ()):
            if text := self._warning(webhook.get("clientConfig") or {}):
                operation.warn(f"webhooks[{index}].clientConfig.{text}")

    def _warning(self, client: Object) -> str:
        if client.get("service"):
            return "service: webhooks of workspaces are not called through Services; name a URL"
        if not self._called:
            return (
                "url: the hub's administrator allows no webhooks to be called (--webhook-network)"
            )
        return ""
