"""Signing in to the console with the credential of a kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.api.errors import NotFound
from skerry.app.console_login import console_sessions, end_session, login_link
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from tests.kit.server.browser import Browser
from tests.kit.server.hub import running_hub


async def test_a_link_signs_in_as_the_kubeconfigs_user_and_its_session_can_be_ended(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path, console=True) as hub:
        settings = HubSettings(kubeconfig=str(hub.running.kubeconfig))
        link = await login_link(settings)
        assert link.address == f"{hub.running.console}/console/login#code={link.code}"
        mine = Browser(link.url)
        assert (await mine.fetch("POST", "/console/session", {"code": link.code})).status == 204
        assert (await mine.fetch("GET", "/console/session")).json["user"] == "kcp-admin"
        [session] = await console_sessions(settings)
        await end_session(settings, session["id"])
        assert await console_sessions(settings) == []
        assert (await mine.fetch("GET", "/console/session")).status == 401
        with pytest.raises(NotFound):
            await end_session(settings, session["id"])


async def test_a_hub_without_a_console_is_named_in_a_sentence(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        with pytest.raises(Unanswered, match="skerry hub --console-port PORT serves one"):
            await login_link(HubSettings(kubeconfig=str(hub.running.kubeconfig)))
